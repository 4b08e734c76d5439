package nic_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/nic"
)

// The counts of several NICs are made of those of each, field by field: sums,
// but for the first and the last handler. A field that nobody joins fails here,
// whatever its name.
func TestStatsJoinEveryField(t *testing.T) {
	var all nic.Stats
	for i := range 3 {
		var one nic.Stats
		f := reflect.ValueOf(&one).Elem()
		for k := range f.NumField() {
			f.Field(k).SetInt([]int64{0, 5000, 300}[i] + int64(k+1)*min(int64(i), 1))
		}
		all.Add(&one)
	}
	got := reflect.ValueOf(all)
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
