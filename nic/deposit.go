package nic

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// deposit is the last stage. It writes packets without handlers to host memory
// by DMA. Behind the data of a message it writes the record of its end. When
// the record lands, events, counters and acknowledgements follow.
type deposit struct {
	*env
	waiters waiters
	landing int64 // bytes on their way to host memory
	absent  absentPages
}

// waiters are the handlers and messages that wait for replies.
type waiters interface {
	// answered returns how many bytes it has taken, and how many nobody wants.
	answered(cookie uint64, from int, data []byte, length uint64) (taken, beyond int)
	answerThere(cookie, bytes uint64, fail portals.FailType)
	replied(cookie, bytes uint64, fail portals.FailType)
}

// writes counts a message's writes to host memory: its packets and the writes
// of its handlers.
type writes struct {
	begun    int32
	underway int32
	data     int32 // packets on their way
	barred   bool  // there are barriers
	reply    bool  // the reply to a get is a barrier
	over     bool  // the message has ended, except for writes of its handlers
}

// barrier is an operation that waits for all earlier writes.
type barrier struct {
	upTo  int32 // the writes with lower numbers
	left  int32 // how many of them have not ended
	issue *issue
}

// begin counts a write and returns its number.
func (w *writes) begin() int {
	w.underway++
	w.begun++
	return int(w.begun - 1)
}

// await makes an operation wait for the writes that are on their way.
func (in *inbound) await(i *issue) {
	in.barriers = append(in.barriers, barrier{in.begun, in.underway, i})
	in.barred = true
}

// The accesses of deposit.
const (
	depositData   = iota // Index: packet, *inbound; Tries
	depositRecord        // *inbound
)

// kindWriteAgain is the event of deposit. P is a *host.Access: a write to
// memory that was absent is tried again.
const kindWriteAgain sim.Kind = kindsOfDeposit

func (d *deposit) handle(e *sim.Event) {
	switch e.Kind {
	case kindWriteAgain:
		d.bus.Again(e.P.(*host.Access), 0)
	default:
		unknown("deposit", e)
	}
}

// packet takes the default action for a packet: its bytes go to the place in
// the entry that matching chose. A packet of a reply that a handler waits for
// goes to HPU memory. A packet that a header handler has dropped goes nowhere.
func (d *deposit) packet(in *inbound, i int) {
	from, to := in.frame.Span(i)
	switch in.phase {
	case phaseDeposit:
		d.settleRest(in, i)
		if from, to = in.clip(from, to); from < to {
			d.write(in, i, to-from)
		}
	case phaseAnswer:
		taken, beyond := d.waiters.answered(in.d.Cookie(), from, in.frame.part(from, to), in.d.MLength)
		d.settle(in, answered, taken)
		d.settle(in, truncated, beyond)
	case phaseDiscard:
		d.settle(in, in.fate, in.undealt(i))
	case phaseSearch, phaseHeader, phaseHandlers, phaseComplete:
	}
	d.handed(in)
}

// missing counts packet i of a message as dropped. The packet will never come,
// or came without its data.
func (d *deposit) missing(in *inbound, i int) {
	if in.phase == phaseDeposit || in.phase == phaseAnswer {
		if from, to := in.clip(in.frame.Span(i)); from < to {
			in.dropped += uint64(to - from)
		}
	}
	d.handed(in)
}

// clip cuts a range of the payload to the part that is deposited: without the
// user header and truncated bytes.
func (in *inbound) clip(from, to int) (int, int) {
	return max(from, int(in.skip)), min(to, int(in.d.MLength))
}

func (d *deposit) write(in *inbound, i, n int) {
	a := d.core.access()
	a.Space, a.Places, a.Length, a.Flow, a.Order = in.iface.Space, in, n, in.frame.Flow(), in.order
	a.Client, a.Op, a.Index, a.Ref = d, depositData, i, in
	a.Serial = in.begin()
	d.landing += int64(n)
	in.data++
	in.iface.write(a)
}

// Place returns where a packet lies in host memory; it implements host.Places.
func (in *inbound) Place(a *host.Access, off int) (addr uint64, n int) {
	from, to := in.clip(in.frame.Span(a.Index))
	addr, k := in.d.Piece(uint64(from-int(in.skip)+off), uint64(to-from-off))
	return addr, int(k)
}

// handed counts a packet as on its way to host memory. After the last packet,
// the record of the message's end follows on the bus. A completion handler
// therefore sees all of the data there.
func (d *deposit) handed(in *inbound) {
	in.left--
	switch {
	case in.left > 0:
	case !in.completes:
		d.complete(in)
	case in.data == 0:
		d.post(d.now(), kindDelivered, 0, in)
	}
}

// Reached implements host.Client; deposit makes no atomics on the bus.
func (d *deposit) Reached(*host.Access) {}

// Begun implements host.Client: a packet whose page was absent crosses the bus.
// The packets that wait with it go behind it.
func (d *deposit) Begun(a *host.Access) {
	d.resume(a, host.OK)
	a.Ref.(*inbound).iface.written(a)
}

