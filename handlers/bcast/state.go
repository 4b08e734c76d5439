// Package bcast forwards a broadcast down a binomial tree from the network
// interface (sPIN'17 §4.4.3). Ranks are node ids. The tree is relative to the
// root, and the child with the largest subtree is served first.
//
// Two variants differ in when they pass a message on:
//   - stream: each payload handler puts its packet to every child from the
//     device and deposits it in host memory meanwhile. At a child each packet
//     is then a message of its own, at its place in the entry: the entry must
//     stay linked, and a program that waits counts bytes.
//   - store: a message of at most MaxPayload bytes, one packet, is passed on as
//     in stream. For a larger one the payload handlers deposit, and the
//     completion handler puts the whole message to every child from host
//     memory.
//
// In both, the completion handler passes on a message without payload. All
// ranks use entries of the same shape: an offset in one is the same offset in
// all. The initiator's header data is passed on. Messages have no user header.
package bcast

import (
	"math/bits"
	"structs"
)

// State is the HPU memory of the entry at one rank. The handlers do not change it.
type State struct {
	_         structs.HostLayout
	MatchBits uint64 // of the forwarded messages
	PT        uint32 // portal table index of the forwarded messages
	Rank      uint32 `spin:"default=rank"`                  // of this node
	Ranks     uint32 `spin:"default=ranks min=1 max=1<<31"` // in the broadcast
	Root      uint32 // rank where the broadcast starts, below ranks
	MD        uint32 // memory descriptor for the events of forwarded messages; 0: none
	// The largest message that store puts from the device: one packet, bytes.
	MaxPayload uint32 `spin:"unit=bytes default=mtu"`
}

// FirstDistance returns the distance of this rank's first child. Each further
// child is at half the distance of the previous one, while Child finds one. 0:
// the rank is a leaf for any number of ranks.
func (s *State) FirstDistance() uint32 {
	relative := s.relative()
	if relative == 0 {
		return 1 << bits.Len32(s.Ranks-1) >> 1
	}
	return relative & -relative >> 1
}

// Child returns the rank of the child at a distance, if there is one.
func (s *State) Child(distance uint32) (rank uint32, found bool) {
	child := s.relative() + distance
	if child >= s.Ranks {
		return 0, false
	}
	if child += s.Root; child >= s.Ranks {
		child -= s.Ranks
	}
	return child, true
}

// relative returns this rank counted from the root.
func (s *State) relative() uint32 {
	if s.Rank >= s.Root {
		return s.Rank - s.Root
	}
	return s.Rank + s.Ranks - s.Root
}
