package handlerlab

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// recorder listens to the device, and to the Portals interfaces of all nodes.
type recorder struct {
	x        *trial
	handlers []*HandlerReport
	refused  map[int]string // messages that the device refused, with the reason
	sent     map[uint32]int // messages so far, by sender
	last     int            // number of the message that arrived last
	messages map[uint64]int // their numbers by msg_id
	dma      int            // operations of handlers so far
	logged   int            // bytes that handlers have logged
	unlogged int            // log lines that were dropped
	before   []byte         // HPU memory
	end      sim.Time       // time of the last report
	actions  int            // listed
	left     Omitted
	totals   totals
	races    *races // nil: not looked for
	lines    *Lines // nil: not counted
}

func newRecorder(x *trial) *recorder {
	return &recorder{x: x, totals: totals{returned: map[string]int{}, writes: map[write][]int64{}}, refused: map[int]string{}, sent: map[uint32]int{}, messages: map[uint64]int{}}
}

// inject answers runtime.Config.InjectDMA.
func (r *recorder) inject(int, hpu.Op) int64 {
	r.dma++
	return r.x.Faults[r.dma]
}

// see follows the steps of the interfaces.
func (r *recorder) see(s lab.Step) {
	if r.end = max(r.end, s.At); s.Rank != r.x.Node {
		return
	}
	switch s.Record.What {
	case portals.TraceRequest:
		r.last = r.numberOf(s.Record.Header.Initiator.NID)
	case portals.TraceRefused:
		r.refused[r.last] = s.Record.Delivery.Fail.String()
	}
}

// numberOf returns the number, from 1, of the next message that arrives from a
// node. It is 0 for a message that a handler sent to its own process, because
// that message is not part of the configuration.
func (r *recorder) numberOf(source uint32) int {
	r.sent[source]++
	left := r.sent[source]
	for i := range r.x.Messages {
		if r.x.Messages[i].Source != int(source) {
			continue
		}
		if left--; left == 0 {
			return i + 1
		}
	}
	return 0
}

// keep reports whether the report lists an event.
func (r *recorder) keep(_ int, e *portals.Event) bool {
	full := len(r.x.Events) == listedEvents
	if full && e.Type != portals.EventSend {
		r.left.Events++
	}
	return !full && e.Type != portals.EventSend
}

// watch answers runtime.Config.Watch.
func (r *recorder) watch(s *nic.HandlerStep) {
	r.end = max(r.end, s.At)
	if s.What == nic.StepArrived && len(r.handlers) < listedHandlers {
		r.messages[s.Message] = r.last
	}
	if r.races != nil {
		r.races.step(s)
	}
	if r.lines != nil {
		r.lines.step(s)
	}
	r.totals.step(s)
	if s.Number > listedHandlers {
		r.omit(s)
		return
	}
	switch s.What {
	case nic.StepBegan:
		r.began(s)
	case nic.StepActed:
		h := r.handlers[s.Number-1]
		if h.cut = h.cut || r.actions == listedActions; h.cut {
			r.left.Actions++
			return
		}
		r.actions++
		a := ActionReport{
			Cycles: s.Cycles, At: r.since(s), Name: s.Op.String(), What: r.describe(s.Action, s.Memory), handle: -1, Bytes: r.sentBytes(s.Action, s.Memory),
		}
		if s.Suspended {
			h.Actions = append(h.Actions, a)
			return
		}
		r.answer(&a, s)
		h.Actions = append(h.Actions, a)
	case nic.StepAnswered:
		h := r.handlers[s.Number-1]
		if h.cut {
			return
		}
		a := &h.Actions[len(h.Actions)-1]
		r.answer(a, s)
		if done := r.since(s); done != a.At {
			a.Done = &done
		}
	case nic.StepLanded:
		r.landed(s)
	case nic.StepEnded:
		h := r.handlers[s.Number-1]
		h.Cycles, h.Took, h.Code, h.Return, h.Ended = s.Cycles, r.since(s), int(s.Code), returned(s), true
		if s.Err != nil {
			h.Trap = s.Err.Error()
		}
	}
}

// returned names the return code of a handler that has ended.
func returned(s *nic.HandlerStep) string {
	if s.Invalid {
		return invalidCode
	}
	return codeName(s.Code)
}

