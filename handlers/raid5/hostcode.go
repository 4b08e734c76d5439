//go:build !tinygo

package raid5

import (
	"math/bits"
)

// coefficient returns the factor of a data server's bytes at a server: the
// code's at parity servers, 1 at itself, else 0.
func (a *Array) coefficient(server, data int) uint8 {
	switch {
	case server >= a.o.Data:
		return a.code.Coefficient(a.code.DataServers(), uint32(server), uint32(data))
	case server == data:
		return 1
	}
	return 0
}

// steps returns the factors by which the handlers of a data server multiply a
// difference from one parity server to the next.
func (a *Array) steps(server int) (steps [MaxParity]uint8) {
	if server >= a.o.Data {
		return steps
	}
	before := uint8(1)
	for i := range a.parities() {
		c := a.coefficient(a.o.Data+i, server)
		for steps[i] = 1; products(before)[steps[i]] != c; {
			steps[i]++
		}
		before = c
	}
	return steps
}

// products returns the products of all bytes with c, in GF(256).
func products(c uint8) (table [256]uint8) {
	for n := 1; n < 256; n, c = 2*n, Double(c) {
		for i := range n {
			table[n+i] = table[i] ^ c
		}
	}
	return table
}

// add adds c times from to to; from is no shorter.
func add(to, from []byte, c uint8) {
	if c == 1 {
		xor(to, from)
		return
	}
	table := products(c)
	for i := range to {
		to[i] ^= table[from[i]]
	}
}

// rebuilding returns the servers from which a failed one is computed: the first
// ones that have not failed, as many as there are data servers.
func (a *Array) rebuilding(failed uint32) (set uint32) {
	live := (uint32(1)<<len(a.servers) - 1) &^ failed
	for range a.o.Data {
		set |= live & -live
		live &= live - 1
	}
	return set
}

// Said returns bytes of a failed server, computed from servers that have not
// failed, from a place to the end of its chunk. It is for tests.
func (a *Array) Said(server int, failed []int, at int64) []byte {
	gone := uint32(0)
	for _, i := range failed {
		gone |= 1 << i
	}
	set := a.rebuilding(gone)
	sum := make([]byte, len(a.Peek(server, at)))
	_ = each(set, func(i int) error {
		add(sum, a.Peek(i, at), a.code.Coefficient(set, uint32(server), uint32(i)))
		return nil
	})
	return sum
}

// each calls f for the servers of a set, in order.
func each(set uint32, f func(server int) error) error {
	for ; set != 0; set &= set - 1 {
		if err := f(bits.TrailingZeros32(set)); err != nil {
			return err
		}
	}
	return nil
}
