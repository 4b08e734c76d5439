package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// Watch chooses extra code in a module for tools that observe handlers. It
// changes neither the results of handlers nor their charges. The zero value is
// no extra code.
type Watch struct {
	// Null ends a handler that reads or writes below NullBytes, as an access
	// through a NULL pointer does.
	Null bool
	// Accesses reports every load and store to Observer. Blocks reports every
	// block of instructions and every call within the module. With either,
	// Observer must not be nil.
	Accesses, Blocks bool
	Observer         Observer
}

// NullBytes is the largest end of the addresses that no compiler gives to any
// object: NULL and the addresses behind it. In a module with data below
// NullBytes, they end where the data begins. A module without a shadow stack
// pointer and without data may use all its memory, so it has no such addresses.
const NullBytes = 1024

// Observer gets the actions of handlers while they happen. It must not touch
// the program.
type Observer interface {
	// Access reports a load or store, but not accesses of imports: n bytes at
	// addr, by the instruction at offset of the module.
	Access(c *Context, offset int, addr, n uint32, store bool)
	// Block reports that b begins to execute.
	Block(c *Context, b *WatchedBlock)
	// Charge reports a charge outside blocks, parts of a cycle
	// (Module.CycleParts). It is for the bytes of the bulk operation at offset,
	// for the divisor of a division there, or for the memory of an access.
	// With offset -1, it is for an import called through the table, by the call
	// entered last.
	Charge(c *Context, offset int, cost int64)
	// Enter reports a call of a function of the module by the instruction at
	// offset, and Leave its return. A trap does not call Leave.
	Enter(c *Context, offset int)
	Leave(c *Context)
}

// WatchedBlock is a run of instructions that is charged at once.
type WatchedBlock struct {
	Offsets []int // of the instructions
	// the charge of each, parts of a cycle: the block's cost, divided in
	// proportion to the cost of each alone
	Costs []int64
}

// siteKind is the kind of report at a site in rewritten code.
type siteKind uint8

const (
	siteLoad siteKind = iota
	siteStore
	siteMoved
	siteImport
	siteEnter
	siteLeave
	siteBlock
	siteTaken
)

// site is a place in rewritten code that calls the import watchImport.
type site struct {
	kind   siteKind
	size   uint8  // of an access, bytes; 0: an argument of the call
	add    uint32 // added to the address
	offset int
	block  *WatchedBlock
	cost   int64 // of an import, parts of a cycle
}

// watchImport is the name of the import that reports to the Observer. It stands
// behind the module's imports. Its arguments are the number of a site, an
// address and a number of bytes.
const watchImport = "watch"

var watchType = wasm.FuncType{Params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}}

func (w *Watch) tells() bool { return w.Accesses || w.Blocks }

// watched passes a report of rewritten code to the Observer.
func (c *Context) watched(id, addr, n uint32) {
	m := c.program.module
	s, o := &m.sites[id], m.spec.Watch.Observer
	switch s.kind {
	case siteLoad, siteStore:
		if s.size > 0 {
			n = uint32(s.size)
		}
		// otherwise it traps
		if at := uint64(addr) + uint64(s.add); n > 0 && at+uint64(n) <= uint64(len(c.program.mem)) {
			o.Access(c, s.offset, uint32(at), n, s.kind == siteStore)
		}
	case siteMoved:
		rate := uint64(m.spec.Costs.BulkBytesPerCycle)
		o.Charge(c, s.offset, int64((uint64(n)+rate-1)/rate)*m.prices.parts)
	case siteTaken:
		o.Charge(c, s.offset, int64(n)*m.prices.parts)
	case siteImport:
		o.Charge(c, -1, s.cost)
	case siteEnter:
		o.Enter(c, s.offset)
	case siteLeave:
		o.Leave(c)
	case siteBlock:
		o.Block(c, s.block)
	}
}

// nullBytes is the end of the addresses of NULL pointers; 0: there are none
// (NullBytes). compiled means that the module has a shadow stack pointer.
func (m *Module) nullBytes(compiled bool) uint32 {
	end := uint32(NullBytes)
	for i := range m.wasm.Data {
		if d := &m.wasm.Data[i]; !d.Passive {
			end, compiled = min(end, d.At), true
		}
	}
	if !compiled {
		return 0
	}
	return end
}

// refusesNull reports whether the instruction at offset of a function reads or
// writes memory. If so, the check of its address has ended the handler there.
func (m *Module) refusesNull(fn, offset int) bool {
	if m.null == 0 || offset < 0 {
		return false
	}
	in, found := m.find(fn, func(in *wasm.Instr) bool { return in.Offset == offset })
	return found && (in.Info.Accesses() || in.Info.Class == wasm.ClassBulk)
}

