package goal

// keyTable numbers keys from 0 in the order of their first use. It forgets no
// key, so it allocates nothing once it has seen them all.
type keyTable struct {
	keys  []tableKey
	table []uint32 // length: a power of two; number of a key plus 1, or 0
	shift uint
}

type tableKey struct {
	high, low uint64
}

// get returns the number of a key; added: it is new.
func (t *keyTable) get(k tableKey) (n uint32, added bool) {
	if 2*len(t.keys) >= len(t.table) {
		t.grow()
	}
	i := t.probe(k)
	if t.table[i] == 0 {
		t.keys = append(t.keys, k)
		t.table[i] = uint32(len(t.keys))
		added = true
	}
	return t.table[i] - 1, added
}

// find returns the number of a key, or none if it is unknown.
func (t *keyTable) find(k tableKey) uint32 {
	if len(t.table) == 0 {
		return none
	}
	return t.table[t.probe(k)] - 1 // 0 gives none
}

func (t *keyTable) probe(k tableKey) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio spreads neighbouring keys
	mask := uint64(len(t.table) - 1)
	i := (k.high*odd ^ k.low) * odd >> t.shift
	for t.table[i] != 0 && t.keys[t.table[i]-1] != k {
		i = (i + 1) & mask
	}
	return i
}

func (t *keyTable) grow() {
	size := max(256, 2*len(t.table))
	t.table = make([]uint32, size)
	t.shift = 64
	for n := size; n > 1; n /= 2 {
		t.shift--
	}
	for i, k := range t.keys {
		t.table[t.probe(k)] = uint32(i) + 1
	}
}
