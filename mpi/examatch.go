package mpi

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// exaMatch is a large message that has a receive and waits for a transfer.
type exaMatch struct {
	q *Request
	p packet
}

type exaTransfer struct {
	q    *Request // nil: the slot is free, or the data is there but read goes on
	p    packet
	read *rdma.Pending
}

func (t *overExaNet) take() error {
	var b [packetBytes]byte
	_, found, err := t.page.Poll(b[:])
	if err != nil || !found {
		return err
	}
	var p packet
	p.decode(&b)
	switch p.kind {
	case packetCTS:
		t.clear = append(t.clear, p)
		return t.write()
	case packetDone:
		q := t.sends[p.id]
		delete(t.sends, p.id)
		t.r.complete(q)
		return nil
	}
	peer := t.peer(p.env.source)
	if p.sequence != peer.next {
		t.early = append(t.early, p)
		return nil
	}
	peer.next++
	if err := t.arrives(p); err != nil {
		return err
	}
	for len(t.early) > 0 { // messages that waited for this one
		i := slices.IndexFunc(t.early, func(e packet) bool { return e.env.source == p.env.source && e.sequence == peer.next })
		if i < 0 {
			return nil
		}
		next := t.early[i]
		t.early = slices.Delete(t.early, i, i+1)
		peer.next++
		if err := t.arrives(next); err != nil {
			return err
		}
	}
	return nil
}

// searched charges the process for the list elements it looked at. more: a copy
// follows at once.
func (t *overExaNet) searched(elements int, more bool) {
	d := sim.Time(elements) * t.r.p.Reads(used.Match).Host.Match
	if more {
		t.r.p.Owe(d)
	} else {
		t.r.p.Compute(d)
	}
}

// arrives searches the receives for a message. Without a match the process
// copies the message out of the mailbox and keeps it. The process owns the list
// of receives, so the code of the message and the search are one piece of work,
// and the copy begins with it.
func (t *overExaNet) arrives(p packet) error {
	if t.observe != nil {
		t.observe(p.env, p.status())
	}
	t.r.p.Owe(t.r.p.Reads(used.Message).Host.Message)
	copies := t.copies(&p)
	q, looked := t.lists.receiver(p.env)
	t.searched(looked, copies && (q == nil || p.length <= q.length))
	if q != nil {
		return t.match(q, p)
	}
	if copies {
		t.copied(p.length)
	}
	t.lists.unexpected = append(t.lists.unexpected, p)
	return nil
}

// copies reports whether the process takes time to copy a message from the
// mailbox to memory.
func (t *overExaNet) copies(p *packet) bool {
	return p.kind == packetEager && p.length > 0 && codeOf(t.r, used.Eager).EagerCopy != host.CopyFree
}

// copied charges the process for a copy from the mailbox to memory: one memory
// latency, and the bytes. host.library.eager_copy has other answers.
func (t *overExaNet) copied(n int) {
	if n == 0 || codeOf(t.r, used.Eager).EagerCopy == host.CopyFree {
		return
	}
	if codeOf(t.r, used.Eager).EagerCopy != host.CopyCached {
		t.r.p.Owe(t.r.p.Reads(used.MemoryLatency).Host.MemoryLatency)
	}
	t.r.p.Stream(int64(n), int64(n))
}

// receive searches the messages that have arrived. Without a match it appends
// the receive.
func (t *overExaNet) receive(q *Request) error {
	i, looked := t.lists.find(q.env)
	if i < 0 {
		t.searched(looked, false)
		t.lists.posted.push(q)
		return nil
	}
	p := t.lists.cut(i)
	t.searched(looked, t.copies(&p) && p.length <= q.length)
	t.r.stats.Unexpected++
	return t.match(q, p)
}

func (t *overExaNet) cancel(q *Request) (bool, error) {
	there, looked := t.lists.posted.withdraw(q)
	t.searched(looked, false)
	return there, nil
}

func (t *overExaNet) probe(env envelope) (s Status, found bool, err error) {
	i, looked := t.lists.find(env)
	if i >= 0 {
		s = t.lists.unexpected[i].status()
	}
	t.searched(looked, false)
	return s, i >= 0, nil
}

// awaitProbe waits for any event, since every message is one.
func (t *overExaNet) awaitProbe() error { return t.step() }

// match receives an eager message, or queues the transfer of a large one.
func (t *overExaNet) match(q *Request, p packet) error {
	q.status = p.status()
	if err := q.fits(t.r.rank); err != nil {
		return err
	}
	v, err := t.r.p.View(q.addr, p.length)
	if err != nil {
		return err
	}
	if p.kind == packetRTS {
		t.r.stats.Large++
		t.touch(v, true)
		t.matched = append(t.matched, exaMatch{q, p})
		return t.start()
	}
	if p.length > 0 {
		t.eager(q, v, p.data[:p.length])
		t.r.stats.Copied++
		t.r.stats.CopiedBytes += int64(p.length)
	}
	if p.wanted {
		if err := t.done(&p); err != nil {
			return err
		}
	}
	t.r.complete(q)
	return nil
}

