package main

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

var key = replicate.Key{0x0706050403020100, 0x0f0e0d0c0b0a0908} // of the reference

// user is the user header of a request.
func user(c *replicate.Capability, more ...uint64) (b []byte) {
	words := append([]uint64{c.Low, c.High, uint64(c.NID) | uint64(c.PID)<<32, uint64(c.Rights) | uint64(c.Expires)<<32, c.MAC}, more...)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// guarded is a group whose servers know the key, and a capability of client
// 99/2 for bytes 100 up to 5000.
func guarded(t *testing.T, wasm bool) (*group, replicate.Capability) {
	g := newGroup(t, 2, false, wasm)
	for _, s := range g.servers {
		s.state.Key, s.state.Bytes, s.state.Epoch = key, memory-100, 7
	}
	c := replicate.Capability{Low: 100, High: 5000, NID: 99, PID: 2, Rights: replicate.MayRead | replicate.MayWrite, Expires: 7}
	c.MAC = c.Sign(&key)
	return g, c
}

// ask sends a request with a user header: of a write with data, else for bytes.
func (g *group) ask(kind uint64, header, data []byte, at uint64) spin.Code {
	packets := (len(header) + len(data) + packet - 1) / packet
	return g.deliver(0, spintest.Message{
		Data: append(slices.Clone(header), data...), UserHdrLen: len(header), Offset: at, SourceNID: 99, SourcePID: 2, MatchBits: 3<<replicate.LiveShift | kind,
		HdrData: uint64(raid5.NewTicket(99, 2, 1, uint32(packets))),
	}).Header
}

// refused requires that a request is, that nothing else happens, and which count says why.
func (g *group) refused(kind uint64, header, data []byte, at uint64, more func(c *replicate.Counts)) {
	before := g.servers[0].state.Counts
	more(&before)
	code := g.ask(kind, header, data, at)
	require.Equal(g.t, spin.Drop, code)
	require.Equal(g.t, before, g.servers[0].state.Counts)
	g.drain()
	require.Len(g.t, g.replies, 1)
	require.Equal(g.t, [2]uint64{replicate.ReplyBits | 1, replicate.Denied}, [2]uint64{g.replies[0].Op.MatchBits, g.replies[0].Op.HdrData})
	g.replies = nil
	for _, s := range g.servers {
		require.Equal(g.t, -1, slices.IndexFunc(s.Host, func(b byte) bool { return b != 0 }))
	}
}

// A capability with any one bit changed is none; neither is a part of one, nor
// one that is signed with another key.
func TestForged(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		g, c := guarded(t, wasm)
		data := []byte{1, 2, 3}
		forged := func(c *replicate.Counts) { c.Forged++ }
		for bit := range 8 * replicate.CapabilitySize {
			header := user(&c)
			header[bit/8] ^= 1 << (bit % 8)
			g.refused(replicate.AdmitBits, header, data, 100, forged)
			if bit%7 == 0 {
				g.refused(replicate.FetchBits, append(header, make([]byte, 16)...), nil, 0, forged)
			}
		}
		for _, n := range []int{1, 8, replicate.CapabilitySize - 1} {
			g.refused(replicate.AdmitBits, user(&c)[:n], nil, 100, forged)
		}
		g.refused(replicate.FetchBits, user(&c, 100), nil, 0, forged)
		c.MAC = c.Sign(&replicate.Key{key[0], key[1] ^ 1})
		g.refused(replicate.AdmitBits, user(&c), data, 100, forged)
	})
}

