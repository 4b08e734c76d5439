package nic

import "slices"

// arrivedOf is the messages and packets that have arrived from one source. The
// source numbers its messages from 1. For a whole message only its number is
// kept, and consecutive numbers are one run. So there is at most one run more
// than there are messages with missing packets.
type arrivedOf struct {
	whole []numbers           // in increasing order; at least one number is missing between two runs
	parts map[uint64][]uint64 // the packets of incomplete messages, a bit for each
}

// numbers is a run of consecutive numbers, both ends included.
type numbers struct{ from, to uint64 }

// firstTime notes packet i of message n, which has the given number of packets.
// It reports whether the packet is new.
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
		seen = make([]uint64, 1+(packets+63)/64) // the first word counts the packets
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

// complete adds n to the runs. It lies in no run and before run at.
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
