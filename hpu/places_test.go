package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The arguments of posted and immediate writes, of wait32 and of calls about
// time reach the device as docs/abi.md says.
func TestPostedActions(t *testing.T) {
	const addr, odd = 0x1000, 0x1003
	onEngines(t, func(t *testing.T, e Engine) {
		for _, w := range []struct {
			args []int64
			want Action
		}{
			{[]int64{1, 1 << 40, odd, 77}, Action{Op: OpDMAToHostPosted, Space: 1, Offset: 1 << 40, Local: odd, Len: 77}},
			{[]int64{1, 1 << 40, -2}, Action{Op: OpHostWrite, Space: 1, Offset: 1 << 40, A: 1<<64 - 2}},
			{[]int64{1, 1 << 40, -2}, Action{Op: OpHostWriteNB, Space: 1, Offset: 1 << 40, A: 1<<64 - 2}},
			{[]int64{addr, -1}, Action{Op: OpWait32, Local: addr, A: 1<<32 - 1}},
			{[]int64{3}, Action{Op: OpScratchpad, A: 3}},
			{nil, Action{Op: OpFlowID}},
			{nil, Action{Op: OpMessageMemory}},
			{nil, Action{Op: OpNow}},
			{nil, Action{Op: OpExpiries}},
			{[]int64{1 << 40, 1 << 41, odd}, Action{Op: OpTimerAt, A: 1 << 40, B: 1 << 41}},
		} {
			var got Action
			dev := &testDevice{act: func(_ *Context, a *Action) (int64, bool) {
				got = *a
				return 0, false
			}}
			p := programOn(t, e, acting(w.want.Op, w.args...), testSpec(), dev)
			c := p.Context(0)
			require.Equal(t, Done, c.Start(handler(t, p, "h"), c.ArgsAddr(), 0, 400))
			require.Positive(t, got.Cycles)
			got.Cycles = 0
			require.Equal(t, w.want, got)
		}
		for _, bad := range []struct {
			op   Op
			args []int64
			kind TrapKind
		}{
			{OpDMAToHostPosted, []int64{0, 0, -8, 16}, TrapOutOfBounds},
			{OpWait32, []int64{odd, 0}, TrapMisaligned},
			{OpTimerAt, []int64{0, 0, -8}, TrapOutOfBounds},
			{OpWait32, []int64{-4, 0}, TrapOutOfBounds},
		} {
			p := programOn(t, e, acting(bad.op, bad.args...), testSpec(), answering)
			c := p.Context(0)
			require.Equal(t, Done, c.Start(handler(t, p, "h"), c.ArgsAddr(), 0, 1e6))
			require.Equal(t, bad.kind, c.Outcome().Err.Kind)
		}
	})
}

// A context knows the cluster of its HPU; processors of other pools are in one.
func TestClusters(t *testing.T) {
	spec := testSpec()
	spec.Cores, spec.Clusters, spec.Contexts, spec.Others = 6, 3, 2, []Processors{{Number: 2, Contexts: 1}}
	require.NoError(t, spec.Validate())
	var got [][2]int
	for i := range 14 {
		number, of := spec.cluster(i)
		got = append(got, [2]int{number, of})
	}
	require.Equal(t, [][2]int{{0, 3}, {0, 3}, {0, 3}, {0, 3}, {1, 3}, {1, 3}, {1, 3}, {1, 3}, {2, 3}, {2, 3}, {2, 3}, {2, 3}, {0, 1}, {0, 1}}, got)
	spec.Clusters = 4
	require.ErrorContains(t, spec.Validate(), "clusters: 4, expected a divisor of cores, which are 6")
	spec.Clusters = -1
	require.ErrorContains(t, spec.Validate(), "clusters: -1, expected 0 to 6")
}
