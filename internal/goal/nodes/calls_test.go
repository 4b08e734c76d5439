package nodes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
)

// calling has two allreduces of four ranks between computations and a message
// around the ring. The ranks are ready for them in no order.
func calling(kind string) string {
	text := "num_ranks 4\n"
	for r := range 4 {
		first, second := "a", "b"
		if r%2 == 1 {
			first, second = "b", "a"
		}
		text += strings.NewReplacer("RANK", string(rune('0'+r)), "NEXT", string(rune('0'+(r+1)%4)), "LAST", string(rune('0'+(r+3)%4)),
			"FIRST", first, "SECOND", second).Replace(`rank RANK {
w: calc 1000
//coll FIRST allreduce 4096b
x: calc 0
//coll SECOND allreduce 4096b
y: calc 0
//coll end
s: send 8b to NEXT
r: recv 8b from LAST
x requires w
s requires x
}
`)
	}
	return strings.ReplaceAll(text, "allreduce", kind)
}

// The library does allreduces of a schedule, with every mode: sums are checked, and
// what depends on them waits.
func TestCalls(t *testing.T) {
	s := read(t, calling("allreduce"))
	for _, mode := range mpi.AllreduceChoices() {
		if mode == mpi.ModeAccelerator {
			continue // of another profile
		}
		cfg := config(t, mpi.Host)
		cfg.MPI.Allreduce, cfg.Calls = mode, map[string]bool{"a": true, "b": true}
		r, err := nodes.Run(context.Background(), s, cfg)
		require.NoError(t, err, mode)
		require.Len(t, r.Windows, 2)
		for _, w := range r.Windows {
			require.Less(t, w.Start, w.End)
			require.LessOrEqual(t, w.End, r.Max)
		}
		require.Equal(t, mode != mpi.ModeHost, r.Messages.Offloaded == 8, mode)
	}
}

// What the library cannot do is an error.
func TestCallsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		text, kind string
		mode       mpi.Mode
		empty      bool
	}{
		"a by host: expected an allreduce, not allgather":              {kind: "allgather", mode: mpi.ModeHost},
		"a by host: 4095 bytes, expected whole int32":                  {kind: "allreduce", mode: mpi.ModeHost, text: "4095b"},
		"without payload nothing can be added":                         {kind: "allreduce", mode: mpi.ModeHost, empty: true},
		"that accelerator was to do: the device has no accelerator (s": {kind: "allreduce", mode: mpi.ModeAccelerator},
	} {
		text := calling(c.kind)
		if c.text != "" {
			text = strings.ReplaceAll(text, "4096b", c.text)
		}
		cfg := config(t, mpi.Host)
		cfg.MPI.Allreduce, cfg.Calls, cfg.Empty = c.mode, map[string]bool{"a": true, "b": true}, c.empty
		_, err := nodes.Run(context.Background(), read(t, text), cfg)
		require.ErrorContains(t, err, want)
	}
	some := strings.Replace(calling("allreduce"), "//coll b allreduce 4096b\ny", "//coll end\ny", 1)
	cfg := config(t, mpi.Host)
	cfg.Calls = map[string]bool{"b": true}
	_, err := nodes.Run(context.Background(), read(t, some), cfg)
	require.ErrorContains(t, err, "3 members, expected all 4 ranks")
}
