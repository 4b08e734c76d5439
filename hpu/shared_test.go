package hpu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// climber returns a module whose handler recurses args deep, yields there
// through the table or directly, comes back, recurses state deep. extra makes
// it another module.
func climber(indirect bool, extra byte) []byte {
	m := handlerModule(0x20, 0, 0x10, 2, 0x20, 1, 0x10, 3, 0x6A)
	m.imports = []Op{OpYield}
	up := wasm.FuncType{Params: []wasm.ValueType{wasm.I32}, Results: []wasm.ValueType{wasm.I32}}
	m.types = append(m.types, up, wasm.FuncType{})
	yield := []byte{0x10, 0}
	if indirect {
		yield = []byte{0x41, 1, 0x11, 2, 0}
		m.table = []byte{1, 0x70, 0, 2}
		m.elements = []byte{1, 0, 0x41, 1, 0x0B, 1, 0}
	}
	deep := func(self byte, end ...byte) []byte {
		b := []byte{0, 0x20, 0, 0x45, 0x04, 0x7F} // if n == 0
		return append(append(b, end...), 0x41, extra, 0x05, 0x20, 0, 0x41, 1, 0x6B, 0x10, self, 0x20, 0, 0x6A, 0x0B)
	}
	m.funcs = append(m.funcs, 1, 1)
	m.bodies = append(m.bodies, deep(2, yield...), deep(3))
	return m.bytes()
}

// ending is how a handler ends that was not killed.
type ending struct {
	code   Code
	cycles int64
	err    string
}

func endingOf(o Outcome) ending {
	e := ending{o.Code, o.Cycles, ""}
	if o.Err != nil {
		e.err = o.Err.Error()
	}
	return e
}

// climbs are arguments and states of climbers.
var climbs = [][2]uint32{{0, 0}, {5, 3}, {90, 90}, {90, 200}, {200, 0}, {40, 99}, {98, 98}, {99, 0}}

// climbAlone returns images of climbers, how the handlers of each end, and what
// they have taken when they wait: by image and climb.
func climbAlone(t *testing.T, e Engine) (images []Image, alone map[[3]uint32]ending, waiting map[[3]uint32]int64) {
	alone, waiting = map[[3]uint32]ending{}, map[[3]uint32]int64{}
	for i, code := range [][]byte{climber(false, 1), climber(true, 2), climber(true, 3)} {
		m, err := Load("climber", code, testSpec())
		require.NoError(t, err)
		img, err := e.Compile(m, 64)
		require.NoError(t, err)
		images = append(images, img)
		for _, x := range climbs {
			p, err := img.Instantiate("alone", blocking)
			require.NoError(t, err)
			c, key := p.Context(0), [3]uint32{uint32(i), x[0], x[1]}
			if c.Start(handler(t, p, "h"), x[0], x[1], 1e6) == Blocked {
				waiting[key] = c.Cycles()
				require.Equal(t, Done, c.Resume(0))
			}
			alone[key] = endingOf(c.Outcome())
			require.NoError(t, p.Close())
		}
	}
	traps := map[string]int{}
	for _, x := range alone {
		traps[x.err]++
	}
	require.Greater(t, len(traps), 3)
	return images, alone, waiting
}

// Programs of different modules take turns on the machine stacks, workers and
// the function that calls their handlers: how each handler ends is how it ends
// alone, while others are suspended deep in their recursion, trap, are killed
// or closed, and what is closed is garbage.
func TestProgramsTakeTurns(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		images, alone, waiting := climbAlone(t, e)
		r := rand.New(rand.NewPCG(1, 2))
		all := make([]*Program, 6)
		what := map[*Context][3]uint32{}
		for step := range 4000 {
			k := r.IntN(len(all))
			if all[k] == nil {
				var err error
				all[k], err = images[k%len(images)].Instantiate("turns", blocking)
				require.NoError(t, err)
			}
			p := all[k]
			c := p.Context(r.IntN(4))
			key := what[c]
			switch n := r.IntN(60); {
			case n == 0:
				var killed []*Context
				for i := range 4 {
					if x := p.Context(i); x.Status() == Blocked {
						killed = append(killed, x)
					}
				}
				require.NoError(t, p.Close())
				for _, x := range killed {
					require.Equal(t, TrapKilled, x.Outcome().Err.Kind)
					require.Equal(t, waiting[what[x]], x.Outcome().Cycles)
				}
				if all[k] = nil; step%5 == 0 {
					runtime.GC()
				}
			case n < 8 && c.Status() == Blocked:
				c.Kill()
				require.Equal(t, TrapKilled, c.Outcome().Err.Kind)
				require.Equal(t, waiting[key], c.Outcome().Cycles)
			case c.Status() == Blocked:
				require.Equal(t, waiting[key], c.Cycles())
				require.Equal(t, Done, c.Resume(0))
				require.Equal(t, alone[key], endingOf(c.Outcome()), key)
			default:
				x := climbs[r.IntN(len(climbs))]
				key = [3]uint32{uint32(k % len(images)), x[0], x[1]}
				if what[c] = key; c.Start(handler(t, p, "h"), x[0], x[1], 1e6) == Done {
					require.Equal(t, alone[key], endingOf(c.Outcome()), key)
				}
			}
		}
	})
}

