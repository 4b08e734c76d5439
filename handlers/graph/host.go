//go:build !tinygo

package graph

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o graph.wasm guest

//go:embed graph.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("graph", wasm)

// NodeSlot is a node of breadth-first search and shortest paths.
var NodeSlot = Library.Slot(handlers.Slot{
	Name: "node", Short: "a node of breadth-first search and shortest paths",
	Handlers: []string{UpdateHandler, ControlHandler},
	Expects: []string{
		"Updates lower labels in host memory by compare-and-swap, and every improved vertex is continued from.",
		"done_ct of the root counts once, when no update is under way anywhere.",
	},
})

// Names of its handlers, which belong to two entries.
const (
	UpdateHandler  = "graph_update"
	ControlHandler = "graph_control"
)

// Loaded is the library on the devices of a cluster.
type Loaded struct{ module *handlers.Module }

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := NodeSlot.Load(c)
	return &Loaded{m}, err
}

// Options are the options of a search, the same on all nodes.
type Options struct {
	PT       uint32 // portal table index, used by this search only
	Graph    *Graph
	Root     int  // vertex
	Weighted bool // shortest paths; else breadth-first search
	// ByHost: hosts do the work of handlers.
	ByHost bool
	// Uncached: handlers keep no copies of labels, 8 bytes of HPU memory for
	// each vertex of the node. So each update goes to host memory.
	Uncached bool
	// Workers of a node, up to graph.MaxWorkers. 0: one for each context of its
	// HPUs except one HPU's, or as many as the packet buffer has room for. With
	// more workers more distances are found that do not last. The host has one
	// core, and as many packets on their way to each node, up to four.
	Workers int
	// Updates in a packet at most. 0: as many as fit the largest packet and,
	// from all workers of all nodes at once, half of a packet buffer.
	Updates int
}

// leastPacket is the smallest size of a packet with several workers, bytes.
const leastPacket = 256

// check checks the options and fills in defaults.
func (o *Options) check(p *profile.Profile, nodes int) error {
	switch {
	case o.Graph == nil || o.Graph.Vertices < 1 || o.Graph.Vertices > MaxVertices:
		return fmt.Errorf("graph: expected a graph of 1 to %d vertices", MaxVertices)
	case o.Root < 0 || o.Root >= o.Graph.Vertices:
		return fmt.Errorf("graph: root %d, expected a vertex below %d", o.Root, o.Graph.Vertices)
	}
	return o.shape(p, nodes)
}

// shape chooses workers and packets. A node never has more in its packet buffer
// than one packet from each worker of the other nodes, so that none is lost
// because of missing room.
func (o *Options) shape(p *profile.Profile, nodes int) error {
	room := int64(p.NIC.PacketBuffer) / 2
	most := min(int64(p.Fabric.MTU), room) / UpdateSize
	switch {
	case o.Workers < 0 || o.Workers > MaxWorkers:
		return fmt.Errorf("graph: %d workers, expected 0 to %d", o.Workers, MaxWorkers)
	case o.Updates < 0 || int64(o.Updates) > most:
		return fmt.Errorf("graph: packets of %d updates, expected 0 to %d (fabric.mtu, nic.packet_buffer)", o.Updates, most)
	}
	// Updates and acknowledgements of all workers, nodes that report their end,
	// and messages to self.
	// done, and messages to self.
	waiting := func(workers int) int { return 2*workers*nodes + nodes + workers }
	fits := func(workers int) int64 { return min(most, room/UpdateSize/int64(workers)/int64(nodes)) }
	if o.Workers == 0 {
		o.Workers = min(max((p.HPU.Cores-1)*p.HPU.Contexts, 1), MaxWorkers)
		for o.Workers > 1 && (fits(o.Workers)*UpdateSize < leastPacket || waiting(o.Workers) > p.HPU.WaitingHandlers) {
			o.Workers /= 2
		}
	}
	if o.Updates == 0 {
		o.Updates = int(max(fits(o.Workers), 1))
	}
	if int64(o.Updates) > fits(o.Workers) {
		return fmt.Errorf("graph: %d nodes with %d workers and packets of %d updates may fill a packet buffer (nic.packet_buffer, %v), expected fewer", nodes, o.Workers, o.Updates, p.NIC.PacketBuffer)
	}
	if waiting(o.Workers) > p.HPU.WaitingHandlers {
		return fmt.Errorf("graph: packets of %d workers of each of %d nodes may be too many for those that wait for an HPU (hpu.waiting_handlers, %d), expected fewer",
			o.Workers, nodes, p.HPU.WaitingHandlers)
	}
	return nil
}

