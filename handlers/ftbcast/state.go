// Package ftbcast is a broadcast that arrives although nodes have failed, on
// the network interface (sPIN'17, "Further Use-Cases and Examples"). Every
// process passes received packets on to its neighbours in a binomial graph
// (Angskun, Bosilca, Dongarra, "Binomial Graph: A Scalable and Fault-Tolerant
// Logical Network Topology", ISPA'07), and only the first copy of each packet
// is delivered. README.md describes the guarantees.
//
// Ranks are node ids.
//
// A host program uses it so:
//
//	library, err := ftbcast.Load(cluster)                     // once for each cluster
//	b, err := library.Join(p, ftbcast.Options{PT: 4, MatchBits: 1, Root: 0, Memory: v})
//	err = b.Send()                                           // at the root
//	err = b.Wait()                                           // at the others: it is in v
//
// All ranks join a broadcast before the root sends it.
package ftbcast

import (
	"slices"
	"structs"
)

// MaxNeighbours is the largest number of a rank's neighbours: two for each of
// the distances 1, 2, 4, … below the largest number of ranks.
const MaxNeighbours = 62

// MaxRanks is the largest number of ranks in a broadcast.
const MaxRanks = 1 << 31

// State is the HPU memory of an entry for one broadcast. Behind it lies a bit
// for each packet that has been delivered, in words of 64.
type State struct {
	_         structs.HostLayout
	MatchBits uint64 // of the copies
	Size      uint64 `spin:"unit=bytes"`   // of the broadcast
	PT        uint32 `spin:"max=255"`      // portal table index of the copies
	Rank      uint32 `spin:"default=rank"` // of this node
	// of the broadcast, in each copy but the last
	Packet  uint32 `spin:"unit=bytes default=mtu min=1"`
	Packets uint32 // of the broadcast
	// 1: the transport sends lost packets again; 0: copies are datagrams
	Reliable uint32 `spin:"max=1"`

	Neighbours uint32 `spin:"max=62"` // to which copies go
	// the first neighbours: nobody is nearer to them, so they get packets as
	// they come; the others get the broadcast when it is complete
	Children  uint32                `spin:"max=62"`
	Neighbour [MaxNeighbours]uint32 // ranks
	Padding   uint32                `spin:"max=0"` // 0
	// delivered packets; for a broadcast without payload, 1 when it has come
	Got uint64
}

// Words returns the number of words of bits behind the state.
func (s *State) Words() uint64 { return (uint64(s.Packets) + 63) / 64 }

// Graph returns the distances of a rank's neighbours among this many ranks,
// from the smallest: the powers of two below the number of ranks, in both
// directions around. No rank is its own neighbour, and none is a neighbour
// twice. The graph stays connected when fewer ranks fail than a rank has
// neighbours (ISPA'07, §3).
func Graph(ranks uint32) (distances []uint32) {
	for d := uint32(1); d < ranks && d != 0; d <<= 1 {
		distances = append(distances, d, ranks-d)
	}
	slices.Sort(distances)
	return slices.Compact(distances)
}

// NeighboursOf returns the ranks to which a rank passes a broadcast of root on:
// all its neighbours but the root. The first of them, children, are its
// children in the binomial tree of library bcast, so without failures a
// broadcast takes the way of that tree.
func NeighboursOf(rank, root, ranks uint32) (list []uint32, children int) {
	relative := (rank + ranks - root) % ranks
	add := func(distance uint32) {
		to := (uint64(rank) + uint64(distance)) % uint64(ranks)
		if n := uint32(to); n != root && n != rank && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	first := uint32(1) << 31
	if relative > 0 {
		first = relative & -relative >> 1
	}
	for d := first; d > 0; d >>= 1 {
		if d < ranks && relative+d < ranks {
			add(d)
		}
	}
	children = len(list)
	graph := Graph(ranks)
	slices.Reverse(graph)
	for _, d := range graph {
		add(d)
	}
	return list, children
}