// blocking suspends whoever yields.
var blocking = &testDevice{act: func(*Context, *Action) (int64, bool) { return 0, true }}

// While a device carries out what one handler asks for it may start, resume,
// kill and close those of other programs: an action, a worker or a machine
// stack that is in use is nobody else's.
func TestDevicesNestHandlers(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		var all []*Program
		var ends []ending
		dev := &testDevice{}
		dev.act = func(c *Context, a *Action) (int64, bool) {
			at, level := *a, c.User.(int)
			if level+1 < len(all) {
				p := all[level+1]
				h := handler(t, p, "h")
				for i := range 4 {
					p.Context(i).User = level + 1
				}
				require.Equal(t, Blocked, p.Context(0).Start(h, 20, 5, 1e6))
				require.Equal(t, Blocked, p.Context(1).Start(h, 30, 200, 1e6))
				require.Equal(t, Blocked, p.Context(2).Start(h, 40, 0, 1e6))
				for i := range 2 {
					require.Equal(t, Done, p.Context(i).Resume(0))
					ends = append(ends, endingOf(p.Context(i).Outcome()))
				}
				if level == 1 {
					require.NoError(t, p.Close())
					all = all[:level+1]
				} else {
					p.Context(2).Kill()
				}
				require.Equal(t, TrapKilled, p.Context(2).Outcome().Err.Kind)
			}
			require.Equal(t, at, *a)
			return 0, true
		}
		for i := range byte(3) {
			all = append(all, programOn(t, e, climber(i == 1, 1), testSpec(), dev))
		}
		c := all[0].Context(0)
		c.User = 0
		require.Equal(t, Blocked, c.Start(handler(t, all[0], "h"), 50, 2, 1e6))
		require.Equal(t, Done, c.Resume(0))
		require.Equal(t, Code(50*51/2+1+3+1), c.Outcome().Code)
		require.Len(t, ends, 4)
		require.Equal(t, ends[0].code, ends[2].code)
		require.Equal(t, Code(20*21/2+1+15+1), ends[0].code)
		require.Contains(t, ends[1].err, "call depth")
		require.Contains(t, ends[3].err, "call depth")
	})
}

// A module may have hundreds of handlers, some under several names, in any
// order of use, and next to imports that are exported or in the table twice:
// each name enters its own.
func TestManyHandlers(t *testing.T) {
	const number = 300
	m := handlerModule(0x41, 0)
	m.imports = []Op{OpNumHPUs, OpYield}
	m.table, m.elements = []byte{1, 0x70, 0, 4}, []byte{1, 0, 0x41, 0, 0x0B, 4, 0, 1, 0, 2}
	m.exports = append(wasm.AppendName(nil, "d"), wasm.ExportFunc, 2)
	m.exports = append(wasm.AppendName(m.exports, "xe3"), wasm.ExportFunc, 4)
	m.exports = append(wasm.AppendName(m.exports, "e3"), wasm.ExportFunc, 5)
	m.exports = append(wasm.AppendName(m.exports, "g0"), wasm.ExportTable, 0)
	m.exports = append(wasm.AppendName(m.exports, "f2"), wasm.ExportFunc, 0)
	m.nexports = 5
	for i := 1; i < number; i++ {
		m.funcs = append(m.funcs, 0)
		m.bodies = append(m.bodies, wasm.AppendS64([]byte{0, 0x41}, int64(i)))
		if i%3 == 0 {
			m.exports = wasm.AppendU32(append(wasm.AppendName(m.exports, fmt.Sprint("h", i)), wasm.ExportFunc), uint32(i+2))
			m.nexports++
		}
	}
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, m.bytes(), testSpec(), blocking)
		for i := number - 3; i > 0; i -= 3 {
			require.Equal(t, Code(i), end(t, p.Context(i%4), fmt.Sprint("h", i), 0, 0, 1e6).Code)
		}
		for name, want := range map[string]Code{"h": 0, "d": 0, "xe3": 2, "e3": 3} {
			require.Equal(t, want, end(t, p.Context(0), name, 0, 0, 1e6).Code, name)
		}
	})
}

