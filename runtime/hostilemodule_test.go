package runtime_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/hpu"
)

// imported is an import of the ABI as docs/abi.md has it: names and types of its
// arguments, and the type of its result.
type imported struct {
	name   string
	args   [][2]string // name, i32 or i64
	result string      // "()": none
}

var (
	abiLine = regexp.MustCompile(`(?m)^\| (\w+) \| (same|\((.*?)\) -> (\S+)) \|`)
	imports = sync.OnceValue(func() (list []imported) {
		page, err := os.ReadFile("../docs/abi.md")
		if err != nil {
			panic(err)
		}
		for _, line := range abiLine.FindAllStringSubmatch(string(page), -1) {
			if _, is := hpu.OpByName(line[1]); !is {
				continue
			}
			f := imported{name: line[1], result: line[4]}
			if line[2] == "same" {
				f.args, f.result = list[len(list)-1].args, list[len(list)-1].result
			} else if line[3] != "" {
				for arg := range strings.SplitSeq(line[3], ", ") {
					name, typ, _ := strings.Cut(arg, " ")
					f.args = append(f.args, [2]string{name, typ})
				}
			}
			list = append(list, f)
		}
		return list
	})
)

// villain writes hostile modules: valid ones, whose three handlers do by chance what
// the ABI allows, and what it does not.
type villain struct {
	*rand.Rand
	b      []byte
	nested int
	// victims are addresses and handles of others that arguments may name
	victims []uint64
}

func (g *villain) one(list ...uint64) uint64 { return list[g.IntN(len(list))] }

// address is one in the module's HPU memory, or now and then anywhere.
func (g *villain) address() uint64 {
	switch g.IntN(12) {
	case 0:
		return g.one(g.victims...)
	case 1:
		return g.one(values...)
	}
	return hpuBase + uint64(g.IntN(hpuBytes-256))&^7
}

// value is an argument of an import by its name.
func (g *villain) value(name string) uint64 {
	switch name {
	case "space":
		return g.one(0, 0, 0, 1, 2, 3, 255, 256, 257)
	case "offset":
		return g.one(0, 8, 64, extraBytes-8, hostBytes-8, hostBytes, g.one(g.victims...), g.one(g.victims...), g.one(values...))
	case "local", "addr", "found", "out":
		return g.address()
	case "len":
		return g.one(0, 8, 64, 256, 4096, 30_000, g.one(values...))
	case "op":
		if g.IntN(20) > 0 {
			return opAt(g.IntN(villainOps))
		}
		return g.address()
	case "period_ps":
		return g.one(0, 5000, 5000, 1000, 1e6, 5e6, 1e9, 1e12, 1e15)
	case "delay_ns", "at_ps":
		return g.one(0, 1, 100, 5000, 1e6, 1e9, g.one(values...))
	case "handle", "datatype", "status", "operation", "cluster":
		return uint64(g.IntN(12))
	case "ct":
		return g.one(append(g.victims, uint64(g.IntN(8)))...)
	}
	return g.one(values...)
}

const villainOps = 6

// record is an operation of the villain: often to the victim's process, with an
// entry that it has or has not.
func (g *villain) record() hpu.Operation {
	d := hpu.Operation{
		Local: uint32(g.address()), Space: uint32(g.IntN(4) / 2), Offset: g.one(0, 64, g.value("offset")), Length: g.one(0, 8, 64, 256, 4096, 60_000),
		TargetNID: uint32(g.IntN(4)), TargetPID: uint32(g.IntN(3)), PTIndex: uint32(g.IntN(3) / 2), AckReq: uint32(g.IntN(4)),
		MatchBits: g.one(0, 5, g.Uint64()), RemoteOffset: g.one(0, 8, 2048, g.one(values...)), HdrData: g.Uint64(), MD: uint32(g.IntN(3)),
		Options: uint32(g.IntN(4)), AtomicOp: uint32(g.IntN(18)), Datatype: uint32(g.IntN(14)), Operand: uint32(g.address()), Fetch: uint32(g.address()),
		FetchOffset: g.one(math.MaxUint64, 0, 64, g.one(g.victims...)),
	}
	if g.IntN(3) == 0 {
		d.Length = uint64(g.IntN(256))
	}
	return d
}

