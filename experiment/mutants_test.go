package experiment

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/sim"
)

// Numbers of WebAssembly.
const (
	typeSection, importSection, functionSection, exportSection, codeSection = 1, 2, 3, 7, 10

	opIf, opBranchIf, opCall, opDrop, opConst32, opConst64 = 0x04, 0x0D, 0x10, 0x1A, 0x41, 0x42
	opEqz32, opEnd                                         = 0x45, 0x0B
	opGlobal                                               = 0x23
	firstLoad, firstStore, lastStore                       = 0x28, 0x36, 0x3E
)

// swapped are instructions that take the place of others with the same operands.
var swapped = func() map[byte]byte {
	m := make(map[byte]byte)
	for _, pair := range []string{
		"\x46\x47", "\x48\x4E", "\x49\x4F", "\x4A\x4C", "\x4B\x4D", // i32: eq, ne; lt, ge; gt, le
		"\x51\x52", "\x53\x59", "\x54\x5A", "\x55\x57", "\x56\x58", // the same of i64
		"\x6A\x6B", "\x71\x72", "\x74\x76", // add, sub; and, or; shl, shr_u
		"\x7C\x7D", "\x83\x84", "\x86\x88", // the same of i64
		"\x6C\x6A", "\x7E\x7C", "\x73\x72", "\x85\x84", // mul to add, xor to or
		"\xA0\xA1", "\xA2\xA0", // f64: add and sub, mul to add
	} {
		m[pair[0]] = pair[1]
		if m[pair[1]] == 0 {
			m[pair[1]] = pair[0]
		}
	}
	return m
}()

// instruction is one of a body.
type instruction struct {
	at, to  int // its bytes in the body
	op      byte
	operand int64 // of constants and calls
}

// dissected is a module that mutants are made of.
type dissected struct {
	wasm    []byte
	code    manifest.Piece
	bodies  [][]byte // with their locals
	lists   [][]instruction
	imports int
	names   []string    // of imports
	calls   []signature // of imports and functions
	exports map[string]int
}

type signature struct {
	params  int
	results []byte
}

// mutant is a change in one instruction.
type mutant struct {
	function int // of the bodies
	at, to   int // what is replaced
	with     []byte
	what     string
}

func (m *mutant) String() string {
	return fmt.Sprintf("function %d, offset %d: %s", m.function, m.at, m.what)
}

// uvarint, varint and skip read numbers at b[*at].
func uvarint(b []byte, at *int) uint64 {
	v, n := binary.Uvarint(b[*at:])
	*at += n
	return v
}

