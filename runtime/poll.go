package runtime

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Forever is the time-out of a poll that waits as long as it takes (PTL_TIME_FOREVER).
const Forever sim.Time = -1

// anyHandle is not the handle of anything: a process that waits for it looks again at every event and count of its interfaces.
const anyHandle = ^portals.Handle(0)

// EQWait (PtlEQWait, Portals 4.x §3.13.8) returns the next event of a queue. A core that finds one has looked at it for the
// poll time; while there is none it spins. ErrEQDropped comes together with the event that follows the gap; ErrAborted after Abort.
func (ni *NI) EQWait(eq portals.Handle) (portals.Event, error) {
	for {
		ev, _, err := ni.NI.EQPoll([]portals.Handle{eq})
		if !errors.Is(err, portals.ErrEQEmpty) {
			ni.looked()
			return ev, err
		}
		ni.proc.park("an event on queue", eq)
	}
}

// CTWait (PtlCTWait, Portals 4.x §3.14.5) returns when the successes of a counter have reached test, or when a failure has
// been counted. ErrAborted after Abort.
func (ni *NI) CTWait(ct portals.Handle, test uint64) (portals.CTEvent, error) {
	for {
		v, _, err := ni.NI.CTPoll([]portals.Handle{ct}, []uint64{test})
		if !errors.Is(err, portals.ErrCTNoneReached) {
			ni.looked()
			return v, err
		}
		ni.proc.awaited = test
		ni.proc.park("a count on counter", ct)
	}
}

// EQPoll (PtlEQPoll, Portals 4.x §3.13.9) waits for an event on any of the queues, up to timeout, and returns it with the index of its
// queue. ErrEQEmpty when the time is over.
func (ni *NI) EQPoll(eqs []portals.Handle, timeout sim.Time) (portals.Event, int, error) {
	deadline := ni.proc.Now() + timeout
	for {
		ev, which, err := ni.NI.EQPoll(eqs)
		if !errors.Is(err, portals.ErrEQEmpty) || !ni.proc.parkUntil(fmt.Sprintf("an event on one of %d queues", len(eqs)), timeout, deadline) {
			ni.looked()
			return ev, which, err
		}
	}
}

// CTPoll (PtlCTPoll, Portals 4.x §3.14.6) waits until one of the counters has reached its test or counted a failure, up to timeout, and
// returns its value and index. ErrCTNoneReached when the time is over.
func (ni *NI) CTPoll(cts []portals.Handle, tests []uint64, timeout sim.Time) (portals.CTEvent, int, error) {
	deadline := ni.proc.Now() + timeout
	for {
		v, which, err := ni.NI.CTPoll(cts, tests)
		if !errors.Is(err, portals.ErrCTNoneReached) || !ni.proc.parkUntil(fmt.Sprintf("a count on one of %d counters", len(cts)), timeout, deadline) {
			ni.looked()
			return v, which, err
		}
	}
}

// looked takes the time of one look at a completion.
func (ni *NI) looked() { ni.proc.compute(ni.proc.node.profile.Host.Poll, "poll") }

// parkUntil waits for any change of the process's interfaces; false: the time was over first.
func (p *Proc) parkUntil(what string, timeout, deadline sim.Time) bool {
	p.waits = anyHandle
	defer func() { p.waits = portals.InvalidHandle }()
	if timeout < 0 {
		p.sp.Park(what)
		return true
	}
	return p.Now() < deadline && p.sp.ParkUntil(what, deadline)
}

// waitingCounts says how far the counters are that processes of the node wait for.
func (n *Node) waitingCounts(report func(sim.Waiting)) {
	for _, p := range n.procs {
		if p.waits.Kind() != portals.KindCT {
			continue
		}
		for _, ni := range p.nis {
			if v, err := ni.CTGet(p.waits); err == nil {
				report(sim.Waiting{
					Since: p.parked,
					Who:   fmt.Sprintf("rank %d counter %#x", n.rank, uint32(p.waits)),
					What:  fmt.Sprintf("%d successes; it has %d, and %d failures", p.awaited, v.Success, v.Failure),
				})
			}
		}
	}
}
