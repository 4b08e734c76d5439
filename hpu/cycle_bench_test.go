package hpu_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/profile"
)

// nanosecondsPerCycle is what a cycle of a handler's budget may take on the
// machine of README.md, whatever the handler does. So a budget bounds how long
// a handler holds the simulator up.
const nanosecondsPerCycle = 20

// chainHere is what a link of chain takes on that machine, in nanoseconds: a
// multiplication and a shift that wait for each other.
const chainHere = 1.3

var chainSink uint64

// slower says how much longer than on the machine of README.md instructions
// take on this one, at least 1: the least of several runs of a chain of
// instructions of known length, which has nothing to do with handlers.
func slower() float64 {
	const links = 1 << 20
	best := time.Duration(0)
	for range 30 {
		x := uint64(1)
		start := time.Now()
		for range links {
			x = (x ^ x>>29) * 0xBF58476D1CE4E5B9
		}
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
		chainSink += x
	}
	return max(1, float64(best.Nanoseconds())/links/chainHere)
}

// probe is a loop whose time per cycle is measured: an instruction or an import, many times over.
type probe struct {
	name  string
	body  []byte // of the loop
	rest  []wasm.FuncType
	more  [][]byte // bodies of further functions, of the types in rest
	op    hpu.Op   // import 0
	block bool     // the device blocks each call
}

// The locals of a probe: two of each type, and a counter; local 0 is the number of rounds.
var probeLocals = map[byte]uint32{'i': 2, 'I': 4, 'f': 6, 'F': 8}

const (
	probeCounter = 10
	probeUnroll  = 50
)

type probeWriter struct{ b []byte }

func (w *probeWriter) op(op wasm.Opcode, imm ...uint32) *probeWriter {
	if op >= 0xFC00 {
		w.b = wasm.AppendU32(append(w.b, 0xFC), uint32(op&0xFF))
	} else {
		w.b = append(w.b, byte(op))
	}
	for _, v := range imm {
		w.b = wasm.AppendU32(w.b, v)
	}
	return w
}

func (w *probeWriter) i32(v int32) *probeWriter {
	w.b = wasm.AppendS64(append(w.b, byte(wasm.OpI32Const)), int64(v))
	return w
}

// instructions are probes of all instructions of the table that have a
// signature: x = x op y where the types allow it, so that each waits for the
// one before; else the bits of the result go into a sum.
func instructions() (list []probe) {
	for op := wasm.Opcode(0); op <= 0xFC0B; op++ {
		if op == 0x100 {
			op = 0xFC00
		}
		info := op.Info()
		if info == nil || !strings.Contains(info.Sig, ":") {
			continue
		}
		in, out, _ := strings.Cut(info.Sig, ":")
		w := &probeWriter{}
		for range probeUnroll {
			instruction(w, op, info, in, out)
		}
		list = append(list, probe{name: info.Name, body: w.b})
	}
	return list
}

func instruction(w *probeWriter, op wasm.Opcode, info *wasm.OpInfo, in, out string) {
	first := true
	for i := range in {
		l := probeLocals[in[i]]
		switch {
		case info.Class == wasm.ClassBulk:
			w.op(wasm.OpLocalGet, 3) // 8
			continue
		case (info.Class == wasm.ClassLoad || info.Class == wasm.ClassStore) && i == 0:
			w.i32(64)
			continue
		case !first || info.Class == wasm.ClassIntDiv && i > 0:
			l++
		}
		w.op(wasm.OpLocalGet, l)
		first = false
	}
	switch info.Imm {
	case wasm.ImmMem:
		w.op(op, uint32(info.Align), 0)
	case wasm.ImmZeroZero, wasm.ImmInit:
		w.op(op, 0, 0)
	case wasm.ImmZero, wasm.ImmIndex:
		w.op(op, 0)
	case wasm.ImmI32, wasm.ImmI64:
		w.op(op, 1)
	case wasm.ImmF32:
		w.op(op)
		w.b = append(w.b, 0, 0, 0x80, 0x3F)
	case wasm.ImmF64:
		w.op(op)
		w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F)
	default:
		w.op(op)
	}
	sum(w, in, out)
}

// sum uses a result.
func sum(w *probeWriter, in, out string) {
	if out == "" {
		return
	}
	if strings.HasPrefix(in, out) {
		w.op(wasm.OpLocalSet, probeLocals[out[0]])
		return
	}
	switch out {
	case "f":
		w.op(0xBC) // i32.reinterpret_f32
	case "F":
		w.op(0xBD)
	}
	l, xor := probeLocals['i'], wasm.Opcode(0x73)
	if out == "I" || out == "F" {
		l, xor = probeLocals['I'], 0x85
	}
	w.op(wasm.OpLocalGet, l).op(xor).op(wasm.OpLocalSet, l)
}