// keeper returns a module that initialises itself: it counts up a word of its
// own memory and one of HPU memory, and clears a byte of its data. Its handler
// adds args to the word at state, yields, and returns the word. With global it
// counts its calls in a global, too, and adds that.
func keeper(global bool) []byte {
	count := []byte{0x41, 0, 0x41, 0, 0x28, 2, 0, 0x41, 7, 0x6A, 0x36, 2, 0}
	m := handlerModule(0x20, 1, 0x20, 1, 0x28, 2, 0, 0x20, 0, 0x6A, 0x36, 2, 0, 0x10, 0, 0x20, 1, 0x28, 2, 0)
	if global {
		m.bodies[0] = append(m.bodies[0], 0x23, 0, 0x41, 1, 0x6A, 0x24, 0, 0x23, 0, 0x6A)
		m.globals = []byte{1, byte(wasm.I32), 1, 0x41, 0, 0x0B}
	}
	m.imports, m.types, m.funcs = []Op{OpYield}, append(m.types, wasm.FuncType{}), append(m.funcs, 1)
	initial := append([]byte{0}, count...)
	initial = append(initial, 0x41, 8, 0x41, 0, 0x3A, 0, 0) // mem[8] = 0
	const second = "\x41\x84\x80\x04"                       // address of the second word of HPU memory
	initial = append(append(initial, second+second...), 0x28, 2, 0, 0x41, 3, 0x6A, 0x36, 2, 0)
	m.bodies = append(m.bodies, initial)
	m.exports, m.nexports = append(wasm.AppendName(nil, "_initialize"), wasm.ExportFunc, 2), 1
	m.data = append([]byte{1, 0, 0x41, 4, 0x0B, 8}, "datadata"...)
	return m.bytes()
}

// Each program of an image begins with the memory that initialisation makes, and
// keeps what is its own: memory, and globals of the module. Others are
// suspended, closed and made in memory that was in use.
func TestProgramsKeepTheirMemory(t *testing.T) {
	for _, global := range []bool{false, true} {
		onEngines(t, func(t *testing.T, e Engine) {
			m, err := Load("keeper", keeper(global), testSpec())
			require.NoError(t, err)
			img, err := e.Compile(m, 64)
			require.NoError(t, err)
			// programs, and words of HPU memory that their handlers add to
			const number, words, at = 5, 4, 65536
			var all [number]*Program
			var sums [number][words]uint32
			var calls [number]int
			r := rand.New(rand.NewPCG(3, 4))
			for range 2000 {
				k, w := r.IntN(number), r.IntN(words)
				if p := all[k]; p == nil || r.IntN(50) == 0 {
					if p != nil {
						require.NoError(t, p.Close())
					}
					all[k], err = img.Instantiate("keeper", blocking)
					require.NoError(t, err)
					require.Equal(t, append([]byte{7, 0, 0, 0}, "data\x00ata"...), all[k].Memory()[:12])
					require.Equal(t, []byte{0, 0, 0, 0, 3, 0, 0, 0}, all[k].Memory()[at:at+8])
					sums[k], calls[k] = [words]uint32{0, 3}, 0
				}
				c := all[k].Context(w)
				if c.Status() != Blocked {
					n := r.Uint32N(1000)
					sums[k][w] += n
					require.Equal(t, Blocked, c.Start(handler(t, all[k], "h"), n, at+4*uint32(w), 1e6))
					continue
				}
				require.Equal(t, Done, c.Resume(0))
				want := sums[k][w]
				if calls[k]++; global {
					want += uint32(calls[k])
				}
				require.Equal(t, Code(want), c.Outcome().Code)
			}
		})
	}
}
