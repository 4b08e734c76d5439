package ip

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// service is the user-space program that carries packets (TR-488 §5.3).
type service struct {
	net    *Network
	spec   *Spec
	node   int
	pid    uint32
	device Device
	stop   bool

	p         *runtime.Proc
	page      *exanet.Interface
	rdma      *rdma.Page
	out       *exanet.Outbox
	ni        *runtime.NI
	completed portals.Handle
	notified  portals.Handle
	readable  portals.Handle // packets announced by the device
	heardCT   portals.Handle // heartbeats
	handles   [4]portals.Handle
	tests     [4]uint64

	peers    []*peer
	moving   []movement
	packet   []byte // the last packet read
	held     int    // its length while it waits for room; 0: none waits
	holder   *peer
	nextBeat sim.Time
	idle     sim.Time // since when the service is idle; negative: it is not
	pause    sim.Time // length of the next sleep
	counts   Counts
}

// Counts are a service's statistics.
type Counts struct {
	Sent        uint64   // packets put into a ring
	Received    uint64   // packets given to the device
	SentBytes   uint64   // bytes of the packets sent
	Batches     uint64   // RDMA transfers
	Unreachable uint64   // packets to dead or unknown nodes
	Lost        uint64   // packets on their way to a peer that died
	Queued      uint64   // packets that found the device's queue full
	Ups, Deaths uint64   // of peers
	Failed      uint64   // failed transfers
	Strange     uint64   // invalid or outdated messages
	Sleeps      uint64   // number of sleeps
	Slept       sim.Time // total time asleep
}

// movement is a transfer under way.
type movement struct {
	peer  *peer
	epoch uint32
	t     *rdma.Pending
}

// never is a time that has not come.
const never sim.Time = -1

// run is the program of a service.
func (s *service) run(p *runtime.Proc) (err error) {
	s.p = p
	if s.page, s.rdma, err = s.net.join(p); err != nil {
		return err
	}
	s.out = s.page.Outbox(s.dropped)
	s.ni = s.page.NI()
	s.completed, s.notified = s.rdma.Signals()
	u := handlers.NewListSetup("ip", p)
	if s.readable, s.heardCT = u.Counter("packets of the device"), u.Counter("heartbeats"); u.Err != nil {
		return u.Err
	}
	s.device.Ready(func() { s.ring(s.readable) })
	l := &s.net.ethernet.nodes[s.node].lanes[laneBeat]
	l.ni, l.ct = s.ni, s.heardCT
	for _, node := range s.net.nodes {
		if node != s.node {
			s.peers = append(s.peers, newPeer(s, node))
		}
	}
	s.packet = make([]byte, s.spec.MTU)
	s.idle, s.pause = never, s.spec.Sleep
	for !s.stop {
		if err := s.round(); err != nil {
			return err
		}
	}
	s.device.Ready(func() {})
	l.ni = nil
	s.page.Leave()
	return nil
}

// round does all pending work once. If there was none, it waits for work.
func (s *service) round() error {
	s.handles = [...]portals.Handle{s.notified, s.completed, s.readable, s.heardCT}
	for i, ct := range s.handles {
		v, err := s.ni.Objects().CTGet(ct)
		if err != nil {
			return err
		}
		s.tests[i] = v.Success + 1
	}
	if s.p.Now() >= s.nextBeat {
		s.beat()
	}
	s.listen()
	busy := false
	for _, look := range []func() (bool, error){s.mail, s.arrivals, s.outgoing, s.ended, s.out.Act} {
		did, err := look()
		if err != nil {
			return err
		}
		busy = busy || did
	}
	if busy {
		s.idle, s.pause = never, s.spec.Sleep
		return nil
	}
	return s.rest()
}

// rest waits for work.
func (s *service) rest() error {
	now := s.p.Now()
	if s.idle == never {
		s.idle = now
	}
	left := max(0, s.nextBeat-now)
	if s.net.o.Idle == Sleeping {
		if now >= s.idle+s.spec.Spin {
			if d := min(s.pause, left); d > 0 {
				s.counts.Sleeps++
				s.counts.Slept += d
				s.p.Sleep(d)
			}
			s.pause = min(2*s.pause, s.spec.SleepMost)
			s.p.Compute(s.spec.Syscall)
			return nil
		}
		left = min(left, s.idle+s.spec.Spin-now)
	}
	if err := s.out.Await(s.handles[:], s.tests[:], left); err != nil {
		return err
	}
	s.p.Compute(s.spec.Syscall) // the round that finds work begins with a look at the device
	return nil
}

