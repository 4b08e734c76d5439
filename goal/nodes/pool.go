package nodes

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/mpi"
)

// place is memory of a rank for one message.
type place struct {
	addr uint64
	data []byte
}

// pool gives out memory of a rank in sizes of powers of two and takes it back.
type pool struct {
	r     *mpi.Rank
	free  [classes][]place
	inUse poison.Buffers
}

const (
	classes   = 32
	smallest  = 6       // the log of the smallest size, a cache line
	slabBytes = 1 << 16 // least memory registered at a time
)

func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), smallest) }

func (p *pool) get(n int) (place, error) {
	class := classOf(n)
	if len(p.free[class]) == 0 {
		size := 1 << class
		slab := max(size, slabBytes)
		addr, data, err := p.r.Alloc(slab)
		if err != nil {
			return place{}, err
		}
		poison.Bytes(data)
		for off := slab - size; off >= 0; off -= size {
			p.free[class] = append(p.free[class], place{addr + uint64(off), data[off : off+size : off+size]})
		}
	}
	list := p.free[class]
	m := list[len(list)-1]
	p.free[class] = list[:len(list)-1]
	poison.Check(m.data, "nodes: memory of a message")
	p.inUse.Taken(m.data)
	return m, nil
}

func (p *pool) put(m place) {
	p.inUse.Released(m.data)
	class := classOf(len(m.data))
	p.free[class] = append(p.free[class], m)
}
