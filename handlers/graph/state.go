// Package graph is breadth-first search and shortest paths in a graph that is
// spread over the nodes of a network, by handlers on their network interfaces
// (sPIN'17, "Simple Graph Kernels"). A message carries new distances. A handler
// stores those that are smaller, by compare-and-swap in host memory, and
// handlers continue from there. No host takes part.
//
// Vertex v lives on node v modulo the number of nodes. Its number there is v
// divided by the number of nodes.
//
// # How it works
//
// graph_update carries out the updates of a packet. An update that is not
// better than the label last seen ends there. The others are compare-and-swaps
// in host memory, up to 16 on the bus at once. A vertex that has improved gets
// its bit, and an idle worker is woken.
//
// Workers are messages to self (guest/work.go). A worker takes vertices 64 at a
// time, reads edges and fills a packet for each node. When one is full, or
// nothing is left, it sends all and waits for the acknowledgements. After Turn
// it goes on in a new message to itself, so no handler is long. No wake-up is
// lost: a handler sets the bit and then looks for an idle worker; a worker
// becomes idle and then looks for bits.
//
// Nothing is lost because of missing room. A worker has at most one packet on
// its way to each node. The driver limits workers and packets so that they fill
// half of nic.packet_buffer, and their handlers fit hpu.waiting_handlers. A
// count of packets for each pair of nodes would let a worker go on earlier, but
// costs a word for each pair and worker.
//
// The algorithm of Dijkstra and Scholten (1980) finds the end, because asking
// all nodes in waves would cost messages while they work. A packet that finds a
// node with nothing to do engages it. The node counts busy handlers and
// workers, and packets that are not complete. One word holds the count and the
// node that engaged it. When the node of the root is done, all are; the end
// goes round in a binomial tree.
//
// A host program uses it so:
//
//	library, err := graph.Load(cluster)                                    // once for each cluster
//	m, err := library.Join(p, graph.Options{PT: 4, Graph: g, Root: 17})    // a process of every node
//	err = m.Run()                                                           // in each: the search is over
//	distance, parent := graph.Collect(members)
//
// All join before the search begins, and none waits before it has joined.
package graph

import "structs"

// State is the HPU memory of a node's entries. Behind it lie, at the offsets in
// its fields: copies of labels, one for each vertex; a bit for each vertex that
// waits to be taken; a bit for each word of these bits that is not 0; and the
// workers.
type State struct {
	_ structs.HostLayout
	// The lower half of Deficit is the number of reasons why the node is not
	// done: handlers of updates, workers, and packets that are not known to be
	// complete. The upper 32 bits are the node that engaged it. 0: it is not
	// engaged.
	Deficit uint64
	Idle    uint64 // bit i: worker i has nothing to do
	Pending uint64 // words of waiting vertices that are not 0
	Edges   uint64 `spin:"unit=bytes"` // where edges begin in host memory, behind the vertices

	Local    uint32 // vertices of this node
	Lines    uint32 // words of bits for words
	Seen     uint32 `spin:"unit=bytes"` // of the copies of labels, behind the state; 0: there are none
	Waiting  uint32 `spin:"unit=bytes"` // bits of vertices
	Summary  uint32 `spin:"unit=bytes"` // bits for words
	Workers  uint32 `spin:"unit=bytes"` // the first
	Stride   uint32 `spin:"unit=bytes"` // from a worker to the next
	Capacity uint32 // updates of a packet
	Shift    uint32 `spin:"max=31"`        // bits of an edge's target that name the node
	Weighted uint32 `spin:"max=1"`         // 0: edges have no weights, and all count as 1
	Rank     uint32 `spin:"default=rank"`  // of this node
	Ranks    uint32 `spin:"default=ranks"` // nodes
	Root     uint32 // node where the search begins
	PT       uint32 `spin:"max=255"` // portal table index of all nodes
	Cursor   uint32 // word where the next worker begins to look
	DoneCT   uint32 `spin:"unit=counter"` // counts the end of the search

	Counts Counts // of the handlers
}

// Counts counts the work of a node's handlers.
type Counts struct {
	_        structs.HostLayout
	Sent     uint64 // updates, to other nodes
	Updates  uint64 // received, from the node itself, too
	Swaps    uint64 // tried in host memory
	Improved uint64 // that made a distance smaller
	Taken    uint64 // vertices from which the search continued
	Edges    uint64 // followed
}

// Worker follows edges when there are vertices to take. Behind it lie the
// number of updates for each node, and places for Capacity updates to each.
type Worker struct {
	_        structs.HostLayout
	Unacked  uint64      // packets that are not acknowledged, and one more while it sends
	Bits     uint64      // vertices that it has taken but not begun
	Vertex   Vertex      // the present one
	Start    uint64      // the next edge of this vertex that is not in Chunk
	Left     uint32      // edges from there on
	First    uint32      // vertex of bit 0 of Bits
	Parent   uint32      // number of the vertex in the whole graph
	Distance uint32      // from the root
	At, Have uint32      // words of Chunk
	Turn     int32       // what it may still do before others run
	Sending  uint32      // nodes sent to so far in this round; 0: it does not send
	Chunk    [512]uint32 // edges
}

// WorkerSize is the size of a Worker, bytes.
const WorkerSize = 72 + 4*ChunkWords

// ChunkWords is how many words of edges a worker reads at once. An edge is one
// word or, with a weight, two.
const ChunkWords = 512

// Turn is how much a worker does before others run, so that a device does not
// take it for an endless loop. It decreases by the words of edges, and by
// TurnCost for each vertex, each sent packet, and each update that is carried
// out.
const (
	Turn     = 8192
	TurnCost = 16
)

// Vertex is a vertex in host memory. A node's memory begins with its vertices.
type Vertex struct {
	_      structs.HostLayout
	Label  uint64
	Start  uint32 // the first of its edges
	Degree uint32 // how many there are
}

// VertexSize is the size of a Vertex, bytes.
const VertexSize = 16

// Label packs a distance into the upper half and the previous vertex into the
// lower half.
func Label(distance, parent uint32) uint64 { return uint64(distance)<<32 | uint64(parent) }

// NoLabel is the label of a vertex that was not reached.
const NoLabel = 1<<64 - 1

// Update is a label that a vertex may get.
type Update struct {
	_      structs.HostLayout
	Label  uint64
	Vertex uint32 // of the node
	Spare  uint32 // 0
}

// UpdateSize is the size of an Update, bytes.
const UpdateSize = 16

// MaxWorkers of a node.
const MaxWorkers = 64

// Match bits of a node's entries.
const (
	UpdateBits  = 0x6700 // updates; the header data is the sender's worker
	WorkBits    = 0x6701 // to self: the worker in the header data continues
	AckBits     = 0x6702 // updates have arrived; the header data is the worker that has sent them
	EngagedBits = 0x6703 // likewise, and they have engaged the node: it will report its end
	DoneBits    = 0x6704 // a node that a packet engaged is done
	EndBits     = 0x6705 // the search is over
	ControlMask = 7
)

// NoWorker is the header data of an update that nobody wants acknowledged.
const NoWorker = 1<<64 - 1
