package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// flies has a packet without data behind it be on its way into memory: what
// store has noted when it waits.
func (e *end) flies(number uint64, flags uint32) {
	l := &e.s.Responder.Landing
	place, _ := accept(l, number)
	require.Equal(e.t, number+1, l.Flying[place])
	if flags&rnr.WantAck != 0 {
		e.s.Responder.AckAt = number + 1
	}
}

// ends ends that: the packet has landed, or has met an absent page.
func (e *end) ends(number uint64, absent bool) []*spin.Op {
	before := len(e.d.Puts())
	spintest.Run(e.d, func(_ *spin.Header, s *rnr.State) spin.Code {
		if absent {
			undo(s, number)
			pause(s, number)
			return spin.Success
		}
		for i := range s.Responder.Landing.Flying {
			if s.Responder.Landing.Flying[i] == number+1 {
				s.Responder.Landing.Flying[i] = 0
			}
		}
		landed(s)
		return spin.Success
	}, &spin.Header{}, e.s)
	return e.since(before)
}

func (e *end) read(number uint32, packets uint64) []*spin.Op {
	return e.packet(peer, rnr.Header{Kind: rnr.KindRead, PSN: number}, 4096, packets*mtu, make([]byte, 8))
}

// A request to read sees what was written before: it is not served while that
// is on its way into memory.
func TestReadWaitsForWrites(t *testing.T) {
	e := newEnd(t)
	e.flies(0, 0)
	require.Empty(t, e.read(1, 1))
	require.Zero(t, e.s.Responder.Busy, "not yet")
	require.Empty(t, e.ends(0, false))
	require.Len(t, e.goes(), 1)
}

// A request to read behind a packet that is refused comes again with it, and is served then, once.
func TestReadBehindAFault(t *testing.T) {
	e := newEnd(t)
	e.flies(0, 0)
	require.Empty(t, e.read(1, 1))
	require.Len(t, e.ends(0, true), 1, "an RNR NACK")
	require.EqualValues(t, 0, e.s.Responder.Landing.Next)
	require.Empty(t, e.write(0, 0))
	require.Empty(t, e.goes(), "nobody has asked")
	require.Empty(t, e.read(1, 1))
	require.Len(t, e.goes(), 1)
}

// What has landed before a packet that is refused is acknowledged without it;
// what was accepted behind it is not, until it has come again; and a packet
// that comes again while it flies is not before it is there.
func TestAcknowledgedIsWhatHasLanded(t *testing.T) {
	const last = rnr.WantAck | rnr.LastOne
	e := newEnd(t)
	e.flies(0, last)
	e.absent(true)
	require.Equal(t, rnr.Header{Kind: rnr.KindRNR, PSN: 1}, kindOf(e.write(1, last)[0]))
	require.Equal(t, rnr.Header{Kind: rnr.KindAck}, kindOf(e.ends(0, false)[0]))

	e = newEnd(t)
	e.flies(0, 0)
	require.Empty(t, e.write(1, last), "all before it is to land first")
	require.Empty(t, e.write(1, last), "again")
	require.EqualValues(t, 1, e.s.Stats.Duplicates)
	require.Equal(t, rnr.Header{Kind: rnr.KindRNR}, kindOf(e.ends(0, true)[0]))
	require.Empty(t, e.write(0, 0))
	require.Equal(t, rnr.Header{Kind: rnr.KindAck, PSN: 1}, kindOf(e.write(1, last)[0]))
}

// An acknowledgement is sent behind the responses to what was asked for before:
// it would else say that those are lost.
func TestAcknowledgedBehindResponses(t *testing.T) {
	e := newEnd(t)
	require.Empty(t, e.read(0, 2))
	require.Empty(t, e.write(2, rnr.WantAck|rnr.LastOne))
	ops := e.goes()
	require.Len(t, ops, 3)
	for i, kind := range []uint32{rnr.KindResponse, rnr.KindResponse, rnr.KindAck} {
		require.Equal(t, rnr.Header{Kind: kind, PSN: uint32(i)}, kindOf(ops[i]))
	}
}

