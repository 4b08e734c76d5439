// An allreduce on the NICs, by recursive doubling: a host puts its vector to its
// own NIC; at level k the ranks whose numbers differ in bit k exchange their sums.
//
//spin:library own-allreduce 1.0
//spin:needs memory=2*8*4*(8+2*mtu) spaces=entry entry_options=op_put
package main

import (
	"structs"

	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o own-allreduce.wasm .

const levels, packets = 8, 4 // at most 256 ranks, and 4 packets of a vector

// State begins the HPU memory. Behind it are slots: for two rounds, as no rank is
// further ahead, for each level and packet. A slot has a tag, and room for two sums.
type State struct {
	_     structs.HostLayout
	Rank  uint32 `spin:"default=rank"`
	Ranks uint32 `spin:"default=ranks"` // a power of two
	MTU   uint32 `spin:"unit=bytes default=mtu"`
	PT    uint32 // portal table entry of all ranks
}

//go:wasmexport payload
func payload(p *spin.Payload, s *State) spin.Code {
	n, at, round, level := p.Length, uint32(p.HostOffset), uint32(p.HdrData>>8), uint32(p.HdrData&0xff)
	ok := s.Ranks&(s.Ranks-1) == 0 && s.Ranks <= 1<<levels && p.HostOffset < uint64(packets*s.MTU) && at%s.MTU+n%8 == 0
	for from := p.SourceNID; ok && 1<<level < s.Ranks; level, from = level+1, s.Rank {
		if from == s.Rank && spin.PutFromDevice(&spin.Op{
			TargetNID: from ^ 1<<level, PTIndex: s.PT, MatchBits: p.MatchBits, HdrData: uint64(round<<8 | level),
			Local: p.Base, Length: uint64(n), RemoteOffset: uint64(at),
		}).Failed() {
			return spin.Fail
		}
		slot := spin.After(s) + spin.Ptr(((round%2*levels+level)*packets+at/s.MTU)*(8+2*s.MTU))
		side, tag := spin.Ptr(from>>level&1), uint64(round)<<32|uint64(n)<<levels|uint64(from)
		copy((slot + 8 + side*spin.Ptr(s.MTU)).Bytes(n), p.Base.Bytes(n))
		first := spin.FAdd(spin.At[uint64](slot), tag) // atomic: one of the two is first
		if first == 0 {
			return spin.Drop // the second goes on
		}
		ok = first^tag == 1<<level // the partner's, of the same round and length
		*spin.At[uint64](slot) = 0
		sum, other := spin.View[uint64](p.Base.Bytes(n)), (slot + 8 + (1-side)*spin.Ptr(s.MTU)).Bytes(n)
		for i, x := range spin.View[uint64](other) {
			sum[i] += x
		}
	}
	if !ok || spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed() {
		return spin.Fail
	}
	return spin.Success
}

func main() {}
