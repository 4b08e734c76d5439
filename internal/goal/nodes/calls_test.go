package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
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

// inSwitches is config for a network whose switches have units.
func inSwitches(t *testing.T) nodes.Config {
	p, err := profile.Load("spin-int", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}")
	require.NoError(t, err)
	return nodes.Config{Config: runtime.Config{Profile: p}, MPI: mpi.DefaultOptions(mpi.Host)}
}

// pairs has allreduces of all pairs of four ranks: each rank is in three groups,
// and takes up its calls in another order.
func pairs() string {
	var text strings.Builder
	text.WriteString("num_ranks 4\n")
	for r := range 4 {
		fmt.Fprintf(&text, "rank %d {\n", r)
		for k := range 8 {
			if other := k % 4; other != r {
				fmt.Fprintf(&text, "//coll p%d%d%d allreduce %db\nx%d: calc 0\n", min(r, other), max(r, other), k/4, 4<<(k/4*10), k)
			}
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// The library does allreduces of a schedule, with every mode: sums are checked, and
// what depends on them waits.
func TestCalls(t *testing.T) {
	s, some := read(t, calling("allreduce")), read(t, pairs())
	for _, mode := range mpi.AllreduceChoices() {
		if mode == mpi.ModeAccelerator {
			continue // of another profile
		}
		cfg := inSwitches(t)
		if mode != mpi.ModeBoards { // they are of four
			cfg.MPI.Allreduce, cfg.Calls = mode, make(map[string]bool)
			for _, c := range some.Collectives() {
				cfg.Calls[c.Name] = true
			}
			r, err := nodes.Run(context.Background(), some, cfg)
			require.NoError(t, err, mode)
			require.Len(t, r.Windows, 12)
			require.Equal(t, mode != mpi.ModeHost, r.Messages.Offloaded == 24, mode)
		}
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

// rooted has a call of each other kind among ranks that come at other times, of
// pairs and of all, with a root that is not the first member.
func rooted() string {
	var text strings.Builder
	text.WriteString("num_ranks 6\n")
	for r := range 6 {
		fmt.Fprintf(&text, "rank %d {\nw: calc %d\n", r, 5000*r)
		for i, what := range []string{"broadcast 9999b root", "broadcast 3b root", "broadcast 0b root", "reduce 40000b root", "barrier 0b", "allgather 999b", "reducescatter 24000b"} {
			all, pair := what, what
			if strings.HasSuffix(what, "root") {
				all, pair = what+" 4", what+fmt.Sprintf(" %d", r/2*2+1)
			}
			fmt.Fprintf(&text, "//coll a%d %s\nx%d: calc 0\n//coll p%d%d %s\ny%d: calc 0\n//coll end\n", i, all, i, r/2, i, pair, i)
		}
		text.WriteString("x0 requires w\n}\n")
	}
	return text.String()
}

// Broadcasts, reduces and barriers go where the mode has them, and to processes
// where it has allreduces alone: bytes are checked, and who leaves a barrier.
func TestRootedCalls(t *testing.T) {
	s := read(t, rooted())
	for _, mode := range mpi.AllreduceChoices() {
		if mode == mpi.ModeAccelerator || mode == mpi.ModeBoards {
			continue // of another profile, or number of ranks
		}
		cfg := inSwitches(t)
		cfg.MPI.Allreduce, cfg.Calls = mode, make(map[string]bool)
		for _, c := range s.Collectives() {
			cfg.Calls[c.Name] = true
			require.Equal(t, mode.Rooted(), nodes.Does(mode, c.Kind))
		}
		r, err := nodes.Run(context.Background(), s, cfg)
		require.NoError(t, err, mode)
		want := int64(2 * 6 * 6) // a broadcast of nothing is none
		if mode == mpi.ModeHost || !mode.Rooted() {
			want = 0
		}
		require.Equal(t, want, r.Messages.Offloaded, mode)
		require.Less(t, 25*sim.Microsecond, r.Max, "rank 5 is the last")
	}
}

// What the library cannot do is an error.
func TestCallsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		text, kind string
		mode       mpi.Mode
		empty      bool
	}{
		"a by host: expected one of [allreduce allgather reducescatter broadcast reduce barrier], not alltoall": {kind: "alltoall", mode: mpi.ModeHost},
		"a by host: 4095 bytes, expected whole int32":                                                           {kind: "allreduce", mode: mpi.ModeHost, text: "4095b"},
		"without payload nothing can be added":                                                                  {kind: "allreduce", mode: mpi.ModeHost, empty: true},
		"that accelerator was to do: the device has no accelerator (s":                                          {kind: "allreduce", mode: mpi.ModeAccelerator},
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
}

// A deadlock of pauses is named before those that wait because of it.
func TestPauseDeadlock(t *testing.T) {
	s, err := goal.Generate("alltoall-linear", goal.GenParams{Ranks: 9, Size: 100_000})
	require.NoError(t, err)
	p, err := profile.Load("spin-int", "fabric.kind=torus", "fabric.radix=0", "fabric.dims=[9]", "fabric.answers_first=true", "fabric.pause_from=9000")
	require.NoError(t, err)
	_, err = nodes.Run(context.Background(), s, nodes.Config{Config: runtime.Config{Profile: p}, MPI: mpi.DefaultOptions(mpi.Host)})
	require.ErrorContains(t, err, "PFC deadlock, a circle of paused links")
	require.Contains(t, strings.Join(strings.SplitN(err.Error(), "\n", 3)[:2], "\n"), "PFC deadlock")
}
