package goal

// entry is an operation or message in a queue: first a send is in a wait queue
// of its rank, then its message is in one of the target, and then among the
// unexpected messages.
type entry struct {
	op    uint32 // and listed or indexed
	link  uint32
	child uint32 // further pointer
	stamp uint32 // order in the queue
}

// entries are the entries of all queues of a simulator. Those of a rank are side
// by side in lines of the cache, and it keeps those that are free in a list.
type entries struct{ all []entry }

// lineEntries is the number of entries in a line of the cache.
const lineEntries = 4

func (e *entries) reset() { e.all = e.all[:0] }

// get returns an entry for an operation, which is first in its queue. free is
// the rank's first free entry plus 1, 0: none.
func (e *entries) get(free *uint32, op, stamp uint32) uint32 {
	if *free == 0 {
		n := uint32(len(e.all))
		e.all = double(e.all, lineEntries)[:n+lineEntries]
		for i := range uint32(lineEntries) {
			e.give(free, n+lineEntries-1-i)
		}
	}
	i := *free - 1
	*free = e.all[i].link
	e.all[i] = entry{op: op, link: none, child: none, stamp: stamp}
	return i
}

// give takes back an entry.
func (e *entries) give(free *uint32, i uint32) {
	e.all[i].link = *free
	*free = i + 1
}
