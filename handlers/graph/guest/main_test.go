package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// A node of three, node 1, has vertices 1, 4, 7, … of the graph, 130 of them;
// the search begins on node 2.
const (
	nodes    = 3
	rank     = 1
	root     = 2
	local    = 130
	capacity = 4 // updates of a packet
	workers  = 2
	doneCT   = 5
	words    = 3 // of bits of vertices
)

type rig struct {
	*testing.T
	device          *spintest.Device
	update, control spintest.Handlers[graph.State]
	state           *graph.State
	edges           int
}

// each runs f on the Go source and on the module, with labels that were seen and without.
func each(t *testing.T, f func(*rig)) {
	for _, name := range []string{"native", "tinygo", "uncached"} {
		t.Run(name, func(t *testing.T) { f(newRig(t, name == "tinygo", name != "uncached")) })
	}
}

func newRig(t *testing.T, wasm, cached bool) *rig {
	d := spintest.New(t, spintest.Config{HandlerHostMem: local*graph.VertexSize + 4096, MTU: 4096, NID: rank})
	stride := graph.WorkerSize + 16 + nodes*capacity*graph.UpdateSize
	extra := 8*(words+1+local) + 16 + workers*stride
	s := spintest.NewState[graph.State](d, extra)
	*s = graph.State{
		Idle: 1<<workers - 1, Edges: local * graph.VertexSize, Local: local, Lines: 1, Summary: 8 * words, Capacity: capacity, Shift: 2,
		Rank: rank, Ranks: nodes, Root: root, PT: 9, DoneCT: doneCT, Stride: uint32(stride), Workers: (8*(words+1+local) + 15) &^ 15,
	}
	d.Counters[doneCT] = &spintest.Count{}
	r := &rig{T: t, device: d, state: s}
	if cached {
		s.Seen = 8 * (words + 1)
		for v := range uint32(local) {
			*r.word(s.Seen + 8*v) = graph.NoLabel
		}
	}
	for v := range local {
		r.vertex(v, graph.NoLabel)
	}
	r.update, r.control = spintest.Handlers[graph.State]{Payload: graphUpdate}, spintest.Handlers[graph.State]{Header: graphControl}
	if wasm {
		both := wasmtest.Entries[graph.State](t, d, graph.Library.Wasm, map[string]wasmtest.Names{"u": {Payload: graph.UpdateHandler}, "c": {Header: graph.ControlHandler}}, extra)
		r.update, r.control = both["u"], both["c"]
	}
	return r
}

// word is one behind the state.
func (r *rig) word(at uint32) *uint64 {
	defer spin.Attach(r.device)()
	return spin.At[uint64](spin.After(r.state) + spin.Ptr(at))
}

// vertex gives one a label and edges: targets or, with weights, targets and weights.
func (r *rig) vertex(v int, label uint64, edges ...uint32) {
	degree := len(edges) >> r.state.Weighted
	copy(r.device.HandlerHost[v*graph.VertexSize:], spin.EncodeState(&graph.Vertex{Label: label, Start: uint32(r.edges), Degree: uint32(degree)}))
	for i, e := range edges {
		binary.LittleEndian.PutUint32(r.device.HandlerHost[local*graph.VertexSize+4*(r.edges<<r.state.Weighted+i):], e)
	}
	r.edges += degree
}

// to is the target of an edge.
func to(node, vertex uint32) uint32 { return vertex<<2 | node }

func (r *rig) label(v int) uint64 {
	var one graph.Vertex
	require.NoError(r, spin.DecodeState(r.device.HandlerHost[v*graph.VertexSize:(v+1)*graph.VertexSize], &one))
	return one.Label
}

func (r *rig) send(from uint32, data uint64, list ...graph.Update) spin.Code {
	var b []byte
	for i := range list {
		b = append(b, spin.EncodeState(&list[i])...)
	}
	r.device.Calls = nil
	out := spintest.Deliver(r.device, r.update, r.state, spintest.Message{Data: b, SourceNID: from, HdrData: data, MatchBits: graph.UpdateBits})
	return out.Payloads[0]
}

