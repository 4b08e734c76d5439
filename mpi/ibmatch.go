package mpi

import (
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/runtime"
)

// ibMessage is a message without a receive.
type ibMessage struct {
	frame
	// an eager message: memory of the library; a large message to the rank
	// itself: memory of the program
	data runtime.View
}

// ibSend is a send that waits for its receiver.
type ibSend struct {
	q    *Request
	left int // bytes not yet written
}

// ibSent is a piece of a message that is being written.
type ibSent struct {
	of    *ibSend
	lease *pinning.Lease
	to    uint64 // address at the receiver
}

type ibTransfer struct {
	q    *Request
	f    frame
	at   int // bytes asked for so far
	left int // bytes that have not arrived
}

// ibPiece is a piece that the receiver has asked for.
type ibPiece struct {
	of    *ibTransfer
	lease *pinning.Lease
}

// arrives searches the receives for a message. Without a match it keeps the
// message. payload is in a buffer of a connection, or in the rank's own memory
// for a message to itself.
func (t *overInfiniBand) arrives(f frame, payload runtime.View) error {
	if t.observe != nil {
		t.observe(f.env, f.status())
	}
	t.message()
	q, looked := t.lists.receiver(f.env)
	searched(t.r.p, looked)
	if q != nil {
		return t.match(q, &ibMessage{f, payload})
	}
	m := ibMessage{f, payload}
	if f.kind == frameEager {
		kept, err := t.r.temporary.get(t.r, f.length)
		if err != nil {
			return err
		}
		m.data = kept
		t.r.p.Copy(kept, payload)
	}
	t.lists.unexpected = append(t.lists.unexpected, m)
	return nil
}

// receive searches the messages that have arrived. Without a match it appends
// the receive.
func (t *overInfiniBand) receive(q *Request) error {
	i, looked := t.lists.find(q.env)
	searched(t.r.p, looked)
	if i < 0 {
		t.lists.posted.push(q)
		return nil
	}
	t.r.stats.Unexpected++
	m := t.lists.cut(i)
	if m.kind != frameEager {
		return t.match(q, &m)
	}
	kept := m.data
	m.data = kept.Slice(0, m.length)
	err := t.match(q, &m)
	t.r.temporary.put(kept)
	return err
}

func (t *overInfiniBand) cancel(q *Request) (bool, error) {
	there, looked := t.lists.posted.withdraw(q)
	searched(t.r.p, looked)
	return there, nil
}

func (t *overInfiniBand) probe(env envelope) (s Status, found bool, err error) {
	i, looked := t.lists.find(env)
	if i >= 0 {
		s = t.lists.unexpected[i].status()
	}
	searched(t.r.p, looked)
	return s, i >= 0, nil
}

// awaitProbe waits for any event, since every message is one.
func (t *overInfiniBand) awaitProbe() error { return t.step() }

// match receives an eager message, or starts with a large one.
func (t *overInfiniBand) match(q *Request, m *ibMessage) error {
	q.status = m.status()
	if err := q.fits(t.r.rank); err != nil {
		return err
	}
	if m.kind == frameRTS {
		t.r.stats.Large++
		if m.env.source != t.r.rank {
			t.transfers = append(t.transfers, &ibTransfer{q: q, f: m.frame, left: m.length})
			return t.advance()
		}
	}
	if err := t.deposit(q, m.data); err != nil {
		return err
	}
	if m.wanted || m.kind == frameRTS {
		if err := t.done(m); err != nil {
			return err
		}
	}
	t.r.complete(q)
	return nil
}

// deposit makes the process copy a message to its place.
func (t *overInfiniBand) deposit(q *Request, from runtime.View) error {
	if q.typed != nil {
		q.typed.unpack(t.r, from)
		return nil
	}
	if from.Len() == 0 {
		return nil
	}
	to, err := t.r.p.View(q.addr, from.Len())
	if err != nil {
		return err
	}
	t.r.p.Copy(to, from)
	t.r.stats.Copied++
	t.r.stats.CopiedBytes += int64(from.Len())
	return nil
}

// done reports to the sender that its message is received.
func (t *overInfiniBand) done(m *ibMessage) error {
	if p := t.peers[m.env.source]; p != nil {
		return p.say(ibOutgoing{frame: frame{kind: frameDone, id: m.id}})
	}
	q := t.sends[m.id].q
	delete(t.sends, m.id)
	t.r.complete(q)
	return nil
}

// advance asks for pieces of messages, and writes pieces that receivers asked
// for, while there are leases.
func (t *overInfiniBand) advance() error {
	for len(t.transfers) > 0 && len(t.tickets) < t.leases {
		if err := t.ask(t.transfers[0]); err != nil {
			return err
		}
	}
	for len(t.clear) > 0 && t.writing < t.leases {
		f := t.clear[0]
		t.clear = t.clear[:copy(t.clear, t.clear[1:])]
		if err := t.write(&f); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the sender for the next piece of a message.
func (t *overInfiniBand) ask(x *ibTransfer) error {
	n := min(t.piece, x.f.length-x.at)
	at := x.at
	if x.at += n; x.at == x.f.length {
		t.transfers = t.transfers[:copy(t.transfers, t.transfers[1:])]
	}
	t.ticket++
	piece := &ibPiece{of: x}
	t.tickets[t.ticket] = piece
	ticket := t.ticket
	var err error
	if piece.lease, err = t.lease(x.q.addr+uint64(at), n, pinning.FromDevice); err != nil {
		return err
	}
	return t.peers[x.f.env.source].say(ibOutgoing{frame: frame{kind: frameCTS, id: x.f.id, ticket: ticket, at: uint64(at), length: n, address: piece.lease.Addr}})
}

// write writes a piece of a message and sends the FIN.
func (t *overInfiniBand) write(f *frame) error {
	s := t.sends[f.id]
	t.writing++
	l, err := t.lease(s.q.addr+f.at, f.length, pinning.ToDevice)
	if err != nil {
		return err
	}
	return t.peers[s.q.peer].say(ibOutgoing{frame: frame{kind: frameFIN, ticket: f.ticket}, piece: &ibSent{of: s, lease: l, to: f.address}})
}

// written handles a piece that has left.
func (t *overInfiniBand) written(s *ibSent) error {
	n := int(s.lease.Length)
	if err := t.strategy.Release(t.r.p.Thread(), s.lease); err != nil {
		return err
	}
	t.writing--
	if s.of.left -= n; s.of.left == 0 {
		delete(t.sends, s.of.q.id)
		t.r.complete(s.of.q)
	}
	return nil
}

// landed handles a piece that has arrived.
func (t *overInfiniBand) landed(ticket uint32) error {
	piece := t.tickets[ticket]
	delete(t.tickets, ticket)
	n := int(piece.lease.Length)
	if err := t.strategy.Release(t.r.p.Thread(), piece.lease); err != nil {
		return err
	}
	x := piece.of
	if x.left -= n; x.left == 0 {
		t.r.complete(x.q)
	}
	return nil
}
