package mpitrace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notes count what a schedule does not say as its trace does.
type notes struct {
	others   map[string]int // calls by name
	alone    int
	backward int
	first    int
	left     int
	assumed  int
	cut      int

	// Of dumpi.
	anyone    int
	cancelled int
	reordered int
	uneven    int
	ignored   int
	threads   int
}

// maxOthers bounds the names that are listed: a file can have any number.
const maxOthers = 64

// other notes a call that is a part of a computation.
func (n *notes) other(name string) {
	const longest = 40
	if _, known := n.others[name]; (known || len(n.others) < maxOthers) && len(name) <= longest {
		n.others[name]++
	}
}

// lines are the notes in sentences.
func (n *notes) lines() (list []string) {
	for _, c := range []struct {
		n    int
		text string
	}{
		{n.alone, "collectives of a communicator of one rank send no messages"},
		{n.backward, "calls begin before the one before ends: there is no computation between them"},
		{n.first, "calls of MPI_Waitany and MPI_Waitsome wait for the first request under way: the trace does not tell which was done"},
		{n.left, "requests are never waited for: MPI_Test and the like are computations"},
		{n.cut, "files end without MPI_Finalize"},
		{n.assumed, "handles of communicators that no call made are taken for MPI_COMM_WORLD: they have its ranks"},
		{n.anyone, "receives from -1 have no status: they are from any rank, though -1 is MPI_PROC_NULL of MPICH, too"},
		{n.cancelled, "receives are left out, since they were cancelled"},
		{n.reordered, "calls of MPI_Cart_create and MPI_Graph_create could give ranks another order: they keep it"},
		{n.uneven, "calls of MPI_Reduce_scatter have different counts: each member gets as much of their sum"},
		{n.ignored, "calls are not in the trace, as its end says: within others, or while it was switched off"},
		{n.threads, "threads call beside the first: what they call is in the order of the file"},
	} {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	if names := slices.Sorted(maps.Keys(n.others)); len(names) > 0 {
		for i, name := range names {
			names[i] = fmt.Sprintf("%d %s", n.others[name], name)
		}
		more := ""
		if len(names) >= maxOthers {
			more = " and more"
		}
		list = append(list, "calls whose time is a computation: "+strings.Join(names, ", ")+more)
	}
	return list
}
