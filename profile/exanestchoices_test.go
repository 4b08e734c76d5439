package profile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/sim"
)

// silent is the destination of nodes that send nothing.
const silent = -1

// traffic makes every node send cells to others as fast as its port accepts
// them, and accept arriving cells at once.
type traffic struct {
	ports []fabric.Port
	first sim.ID
	next  []int // cell of each node
	to    func(src, i int) int
	cells int
}

func (x *traffic) Handle(e *sim.Event) {
	if node := int(e.Dst - x.first); e.Kind != fabric.KindReady {
		x.ports[node].Release(fabric.Unpack(e))
	} else {
		x.send(node)
	}
}

func (x *traffic) send(src int) {
	for ; x.next[src] < x.cells; x.next[src]++ {
		dst := x.to(src, x.next[src])
		if dst == silent {
			continue
		}
		if !x.ports[src].Ready(fabric.Requests) {
			return
		}
		x.ports[src].Send(fabric.Packet{Src: int32(src), Dst: int32(dst), Bytes: 256, Ref: x})
	}
}

// lastArrival returns when the last cell has arrived, if every node sends so
// many full cells.
func lastArrival(t *testing.T, spec fabric.Spec, cells int, to func(q fabric.QFDBs) func(src, i int) int) sim.Time {
	q, is := spec.QFDBs()
	require.True(t, is)
	eng := sim.New(1)
	f, err := fabric.New(eng, spec, q.Nodes())
	require.NoError(t, err)
	x := &traffic{to: to(q), next: make([]int, q.Nodes()), cells: cells}
	x.first = eng.AddGroup(q.Nodes(), q.Name, x)
	for i := range q.Nodes() {
		x.ports = append(x.ports, f.Attach(i, x.first+sim.ID(i)))
	}
	for i := range q.Nodes() {
		x.send(i)
	}
	require.NoError(t, eng.Run())
	for i, n := range x.next {
		require.Equal(t, cells, n, "node %d", i)
	}
	return eng.Now()
}

// choices are overrides for details that the report leaves open. The first is
// the unchanged profile.
var choices = []string{
	"", "fabric.exanest.order=zyx", "fabric.exanest.order=yxz", "fabric.exanest.ties=destination", "fabric.exanest.ties=up", "fabric.exanest.channels=1",
	"fabric.exanest.z_links=2", "fabric.exanest.control=0", "fabric.buffer=1KiB", "fabric.buffer=16KiB",
}

// docs/exanest.md gives the effect of each choice: one row each, with the times
// of three patterns and the comparison with the unchanged profile.
func TestDocumentSaysWhatTheChoicesAreWorth(t *testing.T) {
	text, err := os.ReadFile("../docs/exanest.md")
	require.NoError(t, err)
	patterns := []struct {
		cells int
		to    func(q fabric.QFDBs) func(src, i int) int
	}{
		// 1 KiB from all to all, each node beginning with the next one
		{4 * 127, func(q fabric.QFDBs) func(src, i int) int {
			return func(src, i int) int { return (src + 1 + i/4) % q.Nodes() }
		}},
		{256, func(q fabric.QFDBs) func(src, i int) int { // 64 KiB by one permutation
			to := rand.New(rand.NewPCG(1, 1)).Perm(q.Nodes())
			return func(src, _ int) int { return to[src] }
		}},
		{256, func(q fabric.QFDBs) func(src, i int) int { // 64 KiB half way around all rings
			return func(src, _ int) int {
				p := q.Place(src)
				p.X, p.Y, p.Z = (p.X+q.X/2)%q.X, (p.Y+q.Y/2)%q.Y, (p.Z+q.Z/2)%q.Z
				return q.Node(p)
			}
		}},
	}
	plain := make([]float64, len(patterns))
	for _, choice := range choices {
		var set []string
		name := "as it is"
		if choice != "" {
			set, name = []string{choice}, "`"+choice+"`"
		}
		p, err := Load("exanest", set...)
		require.NoError(t, err)
		row := "| " + name + " |"
		for i, pattern := range patterns {
			took := float64(lastArrival(t, p.Fabric, pattern.cells, pattern.to)) / float64(sim.Microsecond)
			if choice == "" {
				plain[i] = took
				row += fmt.Sprintf(" %.0f µs |", took)
				continue
			}
			row += fmt.Sprintf(" %.0f µs, %+.0f%% |", took, 100*(took/plain[i]-1))
		}
		if !strings.Contains(string(text), row+"\n") {
			t.Errorf("docs/exanest.md has no row %s", row)
		}
	}
}

// A full link between boards carries 64.3% of its rate, as osu_bw does over one
// hop (TR-488): 256 of 398 bytes. Within a board there is no extra overhead:
// 256 of 288.
func TestPayloadOfFullLinks(t *testing.T) {
	p, err := Load("exanest")
	require.NoError(t, err)
	const cells = 4000
	for _, c := range []struct {
		to              int
		gigabits, share float64
	}{{4, 10, 0.643}, {1, 16, 256. / 288}} {
		took := lastArrival(t, p.Fabric, cells, func(fabric.QFDBs) func(src, i int) int {
			return func(src, _ int) int {
				if src == 0 {
					return c.to
				}
				return silent
			}
		})
		rate := cells * 256 * 8 / (float64(took) / float64(sim.Nanosecond))
		require.InDelta(t, c.share, rate/c.gigabits, 0.001)
	}
}
