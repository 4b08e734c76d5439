// Package stack gives the sockets of a user-level TCP/IP stack to a program
// with its own Ethernet ring. It is a state machine (inet.Host) between a
// receive ring and a port of handlers/backupring. Only the program runs it:
// while the program waits, the stack takes packets, keeps timers and sends
// answers.
//
//	network := stack.New(lib)                                      // once for each cluster; lib: backupring's driver
//	s, err := network.Open(p, provider, stack.Options{...})        // by a program, before it first waits
//	l, err := s.Listen(11211, 128)
//	for {
//		if err := s.Wait(runtime.Forever); err != nil { ... }      // until a packet, a time-out, or another awaited event
//		for c := l.Accept(); c != nil; c = l.Accept() { ... }
//		for c := s.Next(); c != nil; c = s.Next() { c.Read(b); c.Write(b) }
//	}
//
// Written bytes leave at the next Wait or Flush.
package stack

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Network is the stacks of a cluster, by their addresses. It changes only while
// programs open or close stacks.
type Network struct {
	library *backupring.Loaded
	at      map[inet.Addr]*Stack
}

// New returns a network without stacks.
func New(library *backupring.Loaded) *Network {
	return &Network{library, map[inet.Addr]*Stack{}}
}

// Options are the options of a stack.
type Options struct {
	Addr   inet.Addr
	Spec   inet.Spec // time-outs and windows: inet.Load
	Ring   backupring.RingOptions
	Secret uint64 // of sequence numbers
	// Send is the most frames on the way to the interface; 0: 64 (ours). Other
	// frames wait in their connections.
	Send int
	// Posts, if not nil, is called before descriptors are given back to the
	// ring. Experiments use it to take away the memory of the descriptors.
	Posts func(first uint64, n int)
}

// defaultSend is the default of Options.Send.
const defaultSend = 64

// leastMTU is the packet size that every IPv4 host accepts (RFC 791 §3.1).
const leastMTU = 576

// Stats counts the work of a stack.
type Stats struct {
	Frames     int64 // received
	Lost       int64 // received, but the buffer was too short or missing
	Malformed  int64 // received, but not a packet for this address
	Sent       int64
	Unroutable int64 // packets to addresses without a stack
	Full       int64 // times that Flush stopped because the interface was full
}

// Stack is the sockets of a program. Only Wait blocks.
type Stack struct {
	Stats Stats

	network *Network
	p       *runtime.Proc
	host    *inet.Host
	ring    *backupring.Ring
	port    *backupring.Port
	node    int
	memory  runtime.View // of frames to send
	slot    int          // bytes of each
	slots   uint64
	conns   map[*inet.Conn]*Conn
	full    bool
	batch   int // descriptors to post at once
	unused  int // descriptors of processed frames
	emit    func(packet []byte)
	posts   func(first uint64, n int)
	failed  error
	closed  bool
	handles []portals.Handle
	tests   []uint64
}

// CheckMTU checks the packet size, a profile's fabric.mtu, for IP: 576 to
// inet.MaxPacket.
func CheckMTU(mtu int) error {
	if mtu < leastMTU || mtu > inet.MaxPacket {
		return fmt.Errorf("fabric.mtu: %d B, expected %d to %d for packets of IP", mtu, leastMTU, inet.MaxPacket)
	}
	return nil
}

// Open opens a stack for a program of the provider's node. It takes no virtual
// time before the program first waits.
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
		return nil, fmt.Errorf("stack: process %s: address %v belongs to process %s", p.Name(), o.Addr, n.at[o.Addr].p.Name())
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

// pin pins the memory of sent frames if the ring is pinned.
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

// ErrClosed is the error of calls on a closed stack.
var ErrClosed = errors.New("stack: the stack is closed")

// Close ends the stack and frees its address, ring, port and memory. It closes
// listeners and resets connections, including the ones that nobody has
// accepted. Remaining bytes are sent first, as far as the peers take them. The
// program calls Close, and it waits until the interface has released ring and
// port. Errors: ErrClosed; errors of the interface and the operating system.
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

// Host returns the state machine, for its statistics. Packets of direct calls
// to it leave at the next Wait or Flush.
func (s *Stack) Host() *inet.Host { return s.host }

// Memory returns the memory of frames on their way to the interface. It is
// pinned if the ring is. Otherwise a page of it may be absent. Then the
// interface waits with that frame until the page has arrived (NPF'17 §4).
func (s *Stack) Memory() runtime.View { return s.memory }

// Ring returns the receive ring.
func (s *Stack) Ring() *backupring.Ring { return s.ring }

// work charges the program for a packet or a time-out.
func (s *Stack) work() { s.p.Compute(s.p.Reads(used.Message).Host.Message) }

// Other is another event to wait for: a counter of the interface reaches a
// value.
type Other struct {
	Counter portals.Handle
	Value   uint64
}

// Wait sends packets and waits until it has processed packets, a time-out has
// expired, one of others has reached its value, or the time has come
// (runtime.Forever: without end). It takes packets as long as there are any, at
// most a quarter of the ring at a time. Its errors come from the ring or the
// interface and are final.
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

// reached reports whether one of the others has its value. If not, it waits for
// them, too.
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

// expire handles an expired time-out.
func (s *Stack) expire() bool {
	if now := s.p.Now(); s.host.Deadline() <= now {
		s.work()
		s.host.Expire(now)
		return true
	}
	return false
}

// take gives arrived packets to the host, and their descriptors back to the
// ring.
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

// Flush sends packets as long as the interface has room.
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
