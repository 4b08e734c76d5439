package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// disabling is what a target sees that disables its portal table entry while a
// message is under way.
type disabling struct {
	called, returned sim.Time
	events           int // in the queue at the return
}

// disable waits until a message is under way, disables the entry, and enables it again later.
func (d *disabling) disable(p *runtime.Proc, r *rig) error {
	ni := p.NI()
	for ni.Objects().PTBusy(0) == 0 {
		p.Sleep(sim.Nanosecond)
	}
	d.called = p.Now()
	if err := ni.PTDisable(0); err != nil {
		return err
	}
	d.returned, d.events = p.Now(), ni.Objects().EQLen(r.eq)
	p.SleepUntil(50 * sim.Microsecond)
	return ni.Objects().PTEnable(0)
}

// threeTimes sends while nothing is there, while the entry is disabled, and
// when it is enabled again.
func threeTimes(get bool, length uint64) func(p *runtime.Proc, md portals.Handle, _ *rig) error {
	return func(p *runtime.Proc, md portals.Handle, _ *rig) error {
		for user, at := range []sim.Time{0, 20 * sim.Microsecond, 60 * sim.Microsecond} {
			p.SleepUntil(at)
			var err error
			if get {
				err = p.NI().Get(portals.Get{MD: md, Length: length, Target: portals.PhysID(1, 0), UserPtr: uint64(user)})
			} else {
				err = p.NI().Put(portals.Put{MD: md, Length: length, Ack: portals.Ack, Target: portals.PhysID(1, 0), UserPtr: uint64(user), HdrData: uint64(user)})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// PTDisable returns when the message under way is through, whatever it is made
// of: its event is in the queue, later messages are refused, and no event
// follows until PTEnable.
func TestPTDisableWaitsForMessagesUnderWay(t *testing.T) {
	get := hpu.Operation{Offset: 4096, Length: 5000, TargetNID: 2, Options: 1}
	for _, c := range []struct {
		name   string
		setup  setup
		isGet  bool
		length uint64
	}{
		{"data", setup{}, false, 4096},
		{"get", setup{}, true, 4096},
		{"payload handlers", setup{payload: []rec{also(opSpin, 3000), end(hpu.Success)}}, false, 4096},
		{"header handler", setup{header: []rec{also(opSpin, 9000), end(hpu.Drop)}}, false, 10},
		{"completion handler", setup{completion: []rec{also(opSpin, 9000), end(hpu.Success)}}, false, 4096},
		{"handler that fails", setup{payload: []rec{also(opSpin, 3000), also(opTrap)}}, false, 10},
		{"pending entry", setup{header: []rec{do(hpu.OpGetFromHost, opAt(0)), end(hpu.ProceedPending)}, ops: []hpu.Operation{get}}, false, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d disabling
			s := c.setup
			s.length, s.target = 4096, d.disable
			s.initiator = threeTimes(c.isGet, c.length)
			r := conduct(t, s)
			kind, answer := portals.EventPut, portals.EventAck
			if c.isGet {
				kind, answer = portals.EventGet, portals.EventReply
			}
			done := all(r.targets, kind)
			require.Len(t, done, 2)
			require.Positive(t, d.returned)
			require.Greater(t, done[0].at, d.called, "the message was not under way")
			require.Equal(t, done[0].at+r.prof.Host.Poll, d.returned, "one look after the event")
			require.Equal(t, 1, d.events)
			require.Greater(t, done[1].at, 60*sim.Microsecond)
			var fails []portals.FailType
			for _, e := range all(r.inits, answer) {
				fails = append(fails, e.Fail)
			}
			want := []portals.FailType{portals.NIOK, portals.NIPTDisabled, portals.NIOK}
			if c.name == "handler that fails" {
				want[0], want[2] = done[0].Fail, done[1].Fail
				require.NotEqual(t, portals.NIOK, done[0].Fail)
			}
			require.Equal(t, want, fails)
			require.Empty(t, all(r.targets, portals.EventPTDisabled), "the caller knows")
		})
	}
}

// Without a message under way nothing is waited for, and nothing takes time.
func TestPTDisableOfIdleEntry(t *testing.T) {
	onOneNode(t, func(p *runtime.Proc) error {
		ni := p.NI()
		_, err := ni.Objects().PTAlloc(0, portals.EQNone, 3)
		require.NoError(t, err)
		require.NoError(t, ni.PTDisable(3))
		require.Zero(t, p.Now())
		require.False(t, ni.Objects().PTEnabled(3))
		require.ErrorIs(t, ni.PTDisable(4), portals.ErrArgInvalid)
		return nil
	})
}

// A message that nothing completes, because the request that would is lost, is
// waited for until the end of the run, which says so, or until Abort.
func TestPTDisableWaitsForEver(t *testing.T) {
	pending := setup{
		overrides: []string{"fabric.faults.down=[{link: 'Switch[0][0].Down[2]', from: 0ps, to: 1s}]"},
		header:    []rec{do(hpu.OpGetFromHost, opAt(0)), end(hpu.ProceedPending)}, ops: []hpu.Operation{{Offset: 4096, Length: 100, TargetNID: 2, Options: 1}},
		length: 100, stuck: true,
	}
	var d disabling
	pending.target = d.disable
	r := conduct(t, pending)
	require.Zero(t, d.returned)
	require.ErrorContains(t, r.err, "rank 1 target waits since "+d.called.String()+" for portal table entry 0 of rank 1 (messages under way: 1)")

	pending.stuck = false
	pending.target = func(p *runtime.Proc, r *rig) error {
		r.c.Engine().Spawn(0, "somebody else", func(sp *sim.Process) error {
			sp.SleepUntil(30 * sim.Microsecond)
			p.Abort()
			return nil
		})
		require.ErrorIs(t, d.disable(p, r), portals.ErrAborted)
		require.Equal(t, 30*sim.Microsecond+r.prof.Host.Poll, p.Now())
		require.False(t, p.NI().Objects().PTEnabled(0), "it stays disabled")
		return nil
	}
	conduct(t, pending)
}
