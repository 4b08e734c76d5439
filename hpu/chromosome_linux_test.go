//go:build !race

package hpu

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// gene is a piece of code that leaves nothing on the stack, several times.
type gene struct {
	Kind  string // one of geneNames
	Count int
	Arg   int
	Inner []gene
}

// chromosome is a module.
type chromosome struct {
	Funcs   int // copies of the function
	Params  int
	Locals  int
	Globals int
	Types   int
	Genes   []gene
}

var geneNames = strings.Fields("nop move add float load store divide trunc fill copy init drop_data call indirect import global_get global_set " +
	"if_else loop block br_table select push params nest_block nest_loop nest_if return unreachable deep_call const64 big_br")

type geneWriter struct {
	c *chromosome
	b []byte
	v int // variable used last
	n int // depth of labels
	// calls to functions of the module go to later ones, in turn.
	fn int
}

func (w *geneWriter) op(ops ...byte) { w.b = append(w.b, ops...) }
func (w *geneWriter) u(v int)        { w.b = wasm.AppendU32(w.b, uint32(v)) }

func (w *geneWriter) local(op wasm.Opcode) {
	w.v = (w.v + 1) % max(1, w.c.Params+w.c.Locals)
	w.op(byte(op))
	w.u(w.v)
}

func (w *geneWriter) genes(list []gene) {
	for i := range list {
		for range list[i].Count {
			w.gene(&list[i])
		}
	}
}

const (
	effortImports = 2
	effortTypes   = 3 // handler, () -> (), many parameters
)

func (w *geneWriter) gene(g *gene) {
	w.plain(g)
	w.bulk(g)
	w.calls(g)
	w.control(g)
	w.exits(g)
}

func (w *geneWriter) get() { w.local(wasm.OpLocalGet) }
func (w *geneWriter) set() { w.local(wasm.OpLocalSet) }

// plain writes instructions without control.
func (w *geneWriter) plain(g *gene) {
	switch g.Kind {
	case "nop":
		w.op(byte(wasm.OpNop))
	case "move":
		w.get()
		w.set()
	case "add":
		w.get()
		w.get()
		w.op(byte(wasm.OpI32Add))
		w.set()
	case "float":
		w.get()
		w.op(0xB7, 0x9F) // f64.convert_i32_s, f64.sqrt
		for range g.Arg % 8 {
			w.op(0x9F)
		}
		w.op(0xFC, 0x02)
		w.set()
	case "load":
		w.get()
		w.op(0x28, 0)
		w.u(g.Arg)
		w.set()
	case "store":
		w.get()
		w.get()
		w.op(0x36, 0)
		w.u(g.Arg)
	case "divide":
		w.get()
		w.get()
		w.op(0x6D)
		w.set()
	case "trunc":
		w.get()
		w.op(0xB7, 0xAA)
		w.set()
	case "select":
		w.get()
		w.get()
		w.get()
		w.op(byte(wasm.OpSelect))
		w.set()
	case "const64":
		w.op(byte(wasm.OpI64Const), 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, byte(wasm.OpDrop))
	}
}

// bulk writes bulk operations and globals.
func (w *geneWriter) bulk(g *gene) {
	switch g.Kind {
	case "fill":
		w.get()
		w.get()
		w.get()
		w.op(0xFC, 0x0B, 0)
	case "copy":
		w.get()
		w.get()
		w.get()
		w.op(0xFC, 0x0A, 0, 0)
	case "init":
		w.get()
		w.get()
		w.get()
		w.op(0xFC, 0x08, 0, 0)
	case "drop_data":
		w.op(0xFC, 0x09, 0)
	case "global_get":
		if w.c.Globals > 0 {
			w.v++
			w.op(byte(wasm.OpGlobalGet))
			w.u(w.v % w.c.Globals)
			w.set()
		}
	case "global_set":
		if w.c.Globals > 0 {
			w.v++
			w.get()
			w.op(byte(wasm.OpGlobalSet))
			w.u(w.v % w.c.Globals)
		}
	}
}

