package experiment

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTry(t *testing.T) {
	for _, name := range []string{"pingpong", "accumulate", "bcast", "allreduce", "datatype", "raid5", "kv", "pagefault"} {
		e, err := Find(name)
		require.NoError(t, err)
		b, err := e.Broken()
		require.NoError(t, err)
		s, err := New(b)
		require.NoError(t, err, name)
		points, err := s.Points()
		require.NoError(t, err)
		for k, p := range points {
			if k%5 != 0 && len(points) > 8 || k > 60 {
				continue
			}
			r, err := b.Measure(context.Background(), p)
			if err != nil {
				t.Error(p, err)
				continue
			}
			line := p.String() + ": " + r.Time(b.Followed).String() + " ="
			for _, n := range b.parts() {
				if r.Time(n) > 0 {
					line += fmt.Sprintf(" %s %v", n, r.Time(n))
				}
			}
			fmt.Println(name, line)
		}
	}
}
