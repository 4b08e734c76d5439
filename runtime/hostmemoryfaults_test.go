package runtime_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// faults is memory that fails under the drawn programs.
type faults struct {
	devices  []*profile.Profile
	chances  hosttest.Chances
	messages int // whose events say that they have failed
}

// faulting are the devices whose memory fails: with as many tries as it takes,
// with few, and with none.
var faulting = sync.OnceValue(func() (all [][]*profile.Profile) {
	for _, tries := range []string{"1000", "2", "0"} {
		all = append(all, devicesWith("nic.fault_pause=300ns", "nic.fault_tries="+tries))
	}
	return all
})

func drawFaults(rt *rapid.T) *faults {
	chance := rapid.SampledFrom([]float64{0, 0.02, 0.3})
	return &faults{
		devices: faulting()[rapid.IntRange(0, 2).Draw(rt, "tries")],
		chances: hosttest.Chances{
			Fault: chance.Draw(rt, "fault"), Most: rapid.IntRange(1, 5).Draw(rt, "most"), Deny: rapid.SampledFrom([]float64{0, 0, 0.02}).Draw(rt, "deny"),
			Late: chance.Draw(rt, "late"), Delay: sim.Time(rapid.IntRange(0, 3000).Draw(rt, "delay")) * sim.Nanosecond,
		},
	}
}

// event is one that says of a message that it has failed: it has no effect.
// Messages to the shared bytes are one packet long.
func (f *faults) event(m *memoryRun, ni *portals.NI, e *portals.Event) {
	require.Equal(m.t, portals.NISegv, e.Fail, "%v", e)
	f.messages++
	id, err := ni.PhysID()
	require.NoError(m.t, err)
	switch e.Type {
	case portals.EventPut, portals.EventAtomic, portals.EventFetchAtomic, portals.EventGet:
		id = e.Initiator
	}
	if id.NID == 0 { // the message whose handlers they are
		return
	}
	if a := m.bits[e.MatchBits]; a != nil {
		a.failed = true
	}
	if a := m.bits[e.UserPtr]; a != nil {
		if e.Type == portals.EventReply && a.applied { // it was the answer that could not be written
			a.unknown, a.to = true, m.now(m.rig.c.Engine().Now())
			return
		}
		a.failed = true
	}
}

// check compares what has failed with what the run reports.
func (f *faults) check(m *memoryRun) {
	for _, a := range m.accesses {
		if a.unknown {
			a.found = nil
		}
		if a.to == 0 && !a.failed { // of a handler whose packet came without its data
			require.NotZero(m.t, f.messages, "%v", a)
			a.failed = true
		}
	}
	unheard := 0
	for _, h := range m.byHand { //lint:maporder a sum
		for i, l := range h.script {
			if !l.failed || l.handle < 0 {
				continue
			}
			looked := false
			for _, later := range h.script[i+1:] {
				if hpu.Op(later.op) == hpu.OpDMAWait && later.args[0] == uint64(l.handle) {
					looked = true
					break
				}
				if later.handle == l.handle {
					break
				}
			}
			if !looked {
				unheard++
			}
		}
	}
	errs, n := m.rig.c.HandlerErrors()
	require.Equal(m.t, unheard, n, "%v", errs)
	for _, e := range errs {
		require.Regexp(m.t, `(read|write) of \d+ bytes|atomic on 8 bytes`, e.Err.Error())
		require.Regexp(m.t, ` of host memory at 0x[0-9a-f]+ that it did not wait for failed: (FAULT|DENIED)`, e.Err.Error())
	}
	lost, _ := m.rig.c.LostMessages()
	if len(lost) == 0 && n == 0 { // a write that nobody waited for fails its message
		require.Zero(m.t, f.messages)
	}
	for _, l := range lost {
		require.Regexp(m.t, `^memory at 0x[0-9a-f]+ could not be (read|written): (FAULT|DENIED)`, l.Cause)
	}
}

// The oracle holds where memory fails and tarries: what is told to have failed
// has no effect, everything else one, in its place; and what nobody was told of
// is among the failures. 50 programs in go test, 10,000 in .ci/run deep
// (-rapid.checks counts twos).
func TestFaultyMemoryModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for range 2 {
			checkMemory(t, rt, drawFaults(rt))
		}
	})
}
