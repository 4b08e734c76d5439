package nic

import "slices"

// arrivedOf is what has arrived of the messages of a source, which numbers them
// from 1. Of a message that is whole nothing is kept but its number, and
// numbers that follow each other are one run: there are at most one more runs
// than messages of which packets are missing.
type arrivedOf struct {
	whole []numbers           // in their order; between two of them at least one is missing
	parts map[uint64][]uint64 // packets of the others, a bit for each
}

// numbers are those from one to another, both included.
type numbers struct{ from, to uint64 }

// firstTime notes packet i, of so many, of message n and reports whether it had not arrived yet.
func (k *arrivedOf) firstTime(n uint64, i, packets int) bool {
	at, is := k.find(n)
	if is {
		return false
	}
	if packets == 1 {
		k.complete(n, at)
		return true
	}
	seen := k.parts[n]
	if seen == nil {
		seen = make([]uint64, 1+(packets+63)/64) // the first counts them
		if k.parts == nil {
			k.parts = map[uint64][]uint64{}
		}
		k.parts[n] = seen
	}
	word, bit := &seen[1+i/64], uint64(1)<<(i%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	if seen[0]++; seen[0] == uint64(packets) {
		delete(k.parts, n)
		k.complete(n, at)
	}
	return true
}

// find returns the first run that ends at n or later, and whether n is in it.
func (k *arrivedOf) find(n uint64) (at int, is bool) {
	if last := len(k.whole) - 1; last < 0 || k.whole[last].to < n {
		return last + 1, false
	}
	at, _ = slices.BinarySearchFunc(k.whole, n, func(r numbers, n uint64) int {
		if r.to < n {
			return -1
		}
		return 1
	})
	return at, k.whole[at].from <= n
}

// complete puts n, which lies before run at and in none, into the runs.
func (k *arrivedOf) complete(n uint64, at int) {
	before, behind := at > 0 && k.whole[at-1].to == n-1, at < len(k.whole) && k.whole[at].from == n+1
	switch {
	case before && behind:
		k.whole[at-1].to = k.whole[at].to
		k.whole = slices.Delete(k.whole, at, at+1)
	case before:
		k.whole[at-1].to = n
	case behind:
		k.whole[at].from = n
	default:
		k.whole = slices.Insert(k.whole, at, numbers{n, n})
	}
}