func (r *rig) tell(from uint32, what, data uint64) spin.Code {
	r.device.Calls = nil
	kind := spin.MsgPut
	if what == graph.WorkBits {
		kind = spin.MsgSelf
	}
	return spintest.Deliver(r.device, r.control, r.state, spintest.Message{Type: kind, SourceNID: from, HdrData: data, MatchBits: what}).Header
}

// said is what the last handler has told others: node and match bits.
func (r *rig) said() (list [][2]uint64) {
	for _, c := range r.device.Puts() {
		list = append(list, [2]uint64{uint64(c.Op.TargetNID), c.Op.MatchBits})
	}
	return list
}

// An update of a vertex without a label changes host memory, and a worker is to
// go on from there; the sender will hear when that has come to an end.
func TestUpdate(t *testing.T) {
	each(t, func(r *rig) {
		label := graph.Label(3, 77)
		require.Equal(r, spin.Success, r.send(2, 6, graph.Update{Label: label, Vertex: 65}, graph.Update{Label: graph.Label(5, 1), Vertex: 129}))
		require.Equal(r, label, r.label(65))
		require.Equal(r, graph.Label(5, 1), r.label(129))
		require.Equal(r, [][2]uint64{{2, graph.EngagedBits}}, r.said())
		require.Equal(r, uint64(6), r.device.Puts()[0].Op.HdrData)
		self := r.device.Named("to_self")
		require.Len(r, self, 1)
		require.Equal(r, [2]uint64{graph.WorkBits, 0}, [2]uint64{self[0].Op.MatchBits, self[0].Op.HdrData})
		require.Equal(r, uint64(2)<<32|1, r.state.Deficit, "the worker; engaged by node 2")
		require.Equal(r, uint64(2), r.state.Pending)
		require.Equal(r, uint64(2), r.state.Idle)
		require.Equal(r, []uint64{0, 2, 2}, []uint64{*r.word(0), *r.word(8), *r.word(16)})
	})
}

// What is no improvement changes nothing, and is all done with its acknowledgement.
func TestNoImprovement(t *testing.T) {
	each(t, func(r *rig) {
		r.vertex(3, graph.Label(4, 9))
		require.Equal(r, spin.Success, r.send(0, 1, graph.Update{Label: graph.Label(4, 8), Vertex: 3}))
		require.Equal(r, graph.Label(4, 9), r.label(3))
		require.Equal(r, [][2]uint64{{0, graph.AckBits}}, r.said())
		require.Empty(r, r.device.Named("to_self"))
		require.Zero(r, r.state.Deficit)
		r.device.Calls = nil
		require.Equal(r, spin.Success, r.send(0, 1, graph.Update{Label: graph.Label(5, 8), Vertex: 3}))
		if r.state.Seen != 0 {
			require.Empty(r, r.device.Named("dma_cas_nb"), "the label that was seen says enough")
		} else {
			require.Len(r, r.device.Named("dma_cas_nb"), 1)
		}
	})
}

// Several updates of one vertex in a packet, more of them than are on the bus
// at once: the best one counts, and a worker goes on once.
func TestUpdatesMeet(t *testing.T) {
	each(t, func(r *rig) {
		var list []graph.Update
		for i := range uint32(40) {
			list = append(list, graph.Update{Label: graph.Label(100-i*7%40, i), Vertex: 9})
		}
		require.Equal(r, spin.Success, r.send(2, 0, list...))
		require.Equal(r, uint32(61), uint32(r.label(9)>>32))
		require.Len(r, r.device.Named("to_self"), 1)
		require.Equal(r, uint64(1), r.state.Pending)
		require.Equal(r, uint64(40), r.state.Counts.Updates)
	})
}

// Without room for another operation on the bus an update waits for its turn.
func TestNoHandles(t *testing.T) {
	each(t, func(r *rig) {
		r.device.Fail("dma_cas_nb", spin.NoSpace, 2)
		r.vertex(1, graph.Label(7, 7))
		require.Equal(r, spin.Success, r.send(2, 0, graph.Update{Label: graph.Label(5, 4), Vertex: 1}, graph.Update{Label: graph.Label(6, 4), Vertex: 2}))
		require.Equal(r, []uint64{graph.Label(5, 4), graph.Label(6, 4)}, []uint64{r.label(1), r.label(2)})
	})
}