// omit counts a step of a handler that is not listed.
func (r *recorder) omit(s *nic.HandlerStep) {
	switch s.What {
	case nic.StepBegan:
		r.left.Handlers++
	case nic.StepActed:
		r.left.Actions++
	}
}

// since returns the time between the beginning of the handler and a step.
func (r *recorder) since(s *nic.HandlerStep) sim.Time {
	return s.At - r.handlers[s.Number-1].Start
}

// poolOf returns the pool of a step's processor, "" for the HPUs.
func poolOf(s *nic.HandlerStep) string {
	if s.Pool == hpus {
		return ""
	}
	return s.Pool
}

// hpus is the name of the pool of HPUs.
const hpus = "HPU"

func (r *recorder) began(s *nic.HandlerStep) {
	h := &HandlerReport{
		Kind: s.Handler, Message: r.messages[s.Message], ID: s.Message, Packet: s.Packet, Pool: poolOf(s), HPU: s.HPU, Start: s.At,
	}
	switch s.Handler {
	case Kinds[0]:
		h.Bytes = uint64(binary.LittleEndian.Uint32(s.Record[4:]))
	case Kinds[1]:
		h.Bytes, h.Offset = uint64(binary.LittleEndian.Uint32(s.Record[4:])), binary.LittleEndian.Uint64(s.Record[8:])
	}
	r.handlers = append(r.handlers, h)
}

// landed notes when a non-blocking DMA operation took effect.
func (r *recorder) landed(s *nic.HandlerStep) {
	h := r.handlers[s.Number-1]
	at := r.since(s)
	for i := range h.Actions {
		a := &h.Actions[i]
		if s.Handle >= 0 && a.handle == s.Handle && a.Landed == nil {
			a.Landed = &at
			if s.Result < 0 {
				a.Failed = resultName(s.Result)
			}
			return
		}
	}
}

// answer notes the result of an action.
func (r *recorder) answer(a *ActionReport, s *nic.HandlerStep) {
	a.Result = s.Result
	switch s.Op { // their results are values
	case hpu.OpFAdd, hpu.OpAtomic32:
		a.Answer = fmt.Sprintf("was %d", s.Result)
		return
	case hpu.OpLog, hpu.OpYield, hpu.OpWait32:
		return
	case hpu.OpFlowID, hpu.OpExpiries:
		a.Answer = fmt.Sprint(s.Result)
		return
	case hpu.OpNow:
		a.Answer = fmt.Sprintf("%d ps", s.Result)
		return
	case hpu.OpScratchpad, hpu.OpMessageMemory:
		if a.Answer = "none"; s.Result != 0 {
			a.Answer = fmt.Sprintf("%d B at %s", uint64(s.Result)>>32, r.where(uint32(s.Result)))
		}
		return
	}
	a.Answer = resultName(s.Result)
	if s.Result < 0 {
		a.Failed = a.Answer
		return
	}
	switch s.Op {
	case hpu.OpDMAToHostNB, hpu.OpDMAFromHostNB, hpu.OpDMACASNB, hpu.OpDMAFAddNB, hpu.OpDMAFAddTypedNB, hpu.OpHostWriteNB:
		a.handle = int(s.Result)
		a.Answer = fmt.Sprintf("handle %d", s.Result)
	case hpu.OpTimerAt:
		a.Answer = fmt.Sprintf("handle %d", s.Result)
	case hpu.OpCAS, hpu.OpDMACAS:
		a.Answer = [2]string{"not equal", "swapped"}[s.Result&1]
	case hpu.OpDMATest:
		a.Answer = [2]string{"not yet", "done"}[s.Result&1]
	}
}

// where names an address in the module's memory.
func (r *recorder) where(addr uint32) string {
	l := r.x.in.HPU.Program().Layout()
	if addr >= l.HPU && addr < l.HPU+l.HPUBytes {
		return r.inHPUMemory(uint64(addr - l.HPU))
	}
	switch part, offset := l.Where(addr); part {
	case "":
		return fmt.Sprintf("memory 0x%x", addr)
	case "stack":
		return part
	default:
		return fmt.Sprintf("%s+%d", part, offset)
	}
}

