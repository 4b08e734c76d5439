package handlerlab

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
)

// RaceReport is a race: two places in the code access the same memory, at least
// one writes it, and nothing orders the two handlers.
type RaceReport struct {
	Where         string // the first such byte: a field of the state, or an address
	First, Second RaceAccess
	Times         int // how often it happened
}

// RaceAccess is one side of a race.
type RaceAccess struct {
	Write bool
	// file, line and function, or function and offset; the import, if the
	// device makes the access
	At      string
	Handler string
	Message int // 0: a message that a handler sent to its own process
	ID      uint64
	Packet  int
}

// String describes a side of a race.
func (a *RaceAccess) String() string {
	verb := "read"
	if a.Write {
		verb = "written"
	}
	of := fmt.Sprintf("message %d", a.Message)
	if a.Message == 0 {
		of = fmt.Sprintf("message %#x to itself", a.ID)
	}
	if a.Handler == Kinds[1] {
		of += fmt.Sprintf(", packet %d", a.Packet)
	}
	return fmt.Sprintf("%s at %s by the %s handler of %s", verb, a.At, a.Handler, of)
}

// String describes a race.
func (r *RaceReport) String() string {
	s := fmt.Sprintf("race on %s: %v, and %v, in no order", r.Where, &r.First, &r.Second)
	if r.Times > 1 {
		s += fmt.Sprintf(" (%d times)", r.Times)
	}
	return s
}

// maxRaces is the most pairs of places that a report lists.
const maxRaces = 100

// raceHandler is a running handler.
type raceHandler struct {
	number uint32
	on     processor
	seen   clock
	sync   uint32  // address of the atomic it waits for
	lent   []*lent // resources of its message, as far as it has asked
}

// lent is a number or a piece of memory that messages use in turn (flow_id,
// message_memory).
type lent struct {
	message uint64
	before  clock // history at the time the earlier messages gave it back
	now     clock // history of the handlers of this message
}

// racing is the name of a handler in reports.
type racing struct {
	kind    string
	message int
	id      uint64
	packet  int
}

// processor is one of a pool.
type processor struct {
	pool   string
	number int
}

// races finds unordered accesses to memory that handlers share. It uses vector
// clocks as FastTrack does (Flanagan and Freund, PLDI 2009). The following
// orders handlers:
//
//   - A header handler comes before the payload handlers of its message. These
//     come before the completion handler.
//   - A message that a handler sends to its own process comes after the earlier
//     work of that handler.
//   - A periodic timer sends no message before the handlers of the one before
//     have ended.
//   - The memory or the number of a message goes to the next message when the
//     first has ended.
//   - Atomics order if they use the same word of HPU memory, any word of host
//     memory, or the same counter.
//   - Aligned plain loads and stores of a word used by atomics order too, and
//     are no race. Locks read and release the word in this way.
//   - Handlers on the only processor of a pool never run at the same time.
//   - A pipeline in hardware sees its state in order.
//   - Handlers on the same processor are in order if the module asks for the
//     number of its processor.
type races struct {
	rec      *recorder
	module   *hpu.Module
	handlers []racing // by number, from 1
	running  map[int]*raceHandler
	// by msg_id: the history at the end of its handlers of each kind
	messages map[uint64]*[3]clock
	sync     map[uint32]uint64 // words of HPU memory that atomics use, as bits: by address/256
	words    map[uint32]clock  // their clocks, by address/4
	counters map[uint32]clock
	host     clock
	self     clock              // messages to the same process
	timers   map[int]clock      // messages of periodic timers, by the timer
	lent     map[[2]int64]*lent // by import and its result
	cores    map[processor]clock
	// the module asks for the processor's number, so it may keep data per processor
	byHPU   bool
	history map[uint32]*word // of accesses, by address/4
	base    uint32           // the history of handlers before this number is forgotten
	held    int64            // bytes of clocks and accesses
	most    int64            // the most of them
	found   map[[4]int]*RaceReport
	list    []*RaceReport
	more    int
}

