package ip

import (
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ethernet is the management network, which is independent of ExaNet.
type ethernet struct {
	fabric fabric.Fabric
	nodes  []nic
	first  sim.ID
	engine *sim.Engine
	tracer sim.Tracer    // nil: frames are not traced
	tracks []sim.TrackID // of nodes
}

// nic is a node's interface to the management network.
type nic struct {
	port  fabric.Port
	lanes [lanes]lane
	sent  uint32
	room  func() // called when the interface has room again
	down  bool
}

// Lanes: the receivers of frames.
const (
	laneIP = iota
	laneBeat
	lanes
)

// lane is a queue of frames, with the process that waits for them.
type lane struct {
	frames []*frame
	came   uint64
	ni     *runtime.NI // nil: nobody takes frames
	ct     portals.Handle
}

// frame is an Ethernet frame.
type frame struct {
	lane int
	from int
	data []byte
	sent sim.Time
}

// newEthernet builds the network of a cluster.
func newEthernet(c *runtime.Cluster, s *EthernetSpec) (*ethernet, error) {
	e := &ethernet{nodes: make([]nic, c.Nodes()), engine: c.Engine()}
	spec := fabric.Spec{
		Kind: fabric.Crossbar, Rate: s.Rate, Wire: s.Wire, Switch: s.Switch, StoreAndForward: true, Header: int32(s.Header), MTU: int32(s.MTU),
		InjectBuffer: int64(s.Queue),
	}
	f, err := fabric.New(c.Engine(), spec, c.Nodes())
	if err != nil {
		return nil, fmt.Errorf("ip: management: %w", err)
	}
	e.fabric = f
	e.first = c.Engine().AddGroup(c.Nodes(), func(i int) string { return fmt.Sprintf("Node[%d].Management", i) }, e)
	for i := range e.nodes {
		e.nodes[i].port = f.Attach(i, e.first+sim.ID(i))
		var track sim.TrackID
		e.tracer, track = c.Node(i).Track("Ethernet")
		e.tracks = append(e.tracks, track)
	}
	return e, nil
}

// Handle implements sim.Actor: a frame has arrived at a node.
func (e *ethernet) Handle(ev *sim.Event) {
	if ev.Kind == fabric.KindReady {
		if n := &e.nodes[ev.Dst-e.first]; n.room != nil {
			n.room()
		}
	}
	if ev.Kind != fabric.KindArrive {
		return
	}
	p := fabric.Unpack(ev)
	n := &e.nodes[p.Dst]
	n.port.Release(p)
	f := p.Ref.(*frame)
	if e.tracer != nil {
		e.tracer.Span(e.tracks[p.Dst], "frame", f.sent, e.engine.Now(), 0, sim.Arg{Key: "from", Num: int64(f.from)}, sim.Arg{Key: "bytes", Num: int64(len(f.data))})
	}
	l := &n.lanes[f.lane]
	if l.ni == nil || n.down {
		return
	}
	l.frames = append(l.frames, f)
	l.came++
	if err := l.ni.Objects().CTInc(l.ct, portals.CTEvent{Success: 1}); err != nil {
		l.ni = nil // its process has ended
	}
}

// take returns the next frame of a lane, or nil.
func (l *lane) take() *frame {
	if len(l.frames) == 0 {
		return nil
	}
	f := l.frames[0]
	l.frames = l.frames[:copy(l.frames, l.frames[1:])]
	return f
}

// room reports whether the interface of a node can take a frame.
func (e *ethernet) room(node int) bool { return e.nodes[node].port.Ready(fabric.Requests) }

// send sends data of at most the MTU. It reports whether the interface had
// room.
func (e *ethernet) send(from, to, lane int, data []byte) bool {
	n := &e.nodes[from]
	if n.down || !n.port.Ready(fabric.Requests) {
		return false
	}
	n.sent++
	n.port.Send(fabric.Packet{Src: int32(from), Dst: int32(to), Bytes: int32(len(data)), Seq: n.sent, Ref: &frame{lane, from, data, e.engine.Now()}})
	return true
}