// inHPUMemory names an offset in HPU memory. It is in a memory of clusters or
// messages, or else relative to the beginning of the state.
func (r *recorder) inHPUMemory(offset uint64) string {
	clusters, messages := &r.x.in.Spin.Scratchpads, &r.x.in.Spin.PerMessage
	if i := (offset - clusters.Offset) / max(clusters.Bytes, 1); clusters.Bytes > 0 && offset >= clusters.Offset && i < uint64(max(1, r.x.Profile.HPU.Clusters)) {
		return fmt.Sprintf("scratchpad %d+%d", i, offset-clusters.Offset-i*clusters.Bytes)
	}
	if i := (offset - messages.Offset) / max(messages.Bytes, 1); messages.Bytes > 0 && offset >= messages.Offset && i < uint64(messages.Messages) {
		return fmt.Sprintf("message memory %d+%d", i, offset-messages.Offset-i*messages.Bytes)
	}
	return fmt.Sprintf("state+%d", offset)
}

var spaces = [2]string{"entry", "handler host memory"}

func hostPlace(space uint32, offset uint64) string {
	space &^= hpu.TellFaults
	name := fmt.Sprintf("space %d", space)
	if int(space) < len(spaces) {
		name = spaces[space]
	}
	// a wrong offset computed by a handler is more likely negative than above
	// 2^63
	return fmt.Sprintf("%s%+d", name, int64(offset))
}

// reportedBytes is the most bytes of an action that a report shows.
const reportedBytes = 256

// sentBytes returns the bytes that an action sends or writes to host memory
// from HPU memory, in hexadecimal. It returns "" if the report does not need
// them.
func (r *recorder) sentBytes(a *hpu.Action, memory []byte) string {
	from, n := a.Local, uint64(a.Len)
	switch a.Op {
	case hpu.OpDMAToHost, hpu.OpDMAToHostNB, hpu.OpDMAToHostPosted:
	case hpu.OpPutFromDevice, hpu.OpAtomicFromDevice, hpu.OpToSelf, hpu.OpTimer, hpu.OpTimerAt:
		from, n = a.Desc.Local, a.Desc.Length
	default:
		return ""
	}
	if !r.x.Bytes || n == 0 {
		return ""
	}
	s := fmt.Sprintf("% x", memory[from:][:min(n, reportedBytes)])
	if n > reportedBytes {
		s += fmt.Sprintf(" and %d bytes", n-reportedBytes)
	}
	return s
}

// describe describes the operands of an action.
func (r *recorder) describe(a *hpu.Action, memory []byte) string {
	switch a.Op {
	case hpu.OpDMAToHost, hpu.OpDMAToHostNB, hpu.OpDMAToHostPosted:
		return fmt.Sprintf("%d B, %s to %s", a.Len, r.where(a.Local), hostPlace(a.Space, a.Offset))
	case hpu.OpDMAFromHost, hpu.OpDMAFromHostNB:
		return fmt.Sprintf("%d B, %s to %s", a.Len, hostPlace(a.Space, a.Offset), r.where(a.Local))
	case hpu.OpDMACAS, hpu.OpDMACASNB:
		return fmt.Sprintf("%s, if %#x then %#x, found to %s", hostPlace(a.Space, a.Offset), a.A, a.B, r.where(a.Local))
	case hpu.OpDMAFAdd, hpu.OpDMAFAddNB:
		return fmt.Sprintf("%s, add %d, found to %s", hostPlace(a.Space, a.Offset), int64(a.A), r.where(a.Local))
	case hpu.OpDMAFAddTyped, hpu.OpDMAFAddTypedNB:
		return fmt.Sprintf("%s, add %s of %v, found to %s", hostPlace(a.Space, a.Offset), numberText(portals.Datatype(a.B), a.A), portals.Datatype(a.B), r.where(a.Local))
	case hpu.OpDMATest, hpu.OpDMAWait, hpu.OpTimerCancel:
		return fmt.Sprintf("handle %d", int32(a.A))
	case hpu.OpCAS:
		return fmt.Sprintf("%s, if %#x then %#x", r.where(a.Local), a.A, a.B)
	case hpu.OpFAdd:
		return fmt.Sprintf("%s, add %d", r.where(a.Local), int64(a.A))
	case hpu.OpAtomic32:
		return describeAtomic(a, r.where(a.Local))
	case hpu.OpCTGet:
		return fmt.Sprintf("%s to %s", r.counter(a.CT), r.where(a.Local))
	case hpu.OpCTSet, hpu.OpCTInc:
		return fmt.Sprintf("%s, success %d, failure %d", r.counter(a.CT), a.A, a.B)
	case hpu.OpAck:
		return fmt.Sprintf("status %d", a.A)
	case hpu.OpLog:
		return r.line(memory[a.Local:a.Local+a.Len], a.A-uint64(a.Len))
	case hpu.OpHostWrite, hpu.OpHostWriteNB:
		return fmt.Sprintf("%#x to %s", a.A, hostPlace(a.Space, a.Offset))
	case hpu.OpWait32:
		return fmt.Sprintf("%s to be another than %#x", r.where(a.Local), a.A)
	case hpu.OpScratchpad:
		return fmt.Sprintf("cluster %d", a.A)
	case hpu.OpYield, hpu.OpFlowID, hpu.OpMessageMemory, hpu.OpNow, hpu.OpExpiries:
		return ""
	}
	return r.operation(a)
}

