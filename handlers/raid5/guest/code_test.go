package main

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// times is the product of two bytes in GF(256), by the definition.
func times(a, b uint8) (p uint8) {
	for ; b != 0; b >>= 1 {
		if b&1 != 0 {
			p ^= a
		}
		a = raid5.Double(a)
	}
	return p
}

// step is what a data server multiplies a difference by for a parity server, after the one before.
func (a *array) step(parity, data int) uint8 {
	of := func(server uint32) uint8 { return a.code.Coefficient(a.code.DataServers(), server, uint32(data)) }
	if parity == int(a.code.Data) {
		return of(uint32(parity))
	}
	step := uint8(1)
	for times(step, of(uint32(parity)-1)) != of(uint32(parity)) && step != 0 {
		step++
	}
	return step
}

// said is what servers of a set say another one has, in a range: the code of their bytes.
func (a *array) said(set, lost uint32, from, n int) []byte {
	sum := make([]byte, n)
	for i, s := range a.servers {
		if set>>i&1 == 0 {
			continue
		}
		var products [256]byte
		for x := range products {
			products[x] = times(a.code.Coefficient(set, lost, uint32(i)), uint8(x))
		}
		for j, b := range s.Host[from : from+n] {
			sum[j] ^= products[b]
		}
	}
	return sum
}

// Every parity server has the code of the data when all is quiet, and each
// write is answered once, whatever the order of packets; those that have failed
// hear of nothing.
func TestEncode(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		for _, parity := range []int{2, 5} {
			a := newArrayOf(t, 3, parity, wasm, uint64(parity))
			for round := range 3 {
				a.replies = nil
				for slot := range uint32(slots) {
					to, n := a.rng.IntN(3), 1+a.rng.IntN(1000)
					at := a.rng.IntN(memory - n + 1)
					if round == 1 { // on the same bytes
						at = raid5.Locks*raid5.LockBytes - a.rng.IntN(n)
					}
					data := make([]byte, n)
					for i := range data {
						data[i] = byte(a.rng.Uint32())
					}
					a.write(to, at, data, slot, raid5.WriteBits)
				}
				a.drain()
				require.Len(t, a.replies, slots)
				for _, c := range a.replies {
					require.EqualValues(t, raid5.OK, c.Op.HdrData)
				}
			}
			a.quiet()

			applied := a.servers[4].state.Counts.Applied
			a.replies = nil
			// the second parity server has failed
			a.write(1, 77, slices.Repeat([]byte{9}, 3*packet), 0, raid5.WriteBits|1<<1<<raid5.ChainShift)
			a.drain()
			require.Len(t, a.replies, 1)
			require.Equal(t, applied, a.servers[4].state.Counts.Applied)
			copy(a.servers[4].Host, a.said(a.code.DataServers(), 4, 0, memory))
			a.quiet()
			a.replies = nil
			// all have failed
			a.write(0, 5, []byte{1, 2, 3}, 1, raid5.WriteBits|uint64(a.code.ParityServers())<<raid5.ChainShift)
			a.drain()
			require.Len(t, a.replies, 1)
			require.Equal(t, []byte{1, 2, 3}, a.servers[0].Host[5:8])
		}
	})
}

// Memory that is not there, at a data server or at any parity server: the client is told, once.
func TestEncodeThatFails(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArrayOf(t, 2, 3, wasm, 6)
		for _, at := range []int{0, 2, 4} {
			for _, call := range []string{"dma_from_host", "dma_to_host"} {
				a.servers[at].Fail(call, spin.Fault, 1)
				a.replies = nil
				a.write(0, 0, slices.Repeat([]byte{byte(at + 1)}, 3*packet), 2, raid5.WriteBits)
				a.drain()
				require.Len(t, a.replies, 1, "%d %s", at, call)
				require.EqualValues(t, raid5.Failed, a.replies[0].Op.HdrData)
				for _, s := range a.servers { // as if rebuilt
					clear(s.Host)
				}
				a.quiet()
			}
		}
		require.EqualValues(t, 2, a.servers[4].state.Counts.Failed)
	})
}

