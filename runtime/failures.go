package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
)

// LostMessages returns the messages that were lost in the order in which their
// ends came, at most 100, and how many were lost in all. Those that a transport
// has given up together are one of the list (nic.Messages counts them). A
// message whose packets a handler has chosen to drop is not lost. What the
// network has lost or damaged stands behind those, in the order of time.
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

// mayWaitFor names a lost message that a process may wait for: one that was
// sent to it or, if there is none, one that it has sent. anyPID means all
// processes of the rank. Empty: nothing of it was lost.
func (c *Cluster) mayWaitFor(rank int, pid uint32) string {
	k := &c.waits
	if at := c.engine.Handled(); !k.known || k.at != at {
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

// knownLosses are the messages that were lost in so many events.
type knownLosses struct {
	at    uint64
	known bool
	list  []nic.LostMessage
}

// networkLosses returns the messages of which the network has lost packets, and
// how many there are at least. A message that has lost a packet is never
// complete, so that what the packets refer to is still there.
func (c *Cluster) networkLosses() (list []nic.LostMessage, n int) {
	if k := &c.network; k.list != nil && k.at == c.engine.Handled() {
		return k.list, k.n
	}
	// which has sent them again, or has said that it could not
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
				Rank: int(p.Dst), At: l.At, Number: f.Number, Of: f.Packets, Length: uint64(len(f.Data)),
				Brief: fmt.Sprintf("packet %d of %d of message %d of rank %d was %s on %s at %v", p.Seq+1, f.Packets, f.Number, p.Src, what, l.Link, l.At),
			}
			m.Cause = fmt.Sprintf("%s (%s, fabric.faults)", m.Brief, l.Cause)
			m.OfHeader(&f.Header)
			list = append(list, m)
		}
		list[k].Packets++
		list[k].Bytes += uint64(p.Bytes)
	}
	n = len(list) + packets - len(losses)
	c.network = networkLosses{c.engine.Handled(), list, n}
	return list, n
}

// networkLosses is the answer of Cluster.networkLosses after so many events.
type networkLosses struct {
	at   uint64
	list []nic.LostMessage
	n    int
}

// HandlerErrors returns the handlers that failed in the order of time, at most
// 100, and how many failed in all.
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

// Failures returns an error for everything in the run so far that makes its
// result doubtful although the run went on: handlers that failed, messages that
// were lost, and stale translations. Of more than 100 of a kind the first 100
// are returned; all counts them all, also those that are told of together.
func (c *Cluster) Failures() (list []error, all int) { return c.failures(c.LostMessages()) }

// FailuresOfNodes is Failures but for what the network has lost or damaged: of
// runs whose programs send that again, as TCP does.
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

// Broken says how many messages of the run were lost and how many handlers
// failed so far, with the first of each; nil: none.
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
