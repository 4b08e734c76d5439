// Package stack are the sockets of a program that has an Ethernet ring to
// itself, as a user-level TCP/IP stack gives it: a state machine (inet.Host)
// between a receive ring and a port of handlers/backupring. Nobody but the
// program runs it: packets are taken, timers kept and answers sent while it
// waits.
//
//	network := stack.New(lib)                                      // once for each cluster; lib: backupring's driver
//	s, err := network.Open(p, provider, stack.Options{...})        // by a program, before it first waits
//	l, err := s.Listen(11211, 128)
//	for {
//		if err := s.Wait(runtime.Forever); err != nil { ... }      // a packet has come, or a time-out is over, or something else that the program waits for
//		for c := l.Accept(); c != nil; c = l.Accept() { ... }
//		for c := s.Next(); c != nil; c = s.Next() { c.Read(b); c.Write(b) }
//	}
//
// What is written leaves at the next Wait or Flush.
package stack

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Network are the stacks of a cluster, by their addresses. It changes only
// while programs open their stacks, before time passes.
type Network struct {
	library *backupring.Loaded
	at      map[inet.Addr]*Stack
}

// New returns a network without stacks.
func New(library *backupring.Loaded) *Network {
	return &Network{library, map[inet.Addr]*Stack{}}
}

// Options say what a stack is like.
type Options struct {
	Addr   inet.Addr
	Spec   inet.Spec // time-outs and windows: inet.Load
	Ring   backupring.RingOptions
	Secret uint64 // of sequence numbers
	// Send is how many frames may be under way to the interface; 0: 64 (ours).
	// What does not fit waits in its connection.
	Send int
	// Posts, if not nil, is told of descriptors that are given back to the
	// ring, before they are: for experiments that take their memory away.
	Posts func(first uint64, n int)
}

// defaultSend is Options.Send unless something else is asked for.
const defaultSend = 64

// leastMTU is what every host of IPv4 takes (RFC 791 §3.1).
const leastMTU = 576

// Stats is what a stack has done.
type Stats struct {
	Frames     int64 // that have come
	Lost       int64 // of them, those whose buffer was too short or not there
	Malformed  int64 // of them, those that were no packets for this address
	Sent       int64
	Unroutable int64 // packets to addresses that nobody has
	Full       int64 // times that Flush has left off because the interface had no room
}

// Stack are the sockets of a program. Its calls do not block, but for Wait.
type Stack struct {
	Stats Stats

	network *Network
	p       *runtime.Proc
	host    *inet.Host
	ring    *backupring.Ring
	port    *backupring.Port
	node    int
	memory  runtime.View // of frames that are sent
	slot    int          // bytes of each
	slots   uint64
	conns   map[*inet.Conn]*Conn
	full    bool
	batch   int // descriptors that are posted at once
	unused  int // descriptors whose frames were taken
	emit    func(packet []byte)
	posts   func(first uint64, n int)
	failed  error
	closed  bool
	handles []portals.Handle
	tests   []uint64
}

// CheckMTU says whether packets of so many bytes, a profile's fabric.mtu, are
// such as IP has: 576 to inet.MaxPacket.
func CheckMTU(mtu int) error {
	if mtu < leastMTU || mtu > inet.MaxPacket {
		return fmt.Errorf("fabric.mtu: %d B, expected %d to %d for packets of IP", mtu, leastMTU, inet.MaxPacket)
	}
	return nil
}

// Open gives a program of the provider's node its stack. Before the program
// first waits it takes no virtual time.
func (n *Network) Open(p *runtime.Proc, provider *backupring.Provider, o Options) (*Stack, error) {
	if o.Send == 0 {
		o.Send = defaultSend
	}
	mtu := int(p.Cluster().Profile().Fabric.MTU)
	if err := CheckMTU(mtu); err != nil {
		return nil, fmt.Errorf("stack: profile %s: %w", p.Cluster().Profile().Name, err)
	}
	switch {
	case n.at[o.Addr] != nil:
		return nil, fmt.Errorf("stack: process %s: address %v is that of process %s", p.Name(), o.Addr, n.at[o.Addr].p.Name())
	case o.Send < 1 || o.Send > 1<<16:
		return nil, fmt.Errorf("stack: process %s: %d frames to be sent, expected 1 to %d", p.Name(), o.Send, 1<<16)
	}
	ring, err := provider.Open(p, o.Ring)
	if err != nil {
		return nil, err
	}
	s := &Stack{
		network: n, p: p, ring: ring, node: p.Rank(), slot: mtu, slots: uint64(o.Send), conns: map[*inet.Conn]*Conn{}, batch: max(1, o.Ring.Size/4),
		host: inet.NewHost(o.Addr, inet.HostConfig{Spec: o.Spec, MTU: mtu, Secret: o.Secret}), memory: p.Alloc(o.Send * mtu), unused: o.Ring.Size,
	}
	if err := s.pin(o.Ring.Pinned); err != nil {
		return nil, err
	}
	if s.port, err = n.library.Connect(p, s.memory); err != nil {
		return nil, err
	}
	s.emit, s.posts = s.send, o.Posts
	n.at[o.Addr] = s
	return s, nil
}

// pin keeps what frames are sent from in memory, with a ring that is pinned.
func (s *Stack) pin(pinned bool) error {
	switch os := s.p.OS(); {
	case !pinned || os == nil:
		return nil
	case s.p.SettingUp() == nil:
		s.memory.Lock()
		return nil
	default:
		return os.Lock(s.p.Thread(), s.memory.Addr(), uint64(s.memory.Len()))
	}
}

// ErrClosed is what a stack says that is closed.
var ErrClosed = errors.New("stack: the stack is closed")

