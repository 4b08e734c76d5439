package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// reports writes the calls that report to the Observer.
type reports struct {
	fn      uint32 // the import that they call
	sites   []site
	offsets []int   // of the instructions of the present block
	shares  []int64 // the cost of each alone
}

// tell appends a call that reports a site. The operands are locals with the
// address and the number of bytes; -1: the value 0.
func (s *reports) tell(b []byte, what site, addr, n int64) []byte {
	b = wasm.AppendS64(append(b, byte(wasm.OpI32Const)), int64(len(s.sites)))
	for _, local := range []int64{addr, n} {
		if local < 0 {
			b = append(b, byte(wasm.OpI32Const), 0)
		} else {
			b = wasm.AppendIndexed(b, wasm.OpLocalGet, uint32(local))
		}
	}
	s.sites = append(s.sites, what)
	return wasm.AppendIndexed(b, wasm.OpCall, s.fn)
}

// note notes an instruction of the present block and its cost alone.
func (s *reports) note(offset int, share int64) {
	s.offsets, s.shares = append(s.offsets, offset), append(s.shares, share)
}

// drop forgets the present block.
func (s *reports) drop() { s.offsets, s.shares = s.offsets[:0], s.shares[:0] }

// tellBlock appends the code that reports the present block and its cost.
func (s *reports) tellBlock(b []byte, cost int64) []byte {
	if len(s.offsets) == 0 {
		return b
	}
	block := &WatchedBlock{Offsets: append([]int(nil), s.offsets...), Costs: make([]int64, len(s.offsets))}
	total := int64(0)
	for _, share := range s.shares {
		total += share
	}
	sum, given := int64(0), int64(0)
	for i, share := range s.shares {
		sum += share
		upto := cost * sum / max(total, 1)
		if total == 0 {
			upto = cost * int64(i+1) / int64(len(s.shares))
		}
		block.Costs[i], given = upto-given, upto
	}
	s.drop()
	return s.tell(b, site{kind: siteBlock, block: block}, -1, -1)
}
