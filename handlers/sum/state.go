// Package sum adds up the payload bytes of messages in HPU memory: the benchmark handler. It never
// suspends, so its cost is its own instructions only.
package sum

import "structs"

// MaxHPUs is the number of HPUs the state has room for; a power of two.
const MaxHPUs = 64

// State is the HPU memory of an entry that sums. It starts as zero. Each HPU
// adds to its own sum, so that no two of them write the same word and no atomic
// operation is needed.
type State struct {
	_    structs.HostLayout
	Sums [MaxHPUs]uint64 // by number of the HPU, modulo MaxHPUs
}

// Total returns the sum over all HPUs.
func (s *State) Total() uint64 {
	var total uint64
	for _, sum := range s.Sums {
		total += sum
	}
	return total
}