// A node that is engaged acknowledges what comes; it tells who has engaged it when all is done.
func TestSearchOnOneNode(t *testing.T) {
	each(t, func(r *rig) {
		r.vertex(0, graph.NoLabel, to(rank, 1), to(rank, 2))
		r.vertex(1, graph.NoLabel, to(rank, 2), to(rank, 3))
		r.vertex(2, graph.NoLabel)
		r.send(0, 1, graph.Update{Label: graph.Label(1, 0), Vertex: 0})
		require.Equal(r, spin.Success, r.send(2, 1, graph.Update{Label: graph.Label(9, 0), Vertex: 3}))
		require.Equal(r, [][2]uint64{{2, graph.AckBits}}, r.said())
		for _, n := range []uint64{0, 1} {
			if r.state.Idle>>n&1 == 0 {
				require.Equal(r, spin.Drop, r.tell(rank, graph.WorkBits, n))
			}
		}
		for i := 0; r.state.Deficit != 0 && i < 4; i++ { // workers that were woken meanwhile
			require.Equal(r, spin.Drop, r.tell(rank, graph.WorkBits, 1))
		}
		require.Equal(r, graph.Label(2, 1), r.label(1), "parent: vertex 0 of node 1 is 1")
		require.Equal(r, graph.Label(2, 1), r.label(2))
		require.Equal(r, graph.Label(3, 4), r.label(3))
		require.Equal(r, [][2]uint64{{0, graph.DoneBits}}, r.said())
		require.Equal(r, []uint64{0, 0, 3}, []uint64{r.state.Deficit, r.state.Pending, r.state.Idle})
	})
}

// A worker gathers updates for each node until a packet is full, sends all,
// waits for all, and goes on where it was.
func TestPackets(t *testing.T) {
	each(t, func(r *rig) {
		edges := []uint32{to(0, 10), to(2, 20), to(0, 11), to(0, 12), to(0, 13), to(0, 14), to(2, 21)}
		r.vertex(5, graph.NoLabel, edges...)
		r.send(2, 3, graph.Update{Label: graph.Label(1, 2), Vertex: 5})
		require.Equal(r, spin.Drop, r.tell(rank, graph.WorkBits, 0))
		require.Equal(r, [][2]uint64{{2, graph.UpdateBits}, {0, graph.UpdateBits}}, r.said(), "the next node first")
		puts := r.device.Puts()
		require.Equal(r, []int{1 * graph.UpdateSize, 4 * graph.UpdateSize}, []int{len(puts[0].Data), len(puts[1].Data)})
		require.Equal(r, spin.EncodeState(&graph.Update{Label: graph.Label(2, 5*nodes+rank), Vertex: 20}), puts[0].Data)
		require.Equal(r, uint64(2)<<32|3, r.state.Deficit, "a worker and two packets")
		require.Equal(r, spin.Drop, r.tell(2, graph.EngagedBits, 0), "node 2 will say when it is done")
		require.Empty(r, r.device.Calls[1:], "the worker waits for the other packet")
		require.Equal(r, spin.Drop, r.tell(0, graph.AckBits, 0))
		require.Equal(r, [][2]uint64{{2, graph.UpdateBits}, {0, graph.UpdateBits}}, r.said())
		require.Equal(r, spin.EncodeState(&graph.Update{Label: graph.Label(2, 5*nodes+rank), Vertex: 14}), r.device.Puts()[1].Data)
		r.tell(2, graph.AckBits, 0)
		r.tell(0, graph.AckBits, 0)
		require.Equal(r, uint64(2)<<32|1, r.state.Deficit, "node 2 has not said that it is done")
		require.Equal(r, uint64(3), r.state.Idle)
		require.Equal(r, spin.Drop, r.tell(2, graph.DoneBits, 0))
		require.Equal(r, [][2]uint64{{2, graph.DoneBits}}, r.said())
		require.Zero(r, r.state.Deficit)
		require.Equal(r, []uint64{7, 1, 1, 7}, []uint64{r.state.Counts.Sent, r.state.Counts.Updates, r.state.Counts.Taken, r.state.Counts.Edges})
	})
}