// random writes the next of a sequence of numbers that no processor predicts
// into local 2, and pushes bits of it.
func random(w *probeWriter, mask int32) {
	w.op(wasm.OpLocalGet, 2).i32(1664525).op(0x6C).i32(1013904223).op(0x6A).op(wasm.OpLocalTee, 2)
	w.i32(8).op(0x76).i32(mask).op(0x71)
}

const block = uint32(0x40)

// structures are probes of what has no signature, at its worst: branches that
// cannot be predicted, memory that is in no cache.
func structures() []probe {
	return slices.Concat(branches(), accesses(), calls())
}

// times is code n times over.
func times(n int, f func(w *probeWriter)) []byte {
	w := &probeWriter{}
	for range n {
		f(w)
	}
	return w.b
}

func branches() []probe {
	return []probe{
		{name: "nop", body: times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpNop) })},
		{name: "block", body: times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpBlock, block).op(wasm.OpEnd) })},
		{name: "loop of one round", body: times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpLoop, block).op(wasm.OpEnd) })},
		{name: "loop with nothing in it", body: nil},
		{name: "br", body: times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpBlock, block).op(wasm.OpBr, 0).op(wasm.OpEnd) })},
		{name: "br_if, random", body: times(probeUnroll, func(w *probeWriter) {
			w.op(wasm.OpBlock, block)
			random(w, 1)
			w.op(wasm.OpBrIf, 0).op(wasm.OpNop).op(wasm.OpEnd)
		})},
		{name: "if, random", body: times(probeUnroll, func(w *probeWriter) {
			random(w, 1)
			w.op(wasm.OpIf, block).i32(1).op(wasm.OpLocalSet, 3).op(wasm.OpElse).i32(2).op(wasm.OpLocalSet, 3).op(wasm.OpEnd)
		})},
		{name: "br_table, random", body: times(4, func(w *probeWriter) {
			for range 32 {
				w.op(wasm.OpBlock, block)
			}
			random(w, 31)
			w.op(wasm.OpBrTable, 31)
			for i := range uint32(32) {
				w.op(wasm.Opcode(i)) // as a label
			}
			for i := range 32 {
				w.op(wasm.OpEnd).i32(int32(i)).op(wasm.OpLocalSet, 3)
			}
		})},
		{name: "select, random", body: times(probeUnroll, func(w *probeWriter) {
			w.op(wasm.OpLocalGet, 3).op(wasm.OpLocalGet, 10)
			random(w, 1)
			w.op(wasm.OpSelect).op(wasm.OpLocalSet, 3)
		})},
	}
}

func accesses() []probe {
	list := []probe{
		{name: "global.get, global.set", body: times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpGlobalGet, 0).op(wasm.OpGlobalSet, 0) })},
		{name: "global.set of the stack pointer", body: times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpGlobalGet, 1).op(wasm.OpGlobalSet, 1) })},
		{name: "i32.load, random in all memory", body: times(probeUnroll, func(w *probeWriter) {
			random(w, 1<<24-4)
			w.op(0x28, 2, 0).op(wasm.OpLocalGet, 2).op(0x73).op(wasm.OpLocalSet, 2)
		})},
		{name: "i32.store, random in all memory", body: times(probeUnroll, func(w *probeWriter) {
			random(w, 1<<24-4)
			w.op(wasm.OpLocalGet, 2).op(0x36, 2, 0)
		})},
	}
	for _, n := range []int32{0, 1, 8, 4096, 1 << 16} {
		list = append(list,
			probe{name: fmt.Sprintf("memory.fill, %d bytes", n), body: times(8, func(w *probeWriter) { w.i32(0).i32(1).i32(n).op(wasm.OpMemoryFill, 0) })},
			probe{name: fmt.Sprintf("memory.copy, %d bytes", n), body: times(8, func(w *probeWriter) { w.i32(0).i32(1<<20+1).i32(n).op(wasm.OpMemoryCopy, 0, 0) })})
	}
	return list
}

