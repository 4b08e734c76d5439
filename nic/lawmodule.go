package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/spin"
)

// LawModule is a module in place of a law of package laws. It runs in the
// transport itself, a pipeline beside the HPUs: its cycles are counted, and
// bounded by transport.law_cycles, but take no time. Its HPU memory has the
// record and the state of the flow whose event it handles.
type LawModule struct {
	Program *hpu.Program
	Law     hpu.Func
}

// LawMemory is how many bytes of HPU memory a LawModule needs.
const LawMemory = flowBytes + laws.Words*8

// flowBytes is the length of the record (docs/abi.md, Flow record).
const flowBytes = 128

// lawOf returns the law that runs in place l: a module or, without one, a law of
// package laws.
func (s *flowLaws) lawOf(l *laws.Law, m *LawModule) func(f *spin.Flow, s *laws.State) {
	if m == nil {
		return func(f *spin.Flow, state *laws.State) {
			if f.Event == spin.FlowBegins {
				l.Init(state, s.spec.Numbers)
			}
			l.Handle(f, state)
		}
	}
	addr, _ := m.Program.HPUMemory()
	return func(f *spin.Flow, state *laws.State) {
		memory := m.Program.Present()[addr:]
		encodeFlow(memory, f)
		for i, w := range state {
			binary.LittleEndian.PutUint64(memory[flowBytes+8*i:], w)
		}
		c := m.Program.Context(0)
		c.Start(m.Law, addr, addr+flowBytes, s.spec.LawCycles)
		end := c.Outcome()
		s.calls++
		s.cycles += end.Cycles
		if err := s.ended(&end); err != nil {
			s.failed(m.Program.Module().Name(), err)
			return
		}
		memory = m.Program.Present()[addr:]
		f.Window, f.Pause = binary.LittleEndian.Uint64(memory[88:]), binary.LittleEndian.Uint64(memory[96:])
		f.Timer, f.Path = binary.LittleEndian.Uint64(memory[104:]), binary.LittleEndian.Uint64(memory[112:])
		for i := range state {
			state[i] = binary.LittleEndian.Uint64(memory[flowBytes+8*i:])
		}
	}
}

// ended returns why a law has failed, nil if it has not. The run fails, and the
// flow goes on as if the law had done nothing.
func (s *flowLaws) ended(end *hpu.Outcome) error {
	switch {
	case end.Err != nil:
		return end.Err
	case end.Cycles > s.spec.LawCycles:
		return fmt.Errorf("took %d cycles for an event, transport.law_cycles allows %d", end.Cycles, s.spec.LawCycles)
	case end.Code != hpu.Success:
		return fmt.Errorf("returned %s, expected %s", end.Code.Name(), hpu.Success.Name())
	}
	return nil
}

// failed reports a failure, which makes the run fail.
func (s *flowLaws) failed(module string, err error) {
	s.report.handlerFailed(HandlerError{Rank: int(s.rank), At: s.now(), Program: module, Handler: laws.Export, Err: err})
}

func encodeFlow(b []byte, f *spin.Flow) {
	binary.LittleEndian.PutUint32(b, uint32(f.Event))
	binary.LittleEndian.PutUint32(b[4:], f.Marked)
	for i, w := range [...]uint64{
		f.Now, f.RTT, f.Bytes, f.InFlight, f.Base, f.MTU, f.MTUTime, f.Payload, uint64(f.Paths)<<32 | uint64(f.Trims), f.Seed, f.Window, f.Pause, f.Timer, f.Path, f.LeastPause,
	} {
		binary.LittleEndian.PutUint64(b[8+8*i:], w)
	}
}
