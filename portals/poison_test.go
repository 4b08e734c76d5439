//go:build invariants

package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A delivery, an operation and an entry that were given back are not used again in silence.
func TestUseAfterReleaseIsFound(t *testing.T) {
	p := newPair(t, 0)
	_, err := p.b.MEAppend(0, &ME{Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut | OptMEUseOnce}, PriorityList, 0)
	require.NoError(t, err)
	require.NoError(t, p.a.Put(Put{MD: p.md, Length: 8, Target: PhysID(1, 0)}))
	op := p.a.Port().NextOp()
	require.Equal(t, uint64(8), op.Length())
	h := op.Header
	p.a.Port().Sent(op, NIOK)
	p.a.Port().Release(op)
	require.Panics(t, func() { op.Length() })
	require.Panics(t, func() { p.a.Port().Read(op, 0, make([]byte, 8)) })
	require.Panics(t, func() { p.a.Port().Release(op) })

	d := p.b.Port().Receive(&h)
	e := d.entry
	require.NotNil(t, e)
	p.b.Port().Finish(d, d.Done())
	require.Panics(t, func() { p.b.Port().Write(d, 0, make([]byte, 8)) })
	require.Panics(t, func() { p.b.Port().Finish(d, Outcome{}) })
	require.Panics(t, func() { p.b.Port().Acknowledge(d, NIOK) })
	require.Panics(t, func() { d.Region() })
	require.Panics(t, func() { p.b.settle(e) }, "an entry that was used once")
}