func newRaces(r *recorder) *races {
	return &races{
		rec: r, handlers: make([]racing, 1), running: map[int]*raceHandler{}, messages: map[uint64]*[3]clock{}, words: map[uint32]clock{},
		sync: map[uint32]uint64{}, counters: map[uint32]clock{}, history: map[uint32]*word{}, most: cmp.Or(r.x.history, mostHistory), found: map[[4]int]*RaceReport{}, cores: map[processor]clock{},
		lent: map[[2]int64]*lent{}, timers: map[int]clock{},
	}
}

// serial orders a handler with the other handlers of its processor. When it
// begins or goes on, it comes after earlier work there. When it stops, later
// work comes after it.
func (d *races) serial(h *raceHandler, s *nic.HandlerStep, stops bool) {
	n, k := d.rec.x.Profile.HPU.Cores, processor{s.Pool, s.HPU}
	switch p, other := d.rec.x.Profile.Pools[s.Pool]; {
	case other && p.Kind == nic.Hardware:
		n, k.number = 1, 0
	case other:
		n = p.Cores
	}
	if n > 1 && !d.byHPU {
		return
	}
	h.on = k
	c := d.cores[k]
	if !stops {
		d.join(&h.seen, c)
		for _, o := range d.running { //lint:maporder the least upper bound of all
			if o.on == k && o != h { // in a pipeline, its work is done before it ends
				d.join(&h.seen, o.seen)
				d.tick(o)
			}
		}
		return
	}
	d.join(&c, h.seen)
	d.cores[k] = c
	d.tick(h)
}

// tick divides what a handler did before from what it does from now on.
func (d *races) tick(h *raceHandler) {
	if h.number >= d.base {
		h.seen[h.number-d.base]++
	}
}

// step is called through runtime.Config.Watch.
func (d *races) step(s *nic.HandlerStep) {
	d.bound()
	switch s.What {
	case nic.StepBegan:
		d.began(s)
	case nic.StepActed:
		if h := d.running[s.Context]; h != nil {
			h.sync = s.Action.Local / 4
			if s.Suspended || s.Result >= hpu.OK {
				d.moved(h, s)
			}
			d.order(h, s.Op, s.Action)
			if s.Op == hpu.OpFlowID || s.Op == hpu.OpMessageMemory && s.Result != 0 {
				d.lend(h, s)
			}
			if s.Suspended {
				d.serial(h, s, true)
			}
		}
	case nic.StepAnswered:
		if h := d.running[s.Context]; h != nil {
			d.serial(h, s, false)
			d.order(h, s.Op, &hpu.Action{Op: s.Op, Local: 4 * h.sync})
		}
	case nic.StepEnded:
		if h := d.running[s.Context]; h != nil {
			d.serial(h, s, true)
			of, _ := d.message(s.Message)
			d.join(&of[slices.Index(Kinds[:], s.Handler)], h.seen)
			if s.Timer > 0 {
				c := d.timers[s.Timer]
				d.join(&c, h.seen)
				d.timers[s.Timer] = c
			}
			for _, l := range h.lent {
				d.join(&l.now, h.seen)
			}
			d.held -= h.seen.bytes()
			delete(d.running, s.Context)
		}
		if of := d.messages[s.Message]; of != nil && s.Handler == Kinds[2] {
			for i := range of {
				d.held -= of[i].bytes()
			}
			delete(d.messages, s.Message)
		}
	}
}

// lend notes that a handler has the number or the memory of its message. The
// messages that had it earlier come before.
func (d *races) lend(h *raceHandler, s *nic.HandlerStep) {
	key := [2]int64{int64(s.Op), s.Result}
	l := d.lent[key]
	if l == nil {
		l = &lent{message: s.Message}
		d.lent[key] = l
	}
	if l.message != s.Message {
		d.join(&l.before, l.now)
		d.held -= l.now.bytes()
		l.message, l.now = s.Message, nil
	}
	d.join(&h.seen, l.before)
	if !slices.Contains(h.lent, l) {
		h.lent = append(h.lent, l)
	}
}

// message returns the history of a message. isNew: it has just been made.
func (d *races) message(id uint64) (of *[3]clock, isNew bool) {
	if of = d.messages[id]; of == nil {
		of, isNew = &[3]clock{}, true
		d.messages[id] = of
	}
	return of, isNew
}

