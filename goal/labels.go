package goal

import (
	"hash/maphash"

	"github.com/spinsim/spinsim/internal/memory"
)

// labelTable finds the operations of a rank by label. Emptying it takes almost
// no time, because a large schedule has a million ranks with a few labels each.
// Labels such as l12, as most writers make them, are found by their number.
type labelTable struct {
	numbered []numberedLabel // by number
	slots    []labelSlot     // of other labels; length: a power of two
	bytes    []byte          // the labels, one after the other
	used     int
	age      uint32 // slots of another age are empty
	op       uint32 // number of the next operation
	last     []byte // label of the next operation, nil if none; part of the line
}

type numberedLabel struct{ age, op uint32 }

// numberedLabels is how many labels have places by their number. It bounds the
// memory that one label takes.
const numberedLabels = 1 << 18

type labelSlot struct {
	age      uint32
	hash     uint32
	op       uint32
	from, to uint32
}

// labelSeed makes collisions unpredictable for a hostile file. It influences no
// result.
var labelSeed = maphash.MakeSeed()

func (t *labelTable) reset() {
	t.bytes = t.bytes[:0]
	t.used, t.op, t.last = 0, 0, nil
	if t.age++; t.age == 0 {
		clear(t.slots)
		clear(t.numbered)
		t.age = 1
	}
}

// number returns N of a label lN, where N is a number below numberedLabels
// without leading zeros.
func number(label []byte) (n uint32, ok bool) {
	if len(label) < 2 || label[0] != 'l' || len(label) > 7 || label[1] == '0' && len(label) > 2 {
		return 0, false
	}
	for _, c := range label[1:] {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + uint32(c-'0')
	}
	return n, n < numberedLabels
}

// at returns the place of label number n, which is below numberedLabels.
func (t *labelTable) at(n uint32) *numberedLabel {
	if int(n) >= len(t.numbered) {
		longer := memory.Make[numberedLabel](max(256, 2*int(n)))
		copy(longer, t.numbered)
		t.numbered = longer
	}
	return &t.numbered[n]
}

// define gives the next operation a label; false: the label is taken.
func (t *labelTable) define(label []byte) bool {
	t.last = label
	if n, ok := number(label); ok {
		at := t.at(n)
		if at.age == t.age {
			return false
		}
		*at = numberedLabel{t.age, t.op}
		return true
	}
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	hash := uint32(maphash.Bytes(labelSeed, label))
	at := t.probe(hash, label)
	if at.age == t.age {
		return false
	}
	from := uint32(len(t.bytes))
	t.bytes = append(double(t.bytes, len(label)), label...)
	*at = labelSlot{t.age, hash, t.op, from, uint32(len(t.bytes))}
	t.used++
	return true
}

func (t *labelTable) find(label []byte) (uint32, bool) {
	if n, ok := number(label); ok {
		if int(n) >= len(t.numbered) {
			return 0, false
		}
		at := t.numbered[n]
		return at.op, at.age == t.age
	}
	if len(t.slots) == 0 {
		return 0, false
	}
	at := t.probe(uint32(maphash.Bytes(labelSeed, label)), label)
	return at.op, at.age == t.age
}

// probe returns the slot of a label, or the empty slot where it belongs.
func (t *labelTable) probe(hash uint32, label []byte) *labelSlot {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := &t.slots[i]
		if at.age != t.age || at.hash == hash && string(t.bytes[at.from:at.to]) == string(label) {
			return at
		}
	}
}

func (t *labelTable) grow() {
	old := t.slots
	t.slots = memory.Make[labelSlot](max(64, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.age != t.age {
			continue
		}
		i := s.hash & mask
		for t.slots[i].age == t.age {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}
