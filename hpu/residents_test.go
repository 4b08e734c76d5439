package hpu

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/lazy"
)

// twin is two programs of a module: the second keeps its memory.
type twin [2]*Program

// residenceOf does the same to programs that lose their memory and to others
// that do not.
type residenceOf struct {
	t      *rapid.T
	images [2]Image
	twins  []twin
}

func (x *residenceOf) each(k int, f func(p *Program)) {
	for _, p := range x.twins[k] {
		f(p)
	}
}

// write writes bytes of a host anywhere: also a page of zeros, and what is there
// already.
func (x *residenceOf) write(k int) {
	size := len(x.twins[k][1].Memory())
	at := rapid.IntRange(0, size-1).Draw(x.t, "at")
	if rapid.Bool().Draw(x.t, "near") {
		at %= 100
	}
	n := rapid.SampledFrom([]int{1, 8, 9, 64, 200, 5000, 40_000}).Draw(x.t, "bytes")
	b := bytes.Repeat([]byte{rapid.SampledFrom([]byte{0, 1, 'a'}).Draw(x.t, "value")}, n)
	x.each(k, func(p *Program) { copy(p.Present()[at:], b) })
}

// handle starts, continues or kills a handler.
func (x *residenceOf) handle(k int) {
	i, n, kill := rapid.IntRange(0, 3).Draw(x.t, "context"), rapid.Uint32().Draw(x.t, "n"), rapid.IntRange(0, 5).Draw(x.t, "kill") == 0
	word := rapid.SampledFrom([]uint32{0, 12, 65532, 65536, 65548, 1 << 31}).Draw(x.t, "word")
	var ends []ending
	x.each(k, func(p *Program) {
		switch c := p.Context(i); {
		case c.Status() != Blocked:
			f, err := p.Module().Export("h")
			require.NoError(x.t, err)
			c.Start(f, n, word, 1e6)
		case kill:
			c.Kill()
		default:
			c.Resume(0)
		}
		ends = append(ends, endingOf(p.Context(i).Outcome()))
	})
	require.Equal(x.t, ends[1], ends[0])
}

// same compares the memories of twins.
func (x *residenceOf) same(k int) {
	require.True(x.t, bytes.Equal(x.twins[k][1].Memory(), x.twins[k][0].Present()), "memory of %d differs", k)
}

func (x *residenceOf) step() {
	k := rapid.IntRange(0, len(x.twins)-1).Draw(x.t, "program")
	if x.twins[k][0] == nil {
		for i, img := range x.images {
			p, err := img.Instantiate("twin", blocking)
			require.NoError(x.t, err)
			x.twins[k][i] = p
		}
		x.twins[k][1].Memory() // which is asked for, and does not move
		x.same(k)
		return
	}
	switch rapid.IntRange(0, 9).Draw(x.t, "what") {
	case 0:
		x.each(k, func(p *Program) { require.NoError(x.t, p.Close()) })
		x.each(k, func(p *Program) { require.Nil(x.t, p.Memory()) })
		x.twins[k] = twin{}
	case 1, 2:
		x.write(k)
	case 3:
		x.same(k)
	default:
		x.handle(k)
	}
}

// A program that loses its memory while its handlers are not running, and gets
// another, behaves as one that keeps it: with handlers that wait, trap or are
// killed, writes of hosts, programs that are closed, and any number of memories.
func TestResidence(t *testing.T) {
	defer func(n int, times uint8) { lazy.Many, often = n, times }(lazy.Many, often)
	m, err := Load("keeper", keeper(false), testSpec())
	require.NoError(t, err)
	lost := 0
	rapid.Check(t, func(rt *rapid.T) {
		lazy.Many = rapid.IntRange(1, 4).Draw(rt, "memories")
		often = rapid.SampledFrom([]uint8{1, 2, 255}).Draw(rt, "often")
		x := &residenceOf{t: rt, twins: make([]twin, 8)}
		for i := range x.images {
			e, err := NewEngine("wazero")
			require.NoError(rt, err)
			defer func() { require.NoError(rt, e.Close()) }()
			x.images[i], err = e.Compile(m, 64)
			require.NoError(rt, err)
		}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			x.step()
		}
		for k, pair := range x.twins {
			if p := pair[0]; p != nil {
				if p.mem == nil {
					lost++
				}
				x.same(k)
			}
		}
	})
	require.Positive(t, lost)
}

// A device that uses other programs takes no memory away from the handler that
// asks it.
func TestResidenceInDevices(t *testing.T) {
	m := handlerModule(0x41, 16, 0x42, 5, 0x10, 0, 0xA7) // fadd(16, 5)
	m.imports = []Op{OpFAdd}
	module, err := Load("adds", m.bytes(), testSpec())
	require.NoError(t, err)
	onEngines(t, func(t *testing.T, e Engine) {
		img, err := e.Compile(module, 64)
		require.NoError(t, err)
		var all [3]*Program
		waits := false
		dev := &testDevice{act: func(*Context, *Action) (int64, bool) {
			for i, p := range all {
				require.EqualValues(t, 5*i, p.Word(16))
			}
			return 0, waits
		}}
		for i := range all {
			all[i], err = img.Instantiate("adds", dev)
			require.NoError(t, err)
			le.PutUint32(all[i].Present()[16:], uint32(5*i))
		}
		c := all[1].Context(0)
		require.Equal(t, Code(5), end(t, c, "h", 0, 0, 1e6).Code)
		require.EqualValues(t, 10, all[1].Word(16))
		le.PutUint32(all[1].Present()[16:], 5)
		waits = true
		require.Equal(t, Blocked, c.Start(handler(t, all[1], "h"), 0, 0, 1e6))
		require.Zero(t, all[0].Word(16))
		require.Equal(t, Done, c.Resume(0))
		require.EqualValues(t, 10, all[1].Word(16))
	})
}
