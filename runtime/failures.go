package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
)

// LostMessages returns the first 100 lost messages and the number of all. They
// are ordered by the time of their end. Messages that a transport gave up
// together are one element of the list (nic.Messages counts them). A message
// whose packets a handler dropped on purpose is not lost. Messages that the
// network lost or damaged come last, in the order of time.
func (c *Cluster) LostMessages() ([]nic.LostMessage, int) {
	list, all := c.lostByNodes()
	network, n := c.networkLosses()
	list = append(list, network...)
	return list[:min(len(list), nic.Kept)], all + n
}

func (c *Cluster) lostByNodes() (list []nic.LostMessage, all int) {
	for i := range c.nodes {
		r := c.nodes[i].nic.Report()
		list = append(list, r.Losses...)
		all += r.Messages()
	}
	slices.SortStableFunc(list, func(a, b nic.LostMessage) int { return cmp.Compare(a.At, b.At) })
	return list, all
}

// mayWaitFor describes a lost message that a process may wait for: one sent to
// it or, if there is none, one sent by it. portals.PIDAny means all processes
// of the rank. Empty: no such message was lost.
func (c *Cluster) mayWaitFor(rank int, pid uint32) string {
	k := &c.waits
	if at := c.Handled(); !k.known || k.at != at {
		list, _ := c.lostByNodes()
		network, _ := c.networkLosses()
		*k = knownLosses{at, true, append(network, list...)}
	}
	is := func(id portals.ID) bool { return int(id.NID) == rank && (pid == portals.PIDAny || id.PID == pid) }
	for what, of := range [...]func(l *nic.LostMessage) portals.ID{
		func(l *nic.LostMessage) portals.ID { return l.Target },
		func(l *nic.LostMessage) portals.ID { return l.Initiator },
	} {
		first, n := "", 0
		for i := range k.list {
			if l := &k.list[i]; is(of(l)) {
				if n == 0 {
					first = l.Brief
				}
				n += 1 + l.More
			}
		}
		switch {
		case n > 1:
			return fmt.Sprintf(": %s; %d %s were lost", first, n, [...]string{"messages to it", "of its messages"}[what])
		case n == 1:
			return ": " + first
		}
	}
	return ""
}

// knownLosses are the messages lost up to event number at.
type knownLosses struct {
	at    uint64
	known bool
	list  []nic.LostMessage
}

// networkLosses returns the messages of which the network lost packets, and at
// least how many there are. Such a message never completes, so the frames of
// its packets are still valid.
func (c *Cluster) networkLosses() (list []nic.LostMessage, n int) {
	if k := &c.network; k.list != nil && k.at == c.Handled() {
		return k.list, k.n
	}
	// The transport sent them again, or has reported that it could not.
	if c.profile.Transport.Kind == nic.Reliable {
		return nil, 0
	}
	losses, packets := c.fabric.Losses()
	place := map[*nic.Frame]int{}
	for i := range losses {
		l := &losses[i]
		f, p := nic.FrameOf(&l.Packet), &l.Packet
		k, known := place[f]
		if !known {
			k = len(list)
			place[f] = k
			what := "lost"
			if l.Damaged {
				what = "damaged"
			}
			m := nic.LostMessage{
				Rank: int(p.Dst), At: l.At, Number: f.Number, Of: f.Packets, Length: uint64(f.Length),
				Brief: fmt.Sprintf("packet %d of %d of message %d of rank %d was %s on %s at %v", p.Seq+1, f.Packets, f.Number, p.Src, what, l.Link, l.At),
			}
			field := "fabric.faults"
			if l.Cause == fabric.QueueFull {
				field = "fabric.queue"
			}
			m.Cause = fmt.Sprintf("%s (%s, %s)", m.Brief, l.Cause, field)
			m.OfHeader(&f.Header)
			list = append(list, m)
		}
		list[k].Packets++
		list[k].Bytes += uint64(p.Bytes)
	}
	n = len(list) + packets - len(losses)
	c.network = networkLosses{c.Handled(), list, n}
	return list, n
}

// networkLosses is the answer of Cluster.networkLosses up to event number at.
type networkLosses struct {
	at   uint64
	list []nic.LostMessage
	n    int
}

// HandlerErrors returns the first 100 handler errors, in the order of time, and
// the number of all.
func (c *Cluster) HandlerErrors() ([]nic.HandlerError, int) {
	var list []nic.HandlerError
	all := 0
	for i := range c.nodes {
		r := c.nodes[i].nic.Report()
		list = append(list, r.Errors...)
		all += len(r.Errors) + r.ErrorsBeyond
	}
	slices.SortStableFunc(list, func(a, b nic.HandlerError) int { return cmp.Compare(a.At, b.At) })
	return list[:min(len(list), nic.Kept)], all
}

// Failures returns the errors so far that make the result of the run doubtful
// although the run continued: failed handlers, lost messages, and stale
// translations. The list has at most 100 of each kind. all is the number of
// all, including those that one error reports together.
func (c *Cluster) Failures() (list []error, all int) { return c.failures(c.LostMessages()) }

// FailuresOfNodes is Failures without the packets that the network lost or
// damaged. It is for programs that send lost packets again, as TCP does.
func (c *Cluster) FailuresOfNodes() (list []error, all int) { return c.failures(c.lostByNodes()) }

func (c *Cluster) failures(lost []nic.LostMessage, n int) (list []error, all int) {
	errs, failed := c.HandlerErrors()
	for _, e := range errs {
		list = append(list, e)
	}
	for _, l := range lost {
		list = append(list, l)
	}
	stale, k := c.StaleAccesses()
	for _, a := range stale {
		list = append(list, a)
	}
	return list, failed + n + k
}

// Broken reports how many messages were lost and how many handlers failed so
// far, with the first of each; nil: none.
func (c *Cluster) Broken() error {
	var errs []error
	if lost, n := c.LostMessages(); n == 1 {
		errs = append(errs, fmt.Errorf("1 message was lost: %w", lost[0]))
	} else if n > 1 {
		errs = append(errs, fmt.Errorf("%d messages were lost, the first: %w", n, lost[0]))
	}
	if failed, n := c.HandlerErrors(); n == 1 {
		errs = append(errs, fmt.Errorf("1 handler failed: %w", failed[0]))
	} else if n > 1 {
		errs = append(errs, fmt.Errorf("%d handlers failed, the first: %w", n, failed[0]))
	}
	return errors.Join(errs...)
}
