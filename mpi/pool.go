package mpi

import (
	"math/bits"

	"github.com/spinsim/spinsim/runtime"
)

// pool gives out memory of a rank, in powers of two, and takes it back.
type pool struct {
	classes [classes]struct {
		free  []runtime.View // taken back
		fresh runtime.View   // the rest of the last allocation
	}
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
	c := &p.classes[class]
	if n := len(c.free); n > 0 {
		v := c.free[n-1]
		c.free = c.free[:n-1]
		return v, nil
	}
	size := 1 << class
	if c.fresh.Len() == 0 {
		var err error
		if c.fresh, err = r.Alloc(max(size, slabBytes)); err != nil {
			return runtime.View{}, err
		}
	}
	v := c.fresh.Slice(0, size)
	c.fresh = c.fresh.Slice(size, c.fresh.Len())
	return v, nil
}

func (p *pool) put(v runtime.View) {
	c := &p.classes[classOf(v.Len())]
	c.free = append(c.free, v)
}