// beat sends a heartbeat to every node, and detects peers that have sent none.
func (s *service) beat() {
	now := s.p.Now()
	s.nextBeat = now.Later(s.spec.Heartbeat)
	for _, p := range s.peers {
		s.p.Compute(s.spec.Syscall + s.spec.PacketOut)
		b := binary.LittleEndian.AppendUint32(nil, uint32(s.node))
		b = binary.LittleEndian.AppendUint32(b, s.pid)
		s.net.ethernet.send(s.node, p.node, laneBeat, b)
		if p.heard && s.p.Now()-p.last > s.spec.DeadAfter {
			s.counts.Deaths++
			p.heard = false
			p.reset()
		}
		if p.heard && !p.up {
			p.greet()
		}
		if p.owes {
			p.credit()
		}
	}
}

// listen takes received heartbeats.
func (s *service) listen() {
	l := &s.net.ethernet.nodes[s.node].lanes[laneBeat]
	for f := l.take(); f != nil; f = l.take() {
		s.p.Compute(s.net.spec.Management.Interrupt + s.spec.PacketIn + s.spec.Syscall)
		p := s.peer(f.from)
		if p == nil || len(f.data) != beatBytes {
			s.counts.Strange++
			continue
		}
		p.mailbox = exanet.First(binary.LittleEndian.Uint32(f.data), binary.LittleEndian.Uint32(f.data[4:]))
		p.last = s.p.Now()
		if !p.heard {
			p.heard = true
			p.greet()
		}
	}
}

const beatBytes = 8

func (s *service) peer(node int) *peer {
	for _, p := range s.peers {
		if p.node == node {
			return p
		}
	}
	return nil
}

// mail takes messages out of the mailbox.
func (s *service) mail() (did bool, err error) {
	for {
		var b [exanet.MaxPayload]byte
		arrived, _ := s.page.Signals()
		v, err := s.ni.Objects().CTGet(arrived)
		if err != nil || v.Success <= uint64(s.page.Taken()) {
			return did, err
		}
		m, found, err := s.page.Poll(b[:])
		if err != nil || !found {
			return did, err
		}
		did = true
		if p := s.peer(int(m.NID)); p == nil || !p.message(b[:m.Bytes]) {
			s.counts.Strange++
		}
	}
}

// dropped handles a message that was not delivered. The service resends it with
// a heartbeat, if it is still valid then.
func (s *service) dropped(tag uint64, to exanet.Address, _ error) {
	if p := s.peer(int(to.NID)); p != nil && tag == kindCredit {
		p.owes = true
	}
}

// outgoing moves packets from the device into rings and sends them. It takes a
// limited number at a time, so that heartbeats and arrivals do not wait for
// long.
func (s *service) outgoing() (did bool, err error) {
	for range s.spec.BatchPackets {
		if s.held == 0 {
			v, err := s.device.Read(s.packet)
			if err != nil {
				return did, err
			}
			if v == 0 {
				break
			}
			did = true
			s.p.Compute(s.spec.Syscall + s.spec.Route)
			s.p.Stream(int64(v), int64(v))
			s.held, s.holder = v, s.route(s.packet[:v])
		}
		if s.holder == nil || !s.holder.up {
			s.counts.Unreachable++
			s.held = 0
			continue
		}
		put, err := s.holder.put(s.packet[:s.held])
		if err != nil || !put {
			return did, err
		}
		did = true
		s.held = 0
	}
	for _, p := range s.peers {
		launched, err := p.launch()
		if err != nil {
			return did, err
		}
		did = did || launched
	}
	return did, nil
}

// route finds the peer for a packet.
func (s *service) route(packet []byte) *peer {
	a, ok := inet.Destination(packet)
	if !ok {
		return nil
	}
	node, by := nodeOf(a)
	if by != overExaNet {
		return nil
	}
	return s.peer(node)
}

// arrivals takes transfers out of the receive rings, one of each peer at a
// time.
func (s *service) arrivals() (did bool, err error) {
	for _, p := range s.peers {
		if !p.up {
			continue
		}
		took, err := p.take()
		if err != nil {
			return did, err
		}
		did = did || took
	}
	return did, nil
}

// ended handles completed transfers.
func (s *service) ended() (did bool, err error) {
	kept := s.moving[:0]
	for _, m := range s.moving {
		switch {
		case !m.t.Done():
			kept = append(kept, m)
			continue
		case m.t.Err() != nil:
			s.counts.Failed++
			if m.peer.up && m.epoch == m.peer.mine { // no answer, or a restart: restart too
				m.peer.reset()
			}
		}
		did = true
	}
	s.moving = kept
	return did, nil
}
