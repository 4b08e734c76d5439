package ip

import (
	"encoding/binary"
	"errors"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// peer is the service of another node, with the rings between the two. A ring
// holds records: 4 bytes of length, a packet, and zeros up to a multiple of 16.
// A place in a ring counts bytes from the beginning of the connection. Modulo
// the ring's size it is an offset.
type peer struct {
	s       *service
	node    int
	mailbox exanet.Address
	heard   bool // the peer is alive
	last    sim.Time
	up      bool   // the handshake is complete
	mine    uint32 // connection numbers of both sides; theirs is 0 until it is known
	theirs  uint32
	owes    bool // a message about free room was lost

	tx, rx, flags runtime.View
	ring, notify  uint64 // the peer's receive ring and notifications

	head, tail uint64 // of the transmit ring: free room ends at head and begins at tail
	open       uint64 // start of the packets that were not sent
	packets    int    // number of those packets
	sent       uint32 // transfers begun
	credited   uint32 // of these, transfers that the peer has taken out of its ring
	batches    []batch

	taken uint32 // transfers of the peer that were taken
}

// batch is a transfer under way.
type batch struct {
	end     uint64 // its end in the ring
	packets int
}

// Kinds of messages, in the first byte.
const (
	kindHello  = 1 + iota // connection numbers, ring, notifications, and their sizes
	kindCredit            // number of transfers taken
)

const (
	helloBytes  = 44
	creditBytes = 12
)

func newPeer(s *service, node int) *peer {
	p := &peer{s: s, node: node, mine: 1, batches: make([]batch, s.spec.Slots)}
	p.tx, p.rx, p.flags = s.p.Alloc(s.spec.Ring), s.p.Alloc(s.spec.Ring), s.p.Alloc(8*s.spec.Slots)
	for _, v := range []runtime.View{p.tx, p.rx, p.flags} {
		v.Lock()
	}
	return p
}

// post sends a message.
func (p *peer) post(kind uint64, b []byte) {
	if err := p.s.out.Post(p.mailbox, b, kind); err != nil {
		p.s.counts.Strange++ // the peer has no valid mailbox address
	}
}

// greet sends the peer the place to write to, and the known connection numbers.
func (p *peer) greet() {
	le := binary.LittleEndian
	b := make([]byte, helloBytes)
	b[0] = kindHello
	le.PutUint32(b[4:], p.mine)
	le.PutUint32(b[8:], p.theirs)
	le.PutUint64(b[12:], p.rx.Addr())
	le.PutUint64(b[20:], p.flags.Addr())
	le.PutUint32(b[28:], uint32(p.rx.Len()))
	le.PutUint32(b[32:], uint32(p.flags.Len()/8))
	p.post(kindHello, b)
}

// credit reports to the peer how many transfers were taken.
func (p *peer) credit() {
	le := binary.LittleEndian
	b := make([]byte, creditBytes)
	b[0] = kindCredit
	le.PutUint32(b[4:], p.mine)
	le.PutUint32(b[8:], p.taken)
	p.owes = false
	p.post(kindCredit, b)
}

// message handles a message of the peer. It reports whether the message is
// valid.
func (p *peer) message(b []byte) bool {
	le := binary.LittleEndian
	switch {
	case len(b) == helloBytes && b[0] == kindHello:
		if int(le.Uint32(b[28:])) != p.tx.Len() || int(le.Uint32(b[32:])) != len(p.batches) {
			return false // its rings have other sizes
		}
		p.hello(le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint64(b[12:]), le.Uint64(b[20:]))
		return true
	case len(b) == creditBytes && b[0] == kindCredit && p.up && le.Uint32(b[4:]) == p.theirs:
		upto := le.Uint32(b[8:])
		if int32(upto-p.credited) <= 0 {
			return true // a later message has overtaken it
		}
		if upto-p.credited > p.sent-p.credited {
			return false
		}
		for ; p.credited != upto; p.credited++ {
			p.head = p.batches[p.credited%uint32(len(p.batches))].end
		}
		return true
	}
	return false
}

// hello handles the peer's part of the handshake. A new number is a new
// connection. A known number, together with our current one, completes the
// handshake.
func (p *peer) hello(number, ours uint32, ring, notify uint64) {
	answer := false
	if p.theirs != 0 && int32(number-p.theirs) < 0 {
		return // a later message has overtaken it
	}
	if number != p.theirs {
		if p.theirs != 0 {
			p.reset()
		}
		p.theirs, p.ring, p.notify = number, ring, notify
		answer = true
	}
	if ours == p.mine && !p.up {
		p.up = true
		p.s.counts.Ups++
		p.last = p.s.p.Now()
		p.heard = true
	}
	if answer {
		p.greet()
	}
}

// reset ends the connection. Data on its way is lost. The next connection has
// another number.
func (p *peer) reset() {
	for i := p.credited; i != p.sent; i++ {
		p.s.counts.Lost += uint64(p.batches[i%uint32(len(p.batches))].packets)
	}
	p.s.counts.Lost += uint64(p.packets)
	p.up = false
	p.mine++
	p.theirs = 0
	p.head, p.tail, p.open, p.packets, p.sent, p.credited, p.taken = 0, 0, 0, 0, 0, 0, 0
	p.owes = false
	clear(p.flags.Write())
	p.s.idle = never
}

// record returns the size of a packet's record in a ring.
func record(n int) uint64 { return uint64(4+n+granule-1) / granule * granule }

// put appends a packet to the transmit ring. It is false if there is no room
// now. It first launches a batch that is full or has reached the end of the
// ring.
func (p *peer) put(packet []byte) (bool, error) {
	need, size := record(len(packet)), uint64(p.tx.Len())
	for range 2 {
		at, hole := p.tail%size, uint64(0)
		if at+need > size {
			hole = size - at
		}
		full := at == 0 || p.packets == p.s.spec.BatchPackets || p.tail-p.open+need > uint64(p.s.spec.Batch)
		if (full || hole > 0) && p.packets > 0 {
			if sent, err := p.launch(); err != nil || !sent {
				return false, err
			}
			continue
		}
		if p.tail+hole+need-p.head > size {
			return false, nil
		}
		if hole > 0 { // the batch is empty: the next one begins behind the hole
			p.tail += hole
			p.open = p.tail
		}
		break
	}
	at := int(p.tail % size)
	b := p.tx.Slice(at, at+int(need)).Write()
	binary.LittleEndian.PutUint32(b, uint32(len(packet)))
	clear(b[4+copy(b[4:], packet):])
	p.tail += need
	p.packets++
	p.s.counts.Sent++
	p.s.counts.SentBytes += uint64(len(packet))
	return true, nil
}

// Fields of a notification: the numbers of connection and transfer, and the
// transfer's place in the ring and its length, in granules.
const (
	numberShift = 56
	batchShift  = 40
	offsetShift = 20
	batchMask   = 1<<16 - 1
	placeMask   = 1<<20 - 1
)

// launch starts the RDMA transfer of the packets that were put into the ring.
// It reports whether it could.
func (p *peer) launch() (bool, error) {
	if !p.up || p.packets == 0 || p.sent-p.credited == uint32(len(p.batches)) {
		return false, nil
	}
	at, n := p.open%uint64(p.tx.Len()), p.tail-p.open
	slot := p.sent % uint32(len(p.batches))
	t, err := p.s.rdma.Write(rdma.Transfer{
		NID: p.mailbox.NID, PID: p.mailbox.PID, Source: p.tx.Addr() + at, Destination: p.ring + at, Length: n,
		Notify: p.notify + 8*uint64(slot),
		Value:  uint64(p.theirs)<<numberShift | uint64(p.sent&batchMask)<<batchShift | at/granule<<offsetShift | n/granule,
	})
	if errors.Is(err, rdma.ErrNoChannel) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.batches[slot] = batch{p.tail, p.packets}
	p.s.moving = append(p.s.moving, movement{p, p.mine, t})
	p.s.counts.Batches++
	p.sent++
	p.open, p.packets = p.tail, 0
	return true, nil
}

// take takes the peer's next transfer out of the receive ring, if it has
// arrived.
func (p *peer) take() (bool, error) {
	s := p.s
	slot := int(p.taken % uint32(len(p.batches)))
	word := binary.LittleEndian.Uint64(p.flags.Slice(8*slot, 8*slot+8).Read())
	if word == 0 || word>>numberShift != uint64(p.mine&0xff) || word>>batchShift&batchMask != uint64(p.taken&batchMask) {
		return false, nil
	}
	s.p.Look(s.p.Reads(used.Look).Host.Poll)
	at := int(word>>offsetShift&placeMask) * granule
	for end := at + int(word&placeMask)*granule; at < end; {
		n := int(binary.LittleEndian.Uint32(p.rx.Slice(at, at+4).Read()))
		if n == 0 || at+int(record(n)) > end {
			s.counts.Strange++
			break
		}
		packet := make([]byte, n)
		p.rx.Slice(at+4, at+4+n).CopyTo(packet)
		at += int(record(n))
		s.p.Compute(s.spec.Syscall + s.spec.Route)
		s.p.Stream(int64(n), int64(n))
		s.counts.Received++
		if err := s.device.Write(s.p, packet); err != nil {
			return false, err
		}
	}
	p.taken++
	p.credit()
	return true, nil
}