func calls() []probe {
	void := wasm.FuncType{}
	call := times(probeUnroll, func(w *probeWriter) { w.op(wasm.OpCall, 2) })
	through := times(probeUnroll, func(w *probeWriter) { w.i32(0).op(wasm.OpCallIndirect, 1, 0) })
	recursion := append(append(times(1, func(w *probeWriter) {
		w.op(wasm.OpGlobalGet, 0).i32(1).op(0x6A).op(wasm.OpGlobalSet, 0)
		w.op(wasm.OpGlobalGet, 0).i32(63).op(0x71).op(wasm.OpIf, block)
	}), byte(wasm.OpCall), 2), byte(wasm.OpEnd), byte(wasm.OpEnd))
	empty := []byte{byte(wasm.OpEnd)}
	return []probe{
		{name: "call", body: call, rest: []wasm.FuncType{void}, more: [][]byte{empty}},
		{name: "call_indirect", body: through, rest: []wasm.FuncType{void}, more: [][]byte{empty}},
		{name: "call, recursive", body: call, rest: []wasm.FuncType{void}, more: [][]byte{recursion}},
		{name: "return", body: call, rest: []wasm.FuncType{void}, more: [][]byte{{byte(wasm.OpReturn), byte(wasm.OpEnd)}}},
	}
}

// imports are probes of all imports, with a device that does nothing, and of
// those that may block with one that blocks each.
func imports() (list []probe) {
	for op := hpu.OpNone + 1; op < hpu.NumOps; op++ {
		w := &probeWriter{}
		params, result := op.Signature()
		for _, p := range params {
			if p == 'I' {
				w.b = append(w.b, byte(wasm.OpI64Const), 0)
			} else {
				w.i32(0)
			}
		}
		w.op(wasm.OpCall, 0)
		if result != "" {
			w.op(wasm.OpDrop)
		}
		list = append(list, probe{name: op.String(), body: w.b, op: op})
		if op.MayBlock() {
			list = append(list, probe{name: op.String() + ", suspended", body: w.b, op: op, block: true})
		}
	}
	return list
}

// module writes the module of a probe. Import 0 is what it calls; function 1 is
// the handler, 2 the first of the others.
func (p *probe) module() []byte {
	handler := wasm.FuncType{Params: []wasm.ValueType{wasm.I32, wasm.I32}, Results: []wasm.ValueType{wasm.I32}}
	op := p.op
	if op == hpu.OpNone {
		op = hpu.OpYield
	}
	params, result := op.Signature()
	imported := wasm.FuncType{Params: letters(params), Results: letters(result)}
	b := []byte("\x00asm\x01\x00\x00\x00")
	types := []byte{3}
	for _, t := range []wasm.FuncType{handler, {}, imported} {
		types = wasm.AppendTypes(wasm.AppendTypes(append(types, 0x60), t.Params), t.Results)
	}
	b = wasm.AppendSection(b, 1, types)
	b = wasm.AppendSection(b, 2, append(wasm.AppendName(wasm.AppendName([]byte{1}, "spin"), op.String()), 0, 2))
	functions := []byte{byte(1 + len(p.more)), 0}
	for range p.more {
		functions = append(functions, 1)
	}
	b = wasm.AppendSection(b, 3, functions)
	b = wasm.AppendSection(b, 4, []byte{1, 0x70, 0, 1})
	b = wasm.AppendSection(b, 5, []byte{1, 0, 1})
	b = wasm.AppendSection(b, 6, []byte{2, 0x7F, 1, 0x41, 0, 0x0B, 0x7F, 1, 0x41, 0x80, 0x80, 4, 0x0B})
	exports := append(wasm.AppendName([]byte{3}, "memory"), 2, 0)
	exports = append(wasm.AppendName(exports, "__stack_pointer"), 3, 1)
	b = wasm.AppendSection(b, 7, append(wasm.AppendName(exports, "h"), 0, 1))
	if len(p.more) > 0 {
		b = wasm.AppendSection(b, 9, []byte{1, 0, 0x41, 0, 0x0B, 1, 2})
	}
	b = wasm.AppendSection(b, 12, []byte{1})
	code := []byte{byte(1 + len(p.more))}
	body := []byte{5, 2, 0x7F, 2, 0x7E, 2, 0x7D, 2, 0x7C, 1, 0x7F}
	w := &probeWriter{b: body}
	w.i32(8).op(wasm.OpLocalSet, 3)
	w.b = append(w.b, byte(wasm.OpI64Const), 7, byte(wasm.OpLocalSet), 5)
	w.b = append(append(w.b, byte(wasm.OpF32Const)), 0, 0, 0xC0, 0x3F, byte(wasm.OpLocalSet), 7)
	w.b = append(append(w.b, byte(wasm.OpF64Const)), 0, 0, 0, 0, 0, 0, 0xF8, 0x3F, byte(wasm.OpLocalSet), 9)
	w.op(wasm.OpLocalGet, 0).op(wasm.OpLocalSet, probeCounter)
	w.op(wasm.OpLoop, block)
	w.b = append(w.b, p.body...)
	w.op(wasm.OpLocalGet, probeCounter).i32(1).op(wasm.OpI32Sub).op(wasm.OpLocalTee, probeCounter).op(wasm.OpBrIf, 0).op(wasm.OpEnd)
	// What was computed is used.
	w.op(wasm.OpLocalGet, 2).op(wasm.OpLocalGet, 3).op(wasm.OpI32Add)
	w.op(wasm.OpLocalGet, 4).op(0xA7).op(wasm.OpI32Add)
	w.op(wasm.OpLocalGet, 6).op(0xBC).op(wasm.OpI32Add)
	w.op(wasm.OpLocalGet, 8).op(0xBD).op(0xA7).op(wasm.OpI32Add).op(wasm.OpEnd)
	code = append(wasm.AppendU32(code, uint32(len(w.b))), w.b...)
	for _, m := range p.more {
		code = append(append(wasm.AppendU32(code, uint32(len(m)+1)), 0), m...)
	}
	b = wasm.AppendSection(b, 10, code)
	return wasm.AppendSection(b, 11, append([]byte{1, 1, 64}, make([]byte, 64)...))
}