// Edges have weights. One that leads farther than a distance can be leads nowhere.
func TestWeights(t *testing.T) {
	each(t, func(r *rig) {
		r.state.Weighted = 1
		r.vertex(5, graph.NoLabel, to(0, 10), 100, to(0, 11), 1<<32-1-1000-1, to(0, 12), 1<<32-1-1000, to(0, 13), 1<<32-1)
		r.send(2, 3, graph.Update{Label: graph.Label(1000, 2), Vertex: 5})
		r.tell(rank, graph.WorkBits, 0)
		data := r.device.Puts()[0].Data
		require.Equal(r, append(spin.EncodeState(&graph.Update{Label: graph.Label(1100, 16), Vertex: 10}),
			spin.EncodeState(&graph.Update{Label: graph.Label(1<<32-2, 16), Vertex: 11})...), data)
	})
}

// A vertex with more edges than a worker reads at once, and more than it
// follows before others have their turn.
func TestHub(t *testing.T) {
	r := newRig(t, false, true)
	const degree = 900
	edges := make([]uint32, degree)
	for i := range edges {
		edges[i] = to(rank, uint32(i%100+10))
	}
	r.vertex(5, graph.NoLabel, edges...)
	r.send(2, 3, graph.Update{Label: graph.Label(1, 2), Vertex: 5})
	for n := 0; r.state.Deficit != 0; n++ {
		require.Less(t, n, 100)
		for w := range uint64(workers) {
			if r.state.Idle>>w&1 == 0 {
				require.Equal(t, spin.Drop, r.tell(rank, graph.WorkBits, w))
			}
		}
	}
	require.Equal(t, uint64(degree), r.state.Counts.Edges)
	for v := 10; v < 110; v++ {
		require.Equal(t, graph.Label(2, 16), r.label(v))
	}
}

// The node at which a search begins ends it, and the end goes round in a tree.
func TestEnd(t *testing.T) {
	each(t, func(r *rig) {
		r.state.Root = rank
		r.vertex(0, graph.NoLabel)
		require.Equal(r, spin.Success, r.send(rank, graph.NoWorker, graph.Update{Label: graph.Label(0, 1), Vertex: 0}))
		require.Empty(r, r.said(), "nobody wants to hear of it")
		require.Equal(r, spin.Drop, r.tell(rank, graph.WorkBits, 0))
		require.Equal(r, [][2]uint64{{2, graph.EndBits}, {0, graph.EndBits}}, r.said())
		require.Equal(r, spintest.Count{Success: 1}, *r.device.Counters[doneCT])
		r.state.Root, r.state.Ranks = 0, 4
		require.Equal(r, spin.Drop, r.tell(0, graph.EndBits, 0))
		require.Empty(r, r.said(), "the first of four has told 1 and 2, and 2 tells 3")
		require.Equal(r, spintest.Count{Success: 2}, *r.device.Counters[doneCT])
	})
}

// What fails is a failure of the handler.
func TestFailures(t *testing.T) {
	one := graph.Update{Label: graph.Label(1, 1), Vertex: 1}
	each(t, func(r *rig) {
		require.Equal(r, spin.Fail, r.send(2, 0, graph.Update{Vertex: local}), "no vertex of this node")
	})
	for _, name := range []string{"dma_cas_nb", "dma_wait", "to_self", "put_from_device"} {
		each(t, func(r *rig) {
			r.device.Fail(name, spin.Denied, 1)
			require.Equal(r, spin.Fail, r.send(2, 0, one), name)
		})
	}
	each(t, func(r *rig) {
		r.send(2, 0, one)
		r.device.Fail("dma_from_host", spin.Denied, 1)
		require.Equal(r, spin.Fail, r.tell(rank, graph.WorkBits, 0))
	})
	each(t, func(r *rig) { // as many messages to self are pending as may be
		r.device.Fail("to_self", spin.NoSpace, 2)
		require.Equal(r, spin.Success, r.send(2, 0, one))
		require.Len(r, r.device.Named("yield"), 2)
	})
}
