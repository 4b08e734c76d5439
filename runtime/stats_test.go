package runtime

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// The counts of a cluster are made of those of its nodes, field by field: sums, but for the first and the last handler. A field that
// nobody joins fails here, whatever its name.
func TestClusterStatsJoinEveryField(t *testing.T) {
	c := &Cluster{nodes: make([]Node, 3)}
	for i := range c.nodes {
		f := reflect.ValueOf(&c.nodes[i].stats).Elem()
		for k := range f.NumField() {
			f.Field(k).SetInt([]int64{0, 5000, 300}[i] + int64(k+1)*min(int64(i), 1))
		}
	}
	got := reflect.ValueOf(c.Stats())
	for k := range got.NumField() {
		name, n := got.Type().Field(k).Name, int64(k+1)
		want := 5300 + 2*n
		switch name {
		case "FirstHandler":
			want = 300 + n // node 0 has had no handler
		case "LastHandler":
			want = 5000 + n
		}
		require.Equal(t, want, got.Field(k).Int(), name)
	}
}
