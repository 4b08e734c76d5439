package mpitrace

import (
	"strings"

	"github.com/spinsim/spinsim/goal"
)

// layout is how the arguments of a call are read.
type layout struct {
	least int // fields behind the name
	read  func(l *line, c *call)
}

var calls = layouts()

func layouts() map[string]layout {
	list := map[string]layout{
		"MPI_Init":        {1, func(_ *line, c *call) { c.verb, c.from = begin, c.to }},
		"MPI_Init_thread": {1, func(_ *line, c *call) { c.verb, c.from = begin, c.to }},
		"MPI_Finalize":    {1, func(_ *line, c *call) { c.verb, c.to = end, c.from }},
		"MPI_Wait":        {4, func(l *line, c *call) { c.verb, c.request, c.count = wait, l.address(1), 1 }},
		"MPI_Waitall":     {5, func(l *line, c *call) { c.verb, c.count, c.request = wait, l.int(1), l.address(2) }},
		"MPI_Waitany":     {6, func(l *line, c *call) { c.verb, c.count, c.request = waitFirst, l.int(1), l.address(2) }},
		"MPI_Waitsome":    {7, func(l *line, c *call) { c.verb, c.count, c.request = waitFirst, l.int(1), l.address(2) }},
		"MPI_Start":       {3, func(l *line, c *call) { c.verb, c.request, c.count = start, l.address(1), 1 }},
		"MPI_Startall":    {4, func(l *line, c *call) { c.verb, c.count, c.request = start, l.int(1), l.address(2) }},
		"MPI_Recv":        {9, receives(recv, true)},
		"MPI_Irecv":       {9, receives(recv, false)},
		"MPI_Recv_init":   {9, receives(recvInit, false)},
		"MPI_Sendrecv": {14, func(l *line, c *call) {
			c.verb, c.blocks, c.handle = sendrecv, true, l.comm(11)
			c.out, c.in = l.message(4, l.bytes(2), false), l.message(9, l.bytes(7), true)
		}},
		"MPI_Sendrecv_replace": {10, func(l *line, c *call) {
			c.verb, c.blocks, c.handle = sendrecv, true, l.comm(8)
			c.out, c.in = l.message(4, l.bytes(2), false), l.message(6, l.bytes(2), true)
		}},
		"MPI_Comm_split": {6, func(l *line, c *call) {
			c.verb, c.handle, c.part.split, c.part.color, c.part.key = create, l.comm(1), true, l.int(2), l.int(3)
		}},
	}
	for _, name := range []string{"Send", "Ssend", "Bsend", "Rsend"} {
		list["MPI_"+name] = layout{8, sends(send, true)}
		list["MPI_I"+strings.ToLower(name)] = layout{9, sends(send, false)}
		list["MPI_"+name+"_init"] = layout{9, sends(sendInit, false)}
	}
	for _, name := range []string{"Comm_dup", "Comm_dup_with_info", "Comm_idup", "Comm_create", "Comm_split_type", "Cart_create", "Cart_sub", "Graph_create", "Dist_graph_create", "Dist_graph_create_adjacent"} {
		list["MPI_"+name] = layout{3, func(l *line, c *call) { c.verb, c.handle = create, l.comm(1) }}
	}
	for name, of := range collectives {
		list["MPI_"+name] = layout{of.least, of.blocking()}
		list["MPI_I"+strings.ToLower(name)] = layout{of.least + 1, of.nonblocking()}
	}
	return list
}

func sends(v verb, blocks bool) func(l *line, c *call) {
	return func(l *line, c *call) {
		c.verb, c.blocks, c.handle = v, blocks, l.comm(6)
		if c.out = l.message(4, l.bytes(2), false); !blocks {
			c.request = l.address(7)
		}
	}
}

func receives(v verb, blocks bool) func(l *line, c *call) {
	return func(l *line, c *call) {
		c.verb, c.blocks, c.handle = v, blocks, l.comm(6)
		if c.in = l.message(4, l.bytes(2), true); !blocks {
			c.request = l.address(7)
		}
	}
}