func varint(b []byte, at *int) (v int64) {
	for shift := 0; ; shift += 7 {
		c := b[*at]
		*at++
		v |= int64(c&0x7F) << shift
		if c < 0x80 {
			if shift+7 < 64 && c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

func appendVarint(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7F)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// dissect takes a module apart.
func dissect(t *testing.T, wasm []byte) *dissected {
	t.Helper()
	p := &dissected{wasm: wasm, exports: make(map[string]int)}
	pieces, err := manifest.Sections(wasm)
	require.NoError(t, err)
	var types []signature
	for _, s := range pieces {
		b, at := s.Contents, 0
		switch s.ID {
		case typeSection:
			for range uvarint(b, &at) {
				at++ // 0x60
				var g signature
				g.params = int(uvarint(b, &at))
				at += g.params
				n := int(uvarint(b, &at))
				g.results = b[at : at+n]
				at += n
				types = append(types, g)
			}
		case importSection:
			for range uvarint(b, &at) {
				for i := range 2 {
					n := int(uvarint(b, &at))
					if i > 0 {
						p.names = append(p.names, string(b[at:at+n]))
					}
					at += n
				}
				require.Zero(t, b[at], "an import that is no function")
				at++
				p.calls = append(p.calls, types[uvarint(b, &at)])
			}
			p.imports = len(p.calls)
		case functionSection:
			for range uvarint(b, &at) {
				p.calls = append(p.calls, types[uvarint(b, &at)])
			}
		case exportSection:
			for range uvarint(b, &at) {
				n := int(uvarint(b, &at))
				name, kind := string(b[at:at+n]), b[at+n]
				at += n + 1
				if i := int(uvarint(b, &at)); kind == 0 {
					p.exports[name] = i
				}
			}
		case codeSection:
			p.code = s
			for range uvarint(b, &at) {
				n := int(uvarint(b, &at))
				p.bodies = append(p.bodies, b[at:at+n])
				p.lists = append(p.lists, decode(t, b[at:at+n]))
				at += n
			}
		}
	}
	return p
}

// decode lists the instructions of a body.
func decode(t *testing.T, b []byte) (list []instruction) {
	t.Helper()
	at := 0
	for range uvarint(b, &at) {
		uvarint(b, &at)
		at++
	}
	for at < len(b) {
		in := instruction{at: at, op: b[at]}
		at++
		switch op := in.op; {
		case op >= 0x02 && op <= opIf, op == opConst32, op == opConst64:
			in.operand = varint(b, &at)
		case op == 0x0E:
			for range uvarint(b, &at) + 1 {
				uvarint(b, &at)
			}
		case op == 0x11:
			uvarint(b, &at)
			uvarint(b, &at)
		case op == 0x0C, op == opBranchIf, op == opCall, op >= 0x20 && op <= 0x26:
			in.operand = int64(uvarint(b, &at))
		case op >= firstLoad && op <= lastStore:
			uvarint(b, &at)
			in.operand = int64(uvarint(b, &at))
		case op == 0x3F, op == 0x40:
			at++
		case op == 0x43:
			at += 4
		case op == 0x44:
			at += 8
		case op == 0xFC:
			in.operand = int64(uvarint(b, &at))
			for range map[int64]int{8: 2, 9: 1, 10: 2, 11: 1}[in.operand] {
				uvarint(b, &at)
			}
		default:
			require.True(t, op <= 0x01 || op == 0x05 || op == opEnd || op == 0x0F || op == opDrop || op == 0x1B || op >= opEqz32 && op <= 0xC4, "opcode %#x", op)
		}
		in.to = at
		list = append(list, in)
	}
	return list
}

// reached lists the bodies that handlers of these names can call.
func (p *dissected) reached(names []string) (list []int) {
	var visit func(f int)
	visit = func(f int) {
		if f -= p.imports; f < 0 || slices.Contains(list, f) {
			return
		}
		list = append(list, f)
		for _, in := range p.lists[f] {
			if in.op == opCall {
				visit(int(in.operand))
			}
		}
	}
	for _, name := range names {
		if f, ok := p.exports[name]; ok {
			visit(f)
		}
	}
	slices.Sort(list)
	return list
}

// mutants lists the changes of a function.
func (p *dissected) mutants(function int) (list []mutant) {
	b := p.bodies[function]
	for i, in := range p.lists[function] {
		if in.op == opConst32 && i > 0 && p.lists[function][i-1].op == opGlobal {
			continue // the frame of the stack
		}
		add := func(what string, with ...byte) {
			list = append(list, mutant{function, in.at, in.to, with, what})
		}
		old := b[in.at:in.to]
		switch {
		case in.op == opConst32 || in.op == opConst64:
			add(fmt.Sprintf("constant %d + 1", in.operand), appendVarint([]byte{in.op}, in.operand+1)...)
		case in.op >= firstStore && in.op <= lastStore:
			add("store dropped", opDrop, opDrop)
		case in.op >= firstLoad && in.op < firstStore:
			at := 1
			align := uvarint(old, &at)
			add("load 1 B behind", binary.AppendUvarint(binary.AppendUvarint([]byte{in.op}, align), uint64(in.operand+1))...)
		case in.op == opIf || in.op == opBranchIf:
			add("condition reversed", append([]byte{opEqz32}, old...)...)
		case in.op == opCall:
			g := p.calls[in.operand]
			with := bytes.Repeat([]byte{opDrop}, g.params)
			switch {
			case len(g.results) == 0:
			case g.results[0] == 0x7F:
				with = append(with, opConst32, 0)
			case g.results[0] == 0x7E:
				with = append(with, opConst64, 0)
			default:
				continue
			}
			what := fmt.Sprint("of function ", in.operand)
			if int(in.operand) < p.imports {
				what = p.names[in.operand]
			}
			add("call dropped: "+what, with...)
		case swapped[in.op] != 0:
			add(fmt.Sprintf("%#x for %#x", swapped[in.op], in.op), swapped[in.op])
		}
	}
	return list
}

// trap is a mutant that ends the handler where another one changes it.
func (p *dissected) trap(m *mutant) *mutant {
	return &mutant{m.function, m.at, m.at, []byte{0x00}, "trap"}
}

// with makes the module with a change.
func (p *dissected) with(m *mutant) []byte {
	code := binary.AppendUvarint(nil, uint64(len(p.bodies)))
	for i, b := range p.bodies {
		if i == m.function {
			b = slices.Concat(b[:m.at], m.with, b[m.to:])
		}
		code = append(binary.AppendUvarint(code, uint64(len(b))), b...)
	}
	wasm := bytes.Clone(p.wasm[:p.code.Offset])
	wasm = append(binary.AppendUvarint(append(wasm, codeSection), uint64(len(code))), code...)
	return append(wasm, p.wasm[p.code.Start+len(p.code.Contents):]...)
}

var (
	mutantsOf   = flag.Int("mutants", 0, "mutants of the module of each slot, besides some that leave out an action")
	mutantsAct  = flag.Int("mutants.actions", 1, "mutants of each slot that leave out an action")
	mutantsFrom = flag.Uint64("mutants.seed", 1, "what they are drawn from")
	mutantsMost = flag.Int("mutants.trials", 3, "only slots with at most so many trials")
	mutantsSlot = flag.String("mutants.slot", "", "only of this slot")
)

// moves are the beginnings of imports that move bytes or say that they have
// moved: no handler can leave one out.
var moves = []string{"dma_to_host", "dma_from_host", "dma_cas", "dma_fadd", "host_write", "put_", "get_", "atomic_from", "ct_", "ack", "to_self"}

// firstFailure is the first failure of a module in trials of a slot; nil: it
// passes all. Later trials do not run.
func firstFailure(t *testing.T, slot *handlers.Slot, wasm []byte) (first error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Conform(ctx, slot, handlers.New("mutant.wasm", wasm), sim.Limits{Events: 3_000_000}, func(x *Trial) {
		if first == nil && x.Err != nil {
			first = x.Err
			cancel()
		}
	})
	if first == nil {
		first = err // it cannot be loaded
	}
	return first
}

// trials counts the points where modules for a slot are tried.
func trials(t *testing.T, slot *handlers.Slot) (n int) {
	t.Helper()
	for _, e := range All() {
		if slices.Contains(slotsOf(e), slot) {
			points, err := withSlot(e, slot, slot.Library)
			require.NoError(t, err)
			n += len(points)
		}
	}
	return n
}

// Mutants of the libraries' modules are noticed: one that leaves out an action
// fails in a trial, unless no trial comes to its place. With -mutants other
// changes are tried, too; what is not noticed is logged, for people to look at:
// much of that is equivalent.
func TestMutantsDoNotConform(t *testing.T) {
	for _, slot := range usedSlots() {
		if *mutantsSlot != "" && slot.Name != *mutantsSlot || trials(t, slot) > *mutantsMost {
			continue
		}
		p := dissect(t, slot.Library.Wasm)
		var acts, all []mutant
		for _, f := range p.reached(slot.Handlers) {
			for _, m := range p.mutants(f) {
				if name, is := strings.CutPrefix(m.what, "call dropped: "); is && slices.ContainsFunc(moves, func(b string) bool { return strings.HasPrefix(name, b) }) {
					acts = append(acts, m)
				} else {
					all = append(all, m)
				}
			}
		}
		tried := slices.Concat(drawn(acts, *mutantsAct), drawn(all, *mutantsOf))
		noticed, idle := 0, 0
		for i := range tried {
			m := &tried[i]
			switch err := firstFailure(t, slot, p.with(m)); {
			case err != nil:
				noticed++
				require.NotContains(t, err.Error(), "mutant.wasm, offset", "no module: %s", m)
			case firstFailure(t, slot, p.with(p.trap(m))) == nil:
				idle++
			case i < min(*mutantsAct, len(acts)) && unnoticed[slot.Name+" "+m.what] == "":
				t.Errorf("%s: nobody notices %s", slot.Name, m)
			default:
				t.Logf("%s: nobody notices %s", slot.Name, m)
			}
		}
		t.Logf("%s: of %d actions and %d other changes %d tried: %d noticed, no trial comes to %d", slot.Name, len(acts), len(all), len(tried), noticed, idle)
	}
}

// unnoticed are actions that a handler can leave out, and why.
var unnoticed = map[string]string{
	"rules.target call dropped: dma_from_host":     "handlers that add at the same time lose additions, too",
	"part.engine call dropped: put_from_device":    "what has no answer is sent again",
	"mailbox.engine call dropped: put_from_device": "likewise",
	"rdma.engine call dropped: put_from_device":    "likewise",
}

func drawn(list []mutant, n int) []mutant {
	rand.New(rand.NewPCG(*mutantsFrom, 0)).Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return list[:min(n, len(list))]
}