// count is how many handlers have begun.
func (d *races) count() uint32 { return d.base + uint32(len(d.handlers)) - 1 }

func (d *races) began(s *nic.HandlerStep) {
	h := &raceHandler{number: d.count() + 1}
	number := d.rec.messages[s.Message]
	d.handlers = append(d.handlers, racing{s.Handler, number, s.Message, s.Packet})
	d.held += racingBytes
	of, isNew := d.message(s.Message)
	if isNew && number == 0 {
		d.join(&of[0], d.self)
		d.join(&of[0], d.timers[s.Timer])
	}
	for _, before := range of[:slices.Index(Kinds[:], s.Handler)] {
		d.join(&h.seen, before)
	}
	d.join(&h.seen, of[0])
	d.join(&h.seen, make(clock, len(d.handlers)))
	h.seen[h.number-d.base] = 1
	d.serial(h, s, false)
	d.running[s.Context] = h
}

// order notes what comes before an action of a handler, and what comes after.
func (d *races) order(h *raceHandler, op hpu.Op, a *hpu.Action) {
	both := func(c *clock) {
		d.join(&h.seen, *c)
		d.join(c, h.seen)
		d.tick(h)
	}
	switch op {
	case hpu.OpCAS, hpu.OpFAdd, hpu.OpAtomic32, hpu.OpWait32:
		n := uint32(2)
		if op == hpu.OpAtomic32 || op == hpu.OpWait32 {
			n = 1
		}
		c := d.words[a.Local/4]
		both(&c)
		for i := range n {
			d.synchronizes(a.Local/4+i, c)
		}
	case hpu.OpDMACAS, hpu.OpDMACASNB, hpu.OpDMAFAdd, hpu.OpDMAFAddNB, hpu.OpDMAFAddTyped, hpu.OpDMAFAddTypedNB, hpu.OpDMATest, hpu.OpDMAWait:
		both(&d.host)
	case hpu.OpCTGet, hpu.OpCTSet, hpu.OpCTInc:
		c := d.counters[a.CT]
		both(&c)
		d.counters[a.CT] = c
	case hpu.OpToSelf, hpu.OpTimer, hpu.OpTimerAt, hpu.OpPutFromDevice, hpu.OpPutFromHost, hpu.OpAtomicFromDevice, hpu.OpAtomicFromHost, hpu.OpGetFromDevice, hpu.OpGetFromHost:
		d.join(&d.self, h.seen)
		d.tick(h)
	}
}

// synchronizes notes that atomics use a word, and its clock.
func (d *races) synchronizes(word uint32, c clock) {
	d.sync[word/64] |= 1 << (word % 64)
	if _, known := d.words[word]; !known {
		d.held += clockBytes
	}
	d.words[word] = c
}

// isSync reports whether atomics use a word.
func (d *races) isSync(word uint32) bool { return d.sync[word/64]>>(word%64)&1 > 0 }

// access is called by the hpu.Observer.
func (d *races) access(c *hpu.Context, offset int, addr, n uint32, store bool) {
	h := d.running[c.Index()]
	l := c.Program().Layout()
	if h == nil || addr >= l.Base || addr >= l.HPU+l.HPUBytes && addr < l.Base {
		return // stack, record and packet of a context
	}
	if n <= 8 && addr%n == 0 && d.isSync(addr/4) {
		d.bound()
		known := d.words[addr/4]
		d.join(&h.seen, known)
		if store {
			d.join(&known, h.seen)
			for i := range (n + 3) / 4 {
				d.synchronizes(addr/4+i, known)
			}
			d.tick(h)
		}
		return
	}
	d.touch(h, offset, addr, n, store)
}

