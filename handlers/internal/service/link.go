// Package service is the common part of libraries with clients and servers.
//
// link.go has clients of arrays and copies. A client sends parts of an access,
// servers answer with the number of a slot, and the client gives up a server
// that does not answer in time. wait.go waits for counters, and for messages
// that fill buffers.
package service

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A client has Slots slots. Flights of them are for the parts under way. Each
// time that servers have not answered, the client takes as many others, because
// late answers to the old ones are possible.
const (
	Flights = 2
	Slots   = 4 * Flights
)

// Options describe a link.
type Options struct {
	Name            string // of the library
	Number, Clients int    // number of the client, and number of clients
	MaxNID, MaxPID  uint32 // of a client
	Answers         int    // how many may come before the client looks at any
	Label           string // of their queue
	Timeout         sim.Time
	Silent, Memory  error // errors: nobody has answered in time; a server or its memory is not there
}

// Link is a process's connection to servers. It does one access at a time.
type Link struct {
	Proc    *runtime.Proc
	NI      *runtime.NI
	Self    portals.ID
	Answers portals.Handle // queue
	Slot    uint32         // the first of the slots for the present access
	o       Options
	mds     []portals.Handle // of the access under way
	spent   bool             // there are no slots left
}

// Open makes a link, and a Setup for the rest of the client.
func Open(p *runtime.Proc, o Options) (Link, *handlers.Setup, error) {
	if err := p.SettingUp(); err != nil {
		return Link{}, nil, err
	}
	if o.Number < 0 || o.Number >= o.Clients {
		return Link{}, nil, fmt.Errorf("%s: client %d, expected 0 to %d", o.Name, o.Number, o.Clients-1)
	}
	s := handlers.NewSetup(o.Name, p)
	if s.Err == nil && (s.Self.PID > o.MaxPID || s.Self.NID > o.MaxNID) {
		s.Err = fmt.Errorf("%s: the client is %v, expected nodes up to %d and processes up to %d", o.Name, s.Self, o.MaxNID, o.MaxPID)
	}
	answers := s.Queue(o.Answers, o.Label)
	return Link{Proc: p, NI: s.NI, Self: s.Self, Answers: answers, Slot: uint32(o.Number * Slots), o: o}, s, s.Err
}

// Round returns how often servers have not answered.
func (l *Link) Round() int { return int(l.Slot) % Slots / Flights }

// Event waits for an answer.
func (l *Link) Event() (portals.Event, error) {
	if l.o.Timeout == 0 {
		return l.NI.EQWait(l.Answers)
	}
	e, _, err := l.NI.EQPoll([]portals.Handle{l.Answers}, l.o.Timeout)
	if errors.Is(err, portals.ErrEQEmpty) {
		err = l.Retire()
	}
	return e, err
}

// Retire switches to other slots, so that late answers are not taken for
// others. Its error means that nobody has answered.
func (l *Link) Retire() error {
	if l.spent = l.Round() == Slots/Flights-1; l.spent {
		return l.Usable()
	}
	l.Slot += Flights
	return fmt.Errorf("%w: %v", l.o.Silent, l.o.Timeout)
}

// Usable returns why a client has no slot left.
func (l *Link) Usable() error {
	if l.spent {
		return fmt.Errorf("%w, too often for this client", l.o.Silent)
	}
	return nil
}

// Counted waits until a counter has reached the number of answers that f
// returns.
func (l *Link) Counted(f func(ct portals.Handle) (int, error)) error {
	ct, err := l.NI.Objects().CTAlloc()
	if err != nil {
		return err
	}
	n, err := f(ct)
	if err == nil {
		err = l.Count(ct, uint64(n))
	}
	return errors.Join(err, l.NI.Objects().CTFree(ct))
}

// Count waits for a counter.
func (l *Link) Count(ct portals.Handle, n uint64) error {
	timeout := runtime.Forever
	if l.o.Timeout != 0 {
		timeout = l.o.Timeout
	}
	v, _, err := l.NI.CTPoll([]portals.Handle{ct}, []uint64{n}, timeout)
	switch {
	case errors.Is(err, portals.ErrCTNoneReached):
		return l.Retire()
	case err == nil && v.Failure > 0:
		return l.o.Memory
	}
	return err
}

// Bind describes memory of the access under way.
func (l *Link) Bind(md portals.MD) (portals.Handle, error) {
	h, err := l.NI.Objects().MDBind(&md)
	if err == nil {
		l.mds = append(l.mds, h)
	}
	return h, err
}

// BindView describes the memory of a view.
func (l *Link) BindView(v runtime.View, md portals.MD) (portals.Handle, error) {
	md.Start, md.Length = v.Addr(), uint64(v.Len())
	return l.Bind(md)
}

// Release frees the descriptors of an access. Those that a transport still uses
// are freed with the next one.
func (l *Link) Release() (err error) {
	used := l.mds[:0]
	for _, md := range l.mds {
		switch e := l.NI.Objects().MDRelease(md); {
		case errors.Is(e, portals.ErrInUse):
			used = append(used, md)
		default:
			err = errors.Join(err, e)
		}
	}
	l.mds = used
	return err
}

// Distinct checks the nodes of servers. lost names what the failure of a node
// with two of them would lose.
func Distinct(name string, c *runtime.Cluster, nodes []int, maxNID int, lost string) error {
	used := make(map[int]bool)
	for i, node := range nodes {
		if node < 0 || node >= c.Nodes() || node > maxNID {
			return fmt.Errorf("%s: server %d is on node %d of %d", name, i, node, c.Nodes())
		}
		if used[node] {
			return fmt.Errorf("%s: two servers on node %d: its failure would lose %s", name, node, lost)
		}
		used[node] = true
	}
	return nil
}