// eager makes the process bring an eager message from the mailbox to its place.
func (t *overExaNet) eager(q *Request, v runtime.View, message []byte) {
	if q.typed != nil {
		t.r.p.Compute(t.r.p.Reads(used.MemoryLatency).Host.MemoryLatency)
		q.typed.unpackBytes(t.r, message)
		return
	}
	t.copied(len(message))
	v.CopyFrom(message)
}

// done acknowledges a message to its sender.
func (t *overExaNet) done(p *packet) error {
	return t.post(outgoing{to: p.env.source, p: packet{kind: packetDone, env: envelope{source: t.r.Rank()}, id: p.id}})
}

// start starts transfers of matched messages while there are free places.
func (t *overExaNet) start() error {
	for i := range t.transfers {
		if len(t.matched) == 0 {
			return nil
		}
		x := &t.transfers[i]
		if x.q != nil || x.read != nil {
			continue
		}
		m := t.matched[0]
		t.matched = t.matched[:copy(t.matched, t.matched[1:])]
		*x = exaTransfer{q: m.q, p: m.p}
		t.moving++
		if err := t.clearToSend(i); err != nil {
			return err
		}
	}
	return nil
}

// clearToSend sends the CTS of a transfer. It goes to the sender's process, or
// to the RDMA unit at the data. For the unit the CTS is a request to read.
func (t *overExaNet) clearToSend(i int) (err error) {
	x := &t.transfers[i]
	flag := t.flags.Addr() + 8*uint64(i)
	if t.o.ExaNet.Start == StartByProcess || t.o.ExaNet.Start == "" && codeOf(t.r, used.Large).Start == host.StartProcess {
		cts := packet{kind: packetCTS, env: envelope{source: t.r.Rank()}, id: x.p.id, address: x.q.addr, notify: flag}
		return t.post(outgoing{to: x.p.env.source, p: cts})
	}
	place := t.r.world.places[x.p.env.source]
	x.read, err = t.rdma.Read(rdma.Transfer{
		NID: place.NID, PID: place.PID, Source: x.p.address, Destination: x.q.addr, Length: uint64(x.p.length), Notify: flag, Value: 1,
	})
	return err
}

// notifications looks for notifications that have been written, and
// acknowledges the messages received.
func (t *overExaNet) notifications() error {
	for i := range t.transfers {
		x := &t.transfers[i]
		flag := t.flags.Slice(8*i, 8*i+8)
		if x.q == nil || binary.LittleEndian.Uint64(flag.Read()) == 0 {
			continue
		}
		t.r.p.Look(t.r.p.Reads(used.Look).Host.Poll)
		clear(flag.Write())
		q := x.q
		x.q = nil
		t.release(x)
		if err := t.done(&x.p); err != nil {
			return err
		}
		t.r.complete(q)
	}
	return t.start()
}

// release frees the place of a transfer when the data is there and the channel
// is free.
func (t *overExaNet) release(x *exaTransfer) {
	if x.read != nil && x.read.Done() {
		x.read = nil
	}
	if x.q == nil && x.read == nil {
		t.moving--
	}
}

// finished looks at transfers whose channel is done. A failed one ends the run.
func (t *overExaNet) finished() error {
	for i := range t.transfers {
		x := &t.transfers[i]
		if x.read == nil || !x.read.Done() {
			continue
		}
		if err := x.read.Err(); err != nil {
			return fmt.Errorf("mpi: rank %d: message of %d B from rank %d: %w", t.r.Rank(), x.p.length, x.p.env.source, err)
		}
		if x.q == nil { // else the notification is still to come
			t.release(x)
		} else {
			x.read = nil
		}
	}
	for i := 0; i < len(t.writes); i++ {
		if w := t.writes[i]; w.Done() {
			if err := w.Err(); err != nil {
				return fmt.Errorf("mpi: rank %d: %w", t.r.Rank(), err)
			}
			t.writes = slices.Delete(t.writes, i, i+1)
			i--
		}
	}
	if err := t.write(); err != nil {
		return err
	}
	return t.start()
}

// write starts the transfers that receivers asked the process for, while there
// are channels.
func (t *overExaNet) write() error {
	for len(t.clear) > 0 && len(t.writes) < rdma.Writes {
		p := t.clear[0]
		t.clear = t.clear[:copy(t.clear, t.clear[1:])]
		q := t.sends[p.id]
		place := t.r.world.places[q.peer]
		w, err := t.rdma.Write(rdma.Transfer{
			NID: place.NID, PID: place.PID, Source: q.addr, Destination: p.address, Length: uint64(q.length), Notify: p.notify, Value: 1,
		})
		if err != nil {
			return err
		}
		t.writes = append(t.writes, w)
	}
	return nil
}