// What a capability says is kept to: epoch, process, right, and range, at its borders too.
func TestCapability(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		g, good := guarded(t, wasm)
		for _, bad := range []struct {
			name    string
			spoil   func(c *replicate.Capability)
			expired bool
		}{
			{"an epoch ago", func(c *replicate.Capability) { c.Expires = 6 }, true},
			{"another node", func(c *replicate.Capability) { c.NID = 98 }, false},
			{"another process", func(c *replicate.Capability) { c.PID = 1 }, false},
			{"no right", func(c *replicate.Capability) { c.Rights = 4 }, false},
			{"beyond the memory", func(c *replicate.Capability) { c.High = memory - 99 }, false},
			{"begins later", func(c *replicate.Capability) { c.Low = 101 }, false},
			{"ends before", func(c *replicate.Capability) { c.High = 102 }, false},
			{"ends before it begins", func(c *replicate.Capability) { c.Low, c.High = 100, 50 }, false},
		} {
			c := good
			bad.spoil(&c)
			c.MAC = c.Sign(&key)
			more := func(c *replicate.Counts) {
				if bad.expired {
					c.Expired++
				} else {
					c.Outside++
				}
			}
			g.refused(replicate.AdmitBits, user(&c), []byte{1, 2, 3}, 100, more)
			g.refused(replicate.FetchBits, user(&c, 100, 3), nil, 0, more)
		}
		outside := func(c *replicate.Counts) { c.Outside++ }
		for _, r := range [][2]uint64{{99, 1}, {4999, 2}, {5001, 0}, {100, 1 << 63}, {1<<64 - 1, 2}} {
			g.refused(replicate.FetchBits, user(&good, r[0], r[1]), nil, 0, outside)
		}
		only := good
		only.Rights = replicate.MayRead
		only.MAC = only.Sign(&key)
		g.refused(replicate.AdmitBits, user(&only), []byte{1}, 100, outside)
		only.Rights = replicate.MayWrite
		only.MAC = only.Sign(&key)
		g.refused(replicate.FetchBits, user(&only, 100, 1), nil, 0, outside)

		data := slices.Repeat([]byte{9}, 4900)
		require.Equal(t, spin.ProcessData, g.ask(replicate.AdmitBits, user(&good), data[:300], 4700))
		require.Equal(t, spin.ProcessData, g.ask(replicate.AdmitBits, user(&good), data[:1], 100))
		g.drain()
		require.Len(t, g.replies, 2)
		for _, s := range g.servers {
			want := make([]byte, memory)
			copy(want[4700:], data[:300])
			want[100] = 9
			require.True(t, slices.Equal(want, s.Host))
		}
		require.Equal(t, spin.Drop, g.ask(replicate.FetchBits, user(&good, 4699, 301), nil, 0))
		sent := g.servers[0].Named("put_from_host")
		require.Len(t, sent, 1)
		require.Equal(t, append([]byte{0}, data[:300]...), sent[0].Data)
		require.Equal(t, [4]uint64{99, 2, reply, replicate.DataBits | 1}, [4]uint64{uint64(sent[0].Op.TargetNID), uint64(sent[0].Op.TargetPID), uint64(sent[0].Op.PTIndex), sent[0].Op.MatchBits})
	})
}

// Who asks in the name of another is refused, and the other hears nothing of it.
func TestRefusalGoesToWhoHasAsked(t *testing.T) {
	g, c := guarded(t, false)
	out := g.deliver(0, spintest.Message{
		Data: append(user(&c), 1), UserHdrLen: replicate.CapabilitySize, Offset: 100, SourceNID: 98, SourcePID: 2, MatchBits: 3<<replicate.LiveShift | replicate.AdmitBits,
		HdrData: uint64(raid5.NewTicket(99, 2, 1, 1)),
	})
	require.Equal(t, spin.Drop, out.Header)
	require.Empty(t, g.servers[0].Puts())
	require.EqualValues(t, 1, g.servers[0].state.Counts.Outside)
}

// sipOf is SipHash-2-4 as its paper writes it, of any bytes.
func sipOf(k replicate.Key, m []byte) uint64 {
	v0, v1, v2, v3 := k[0]^0x736f6d6570736575, k[1]^0x646f72616e646f6d, k[0]^0x6c7967656e657261, k[1]^0x7465646279746573
	round := func() {
		v0 += v1
		v2 += v3
		v1 = bits.RotateLeft64(v1, 13)
		v3 = bits.RotateLeft64(v3, 16)
		v1 ^= v0
		v3 ^= v2
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v1
		v0 += v3
		v1 = bits.RotateLeft64(v1, 17)
		v3 = bits.RotateLeft64(v3, 21)
		v1 ^= v2
		v3 ^= v0
		v2 = bits.RotateLeft64(v2, 32)
	}
	last := uint64(len(m)) << 56
	for ; len(m) >= 8; m = m[8:] {
		w := binary.LittleEndian.Uint64(m)
		v3 ^= w
		round()
		round()
		v0 ^= w
	}
	for i, b := range m {
		last |= uint64(b) << (8 * i)
	}
	v3 ^= last
	round()
	round()
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		round()
	}
	return v0 ^ v1 ^ v2 ^ v3
}

// The signature is SipHash-2-4: the paper's example, of 15 bytes, by a version
// of any length, and capabilities by that.
func TestSipHash(t *testing.T) {
	var message []byte
	for i := range 15 {
		message = append(message, byte(i))
	}
	require.Equal(t, uint64(0xa129ca6149be45e5), sipOf(key, message))
	g := newGroup(t, 1, false, false)
	for range 1000 {
		c := replicate.Capability{Low: g.rng.Uint64(), High: g.rng.Uint64(), NID: g.rng.Uint32(), PID: g.rng.Uint32(), Rights: g.rng.Uint32(), Expires: g.rng.Uint32()}
		k := replicate.Key{g.rng.Uint64(), g.rng.Uint64()}
		require.Equal(t, sipOf(k, user(&c)[:32]), c.Sign(&k))
	}
}