// HPUMemory returns how much HPU memory a node needs in a search of a graph
// with this many vertices on this many nodes, bytes.
func (o Options) HPUMemory(p *profile.Profile, vertices, nodes int) (int64, error) {
	if err := o.shape(p, nodes); err != nil {
		return 0, err
	}
	_, size := o.layout((vertices+nodes-1)/nodes, nodes)
	return size, nil
}

// layout returns the state of a node with this many vertices, and the HPU
// memory for it and for what follows it, bytes.
func (o *Options) layout(local, nodes int) (State, int64) {
	words := (local + 63) / 64
	s := State{
		Idle: 1<<o.Workers - 1, Edges: uint64(local * VertexSize), Local: uint32(local), Lines: uint32((words + 63) / 64), Capacity: uint32(o.Updates),
		Ranks: uint32(nodes), Shift: uint32(bits.Len(uint(nodes - 1))), Root: uint32(o.Root % nodes), PT: o.PT,
	}
	if o.Workers == MaxWorkers {
		s.Idle = 1<<64 - 1
	}
	if o.Weighted {
		s.Weighted = 1
	}
	s.Summary = s.Waiting + 8*uint32(words)
	end := s.Summary + 8*s.Lines
	if !o.Uncached {
		s.Seen = end
		end += 8 * s.Local
	}
	s.Workers = (end + 15) &^ 15
	s.Stride = uint32(WorkerSize + (4*nodes+15)&^15 + nodes*o.Updates*UpdateSize)
	return s, int64(len(spin.EncodeState(&s))) + int64(s.Workers) + int64(o.Workers)*int64(s.Stride)
}

// Member is a process's part in a search.
type Member struct {
	p      *runtime.Proc
	ni     *runtime.NI
	o      Options
	rank   int
	nodes  int
	shift  uint32       // bits of a target that name the node
	memory runtime.View // vertices, then edges
	local  int          // vertices
	done   portals.Handle
	on     *handlers.Installed // nil: the host does the work
	host   *host
}

// Join gives a process its part of the graph, and its handlers. It takes no
// virtual time. Without handlers (Options.ByHost) l may be nil.
func (l *Loaded) Join(p *runtime.Proc, o Options) (*Member, error) {
	nodes := p.Cluster().Nodes()
	if err := o.check(p.Cluster().Profile(), nodes); err != nil {
		return nil, err
	}
	u := handlers.NewSetup("graph", p)
	m := &Member{p: p, ni: u.NI, o: o, rank: p.Rank(), nodes: nodes, shift: uint32(bits.Len(uint(nodes - 1)))}
	if u.Err != nil {
		return nil, u.Err
	}
	if u.Self.PID != 0 {
		return nil, fmt.Errorf("graph: process %d of node %d, expected the first: a node has a part of the graph", u.Self.PID, u.Self.NID)
	}
	if err := m.load(); err != nil {
		return nil, err
	}
	if o.ByHost {
		return m, m.listen(u)
	}
	if m.done = u.Counter("end of the search"); u.Err != nil {
		return nil, u.Err
	}
	return m, m.install(u, l)
}

var le = binary.LittleEndian

// load writes the node's vertices and their edges to its memory.
func (m *Member) load() error {
	g, size := m.o.Graph, m.edgeSize()
	if m.rank < g.Vertices {
		m.local = (g.Vertices - m.rank + m.nodes - 1) / m.nodes
	}
	count := 0
	for v := m.rank; v < g.Vertices; v += m.nodes {
		count += g.Degree(v)
	}
	if count >= 1<<32 {
		return fmt.Errorf("graph: node %d has %d edges, expected fewer than 2^32: use more nodes", m.rank, count)
	}
	m.memory = m.p.Alloc(max(m.local*VertexSize+count*size, VertexSize))
	m.memory.Lock()
	b := m.memory.Write()
	at := 0
	for i := range m.local {
		v := m.rank + i*m.nodes
		le.PutUint64(b[i*VertexSize:], NoLabel)
		le.PutUint32(b[i*VertexSize+8:], uint32(at))
		le.PutUint32(b[i*VertexSize+12:], uint32(g.Degree(v)))
		for j := g.Start[v]; j < g.Start[v+1]; j++ {
			to := b[m.local*VertexSize+at*size:]
			target := int(g.Target[j])
			le.PutUint32(to, uint32(target/m.nodes)<<m.shift|uint32(target%m.nodes))
			if m.o.Weighted {
				le.PutUint32(to[4:], g.Weight[j])
			}
			at++
		}
	}
	return nil
}

