package handlerlab

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
)

// totals are sums over all handlers, listed or not.
type totals struct {
	cycles        int64          // of all handlers
	longest       int64          // cycles of the handler with the most
	returned      map[string]int // codes
	sent, written int64          // bytes
	dropped       int64          // packets

	writes map[write][]int64 // bytes of writes that have not taken effect, the oldest first
}

// write names the writes of a handler to host memory that are on their way:
// those with a handle, without one, and the one that it waits for.
type write struct {
	handler int64
	handle  int
}

const (
	posted = -1 // writes without a handle
	waited = -2 // the handler waits for the write, or for its handle
)

// step adds a step of any handler.
func (t *totals) step(s *nic.HandlerStep) {
	switch s.What {
	case nic.StepActed:
		t.acted(s)
	case nic.StepAnswered:
		if n := t.take(write{s.Number, waited}); n > 0 {
			t.answered(s, n)
		}
	case nic.StepLanded:
		if s.Handle == posted && s.Op != hpu.OpDMAToHostPosted {
			return // the answer counts
		}
		if n := t.take(write{s.Number, s.Handle}); s.Result >= 0 {
			t.written += n
		}
	case nic.StepEnded:
		t.cycles += s.Cycles
		t.longest = max(t.longest, s.Cycles)
		t.returned[returned(s)]++
	}
}

// acted adds a request. A write counts when it has taken effect.
func (t *totals) acted(s *nic.HandlerStep) {
	var n int64
	switch a := s.Action; a.Op {
	case hpu.OpDMAToHost, hpu.OpDMAToHostNB, hpu.OpDMAToHostPosted:
		n = int64(a.Len)
	case hpu.OpHostWrite, hpu.OpHostWriteNB:
		n = 8
	case hpu.OpPutFromDevice, hpu.OpPutFromHost, hpu.OpAtomicFromDevice, hpu.OpAtomicFromHost:
		t.sent += int64(a.Desc.Length)
	}
	switch {
	case n == 0:
	case s.Suspended:
		t.wait(write{s.Number, waited}, n)
	default:
		t.answered(s, n)
	}
}

// answered takes the answer to a write of n bytes: it has taken effect, or it is
// on its way.
func (t *totals) answered(s *nic.HandlerStep, n int64) {
	switch {
	case s.Result < 0:
	case s.Op == hpu.OpDMAToHostNB || s.Op == hpu.OpHostWriteNB:
		t.wait(write{s.Number, int(s.Result)}, n)
	case s.Op == hpu.OpDMAToHostPosted:
		t.wait(write{s.Number, posted}, n)
	default:
		t.written += n
	}
}

func (t *totals) wait(w write, n int64) { t.writes[w] = append(t.writes[w], n) }

// take takes the oldest write; 0: there is none.
func (t *totals) take(w write) (n int64) {
	if list := t.writes[w]; len(list) > 0 {
		n, t.writes[w] = list[0], list[1:]
	}
	return n
}