// look appends the code that watches a load or store, whose operands are on the
// stack.
func (r *rewriter) look(in *wasm.Instr) {
	if !r.watch.Accesses && r.null == 0 {
		return
	}
	addr := r.temps.get('a', wasm.I32)
	value, above := uint32(0), in.Info.Above()
	if above != 0 {
		value = r.temps.get('V', above)
		r.block = wasm.AppendIndexed(r.block, wasm.OpLocalSet, value)
	}
	r.block = wasm.AppendIndexed(r.block, wasm.OpLocalTee, addr)
	r.block = r.refuseNull(r.block, addr, in.Imm)
	if r.watch.Accesses {
		s := site{kind: siteLoad, size: 1 << in.Info.Align, add: uint32(in.Imm), offset: in.Offset}
		if in.Info.Stores() {
			s.kind = siteStore
		}
		r.block = r.reports.tell(r.block, s, int64(addr), -1)
	}
	if above != 0 {
		r.block = wasm.AppendIndexed(r.block, wasm.OpLocalGet, value)
	}
}

// refuseNull ends the handler if the address in a local, plus add, is an
// address of a NULL pointer.
func (r *rewriter) refuseNull(b []byte, addr uint32, add uint64) []byte {
	if add >= uint64(r.null) {
		return b
	}
	b = wasm.AppendS64(append(wasm.AppendIndexed(b, wasm.OpLocalGet, addr), byte(wasm.OpI32Const)), int64(r.null)-int64(add))
	return append(append(b, byte(wasm.OpI32LtU)), trapIf...)
}

// lookBulk appends the code that watches a bulk operation. On the stack are
// destination, source or value, and length.
func (r *rewriter) lookBulk(in *wasm.Instr) {
	if !r.watch.tells() && r.null == 0 {
		return
	}
	n, from, to := r.temps.get('n', wasm.I32), r.temps.get('b', wasm.I32), r.temps.get('a', wasm.I32)
	b := wasm.AppendIndexed(wasm.AppendIndexed(r.block, wasm.OpLocalSet, n), wasm.OpLocalSet, from)
	b = wasm.AppendIndexed(b, wasm.OpLocalTee, to)
	if r.null > 0 { // a move of no bytes may name NULL
		b = append(wasm.AppendIndexed(b, wasm.OpLocalGet, n), byte(wasm.OpIf), 0x40)
		b = r.refuseNull(b, to, 0)
		if in.Op == wasm.OpMemoryCopy {
			b = r.refuseNull(b, from, 0)
		}
		b = append(b, byte(wasm.OpEnd))
	}
	if r.watch.Blocks {
		b = r.reports.tell(b, site{kind: siteMoved, offset: in.Offset}, int64(to), int64(n))
	}
	if r.watch.Accesses {
		if in.Op == wasm.OpMemoryCopy {
			b = r.reports.tell(b, site{kind: siteLoad, offset: in.Offset}, int64(from), int64(n))
		}
		b = r.reports.tell(b, site{kind: siteStore, offset: in.Offset}, int64(to), int64(n))
	}
	r.block = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, from), wasm.OpLocalGet, n)
}

// call copies a call and reports it. The function may have another number here.
func (r *rewriter) call(in *wasm.Instr) {
	own := in.Op == wasm.OpCallIndirect || in.Imm >= uint64(len(r.m.Imports))
	if own && r.watch.Blocks {
		r.block = r.reports.tell(r.block, site{kind: siteEnter, offset: in.Offset}, -1, -1)
	}
	switch {
	case !own:
		r.block = r.callImport(r.block, uint32(in.Imm))
	case in.Op == wasm.OpCall:
		r.block = wasm.AppendIndexed(r.block, wasm.OpCall, r.moved(uint32(in.Imm)))
	default:
		r.copy(in)
	}
	if own && r.watch.Blocks {
		r.block = r.reports.tell(r.block, site{kind: siteLeave}, -1, -1)
	}
}

// moved is the number of a function in the rewritten module. There, the import
// that reports to the Observer stands before the module's own functions.
func (r *rewriter) moved(fn uint32) uint32 {
	if r.watch.tells() && int(fn) >= len(r.m.Imports) {
		return fn + 1
	}
	return fn
}

// originalFunc is the number of a function of the rewritten module in the
// loaded module; -1: it is not there.
func (m *Module) originalFunc(fn int) int {
	if m.spec.Watch.tells() && fn >= len(m.ops) {
		fn--
		if fn < len(m.ops) {
			return -1
		}
	}
	if fn >= len(m.functions) { // a wrapper that the rewriter put around an import
		return -1
	}
	return fn
}

// seen notes an instruction of the present block, and its cost alone in parts of
// a cycle.
func (r *rewriter) seen(in *wasm.Instr) {
	if !r.watch.Blocks {
		return
	}
	p := &r.prices.ops[in.Op.Index()]
	cost := p.cost * r.prices.worth[p.unit]
	if in.Op == wasm.OpCall {
		cost += r.callCosts[in.Imm] * r.prices.parts
	}
	r.reports.note(in.Offset, cost)
}