// edgeSize returns the size of an edge in host memory, bytes.
func (m *Member) edgeSize() int {
	if m.o.Weighted {
		return 8
	}
	return 4
}

// state returns the initial contents of HPU memory: no label has been seen.
func (m *Member) state() []byte {
	s, size := m.o.layout(m.local, m.nodes)
	s.Rank, s.DoneCT = uint32(m.rank), uint32(m.done)
	b := spin.EncodeState(&s)
	seen := len(b) + int(s.Seen)
	b = append(b, make([]byte, size-int64(len(b)))...)
	if !m.o.Uncached {
		for i := range b[seen : seen+8*m.local] {
			b[seen+i] = 0xff
		}
	}
	return b
}

// install appends the entries of the node's handlers, which share their memory.
func (m *Member) install(u *handlers.Setup, l *Loaded) error {
	state := m.state()
	var err error
	m.on, err = l.module.Install(m.p, handlers.Options{
		Payload: UpdateHandler, State: state, Memory: int64(len(state)), Shared: true,
		HostMemory: portals.Region{Start: m.memory.Addr(), Length: uint64(m.memory.Len())},
	})
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	u.Table(m.o.PT, portals.EQNone, m.on.PTOptions)
	// an entry must have memory; handlers take all messages
	packet := m.p.Alloc(m.o.Updates * UpdateSize)
	me := portals.ME{MatchBits: UpdateBits, Options: portals.OptMEOpPut | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable}
	m.on.Attach(&me)
	u.Append(m.o.PT, portals.AnyID, packet, me)
	me.Spin, me.MatchBits, me.IgnoreBits = u.Spin(m.on, ControlHandler, ""), UpdateBits&^ControlMask, ControlMask
	u.Append(m.o.PT, portals.AnyID, packet, me)
	return u.Err
}

// ErrFailed means that a handler failed, or that memory could not be read or
// written.
var ErrFailed = errors.New("graph: an operation failed")

// Run searches: the node of the root begins, all others wait. It returns when the search is over.
func (m *Member) Run() error {
	if m.host != nil {
		return m.host.run()
	}
	if m.rank == m.o.Root%m.nodes {
		first := m.p.Alloc(UpdateSize)
		m.first(first.Write())
		md, err := m.ni.Objects().MDBind(&portals.MD{Start: first.Addr(), Length: UpdateSize})
		if err != nil {
			return err
		}
		self := portals.PhysID(uint32(m.rank), 0)
		if err := m.ni.Put(portals.Put{MD: md, Length: UpdateSize, Target: self, PT: m.o.PT, MatchBits: UpdateBits, HdrData: NoWorker}); err != nil {
			return err
		}
	}
	v, err := m.ni.CTWait(m.done, 1)
	if err == nil && v.Failure > 0 {
		err = ErrFailed
	}
	return err
}

// first writes the update with which a search begins.
func (m *Member) first(b []byte) {
	le.PutUint64(b, Label(0, uint32(m.o.Root)))
	le.PutUint32(b[8:], uint32(m.o.Root/m.nodes))
}

// Counts returns the counts of the node's work. It takes no virtual time.
func (m *Member) Counts() Counts {
	if m.host != nil {
		return m.host.counts
	}
	return handlers.Peek[State](m.on).Counts
}

// Quiet checks that nothing is left of a finished search: no vertex waits, no
// worker works, and nothing waits for a node.
func (m *Member) Quiet() error {
	if m.host != nil {
		return m.host.quiet()
	}
	s := handlers.Peek[State](m.on)
	if s.Deficit != 0 || s.Pending != 0 || bits.OnesCount64(s.Idle) != m.o.Workers {
		return fmt.Errorf("graph: node %d at the end: deficit %#x, %d words of vertices that wait, idle %#x of %d workers", m.rank, s.Deficit, int64(s.Pending), s.Idle, m.o.Workers)
	}
	return nil
}

// Collect returns the distance of each vertex from the root, and its
// predecessor, after a search. It is for an observer from outside: it takes no
// virtual time.
func Collect(members []*Member) (distance, parent []uint32) {
	n := members[0].o.Graph.Vertices
	distance, parent = make([]uint32, n), make([]uint32, n)
	for _, m := range members {
		b := m.memory.Snapshot()
		for i := range m.local {
			label := le.Uint64(b[i*VertexSize:])
			distance[m.rank+i*m.nodes], parent[m.rank+i*m.nodes] = uint32(label>>32), uint32(label)
		}
	}
	return distance, parent
}
