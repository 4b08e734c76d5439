package main

import (
	"math/bits"
	"unsafe"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/spin"
)

// Several parity servers keep a Reed-Solomon code (raid5.Code). Data servers
// multiply differences, and send them to each parity server, which applies them
// like a single one. In a chain each server multiplies its bytes by a factor
// that depends on the servers that take part.

// encode is write with several parity servers.
//
//go:wasmexport encode
func encode(p *spin.Payload, s *raid5.State) spin.Code {
	if p.Length > s.BufferSize {
		return spin.Fail
	}
	i, buffer := acquire(s, p.Length)
	lock(s, p.HostOffset, p.Length)
	failed := spin.DMAFromHost(spin.MEHostMem, p.HostOffset, buffer).Failed() ||
		spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed()
	unlock(s, p.HostOffset, p.Length)
	told := s.Code.ParityServers() &^ uint32(p.MatchBits>>raid5.ChainShift)
	sent := spin.OK
	switch {
	case failed:
		spin.FAdd(&s.Counts.Failed, 1)
		for range max(bits.OnesCount32(told), 1) { // as many as would have got the difference
			sent = min(sent, settle(s, raid5.Ticket(p.HdrData), true))
		}
	case told == 0:
		spin.FAdd(&s.Counts.Written, 1)
		sent = settle(s, raid5.Ticket(p.HdrData), false)
	default:
		spin.FAdd(&s.Counts.Written, 1)
		xor(buffer, p.Bytes())
		sent = differ(s, p, buffer, i, told)
	}
	spin.Release(&s.Free, i)
	if failed || sent.Failed() {
		return spin.Fail
	}
	return spin.Success
}

// differ sends parity servers a difference, times the coefficient of each. It
// multiplies the buffer from one to the next.
func differ(s *raid5.State, p *spin.Payload, buffer []byte, i, told uint32) (sent spin.Result) {
	op := spin.Op{
		Local: spin.Addr(buffer), Length: uint64(p.Length), PTIndex: s.PT, MatchBits: raid5.DeltaBits, RemoteOffset: p.HostOffset, HdrData: p.HdrData,
	}
	for j := uint32(0); told>>j != 0; j++ {
		multiply(buffer, s.Steps[j%raid5.MaxParity], table(s, i))
		if told>>j&1 == 0 {
			continue
		}
		server := &s.Servers[(s.Code.Data+j)%raid5.MaxServers]
		op.TargetNID, op.TargetPID = server.NID, server.PID
		sent = min(sent, spin.PutFromDevice(&op))
	}
	return sent
}

// collect is gather with several parity servers.
//
//go:wasmexport collect
func collect(h *spin.Header, s *raid5.State) spin.Code {
	if h.UserHdrLen < raid5.RangeSize {
		return spin.Fail
	}
	r := spin.At[raid5.Range](h.UserHdr)
	op := spin.Op{Space: spin.MEHostMem, Offset: r.Offset, Length: r.Length, RemoteOffset: r.Offset, HdrData: h.HdrData}
	others(s, &op, h.MatchBits)
	for {
		r := spin.PutFromHost(&op)
		if r != spin.NoSpace {
			if r.Failed() {
				return spin.Fail
			}
			return spin.Drop
		}
		spin.Yield()
	}
}

// blend is fold with several parity servers. The first server has sent its
// bytes unchanged; the second one multiplies them, too.
//
//go:wasmexport blend
func blend(p *spin.Payload, s *raid5.State) spin.Code {
	if p.Length > s.BufferSize {
		return spin.Fail
	}
	i, buffer := acquire(s, p.Length)
	r := spin.DMAFromHost(spin.MEHostMem, p.HostOffset, buffer)
	if !r.Failed() {
		set, lost := uint32(p.MatchBits>>raid5.ChainShift), uint32(p.MatchBits>>raid5.LostShift)
		multiply(buffer, s.Code.Coefficient(set, lost, s.Index), table(s, i))
		if first := uint32(bits.Len32(set&-set) - 1); set&^(1<<first)&(1<<s.Index-1) == 0 {
			multiply(p.Bytes(), s.Code.Coefficient(set, lost, first), table(s, i))
		}
		xor(buffer, p.Bytes())
		op := spin.Op{Local: spin.Addr(buffer), Length: uint64(p.Length), RemoteOffset: p.HostOffset, HdrData: p.HdrData}
		others(s, &op, p.MatchBits)
		r = spin.PutFromDevice(&op)
	}
	spin.Release(&s.Free, i)
	if r.Failed() {
		return spin.Fail
	}
	spin.FAdd(&s.Counts.Folded, 1)
	return spin.Success
}

// others is next with several parity servers: match bits list the servers that
// take part.
func others(s *raid5.State, op *spin.Op, match uint64) {
	rest := uint32(match>>raid5.ChainShift) & (^uint32(1) << s.Index)
	if rest == 0 {
		next(s, op, match>>raid5.LastShift<<raid5.LastShift)
		return
	}
	server := &s.Servers[bits.TrailingZeros32(rest)]
	op.TargetNID, op.TargetPID, op.PTIndex, op.MatchBits = server.NID, server.PID, s.PT, match&^raid5.KindMask|raid5.BlendBits
}

// table returns the place for products of the handler with a buffer.
func table(s *raid5.State, i uint32) *[raid5.TableSize / 4]uint32 {
	return spin.At[[raid5.TableSize / 4]uint32](locks(s) + raid5.Locks*raid5.LockSize + spin.Ptr(i*raid5.TableSize))
}

// multiply replaces bytes by their products with c in GF(256). It first makes a
// table of the products of all bytes, four at a time. README.md compares this
// with other methods.
func multiply(to []byte, c uint8, products *[raid5.TableSize / 4]uint32) {
	if c == 1 {
		return
	}
	two := raid5.Double(c)
	products[0] = uint32(c)<<8 | uint32(two)<<16 | uint32(c^two)<<24
	for n, k := 1, raid5.Double(two); n < len(products); n, k = 2*n, raid5.Double(k) {
		for i := range n {
			products[n+i] = products[i] ^ uint32(k)*0x01010101
		}
	}
	t := (*[raid5.TableSize]uint8)(unsafe.Pointer(products))
	a, n := unsafe.Pointer(unsafe.SliceData(to)), len(to)
	for ; n > 16; n -= 16 { // no pointer gets behind the bytes
		words := (*[4]uint32)(a)
		words[0], words[1] = product(t, words[0]), product(t, words[1])
		words[2], words[3] = product(t, words[2]), product(t, words[3])
		a = unsafe.Add(a, 16)
	}
	to = to[len(to)-n:]
	for i, x := range to {
		to[i] = t[x]
	}
}

// product multiplies four bytes.
func product(t *[raid5.TableSize]uint8, x uint32) uint32 {
	return uint32(t[x&255]) | uint32(t[x>>8&255])<<8 | uint32(t[x>>16&255])<<16 | uint32(t[x>>24])<<24
}