// describeAtomic describes an atomic32 at a place.
func describeAtomic(a *hpu.Action, at string) string {
	if o := hpu.Atomic32(a.Space); o != hpu.CSwap32 {
		return fmt.Sprintf("%s, %v %d", at, o, int32(a.A))
	}
	return fmt.Sprintf("%s, if %#x then %#x", at, a.B, a.A)
}

// line formats a line that a handler logs. The device has dropped its last cut
// bytes.
func (r *recorder) line(text []byte, cut uint64) string {
	if r.logged += len(text); r.logged > lab.MaxLogBytes {
		r.unlogged++
		return "(not kept)"
	}
	if cut > 0 {
		return fmt.Sprintf("%q and %d bytes", text, cut)
	}
	return fmt.Sprintf("%q", text)
}

func (r *recorder) counter(ct uint32) string {
	for i, h := range r.x.cts {
		if uint32(h) == ct {
			return fmt.Sprintf("ct%d", i)
		}
	}
	return fmt.Sprintf("counter %#x", ct)
}

// operation describes a put, get, atomic or timer.
func (r *recorder) operation(a *hpu.Action) string {
	d := &a.Desc
	place := hostPlace(d.Space, d.Offset)
	if !strings.HasSuffix(a.Op.String(), "_from_host") {
		place = r.where(d.Local)
	}
	to := fmt.Sprintf("node %d", d.TargetNID)
	if d.TargetPID != 0 {
		to += fmt.Sprintf(" process %d", d.TargetPID)
	}
	switch a.Op {
	case hpu.OpTimer:
		to = fmt.Sprintf("itself in %d ns", a.A)
	case hpu.OpTimerAt:
		if to = fmt.Sprintf("itself at %d ps", a.A); a.B > 0 {
			to += fmt.Sprintf(" and each %d ps after", a.B)
		}
	case hpu.OpToSelf:
		to = "itself"
	}
	direction := "to"
	if a.Op == hpu.OpGetFromHost || a.Op == hpu.OpGetFromDevice {
		direction = "for"
	}
	s := fmt.Sprintf("%d B", d.Length)
	if d.Length > 0 {
		s += ", " + place
	}
	if d.UserHdrLen > 0 {
		s += fmt.Sprintf(" behind a user header of %d B", d.UserHdrLen)
	}
	s += fmt.Sprintf(" %s %s, pt %d, match bits %#x, offset %d", direction, to, d.PTIndex, d.MatchBits, int64(d.RemoteOffset))
	switch a.Op {
	case hpu.OpAtomicFromHost, hpu.OpAtomicFromDevice:
		s += fmt.Sprintf(", %v of %v", portals.AtomicOp(d.AtomicOp), portals.Datatype(d.Datatype))
	}
	if d.HdrData != 0 {
		s += fmt.Sprintf(", hdr_data %#x", d.HdrData)
	}
	return s
}
