//go:build invariants

package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/sim"
)

// An event that refers to what a pool has taken back is found out, and so is what is given back twice.
func TestUseAfterReleaseIsFound(t *testing.T) {
	var (
		messages messagePool
		dmas     dmaPool
		issues   issuePool
	)
	m, o, i := messages.get(100, 64), dmas.get(), issues.get()
	for _, live := range []any{m, o, i} {
		require.NotPanics(t, func() { checkLive(live) })
	}
	data := m.data
	messages.put(m)
	dmas.put(o)
	issues.put(i)
	require.Equal(t, byte(poison.Byte), data[99])
	n := new(Node)
	for _, c := range []struct {
		late  sim.Event
		again func()
		name  string
	}{
		{sim.Event{Kind: kindDeposited, P: m}, func() { messages.put(m) }, "a message"},
		{sim.Event{Kind: kindDMA, P: o}, func() { dmas.put(o) }, "a DMA operation"},
		{sim.Event{Kind: kindIssue, P: i}, func() { issues.put(i) }, "an operation of a handler"},
	} {
		require.PanicsWithValue(t, c.name+" is used after it was given back", func() { n.handle(&c.late) })
		require.PanicsWithValue(t, c.name+" is given back twice", c.again)
	}
	require.NotSame(t, m, messages.get(1, 64))
	require.Panics(t, func() { messages.release(data) })
	require.Panics(t, func() { n.resumable(&run{}, 0) }, "no handler waits")
}