// Ended implements host.Client: a packet has landed or failed, or the record of
// a message's end has landed.
func (d *deposit) Ended(a *host.Access, _ int, s host.Status) {
	in := a.Ref.(*inbound)
	if a.Op == depositRecord {
		d.core.releaseAccess(a)
		if poison.On && in.underway > 0 {
			panic("nic: the record of a message's end before its data") //lint:panic a bug
		}
		d.finish(in)
		return
	}
	if s != host.OK {
		in.iface.written(a)
	}
	if s == host.Fault && int(a.Tries) < d.faultTries() {
		a.Tries++
		if !d.absent.await(a) {
			d.post(d.now()+d.spec.FaultPause, kindWriteAgain, 0, a)
		}
		return
	}
	if s != host.OK && a.Begin {
		d.resume(a, s)
	}
	from, to := in.clip(in.frame.Span(a.Index))
	d.landing -= int64(to - from)
	if s == host.OK {
		if len(in.frame.pages) > 0 {
			in.iface.Space.Offer(in.frame.pages[a.Index])
		}
		n, whole := in.iface.Port.Write(in.d, uint64(from-int(in.skip)), in.frame.part(from, to))
		where := deposited
		if a.Ignored() {
			where = ignored
		}
		d.settle(in, where, n)
		if !whole {
			d.settle(in, in.notWritten(), to-from-n)
		}
	} else {
		d.settle(in, unwritable, to-from)
		address, _ := a.At(0)
		in.lose(loss{cause: unwritable, at: d.now(), address: address, status: s, tries: int(a.Tries)}, 1, uint64(to-from))
		in.dropped += uint64(to - from)
		in.failed(portals.NISegv)
		d.account.dropped++
		d.bus.Drop(a)
	}
	d.trace.landed(in, a.Index)
	write := a.Serial
	d.core.releaseAccess(a)
	in.data--
	if in.data == 0 && in.left == 0 && in.completes {
		d.post(d.now(), kindDelivered, 0, in)
	}
	d.wrote(in, write)
}

// resume lets packets try again that wait with access a, which crosses the bus
// or has failed for good. If their page is still absent, they do not wait for a
// once more.
func (d *deposit) resume(a *host.Access, s host.Status) {
	w := d.absent.ended(a)
	if w == nil {
		return
	}
	for _, j := range w.joined {
		if s == host.Fault {
			j.Tries = a.Tries
		}
		d.bus.Again(j, 0)
	}
	d.absent.give(w)
}

// wrote ends a write of a message and lets barriers behind it pass.
func (d *deposit) wrote(in *inbound, write int) {
	in.underway--
	if in.barred {
		d.pass(in, write)
	}
	switch {
	case in.underway > 0:
	case in.reply:
		d.finish(in)
	case in.record:
		in.record = false
		d.writeRecord(in.iface, d, depositRecord, 0, in, in.order, in.landed)
	case in.over:
		if in.handlers != nil {
			in.handlers.memory.uses--
		}
		d.over(in)
	}
}

// pass lets barriers continue that have waited for a write.
func (d *deposit) pass(in *inbound, write int) {
	kept := in.barriers[:0]
	for _, b := range in.barriers {
		if write < int(b.upTo) {
			b.left--
		}
		if b.left > 0 {
			kept = append(kept, b)
		} else {
			b.issue.in = nil // later writes do not concern it, and the message may be over
			d.post(d.now(), kindIssue, 0, b.issue)
		}
	}
	in.barriers, in.barred = kept, len(kept) > 0
}

// complete sends the record of the message's end to host memory, behind its
// data.
func (d *deposit) complete(in *inbound) {
	in.phase = phaseComplete
	if t := in.frame.timer; t != nil {
		t.expiryEnded()
	}
	if in.d == nil {
		d.over(in)
		return
	}
	if cookie := in.d.Cookie(); cookie != 0 {
		d.trace.done(in.frame)
		d.waiters.answerThere(cookie, in.d.MLength, in.failure())
	}
	// nothing lands, so the reply or the refusal leaves at once
	if in.kind == portals.OpGet || !in.d.Matched() {
		if in.underway > 0 && d.bus.Paged() {
			in.reply = true // its request cannot follow writes that the bus has not taken
			return
		}
		d.finish(in)
		return
	}
	if in.record = in.turns > 0; in.record { // it would be on the bus before them
		return
	}
	// The handler and the host learn at the same moment that the data has
	// landed, because the record crossed the bus with the data.
	d.writeRecord(in.iface, d, depositRecord, 0, in, in.order, in.landed)
}

// failed sets the message's failure unless it already has one.
func (in *inbound) failed(fail portals.FailType) {
	if in.fail == portals.NIOK {
		in.fail = fail
	}
}

// failure is the failure of the message: at the other side, or on its way here.
func (in *inbound) failure() portals.FailType {
	if in.d.Fail != portals.NIOK {
		return in.d.Fail
	}
	return in.fail
}

// finish raises events and counters, and starts what they trigger.
func (d *deposit) finish(in *inbound) {
	out := portals.Outcome{Delivered: in.d.MLength - min(in.dropped, in.d.MLength), Fail: in.fail, Pending: in.pending && in.opened}
	if in.pending && !in.opened { // no operation completes the entry: another message will
		out.Waits, out.Note = true, uint64(d.now())
	}
	damaged := in.damaged()
	if damaged && out.Fail == portals.NIOK {
		out.Fail = in.lost.failure()
	}
	if damaged && !in.frame.Datagram {
		d.report.lost(d.env, &in.frame.Header, &LostMessage{
			At: in.lost.at, Number: in.frame.Number, Packets: in.lost.packets, Of: in.frame.Packets, Bytes: in.lost.bytes, Length: in.d.MLength, Cause: d.describe(&in.lost),
		})
	}
	cookie, fail := in.d.Cookie(), in.failure()
	if in.handlers != nil {
		d.handled(in)
	}
	in.iface.Port.Finish(in.d, out)
	if out.Pending {
		in.open.messageEnded(out)
	}
	if cookie != 0 {
		d.waiters.replied(cookie, out.Delivered, fail)
	}
	d.trace.finished(in, d.now())
	if in.underway > 0 {
		in.over = true
		return
	}
	d.over(in)
}
