package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// absent makes the memory of the process absent from here on, or not.
func (e *end) absent(is bool) {
	e.d.Absent = func(spin.Space, uint64, uint64, bool) bool { return is }
}

// post gives the hardware a work request of one range, and lets packets leave. It returns them.
func (e *end) post(kind uint32, address, length, remote uint64) []*spin.Op {
	w := rnr.WorkRequest{Kind: kind, Ranges: 1, Remote: remote, Length: length, List: [rnr.MaxRanges]rnr.Range{{Address: address, Length: length}}}
	told := uint32(rnr.KindPostSend)
	if kind == 0 {
		told = rnr.KindPostReceive
	}
	before := len(e.d.Puts())
	e.packet(0, rnr.Header{Kind: told}, 0, 0, spin.EncodeState(&w))
	return append(e.since(before), e.goes()...)
}

func (e *end) since(before int) (ops []*spin.Op) {
	for _, p := range e.d.Puts()[before:] {
		ops = append(ops, &p.Op)
	}
	return ops
}

// own delivers a message of the own process, driver or timers to the hardware.
func (e *end) own(kind uint32, data uint64) []*spin.Op {
	return e.packet(0, rnr.Header{Kind: kind}, 0, data, make([]byte, 8))
}

// goes lets requests, and responses, leave for which the hardware has told itself to.
func (e *end) goes() (ops []*spin.Op) {
	for e.s.Requester.Busy != 0 && e.s.Report.Error == 0 {
		ops = append(ops, e.own(rnr.KindGo, 0)...)
	}
	for e.s.Responder.Busy != 0 && e.s.Report.Error == 0 {
		ops = append(ops, e.own(rnr.KindRespond, 0)...)
	}
	return ops
}

// reports are the types of faults that the firmware was told of, in order.
func (e *end) reports() (types []uint64) {
	for _, c := range e.d.Named("to_self") {
		if c.Op.PTIndex == e.s.PT+1 {
			types = append(types, c.Op.HdrData)
		}
	}
	return types
}

// resolved has the firmware learn that a fault is.
func (e *end) resolved(of uint64) {
	h := rnr.Header{Kind: rnr.KindResume}
	spintest.Deliver(e.d, spintest.Handlers[rnr.State]{Header: firmware}, e.s, spintest.Message{MatchBits: h.Bits(), HdrData: of})
}

// NPF'17 §4: "our prototype limits the outstanding page faults per IOchannel to
// four: read and write, for both initiator and responder". Each of the four is
// reported, in whatever order they come; a fifth of any type is handled (NACK,
// drop, stop) and not reported, until the firmware has learned that the one
// before is resolved. A bit is of a connection: another one reports its own
// meanwhile.
func TestFourFaultsAreOutstanding(t *testing.T) {
	e := newEnd(t)
	e.absent(true)
	require.Len(t, e.post(rnr.KindRead, 4096, mtu, 8192), 1)
	peerReads := func() {
		e.packet(peer, rnr.Header{Kind: rnr.KindRead, PSN: uint32(e.s.Responder.Landing.Next)}, 4096, mtu, make([]byte, 8))
		e.goes()
	}
	peerReads()
	require.Len(t, e.write(1, 0), 1, "an RNR NACK")
	require.Empty(t, e.post(rnr.KindWrite, 4096, mtu, 8192), "its data is absent")
	responds := func() { e.packet(peer, rnr.Header{Kind: rnr.KindResponse}, 0, mtu, make([]byte, mtu)) }
	responds()
	four := []uint64{rnr.ResponderRead, rnr.ResponderWrite, rnr.InitiatorWrite, rnr.InitiatorRead}
	require.Equal(t, four, e.reports())
	require.EqualValues(t, 0b1111, e.s.InFlight)

	nacks := e.write(1, 0)
	require.Len(t, nacks, 1, "the fifth is handled")
	require.EqualValues(t, rnr.KindRNR, kindOf(nacks[0]).Kind)
	dropped := e.s.Stats.Dropped
	responds()
	require.Equal(t, dropped+1, e.s.Stats.Dropped, "until memory for it is there")
	require.Empty(t, e.post(rnr.KindWrite, 4096, mtu, 8192), "the requester waits")
	peerReads()
	require.Equal(t, four, e.reports(), "nothing more is reported")
	require.EqualValues(t, 4, e.s.Stats.Reported)

	other := newEnd(t)
	other.absent(true)
	require.Len(t, other.write(0, 0), 1)
	require.Equal(t, []uint64{rnr.ResponderWrite}, other.reports(), "another connection has four of its own")

	e.resolved(rnr.ResponderWrite)
	require.EqualValues(t, 0b1111&^(1<<rnr.ResponderWrite), e.s.InFlight)
	e.write(uint32(e.s.Responder.Landing.Next), 0)
	require.Equal(t, append(four, rnr.ResponderWrite), e.reports(), "another of that type is")
	require.EqualValues(t, 0b1111, e.s.InFlight)
}

