package nic

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// ended acts on the result of a handler (sPIN'17 §3.2, return codes).
func (s *schedule) ended(t task, out *hpu.Outcome, failed *failedAccess) {
	in := t.in
	fail := s.judge(t, out, failed)
	if fail != portals.NIOK && in.fail == portals.NIOK {
		in.fail = fail
	}
	switch t.kind {
	case headerHandler:
		s.headerEnded(in, out.Code)
	case payloadHandler:
		if out.Code == hpu.Drop || fail != portals.NIOK {
			in.dropped += uint64(in.payloadBytes(int(t.packet)))
		}
		s.dealt(in)
	case completionHandler:
		in.pending = in.pending || out.Code == hpu.SuccessPending
		s.next.complete(in)
	}
}

// judge reports a failed handler and replaces its code. A killed handler puts
// the entry into flow control.
func (s *schedule) judge(t task, out *hpu.Outcome, failed *failedAccess) portals.FailType {
	var err error
	var fail portals.FailType
	switch {
	case out.Err != nil:
		err, fail = out.Err, portals.NIDropped
		switch {
		case out.Err.Kind == hpu.TrapBudget:
			s.triggerFlowControl(t.in)
			err = s.tenants.explains(t, err)
		case out.Err.Kind.Code() == hpu.Segv:
			fail = portals.NISegv
		}
	case out.Code == hpu.Segv:
		err, fail = errors.New("returned SEGV"+s.after(failed)), portals.NISegv
	case out.Code == hpu.Fail:
		err, fail = errors.New("returned FAIL"+s.after(failed)), portals.NIDropped
	case !legal(t.kind, out.Code):
		err, fail = fmt.Errorf("returned %d, which is no return code of a %s handler", out.Code, t.kind), portals.NIDropped
	default:
		return portals.NIOK
	}
	out.Code = hpu.Fail
	h := t.in.handlers
	s.report.handlerFailed(HandlerError{Rank: int(s.rank), At: s.now(), Program: h.memory.name, Handler: t.kind.String(), Err: err})
	return fail
}

// after names the last failed access of a handler that reports a failure, if
// there is one. The access may be the reason.
func (e *env) after(failed *failedAccess) string {
	if failed.result >= hpu.OK {
		return ""
	}
	return ", after " + e.failedAccess(failed, "had")
}

// failure reports whether a code means that the handler has failed. All kinds
// of handlers may return such a code.
func failure(c hpu.Code) bool { return c == hpu.Fail || c == hpu.Segv }

func legal(k handlerKind, c hpu.Code) bool {
	switch k {
	case headerHandler:
		return c >= hpu.Drop && c <= hpu.ProceedPending
	case payloadHandler:
		return c == hpu.Success || c == hpu.Drop
	default:
		return c == hpu.Success || c == hpu.SuccessPending
	}
}

// headerEnded sends the packets of the message the way that the header handler
// chose.
func (s *schedule) headerEnded(in *inbound, code hpu.Code) {
	in.pending = code == hpu.DropPending || code == hpu.ProcessDataPending || code == hpu.ProceedPending
	switch code {
	case hpu.ProcessData, hpu.ProcessDataPending:
		s.processData(in)
	case hpu.Proceed, hpu.ProceedPending:
		// the user header was not counted, but would have been deposited now
		if in.lostFirst {
			s.lose(in, in.lost.cause, 0, min(uint64(in.skip), in.d.MLength))
		} else {
			s.offeredTwice(in)
		}
		in.skip = 0
		in.phase = phaseDeposit
	default:
		in.discards(declined)
		if code != hpu.Drop && code != hpu.DropPending {
			in.fate = failed
		}
		// the lost bytes would have been discarded now
		in.dropped, in.lossy = in.d.MLength, false
	}
	waiting := in.waiting
	in.waiting = in.waiting[len(in.waiting):]
	if len(waiting) == 0 && in.left == 0 { // flow control has dropped every packet
		in.left = 1
		s.dealt(in)
		return
	}
	for _, i := range waiting {
		from, to := in.frame.Span(int(i))
		unbuffer(s, in, int64(to-from))
		s.packet(in, int(i))
	}
	in.waiting = waiting[:0]
}

// processData begins the payload handlers, or the default action if the entry
// has none. An atomic has no default action if its user header is not a whole
// number of elements.
func (s *schedule) processData(in *inbound) {
	in.completes = in.handlers.completion.Valid()
	switch {
	case in.handlers.payload.Valid():
		in.phase = phaseHandlers
	case atomic(in.frame.Header.Kind) && int(in.skip)%in.frame.Header.Type.Size() != 0:
		in.discards(unaligned)
		in.dropped = in.d.MLength
		if in.fail == portals.NIOK {
			in.fail = portals.NIOpViolation
		}
	default:
		in.phase = phaseDeposit
	}
}