func letters(s string) (types []wasm.ValueType) {
	for i := range s {
		types = append(types, map[byte]wasm.ValueType{'i': wasm.I32, 'I': wasm.I64}[s[i]])
	}
	return types
}

type nothing struct{ block bool }

func (n nothing) Act(*hpu.Context, *hpu.Action) (int64, bool) { return 0, n.block }

// took runs a probe for a while and returns the nanoseconds of a cycle of its
// budget: the least of several runs, since other programs on the machine
// disturb some.
func (p *probe) took(tb testing.TB, e hpu.Engine, spec *hpu.Spec) float64 {
	m, err := hpu.Load(p.name, p.module(), spec)
	require.NoError(tb, err, p.name)
	img, err := e.Compile(m, uint32(spec.MaxHPUMemoryBytes))
	require.NoError(tb, err)
	program, err := img.Instantiate("owner", nothing{p.block})
	require.NoError(tb, err)
	memory := program.Memory()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := 1 << 16; i < len(memory); i += 4096 {
		memory[i] = byte(rng.Uint32()) // no page fault is measured
	}
	f, err := m.Export("h")
	require.NoError(tb, err)
	c := program.Context(0)
	run := func(rounds uint32) (time.Duration, int64) {
		clear(memory[:112]) // an operation record of zeros
		start := time.Now()
		for s := c.Start(f, rounds, 0, 1<<50); s == hpu.Blocked; {
			s = c.Resume(0)
		}
		took := time.Since(start)
		require.Nil(tb, c.Outcome().Err, p.name)
		return took, c.Used()
	}
	rounds := uint32(1)
	for took, _ := run(rounds); took < 200*time.Microsecond; took, _ = run(rounds) {
		rounds *= 2
	}
	best := 0.0
	for range 7 {
		took, cycles := run(rounds)
		if ns := float64(took.Nanoseconds()) / float64(cycles); best == 0 || ns < best {
			best = ns
		}
	}
	require.NoError(tb, img.Close())
	return best
}

// BenchmarkCycle measures what a cycle of a budget takes for every instruction
// and every import, with each cost table of the simulator, and reports the
// worst. With -v it lists the ten worst of each table.
func BenchmarkCycle(b *testing.B) {
	e, err := hpu.NewEngine("wazero")
	require.NoError(b, err)
	defer func() { require.NoError(b, e.Close()) }()
	for _, costs := range profile.CostNames() {
		b.Run(costs, func(b *testing.B) {
			device, err := profile.Load("spin-int", "hpu.costs="+costs)
			require.NoError(b, err)
			type result struct {
				name string
				ns   float64
			}
			var all []result
			for b.Loop() {
				all = all[:0]
				for _, p := range slices.Concat(instructions(), structures(), imports()) {
					all = append(all, result{p.name, p.took(b, e, device.Device())})
				}
			}
			slices.SortFunc(all, func(x, y result) int { return cmp.Compare(y.ns, x.ns) })
			for _, r := range all[:10] {
				b.Logf("%5.1f ns/cycle %s", r.ns, r.name)
			}
			b.ReportMetric(all[0].ns, "worst-ns/cycle")
			by := slower()
			b.ReportMetric(by, "x-slower")
			b.ReportMetric(all[0].ns/nanosecondsPerCycle/by, "x-of-20-ns/cycle")
		})
	}
}