// Close ends the stack, and gives all back that it has: its address, ring, port
// and memory. Listeners are closed and connections reset, those that nobody has
// accepted, too; what is still to be sent leaves before, as far as others take
// it. It is for the program, and waits until the interface has let go of ring
// and port. Errors: ErrClosed; those of the interface and the operating system.
func (s *Stack) Close() error {
	if s.closed {
		return ErrClosed
	}
	s.host.Close(s.p.Now())
	err := s.Flush()
	for err == nil && s.full {
		err = errors.Join(s.port.Drain(), s.Flush())
	}
	s.closed = true
	delete(s.network.at, s.host.Addr)
	clear(s.conns)
	err = errors.Join(err, s.port.Close(), s.ring.Close())
	if os := s.p.OS(); os != nil {
		err = errors.Join(err, os.Unmap(s.p.Thread(), s.memory.Addr(), uint64(s.memory.Len())))
	}
	return err
}

// Host is the state machine, for its statistics. What its own calls send leaves
// at the next Wait or Flush.
func (s *Stack) Host() *inet.Host { return s.host }

// Memory is where frames lie that are on their way to the interface. It is
// pinned with the ring; else the interface may find a page of it absent: it
// waits with that frame until the page has come (NPF'17 §4).
func (s *Stack) Memory() runtime.View { return s.memory }

// Ring is the receive ring.
func (s *Stack) Ring() *backupring.Ring { return s.ring }

// work charges the program with a packet, or a time-out.
func (s *Stack) work() { s.p.Compute(s.p.Cluster().Profile().Host.Message) }

// Other is something else that a program waits for: a counter of its interface
// that reaches a value.
type Other struct {
	Counter portals.Handle
	Value   uint64
}

// Wait waits until packets have come and were dealt with, a time-out was over,
// one of others has reached its value, or a time (runtime.Forever: without
// end), and sends what there is to send. It takes packets as long as there are
// any, at most a quarter of the ring at a time. An error is one of the ring's
// or the interface's, and final.
func (s *Stack) Wait(until sim.Time, others ...Other) error {
	if s.closed {
		return ErrClosed
	}
	for {
		s.handles, s.tests = s.handles[:0], s.tests[:0]
		counter, value, err := s.ring.Counter()
		if err != nil {
			return err
		}
		s.handles, s.tests = append(s.handles, counter), append(s.tests, value+1)
		due := s.expire()
		taken, err := s.take()
		if err != nil {
			return err
		}
		if err := s.Flush(); err != nil || taken > 0 || due {
			return err
		}
		now := s.p.Now()
		if until != runtime.Forever && now >= until || s.reached(others) {
			return nil
		}
		if err := s.block(until); err != nil {
			return err
		}
	}
}

// reached tells whether one of the others has its value, and else waits for them, too.
func (s *Stack) reached(others []Other) bool {
	for _, o := range others {
		if v, err := s.p.NI().Objects().CTGet(o.Counter); err != nil || v.Success >= o.Value || v.Failure > 0 {
			return true
		}
		s.handles, s.tests = append(s.handles, o.Counter), append(s.tests, o.Value)
	}
	return false
}

// block waits for a counter or a time.
func (s *Stack) block(until sim.Time) error {
	next := s.host.Deadline()
	if until != runtime.Forever {
		next = min(next, until)
	}
	if s.full {
		left, counter, err := s.port.Left()
		if err != nil {
			return err
		}
		s.handles, s.tests = append(s.handles, counter), append(s.tests, left+1)
	}
	timeout := runtime.Forever
	if next != inet.Never {
		timeout = max(0, next-s.p.Now())
	}
	if _, _, err := s.p.NI().CTPoll(s.handles, s.tests, timeout); err != nil && !errors.Is(err, portals.ErrCTNoneReached) {
		return err
	}
	return nil
}

// expire deals with a time-out that is over.
func (s *Stack) expire() bool {
	if now := s.p.Now(); s.host.Deadline() <= now {
		s.work()
		s.host.Expire(now)
		return true
	}
	return false
}

// take gives the packets that have come to the host, and their descriptors back to the ring.
func (s *Stack) take() (taken int, err error) {
	for taken < s.batch && s.ring.Ready() {
		f, err := s.ring.Receive()
		if err != nil {
			return taken, err
		}
		taken++
		s.unused++
		s.Stats.Frames++
		if f.Err != nil {
			s.Stats.Lost++
			continue
		}
		s.work()
		if s.host.Input(s.p.Now(), f.Memory.Read()) != nil {
			s.Stats.Malformed++
		}
	}
	if n := s.unused; n > 0 {
		s.unused = 0
		if s.posts != nil {
			s.posts(s.ring.Tail(), n)
		}
		return taken, s.ring.Post(n)
	}
	return taken, nil
}

// Flush sends what there is to send, as far as the interface has room.
func (s *Stack) Flush() error {
	if s.closed {
		return ErrClosed
	}
	for more := true; more && s.failed == nil; {
		left, _, err := s.port.Left()
		if err != nil {
			return err
		}
		if s.full = s.port.Sent()-left >= s.slots; s.full {
			s.Stats.Full++
			return nil
		}
		more = s.host.Output(s.p.Now(), 1, s.emit)
	}
	return s.failed
}

// send gives a packet to the interface, which has room.
func (s *Stack) send(packet []byte) {
	s.work()
	addr, _ := inet.Destination(packet)
	to := s.network.at[addr]
	if to == nil {
		s.Stats.Unroutable++
		return
	}
	s.Stats.Sent++
	at := int(s.port.Sent()%s.slots) * s.slot
	s.memory.Slice(at, at+len(packet)).CopyFrom(packet)
	if err := s.port.Send(at, len(packet), to.node, to.ring.ID()); err != nil {
		s.failed = err
	}
}