// calls writes calls.
func (w *geneWriter) calls(g *gene) {
	switch g.Kind {
	case "call": // of the next function
		for range w.c.Params {
			w.get()
		}
		w.op(byte(wasm.OpCall))
		w.u(effortImports + 2 + w.fn)
	case "indirect":
		w.get()
		w.op(byte(wasm.OpCallIndirect))
		w.u(1 + g.Arg%2*3*min(1, w.c.Types))
		w.op(0)
	case "import":
		w.get()
		w.op(byte(wasm.OpCall), 0)
		w.set()
	case "params":
		for range 32 {
			w.get()
		}
		w.op(byte(wasm.OpCall), effortImports+1)
	case "deep_call": // one call in another
		for range 4 {
			w.get()
		}
		for range 3 {
			w.op(byte(wasm.OpCall), 0, byte(wasm.OpI32Add))
		}
		w.set()
	}
}

// control writes what has code in it.
func (w *geneWriter) control(g *gene) {
	switch g.Kind {
	case "if_else":
		w.get()
		w.op(byte(wasm.OpIf), 0x40)
		w.genes(g.Inner)
		w.op(byte(wasm.OpElse))
		if g.Arg%2 == 0 {
			w.genes(g.Inner)
		}
		w.op(byte(wasm.OpEnd))
	case "loop":
		w.op(byte(wasm.OpLoop), 0x40)
		w.n++
		w.genes(g.Inner)
		w.n--
		w.get()
		w.op(byte(wasm.OpBrIf), 0, byte(wasm.OpEnd))
	case "block":
		w.op(byte(wasm.OpBlock), 0x40)
		w.n++
		w.get()
		w.op(byte(wasm.OpBrIf))
		w.u(g.Arg % w.n)
		w.genes(g.Inner)
		w.n--
		w.op(byte(wasm.OpEnd))
	case "br_table":
		w.op(byte(wasm.OpBlock), 0x40)
		w.n++
		w.get()
		w.op(byte(wasm.OpBrTable))
		w.u(g.Arg)
		for i := range g.Arg + 1 {
			w.u(i % w.n)
		}
		w.n--
		w.op(byte(wasm.OpEnd))
	case "push": // values that stay on the operand stack for what is in it
		for range g.Arg {
			w.get()
		}
		w.genes(g.Inner)
		for range g.Arg {
			w.set()
		}
	case "nest_block", "nest_loop", "nest_if":
		w.nest(g)
	}
}

// exits writes what leaves a block or the function.
func (w *geneWriter) exits(g *gene) {
	switch g.Kind {
	case "return":
		w.get()
		w.op(byte(wasm.OpIf), 0x40, byte(wasm.OpI32Const), 0, byte(wasm.OpReturn), byte(wasm.OpEnd))
	case "unreachable":
		w.get()
		w.op(byte(wasm.OpIf), 0x40, byte(wasm.OpUnreachable), byte(wasm.OpEnd))
	case "big_br":
		w.get()
		w.op(byte(wasm.OpBrIf))
		w.u(g.Arg % (w.n + 1))
	}
}

func (w *geneWriter) nest(g *gene) {
	depth := 1 + g.Arg%200
	for range depth {
		switch g.Kind {
		case "nest_block":
			w.op(byte(wasm.OpBlock), 0x40)
		case "nest_loop":
			w.op(byte(wasm.OpLoop), 0x40)
		default:
			w.local(wasm.OpLocalGet)
			w.op(byte(wasm.OpIf), 0x40)
		}
		w.n++
	}
	w.genes(g.Inner)
	for range depth {
		w.n--
		if g.Arg%3 > 0 {
			w.local(wasm.OpLocalGet)
			w.op(byte(wasm.OpBrIf), 0)
		}
		w.op(byte(wasm.OpEnd))
	}
}