func (g *villain) code(b ...byte) { g.b = append(g.b, b...) }

func (g *villain) i32(v uint64) { g.b = signed(append(g.b, 0x41), int64(int32(v))) }

func (g *villain) i64(v uint64) { g.b = signed(append(g.b, 0x42), int64(v)) }

// call calls an import and drops its result, or keeps it in local 2.
func (g *villain) call(i int) {
	f := &imports()[i]
	for _, a := range f.args {
		switch v := g.value(a[0]); {
		case a[1] == "i64":
			g.i64(v)
		case a[0] == "handle" && g.IntN(2) == 0:
			g.code(0x20, 2)
		default:
			g.i32(v)
		}
	}
	g.code(0x10, byte(i))
	switch {
	case f.result == "i32":
		g.code(0x21, 2)
	case f.result != "()":
		g.code(0x1a)
	}
}

// repeat writes a loop of n rounds, or without an end if n is 0.
func (g *villain) repeat(n uint64, body func()) {
	if g.nested == 3 {
		return
	}
	count := byte(3 + g.nested)
	g.nested++
	g.i64(n)
	g.code(0x21, count, 0x03, 0x40)
	body()
	if n == 0 {
		g.code(0x0c, 0)
	} else {
		g.code(0x20, count, 0x42, 1, 0x7d, 0x22, count, 0x50, 0x45, 0x0d, 0)
	}
	g.code(0x0b)
	g.nested--
}

func (g *villain) statement() {
	switch g.IntN(24) {
	case 0:
		g.repeat(uint64(1+g.IntN(400)), func() {})
	case 1:
		g.repeat(uint64(1+g.IntN(12)), func() { g.statement(); g.statement() })
	case 2:
		g.repeat(0, g.statement)
	case 3: // i64.store
		g.i32(g.address())
		g.i64(g.Uint64())
		g.code(0x37, 0, 0)
	case 4: // memory.copy
		g.i32(g.address())
		g.i32(g.address())
		g.i32(g.one(8, 64, 1000, g.one(values...)))
		g.code(0xfc, 10, 0, 0)
	case 5: // unreachable, where a counter says so
		g.code(0x20, 3, 0x50, 0x45, 0x04, 0x40, 0x00, 0x0b)
	default:
		g.call(g.IntN(len(imports())))
	}
}

// function is the body of a handler.
func (g *villain) function() []byte {
	g.b = []byte{2, 1, 0x7f, 3, 0x7e}
	for range 1 + g.IntN(12) {
		g.statement()
	}
	g.i32(g.one(0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 7, math.MaxUint32, math.MaxUint32-1, 99))
	g.code(0x0b)
	return append(binary.AppendUvarint(nil, uint64(len(g.b))), g.b...)
}

// module is a module with exports header, payload and completion.
func (g *villain) module() []byte {
	leb := func(v int) []byte { return binary.AppendUvarint(nil, uint64(v)) }
	name := func(s string) []byte { return append(leb(len(s)), s...) }
	section := func(id byte, content ...[]byte) []byte {
		c := bytes.Join(content, nil)
		return append(append([]byte{id}, leb(len(c))...), c...)
	}
	list := imports()
	n := len(list)
	types, from := [][]byte{leb(n + 1)}, [][]byte{leb(n)}
	types = append(types, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7f})
	letter := map[string]byte{"i32": 0x7f, "i64": 0x7e}
	for i, f := range list {
		t := append([]byte{0x60}, leb(len(f.args))...)
		for _, a := range f.args {
			t = append(t, letter[a[1]])
		}
		if r := letter[f.result]; r != 0 {
			t = append(t, 1, r)
		} else {
			t = append(t, 0)
		}
		types = append(types, t)
		from = append(from, name("spin"), name(f.name), []byte{0}, leb(i+1))
	}
	exports := [][]byte{{4}, name("memory"), {2, 0}}
	for i, h := range []string{"header", "payload", "completion"} {
		exports = append(exports, name(h), []byte{0}, leb(n+i))
	}
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"), section(1, types...), section(2, from...), section(3, []byte{3, 0, 0, 0}), section(5, []byte{1, 0, 1}),
		section(7, exports...), section(10, []byte{3}, g.function(), g.function(), g.function()),
	}, nil)
}

// signed appends a number in signed LEB128.
func signed(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
