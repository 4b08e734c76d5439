package collective

import (
	"slices"

	"github.com/spinsim/spinsim/goal"
)

// algorithm makes the steps of members of collectives of some kinds.
type algorithm struct {
	name    string
	doc     string
	threads bool // it has channels, chunks and slices
	by      map[goal.CollectiveKind]func(*member)
}

var algorithms = []algorithm{
	{"ring", "NCCL's ring, or a chain from or to the root", true, map[goal.CollectiveKind]func(*member){
		goal.AllReduce: ringAllReduce, goal.AllGather: ringAllGather, goal.ReduceScatter: ringReduceScatter,
		goal.Broadcast: ringBroadcast, goal.Reduce: ringReduce,
	}},
	{"tree", "NCCL's binary tree", true, map[goal.CollectiveKind]func(*member){goal.AllReduce: treeAllReduce}},
	{"double-tree", "NCCL's two binary trees", true, map[goal.CollectiveKind]func(*member){goal.AllReduce: doubleTreeAllReduce}},
	{"pat", "NCCL's parallel trees", true, map[goal.CollectiveKind]func(*member){
		goal.AllGather: patAllGather, goal.ReduceScatter: patReduceScatter,
	}},
	{"doubling", "recursive doubling", false, map[goal.CollectiveKind]func(*member){goal.AllReduce: doublingAllReduce}},
	{"halving-doubling", "recursive halving, then doubling", false, map[goal.CollectiveKind]func(*member){goal.AllReduce: halvingAllReduce}},
	{"binomial", "binomial trees", false, map[goal.CollectiveKind]func(*member){
		goal.AllReduce: binomialAllReduce, goal.Broadcast: binomialBroadcast, goal.Reduce: binomialReduce,
	}},
	{"linear", "every member sends to every other at once", false, map[goal.CollectiveKind]func(*member){goal.AllToAll: linearAllToAll}},
	{"pairwise", "one exchange after the other", false, map[goal.CollectiveKind]func(*member){goal.AllToAll: pairwiseAllToAll}},
	{"dissemination", "empty messages at doubling distances", false, map[goal.CollectiveKind]func(*member){goal.Barrier: disseminationBarrier}},
}

// Names lists the algorithms.
func Names() (names []string) {
	for i := range algorithms {
		names = append(names, algorithms[i].name)
	}
	return names
}

// Doc says in part of a line what an algorithm is.
func Doc(name string) string { return find(name).doc }

// For lists the algorithms of a kind.
func For(kind goal.CollectiveKind) (names []string) {
	for i := range algorithms {
		if algorithms[i].by[kind] != nil {
			names = append(names, algorithms[i].name)
		}
	}
	return names
}

// Kinds lists the kinds that have an algorithm.
func Kinds() []goal.CollectiveKind {
	return slices.DeleteFunc(goal.CollectiveKinds(), func(k goal.CollectiveKind) bool { return For(k) == nil })
}

func find(name string) *algorithm {
	if i := slices.Index(Names(), name); i >= 0 {
		return &algorithms[i]
	}
	return nil
}
