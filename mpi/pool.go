package mpi

import (
	"math/bits"

	"github.com/spinsim/spinsim/runtime"
)

// pool gives out memory of a rank, in powers of two, and takes it back.
type pool struct {
	free [classes][]runtime.View
}

const (
	classes   = 32
	smallest  = 6       // log2 of the smallest size, a cache line
	slabBytes = 1 << 14 // least allocation
)

func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), smallest) }

// get returns at least n bytes; put takes them back.
func (p *pool) get(r *Rank, n int) (runtime.View, error) {
	class := classOf(n)
	if len(p.free[class]) == 0 {
		size := 1 << class
		slab := max(size, slabBytes)
		memory, err := r.Alloc(slab)
		if err != nil {
			return runtime.View{}, err
		}
		for off := slab - size; off >= 0; off -= size {
			p.free[class] = append(p.free[class], memory.Slice(off, off+size))
		}
	}
	list := p.free[class]
	v := list[len(list)-1]
	p.free[class] = list[:len(list)-1]
	return v, nil
}

func (p *pool) put(v runtime.View) {
	class := classOf(v.Len())
	p.free[class] = append(p.free[class], v)
}