// shape is how the arguments of a collective are read.
type shape struct {
	least int
	kind  goal.CollectiveKind
	read  func(l *line, c *call)
}

func (s shape) blocking() func(l *line, c *call) {
	return func(l *line, c *call) {
		c.verb, c.blocks, c.part.kind = collect, true, s.kind
		s.read(l, c)
	}
}

func (s shape) nonblocking() func(l *line, c *call) {
	return func(l *line, c *call) {
		c.verb, c.part.kind, c.request = collect, s.kind, l.address(len(l.fields)-2)
		s.read(l, c)
	}
}

// collectives by their names without MPI_ and I.
var collectives = map[string]shape{
	"Barrier": {3, goal.Barrier, func(l *line, c *call) { c.handle = l.comm(1) }},
	"Bcast": {7, goal.Broadcast, func(l *line, c *call) {
		c.handle, c.part.bytes = l.comm(5), l.bytes(2)
		l.root(4, c)
	}},
	"Reduce": {9, goal.Reduce, func(l *line, c *call) {
		c.handle, c.part.bytes = l.comm(7), l.bytes(3)
		l.root(6, c)
	}},
	"Allreduce": {8, goal.AllReduce, func(l *line, c *call) { c.handle, c.part.bytes = l.comm(6), l.bytes(3) }},
	// In place only the receive counts.
	"Allgather": {9, goal.AllGather, func(l *line, c *call) { c.handle, c.part.bytes = l.comm(7), l.bytes(5) }},
	"Alltoall": {9, goal.AllToAll, func(l *line, c *call) {
		c.handle = l.comm(7)
		c.part.bytes = l.bytes(5) * uint64(c.handle.size)
	}},
	"Reduce_scatter_block": {8, goal.ReduceScatter, func(l *line, c *call) {
		c.handle = l.comm(6)
		c.part.bytes = l.bytes(3) * uint64(c.handle.size)
	}},
	"Gather": {10, goal.Gather, func(l *line, c *call) {
		c.handle = l.comm(8)
		if l.root(7, c); c.handle.rank == c.part.root {
			c.part.bytes = l.bytes(5)
		} else {
			c.part.bytes = l.bytes(2)
		}
	}},
	"Scatter": {10, goal.Scatter, func(l *line, c *call) {
		c.handle = l.comm(8)
		if l.root(7, c); c.handle.rank == c.part.root {
			c.part.bytes = l.bytes(2)
		} else {
			c.part.bytes = l.bytes(5)
		}
	}},
	"Gatherv": {13, goal.Gather, func(l *line, c *call) {
		c.handle = l.comm(11)
		if l.root(10, c); c.handle.rank == c.part.root {
			c.part.back = l.blocks(6, l.typeSize(9), c.handle.size)
		} else {
			c.part.bytes = l.bytes(2)
		}
	}},
	"Scatterv": {13, goal.Scatter, func(l *line, c *call) {
		c.handle = l.comm(11)
		if l.root(10, c); c.handle.rank == c.part.root {
			c.part.counts = l.blocks(3, l.typeSize(6), c.handle.size)
		} else {
			c.part.bytes = l.bytes(8)
		}
	}},
	"Allgatherv": {12, goal.AllGather, func(l *line, c *call) {
		c.handle = l.comm(10)
		if c.part.back = l.blocks(6, l.typeSize(9), c.handle.size); l.err == nil {
			c.part.bytes = c.part.back[c.handle.rank]
		}
	}},
	"Alltoallv": {15, goal.AllToAll, func(l *line, c *call) {
		c.handle = l.comm(13)
		c.part.counts = l.blocks(3, l.typeSize(6), c.handle.size)
		c.part.back = l.blocks(9, l.typeSize(12), c.handle.size)
	}},
}