// A side that serves reads stops at absent data: nothing behind it leaves, not
// of the reads behind it either, though it was fetched; all of it does when the
// data is there, once and in order.
func TestResponsesStop(t *testing.T) {
	e := newEnd(t)
	e.d.Absent = func(_ spin.Space, offset, _ uint64, _ bool) bool { return offset == 4096 }
	require.Empty(t, e.read(0, 2))
	require.Empty(t, e.packet(peer, rnr.Header{Kind: rnr.KindRead, PSN: 2}, 8192, mtu, make([]byte, 8)))
	require.Empty(t, e.goes())
	e.absent(false)
	e.own(rnr.KindResume, rnr.ResponderRead)
	ops := e.goes()
	require.Len(t, ops, 3)
	for i, op := range ops {
		require.Equal(t, rnr.Header{Kind: rnr.KindResponse, PSN: uint32(i)}, kindOf(op))
	}
}

// One packet that is lost is asked for once, whatever comes behind it, and the
// next one that is lost, too. A message of many packets wants an
// acknowledgement of each 64th.
func TestLostOnce(t *testing.T) {
	e := newEnd(t)
	require.Empty(t, e.write(0, 0))
	require.Len(t, e.write(2, 0), 1)
	require.Empty(t, e.write(3, 0))
	for i := range uint32(3) {
		require.Empty(t, e.write(1+i, 0))
	}
	require.Len(t, e.write(6, 0), 1)

	e = newEnd(t)
	e.d.Host = make([]byte, 1<<20)
	ops := e.post(rnr.KindWrite, 4096, 130*mtu, 8192)
	require.Len(t, ops, 130)
	for i, op := range ops {
		require.Equal(t, i == 63 || i == 127 || i == 129, kindOf(op).Flags&rnr.WantAck != 0)
	}
}

// A read whose response has a hole is asked for again from there, once, and
// once more after a time-out; from behind what has come meanwhile.
func TestReadsAreAskedForAgain(t *testing.T) {
	e := newEnd(t)
	responds := func(number uint32) {
		e.packet(peer, rnr.Header{Kind: rnr.KindResponse, PSN: number}, 0, uint64(4-number)*mtu, make([]byte, mtu))
	}
	asks := func(number uint32) {
		ops := e.goes()
		require.Len(t, ops, 1)
		require.Equal(t, rnr.Header{Kind: rnr.KindRead, PSN: number}, kindOf(ops[0]))
		require.Equal(t, 8192+uint64(number)*mtu, ops[0].RemoteOffset)
		require.Equal(t, uint64(4-number)*mtu, ops[0].HdrData)
	}
	require.Len(t, e.post(rnr.KindRead, 4096, 4*mtu, 8192), 1)
	responds(0)
	responds(2)
	asks(1)
	responds(3)
	require.Empty(t, e.goes(), "once")
	e.s.Requester.Mark = e.s.Requester.Landing.Una
	e.own(rnr.KindRetry, 0)
	asks(1)
	responds(2)
	asks(1)
	e.s.Requester.Mark = e.s.Requester.Landing.Una
	before := len(e.d.Puts())
	e.own(rnr.KindRetry, 0) // asked for again from 1 on, which has not left when 1 comes after all
	require.Len(t, e.d.Puts(), before)
	responds(1)
	asks(2)
}

// What a requester is told of packets that it has not sent, or that have been
// acknowledged since, changes nothing; and one pause is one, however often it
// is asked for.
func TestAnswersOutOfTime(t *testing.T) {
	e := newEnd(t)
	for range 4 {
		e.post(rnr.KindWrite, 4096, mtu, 8192)
	}
	tells := func(kind, number uint32) {
		e.packet(peer, rnr.Header{Kind: kind, PSN: number}, 0, 1000, make([]byte, 8))
	}
	tells(rnr.KindAck, 1)
	for _, number := range []uint32{0, 1, 5} {
		tells(rnr.KindNak, number)
		require.Empty(t, e.goes(), "%d", number)
		tells(rnr.KindRNR, number)
		require.Zero(t, e.s.Requester.Paused, "%d", number)
	}
	timers := len(e.d.Named("timer"))
	for range 3 {
		tells(rnr.KindRNR, 2)
	}
	require.Len(t, e.d.Named("timer"), timers+1)
}