// module writes the module of a chromosome.
func (c *chromosome) module() []byte {
	many := wasm.FuncType{Params: slices.Repeat([]wasm.ValueType{wasm.I32}, 32)}
	own := wasm.FuncType{}
	m := &moduleOf{types: []wasm.FuncType{handlerType, own, many}, imports: []Op{OpDMAWait, OpYield}}
	for i := range c.Types {
		m.types = append(m.types, wasm.FuncType{Params: slices.Repeat([]wasm.ValueType{wasm.I64}, i%60)})
	}
	m.types = append(m.types, wasm.FuncType{Params: slices.Repeat([]wasm.ValueType{wasm.I32}, c.Params)})
	// The handler, one with many parameters, and the copies.
	m.funcs = []uint32{0, 2}
	m.bodies = [][]byte{{0, byte(wasm.OpI32Const), 0}, {0}}
	for i := range c.Funcs {
		w := &geneWriter{c: c, b: wasm.AppendU32([]byte{1}, uint32(c.Locals)), fn: min(i+1, c.Funcs-1)}
		w.op(byte(wasm.I32))
		w.genes(c.Genes)
		m.funcs = append(m.funcs, 1)
		if c.Params > 0 {
			m.funcs[len(m.funcs)-1] = uint32(len(m.types) - 1)
		}
		m.bodies = append(m.bodies, w.b)
	}
	m.table = []byte{1, 0x70, 0, 1}
	m.globals = wasm.AppendU32(nil, uint32(c.Globals))
	for range c.Globals {
		m.globals = appendGlobal(m.globals, wasm.Global{Type: wasm.I32, Mutable: true})
	}
	m.memory = []byte{0, 16}
	m.count, m.data = []byte{1}, []byte{1, 1, 0}
	return m.bytes()
}

func randomGene(rng *rand.Rand, depth int) gene {
	g := gene{Kind: geneNames[rng.IntN(len(geneNames))], Count: 1 << rng.IntN(8), Arg: rng.IntN(1 << (1 + rng.IntN(9)))}
	if depth > 0 {
		for range rng.IntN(4) {
			g.Inner = append(g.Inner, randomGene(rng, depth-1))
		}
	}
	if depth < 2 {
		g.Count = 1 << rng.IntN(4)
	}
	return g
}

func randomChromosome(rng *rand.Rand) *chromosome {
	c := &chromosome{Funcs: 1 << rng.IntN(10), Locals: rng.IntN(1 << (1 + rng.IntN(7))), Globals: rng.IntN(1 << rng.IntN(11))}
	if rng.IntN(3) == 0 {
		c.Params = rng.IntN(64)
	}
	if rng.IntN(4) == 0 {
		c.Types = rng.IntN(1000)
	}
	for range 1 + rng.IntN(3) {
		c.Genes = append(c.Genes, randomGene(rng, 2))
	}
	return c
}

// changed is c with something else in it.
func (c *chromosome) changed(rng *rand.Rand) *chromosome {
	d := *c
	b, err := json.Marshal(c.Genes)
	if err != nil {
		panic(err)
	}
	d.Genes = nil
	if err := json.Unmarshal(b, &d.Genes); err != nil {
		panic(err)
	}
	other := func(n int) int { return max(0, n*(1+rng.IntN(8))/(1+rng.IntN(8))+rng.IntN(3)-1) }
	for range 1 + rng.IntN(3) {
		switch rng.IntN(9) {
		case 0:
			d.Funcs = max(1, other(d.Funcs))
		case 1:
			d.Locals = min(other(d.Locals), 4096)
		case 2:
			d.Globals = min(other(d.Globals), 1024)
		case 3:
			d.Params = min(other(d.Params), 64)
		case 4:
			d.Genes = append(d.Genes, randomGene(rng, 2))
		case 5:
			if len(d.Genes) > 1 {
				i := rng.IntN(len(d.Genes))
				d.Genes = slices.Delete(d.Genes, i, i+1)
			}
		default:
			g := &d.Genes[rng.IntN(len(d.Genes))]
			for len(g.Inner) > 0 && rng.IntN(2) == 0 {
				g = &g.Inner[rng.IntN(len(g.Inner))]
			}
			switch rng.IntN(5) {
			case 0:
				g.Kind = geneNames[rng.IntN(len(geneNames))]
			case 1:
				g.Count = max(1, other(g.Count))
			case 2:
				g.Arg = other(g.Arg)
			case 3:
				g.Inner = append(g.Inner, randomGene(rng, 1))
			case 4:
				if len(g.Inner) > 0 {
					g.Inner = g.Inner[1:]
				}
			}
		}
	}
	return &d
}

// text describes c.
func (c *chromosome) text() string {
	var write func(list []gene) string
	write = func(list []gene) string {
		var parts []string
		for _, g := range list {
			s := fmt.Sprintf("%d*%s(%d)", g.Count, g.Kind, g.Arg)
			if len(g.Inner) > 0 {
				s += "{" + write(g.Inner) + "}"
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprintf("%d functions, %d parameters, %d locals, %d globals, %d types: %s", c.Funcs, c.Params, c.Locals, c.Globals, c.Types, write(c.Genes))
}