// moved notes the shared memory that an action reads or writes. The device
// makes these accesses, but they count at the time of the call.
func (d *races) moved(h *raceHandler, s *nic.HandlerStep) {
	a := s.Action
	addr, n, store := a.Local, uint64(a.Len), false
	switch s.Op {
	case hpu.OpDMAToHost, hpu.OpDMAToHostNB, hpu.OpDMAToHostPosted:
	case hpu.OpDMAFromHost, hpu.OpDMAFromHostNB, hpu.OpDMAFAddTyped, hpu.OpDMAFAddTypedNB:
		store = true
	case hpu.OpDMACAS, hpu.OpDMACASNB, hpu.OpDMAFAdd, hpu.OpDMAFAddNB:
		n, store = 8, true
	case hpu.OpPutFromDevice, hpu.OpAtomicFromDevice, hpu.OpToSelf, hpu.OpTimer, hpu.OpTimerAt:
		addr, n = a.Desc.Local, a.Desc.Length
	case hpu.OpGetFromDevice:
		addr, n, store = a.Desc.Local, a.Desc.Length, true
	default:
		return
	}
	if l := d.rec.x.in.HPU.Program().Layout(); addr < l.Base && uint64(addr)+n <= uint64(l.HPU+l.HPUBytes) {
		d.touch(h, -int(s.Op), addr, uint32(n), store)
	}
}

// touch notes an access to bytes of shared memory. The instruction is at
// offset, or the offset is negative for an import.
func (d *races) touch(h *raceHandler, offset int, addr, n uint32, store bool) {
	told := false // report one race per access
	for at, end := uint64(addr), uint64(addr)+uint64(n); at < end; {
		first, next := at, min(end, at/4*4+4)
		at = next
		if offset < 0 && d.isSync(uint32(first/4)) {
			continue
		}
		if d.bound(); h.number < d.base {
			return
		}
		now := epoch{h.number, h.seen[h.number-d.base], int32(offset)}
		w := d.history[uint32(first/4)]
		if w == nil {
			w = &word{}
			d.history[uint32(first/4)] = w
			d.held += w.size()
		}
		d.held -= w.size()
		part, whole := w.each(), next-first == 4
		if !whole {
			part = w.split()[first%4:][:next-first]
		}
		for i := range part {
			with, conflict := d.conflict(&part[i], h.seen, store)
			if conflict && !told {
				told = true
				d.tell(uint32(first)+uint32(i), with.epoch, with.write, now, store)
			}
			d.note(&part[i], now, h.seen, store)
		}
		if whole && store {
			w.all, w.bytes = part[0], nil
		}
		d.held += w.size()
	}
}

// tell reports a race, but each pair of places once.
func (d *races) tell(addr uint32, a epoch, aWrites bool, b epoch, bWrites bool) {
	kind := func(e epoch) int { return slices.Index(Kinds[:], d.handlers[e.handler-d.base].kind) }
	key := [4]int{int(a.offset), int(b.offset), kind(a), kind(b)}
	if b.offset < a.offset {
		key = [4]int{key[1], key[0], key[3], key[2]}
	}
	if r := d.found[key]; r != nil {
		r.Times++
		return
	}
	if len(d.list) == maxRaces {
		d.more++
		return
	}
	r := &RaceReport{Where: d.where(addr), First: d.side(a, aWrites), Second: d.side(b, bWrites), Times: 1}
	d.found[key] = r
	d.list = append(d.list, r)
}

func (d *races) side(e epoch, write bool) RaceAccess {
	h := &d.handlers[e.handler-d.base]
	at := hpu.Op(-e.offset).String()
	if e.offset >= 0 {
		at = d.module.Place(int(e.offset))
	}
	return RaceAccess{write, at, h.kind, h.message, h.id, h.packet}
}

// where names a byte of memory, by the field of the state if there is one.
func (d *races) where(addr uint32) string {
	l := d.rec.x.in.HPU.Program().Layout()
	if f := d.rec.x.Format; f != nil && addr >= l.HPU {
		if name := f.nameAt(int64(addr - l.HPU)); name != "" {
			return "state." + name
		}
	}
	return d.rec.where(addr)
}

// errors describes the races.
func (d *races) errors() (list []string) {
	for _, r := range d.list {
		list = append(list, r.String())
	}
	if d.more > 0 {
		list = append(list, fmt.Sprintf("races at %d more pairs of places", d.more))
	}
	return list
}

// nameAt returns the name of the number of the state that contains a byte, ""
// if there is none.
func (f *Format) nameAt(at int64) string {
	if f.list {
		return ""
	}
	for n := range f.state.Numbers() {
		if n.Offset <= at && at < n.Offset+n.Field.Type.Size() {
			return n.Name
		}
	}
	return ""
}