// NPF'17 §4: the driver first informs the hardware, which goes on; the firmware
// is told, too, to clear the bit. Between the two a side that meets another
// absent page stops without a report, and is let go on by the firmware, so that
// it reports the page. With reports of one page, as ATS and PRI have them,
// there is no firmware to tell: the hardware clears the bit.
func TestResumedBeforeTheFirmwareKnows(t *testing.T) {
	for _, single := range []uint32{0, 1} {
		e := newEnd(t)
		e.s.Single = single
		e.absent(true)
		require.Empty(t, e.post(rnr.KindWrite, 4096, 2*mtu, 8192))
		e.absent(false)
		e.own(rnr.KindResume, rnr.InitiatorWrite)
		require.Len(t, e.goes(), 2, "the hardware goes on")
		require.Equal(t, single == 0, e.s.InFlight&(1<<rnr.InitiatorWrite) != 0)
		e.absent(true)
		require.Empty(t, e.post(rnr.KindWrite, 4096, mtu, 8192))
		if single != 0 {
			require.Len(t, e.reports(), 2)
			continue
		}
		require.Len(t, e.reports(), 1, "in flight")
		require.EqualValues(t, 1, e.s.Requester.Stopped)
		e.resolved(rnr.InitiatorWrite)
		require.Zero(t, e.s.InFlight)
		require.Zero(t, e.s.Missed)
		self := e.d.Named("to_self")
		last := self[len(self)-1].Op
		require.Equal(t, e.s.PT, last.PTIndex, "the hardware is to meet the page again")
		require.EqualValues(t, rnr.KindResume, kindOf(&last).Kind)
		require.Empty(t, e.own(rnr.KindResume, last.HdrData))
		require.Empty(t, e.goes())
		require.Len(t, e.reports(), 2)
		e.resolved(rnr.InitiatorWrite)
		require.Len(t, e.d.Named("to_self"), len(self)+2, "nothing was missed: the hardware hears nothing")
	}
}

// A report for which the device has no room ends the connection, on both sides:
// it would wait for ever.
func TestReportWithoutRoom(t *testing.T) {
	e := newEnd(t)
	e.absent(true)
	e.d.Fail("to_self", spin.NoSpace, 1)
	ops := e.write(0, 0)
	require.EqualValues(t, rnr.NoSpace, e.s.Report.Error)
	require.EqualValues(t, rnr.KindBroken, kindOf(ops[0]).Kind)
}

// One end has no more than MaxReads requests to read outstanding, whatever is
// posted behind them; the other serves no more, and what comes beyond is
// dropped.
func TestReadsAreLimited(t *testing.T) {
	e := newEnd(t)
	left := 0
	for range rnr.MaxReads + 4 {
		left += len(e.post(rnr.KindRead, 4096, mtu, 8192))
	}
	require.Equal(t, rnr.MaxReads, left)
	ops := e.packet(peer, rnr.Header{Kind: rnr.KindResponse}, 0, mtu, make([]byte, mtu))
	ops = append(ops, e.goes()...)
	require.Len(t, ops, 1, "another one in the place of the one that has ended")
	require.EqualValues(t, rnr.MaxReads, kindOf(ops[0]).PSN)

	e = newEnd(t)
	e.absent(true) // so that none is served
	for i := range uint32(rnr.MaxReads) {
		e.packet(peer, rnr.Header{Kind: rnr.KindRead, PSN: i}, 4096, mtu, make([]byte, 8))
	}
	require.Zero(t, e.s.Stats.Dropped)
	e.packet(peer, rnr.Header{Kind: rnr.KindRead, PSN: rnr.MaxReads}, 4096, mtu, make([]byte, 8))
	require.EqualValues(t, 1, e.s.Stats.Dropped)
	require.EqualValues(t, rnr.MaxReads, e.s.Responder.Last-e.s.Responder.First)
	require.EqualValues(t, rnr.MaxReads, e.s.Responder.Landing.Next, "it is to come again")
}

// There is no count of RNR retries (InfiniBand's 7): a requester is asked to
// pause for ever, and pauses are no time-outs.
func TestPausesAreNotCounted(t *testing.T) {
	e := newEnd(t)
	require.Len(t, e.post(rnr.KindWrite, 4096, mtu, 8192), 1)
	e.s.Requester.Tries = e.s.Retries // the next time-out would be the last
	for range 100 {
		e.packet(peer, rnr.Header{Kind: rnr.KindRNR}, 0, 240000, make([]byte, 8))
		require.EqualValues(t, 1, e.s.Requester.Paused)
		require.Empty(t, e.goes())
		e.own(rnr.KindRetry, 0) // the time-out ends in a pause: it is none
		require.Zero(t, e.s.Requester.Tries)
		e.own(rnr.KindUnpause, 0)
		require.Len(t, e.goes(), 1)
	}
	require.Zero(t, e.s.Report.Error)
	require.Zero(t, e.s.Stats.Timeouts)
	for range e.s.Retries {
		e.own(rnr.KindRetry, 0)
		require.Len(t, e.goes(), 1)
		require.Zero(t, e.s.Report.Error)
	}
	e.own(rnr.KindRetry, 0)
	require.EqualValues(t, rnr.TimedOut, e.s.Report.Error, "one time-out more than Retries, in a row and without a pause")
}
