package nodes

import (
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
)

// interfaces are the NICs of the ranks of a schedule. A host has one for each
// nic index of the schedule. A rank has a program at each of them, which sends
// and receives there: its messages take the same NIC at both ends, as in the
// endpoint model.
type interfaces struct {
	list  []uint8   // the indices, ascending
	at    [][]uint8 // of each rank and operation, the place in the list; nil: one NIC
	ranks int
}

// oneInterface is enough for a schedule of which no rank uses several, whatever
// the indices.
var oneInterface = []uint8{0}

// SeveralNICs reports whether a rank uses several nic indices.
func SeveralNICs(s *goal.Schedule) bool { return len(nics(s)) > 1 }

// nics returns the nic indices of a schedule, ascending.
func nics(s *goal.Schedule) []uint8 {
	if s.MaxNIC() == 0 {
		return oneInterface
	}
	var all [1 << 8]bool
	several := false
	for _, ops := range s.All() {
		first := none
		for i := range ops.Len() {
			switch op := ops.Op(i); {
			case op.Kind == goal.Calc:
			case first == none:
				first, all[op.NIC] = int(op.NIC), true
			case first != int(op.NIC):
				several, all[op.NIC] = true, true
			}
		}
	}
	if !several {
		return oneInterface
	}
	return trues(&all)
}

// trues returns the indices that are set, ascending.
func trues(all *[1 << 8]bool) (list []uint8) {
	for index, is := range all {
		if is {
			list = append(list, uint8(index))
		}
	}
	return list
}

// findInterfaces finds the NIC of each operation. A receive waits where its message
// comes in the endpoint model, whatever it names.
func findInterfaces(s *goal.Schedule, o mpi.Options) (*interfaces, error) {
	n := &interfaces{list: nics(s), ranks: s.Ranks()}
	if len(n.list) == 1 {
		return n, inModel(s, o)
	}
	var place [1 << 8]uint8
	for i, index := range n.list {
		place[index] = uint8(i)
	}
	n.at = make([][]uint8, s.Ranks())
	for rank, ops := range s.All() {
		n.at[rank] = make([]uint8, ops.Len())
		for i := range ops.Len() {
			if op := ops.Op(i); op.Kind == goal.Send {
				n.at[rank][i] = place[op.NIC]
			}
		}
	}
	return n, inModel(s, o, goal.WithMatches(func(from, send, to, recv int) { n.at[to][recv] = n.at[from][send] }))
}

// Placed returns the options of the library in a run of a schedule. Rank r of the
// schedule is their rank r, where it computes.
func Placed(s *goal.Schedule, cfg Config) mpi.Options {
	n := interfaces{list: nics(s), ranks: s.Ranks()}
	n.place(&cfg)
	return cfg.MPI
}

// of returns the place of an operation's NIC.
func (n *interfaces) of(rank, i int) int {
	if n.at == nil {
		return 0
	}
	return int(n.at[rank][i])
}

// mpiRank returns the rank of package mpi that stands for a rank at a NIC.
func (n *interfaces) mpiRank(rank, nic int) int { return nic*n.ranks + rank }

// place puts the ranks of package mpi on the nodes of a cluster, each of which is a
// NIC of a host.
func (n *interfaces) place(cfg *Config) {
	o := &cfg.MPI
	hosts := o.Nodes(n.ranks)
	cfg.NICs, cfg.Nodes, o.Ranks = len(n.list), hosts*len(n.list), n.ranks*len(n.list)
	if len(n.list) == 1 {
		return
	}
	places := make([]int, o.Ranks)
	for rank := range n.ranks {
		host, _ := o.Program(rank)
		for nic := range n.list {
			places[n.mpiRank(rank, nic)] = host*len(n.list) + nic
		}
	}
	o.Places = places
}
