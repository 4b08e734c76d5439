package mpi

import (
	"fmt"
	"slices"
)

// group is one of Options.Groups. All its ranks share it.
type group struct {
	number  uint16
	members []int32
	numbers []int32 // see Comm
}

// makeGroups makes the groups of the options. Each has the lowest number that no
// other group of one of its ranks has: without a common rank two may share one, as
// communicators that ranks make later.
func (w *World) makeGroups() error {
	taken := make([]map[uint16]bool, w.Size())
	w.of = make([][]int, w.Size())
	for i, ranks := range w.o.Groups {
		g := group{number: 1, numbers: slices.Repeat([]int32{Undefined}, w.Size())}
		for k, rank := range ranks {
			if rank < 0 || rank >= w.Size() || g.numbers[rank] != Undefined {
				return fmt.Errorf("mpi: group %d: rank %d, expected each of its ranks once, 0 to %d", i, rank, w.Size()-1)
			}
			g.members, g.numbers[rank] = append(g.members, int32(rank)), int32(k)
		}
		if len(ranks) == 0 {
			return fmt.Errorf("mpi: group %d: no ranks", i)
		}
		for slices.ContainsFunc(ranks, func(rank int) bool { return taken[rank][g.number] }) {
			g.number++
		}
		if g.number >= maxComms {
			return fmt.Errorf("mpi: group %d: one of its ranks has %d others, expected fewer than %d", i, maxComms-1, maxComms-1)
		}
		for _, rank := range ranks {
			if taken[rank] == nil {
				taken[rank] = make(map[uint16]bool)
			}
			taken[rank][g.number] = true
			w.of[rank] = append(w.of[rank], i)
		}
		w.groups = append(w.groups, g)
	}
	return nil
}

// openGroups makes the communicators of a rank that Options.Groups asks for.
func openGroups(r *Rank) error {
	for _, i := range r.world.of[r.rank] {
		g := &r.world.groups[i]
		c := &Comm{
			r: r, id: g.number, name: fmt.Sprintf("group%d", i), planned: i + 1,
			rank: int(g.numbers[r.rank]), members: g.members, numbers: g.numbers,
		}
		r.contexts[c.id/64] &^= 1 << (c.id % 64)
		r.comms = append(r.comms, c)
		if err := c.openModule(false); err != nil {
			return err
		}
	}
	return nil
}

// GroupOf returns a rank's communicator of one of Options.Groups; nil: the rank is
// no member, or has freed it.
func GroupOf(r *Rank, group int) *Comm {
	k := slices.IndexFunc(r.comms, func(c *Comm) bool { return c.planned == group+1 })
	if k < 0 {
		return nil
	}
	return r.comms[k]
}