// With as many servers gone as there are parity servers, a chain of the others
// computes the bytes of each of them: for a client, and for one in its place.
func TestCodedChains(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArrayOf(t, 3, 2, wasm, 8)
		for i := range 3 {
			data := make([]byte, 3000)
			for j := range data {
				data[j] = byte(a.rng.Uint32())
			}
			a.write(i, 1000*i, data, 0, raid5.WriteBits)
			a.drain()
		}
		for one := range a.servers {
			for other := range one {
				gone := uint32(1)<<one | 1<<other
				set := uint32(0b11111) &^ gone
				for _, lost := range []int{one, other} {
					a.chain(set, lost)
				}
			}
		}
		a.quiet()
	})
}

// chain has a set of servers compute what another one had.
func (a *array) chain(set uint32, lost int) {
	const from, n, here = 1234, 2*packet + 77, 50
	want := slices.Clone(a.servers[lost].Host)
	clear(a.servers[lost].Host)
	first := 0
	for set>>first&1 == 0 {
		first++
	}
	asked := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, from), n)
	ask := spintest.Message{Data: asked, UserHdrLen: raid5.RangeSize, SourceNID: 99, SourcePID: 2}
	bits := uint64(lost)<<raid5.LostShift | uint64(set)<<raid5.ChainShift | raid5.CollectBits
	var back int64 = here - from
	ask.MatchBits, ask.HdrData = bits|raid5.ToClient<<raid5.LastShift, uint64(raid5.NewDestination(99, 2, uint64(back)))
	a.replies = nil
	require.Equal(a.t, spin.Drop, a.deliver(first, ask).Header)
	a.drain()
	got := make([]byte, here+n)
	for _, c := range a.replies {
		require.EqualValues(a.t, raid5.SumBits, c.Op.MatchBits)
		copy(got[c.Op.RemoteOffset:], c.Data)
	}
	require.Equal(a.t, want[from:from+n], got[here:], "%b, server %d", set, lost)

	ask.MatchBits, ask.HdrData = bits|uint64(lost)<<raid5.LastShift, uint64(raid5.NewTicket(99, 2, 3, 3))
	a.replies = nil
	a.deliver(first, ask)
	a.drain()
	require.Len(a.t, a.replies, 1)
	require.Equal(a.t, want[from:from+n], a.servers[lost].Host[from:from+n])
	copy(a.servers[lost].Host, want)
}

// What is no message of the protocol fails, and hurts nobody.
func TestCodedNonsense(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArrayOf(t, 1, 2, wasm, 9)
		s := a.servers[0]
		require.Equal(t, spin.Fail, a.deliver(0, spintest.Message{MatchBits: raid5.CollectBits, Data: []byte{1}, UserHdrLen: 1}).Header, "no range")
		large := &spin.Payload{Length: packet + 1}
		for _, f := range []string{"write", "fold"} {
			large.Base = memoryOf(s, packet+1)
			require.Equal(t, spin.Fail, spintest.Run(s.Device, s.run[f].Payload, large, s.state), f)
		}
		require.Empty(t, s.Puts())
		for range 200 { // servers that there are not, sets of any
			m := spintest.Message{MatchBits: a.rng.Uint64()&^raid5.KindMask | raid5.BlendBits, HdrData: a.rng.Uint64(), Data: make([]byte, packet)}
			a.deliver(0, m)
		}
		a.quiet()
	})
}

// Bytes of any number, times any.
func TestMultiply(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var products [raid5.TableSize / 4]uint32
	for c := range 256 {
		to := make([]byte, rng.IntN(300))
		want := make([]byte, len(to))
		for i := range to {
			to[i] = byte(rng.Uint32())
			want[i] = times(to[i], byte(c))
		}
		multiply(to, byte(c), &products)
		require.Equal(t, want, to, "%d", c)
	}
}
