package raid5_test

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/raid5"
)

// product multiplies two bytes in GF(256) by the definition: as polynomials,
// modulo 0x11d.
func product(a, b uint8) (p uint8) {
	for ; b != 0; b >>= 1 {
		if b&1 != 0 {
			p ^= a
		}
		a = raid5.Double(a)
	}
	return p
}

// shards are what a code's servers have, data at random.
func shards(t *testing.T, data, parity, n int) ([][]byte, reedsolomon.Encoder) {
	oracle, err := reedsolomon.New(data, parity, reedsolomon.WithJerasureMatrix(), reedsolomon.WithMaxGoroutines(1))
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(uint64(data), uint64(parity)))
	all := make([][]byte, data+parity)
	for i := range all {
		all[i] = make([]byte, n)
		for j := range n {
			all[i][j] = byte(rng.Uint32())
		}
	}
	require.NoError(t, oracle.Encode(all))
	return all, oracle
}

// sum returns the bytes of a server, computed from the servers of a set.
func sum(c *raid5.Code, all [][]byte, set uint32, lost int) []byte {
	total := make([]byte, len(all[0]))
	for i := range all {
		if set>>i&1 != 0 {
			by := c.Coefficient(set, uint32(lost), uint32(i))
			for j, b := range all[i] {
				total[j] ^= product(by, b)
			}
		}
	}
	return total
}

// With any number of servers parity is what the library reedsolomon computes by
// Jerasure's matrix, and the first parity server has the exclusive or.
func TestCodeIsJerasures(t *testing.T) {
	for parity := 1; parity <= raid5.MaxParity; parity++ {
		for data := 1; data+parity <= raid5.MaxServers; data++ {
			c := raid5.NewCode(data, parity)
			all, _ := shards(t, data, parity, 9)
			for i := range parity {
				require.Equal(t, all[data+i], sum(&c, all, c.DataServers(), data+i), "%d+%d, server %d", data, parity, i)
			}
			for i := range uint32(data) {
				require.EqualValues(t, 1, c.Coefficient(c.DataServers(), c.Data, i))
			}
		}
	}
}

// Any set of as many servers as there are data servers determines each other
// one: all sets of small codes, some of large ones.
func TestAnyServersSuffice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, shape := range [][2]int{{1, 1}, {1, 4}, {4, 1}, {3, 2}, {4, 4}, {6, 3}, {10, 4}, {24, 8}} {
		data, parity := shape[0], shape[1]
		c := raid5.NewCode(data, parity)
		all, _ := shards(t, data, parity, 3)
		each := func(set uint32) {
			for lost := range all {
				if set>>lost&1 == 0 {
					require.Equal(t, all[lost], sum(&c, all, set, lost), "%v, %b", shape, set)
				}
			}
		}
		if len(all) <= 14 {
			for set := range uint32(1) << len(all) {
				if bits.OnesCount32(set) == data {
					each(set)
				}
			}
			continue
		}
		for range 500 {
			set := uint32(0)
			for _, i := range rng.Perm(len(all))[:data] {
				set |= 1 << i
			}
			each(set)
		}
	}
}