// A message whose last packet was refused has not ended, even if the other end
// sends something else in its place.
func TestRefusedMessageHasNotEnded(t *testing.T) {
	e := newEnd(t)
	e.post(0, 4096, mtu, 0)
	e.absent(true)
	last := func() []*spin.Op {
		return e.packet(peer, rnr.Header{Kind: rnr.KindSend, Flags: rnr.WantAck | rnr.LastOne}, 0, mtu, make([]byte, mtu))
	}
	require.Len(t, last(), 1)
	e.absent(false)
	require.Len(t, e.write(0, rnr.WantAck|rnr.LastOne), 1)
	require.Zero(t, e.s.Report.Received)
}

// Nothing continues from work requests that have ended: new ones use their
// places.
func TestPlacesOfWorkAreUsedAgain(t *testing.T) {
	e := newEnd(t)
	for i := range uint64(rnr.MaxWork) {
		require.Len(t, e.post(rnr.KindWrite, 4096, mtu, 8192*i), 1)
	}
	tells := func(kind, number uint32) { e.packet(peer, rnr.Header{Kind: kind, PSN: number}, 0, 0, make([]byte, 8)) }
	tells(rnr.KindNak, 0)
	tells(rnr.KindAck, 3)
	require.EqualValues(t, 4, e.s.Report.Sent)
	again := e.post(rnr.KindWrite, 4096, mtu, 8192*rnr.MaxWork)
	require.Len(t, again, rnr.MaxWork-4+1)
	for i, op := range again {
		require.EqualValues(t, i+4, kindOf(op).PSN)
		require.EqualValues(t, 8192*(i+4), op.RemoteOffset)
	}
}

// Time-outs are counted while nothing is waited for but an answer: not in a
// pause that the other end has asked for, nor while the own memory is absent;
// and from the beginning when there was progress.
func TestTimeoutsAreInARow(t *testing.T) {
	for name, waits := range map[string]func(e *end){ //lint:maporder each by itself
		"pause": func(e *end) { // of the third packet: the first two are accepted, and have not landed
			e.packet(peer, rnr.Header{Kind: rnr.KindRNR, PSN: 2}, 0, 240000, make([]byte, 8))
			require.Zero(t, e.s.Requester.Tries)
		},
		"data to be sent is absent":       func(e *end) { e.absent(true); e.post(rnr.KindWrite, 4096, mtu, 0) },
		"memory for what is read is not":  func(e *end) { e.s.Requester.Drops = 1 },
		"an acknowledgement of the first": func(e *end) { e.packet(peer, rnr.Header{Kind: rnr.KindAck}, 0, 0, make([]byte, 8)) },
	} {
		e := newEnd(t)
		for range 3 {
			e.post(rnr.KindWrite, 4096, mtu, 0)
		}
		e.s.Requester.Tries = e.s.Retries
		waits(e)
		e.s.Requester.Tries = e.s.Retries
		e.own(rnr.KindRetry, 0)
		require.Zero(t, e.s.Requester.Tries, name)
		require.Zero(t, e.s.Report.Error, name)
	}
}

// What comes too late changes nothing: a time-out when all is acknowledged
// starts no other, a fault that is resolved of a read that drops nothing
// rewinds nothing, and absent data of a read that was asked for again is not
// reported.
func TestTooLate(t *testing.T) {
	e := newEnd(t)
	e.post(rnr.KindWrite, 4096, mtu, 8192)
	e.packet(peer, rnr.Header{Kind: rnr.KindAck}, 0, 0, make([]byte, 8))
	timers := len(e.d.Named("timer"))
	e.own(rnr.KindRetry, 0)
	require.Len(t, e.d.Named("timer"), timers)

	require.Len(t, e.post(rnr.KindRead, 4096, 2*mtu, 8192), 1)
	e.own(rnr.KindResume, rnr.InitiatorRead)
	require.Zero(t, e.s.Stats.Rewinds)
	require.Empty(t, e.goes())

	require.Empty(t, e.read(0, 1))
	for _, f := range []flight{{number: 0, fault: rnr.Fault{Type: rnr.ResponderRead, At: 1}}, {number: 1, fault: rnr.Fault{Type: rnr.ResponderRead}}} {
		spintest.Run(e.d, func(_ *spin.Header, s *rnr.State) spin.Code { stop(s, responses, &f); return spin.Success }, &spin.Header{}, e.s)
		require.Empty(t, e.reports())
		require.Zero(t, e.s.Responder.Stopped)
	}
}
