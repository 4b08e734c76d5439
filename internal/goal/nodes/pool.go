package nodes

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// pool gives out memory of a rank in sizes of powers of two and takes it back.
type pool struct {
	r     *mpi.Rank
	empty bool // memory without bytes
	cold  bool // its pages are absent at first
	free  [classes][]runtime.View
	inUse poison.Buffers
}

const (
	classes   = 32
	smallest  = 6       // the log of the smallest size, a cache line
	slabBytes = 1 << 16 // least memory registered at a time
)

func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), smallest) }

// get returns at least n bytes of memory for a message; put takes it back.
func (p *pool) get(n int) (runtime.View, error) {
	class := classOf(n)
	if len(p.free[class]) == 0 {
		size := 1 << class
		slab := max(size, slabBytes)
		memory, err := p.alloc(slab)
		if err != nil {
			return runtime.View{}, err
		}
		for off := slab - size; off >= 0; off -= size {
			m := memory.Slice(off, off+size)
			if p.spoils() {
				poison.Bytes(m.Write())
			}
			p.free[class] = append(p.free[class], m)
		}
	}
	list := p.free[class]
	m := list[len(list)-1]
	p.free[class] = list[:len(list)-1]
	if p.spoils() {
		b := m.Read()
		poison.Check(b, "nodes: memory of a message")
		p.inUse.Taken(b)
	}
	return m, nil
}

// spoils reports whether memory that is not in use has other bytes, in tests.
// Writing them touches pages, so cold memory keeps what it has.
func (p *pool) spoils() bool { return poison.On && !p.empty && !p.cold }

// alloc makes memory for messages.
func (p *pool) alloc(n int) (v runtime.View, err error) {
	if p.empty {
		var addr uint64
		if addr, err = mpi.TaggedOf(p.r).Adopt(uint64(n), nothing{}); err == nil {
			v, err = p.r.Proc().View(addr, n)
		}
	} else {
		v, err = p.r.Alloc(n)
	}
	if err == nil && !p.cold {
		v.Present()
	}
	return v, err
}

// nothing is memory without bytes: zeros.
type nothing struct{}

func (nothing) Load(_ uint64, b []byte) bool {
	clear(b)
	return true
}

func (nothing) Store(uint64, []byte) bool { return true }

func (p *pool) put(m runtime.View) {
	if p.spoils() {
		p.inUse.Released(m.Write())
	}
	class := classOf(m.Len())
	p.free[class] = append(p.free[class], m)
}
