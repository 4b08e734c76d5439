package runtime

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// The events of a node. The argument A and the reference P of each stand beside it.
const (
	kindReadRequest sim.Kind = iota + 1 // *message: a DMA read has reached memory
	kindReadNext                        // the data of a message has passed the bus, the next one's may
	kindReadSlot                        // packet, *message: a DMA read has its turn on the bus
	kindReadDone                        // packet, *message: its data is at the NIC
	kindSent                            // interface (B: fail type), *portals.Op: the SEND event has landed
	kindLoopback                        // packet, *message: a packet to the own node arrives
	kindMatched                         // *message: the header has been searched for
	kindPacket                          // packet, *message: a further packet has been found in the CAM
	kindDeposited                       // packet, *message: its data has landed in host memory
	kindFinish                          // *message: the event record has landed, the message is complete
	kindAcked                           // *message: an acknowledgement has been looked up
	kindDispatched                      // context: a handler's first cycle
	kindSegmentEnd                      // context: a handler has run until it ended or was suspended
	kindDMA                             // stage, *dmaOp: a handler's DMA goes on
	kindEgressSpace                     // handlers that wait for room in the egress may go on
	kindDrain                           // a program has made an interface queue operations
	kindIssue                           // *issue: a handler's operation is due
)

// Node is one endpoint: a host with its processes and a programmable NIC. It owns its state; nodes meet in the fabric only.
type Node struct {
	cluster *Cluster
	profile *profile.Profile
	port    fabric.Port
	faulty  bool // the network loses, damages, doubles or delays packets
	rank    int32
	id      sim.ID

	cores     []host.Server
	memory    host.Server // the memory controller
	dma       dma
	received  sim.Time // when the receive side has taken the packets that have arrived, if it takes one at a time
	tx        txPipe
	hpus      hpuPool
	ids       *portals.Node // process identifiers
	procs     []*Proc
	memories  []*HPUMemory
	hpuMemory int64 // bytes that the programs have, of hpu.node_memory
	nis       []*NI
	stats     Stats
	trace     *nodeTrace
	watch     *watch
	answers   []answer // who waits for a reply
	unused    []uint64 // cookies of answers that nobody uses
	scratch   []byte   // of gather
	queued    bool     // an interface has operations to send
	handling  bool     // an event of the node is being handled, after which the interfaces are drained
}

// Stats counts what a node, or with Cluster.Stats all nodes, did since the start of the run.
type Stats struct {
	PacketsSent     int64
	PacketsReceived int64
	PacketsDropped  int64 // those included that the network has lost or damaged
	MessagesLost    int64 // of which packets were dropped for want of room or of a process, or lost by the network
	HandlerCalls    int64
	HandlerCycles   int64    // charged to handlers
	FirstHandler    sim.Time // when the first handler ended; 0: none has
	LastHandler     sim.Time // when the last one did
	LostActions     int64    // of handlers, on counters that were freed meanwhile
	FlowControl     int64    // messages in which flow control was triggered
	CPUBusy         sim.Time // at most sim.MaxTime, 106 days; cores posting, matching, copying, and looking at completions that were there; not spinning
	HostMemoryBytes int64    // through host memory: DMA in both directions and streams of the cores
}

// Stats returns the node's counts.
func (n *Node) Stats() Stats {
	s := n.stats
	s.HostMemoryBytes += n.dma.bytes
	if n.faulty {
		lost, _ := n.cluster.networkLosses()
		for i := range lost {
			if lost[i].Rank == int(n.rank) {
				s.MessagesLost++
				s.PacketsDropped += int64(lost[i].Packets)
			}
		}
	}
	return s
}

// Stats returns the counts of all nodes: sums, the first of the first handlers' ends and the last of the last ones'.
func (c *Cluster) Stats() (all Stats) {
	for i := range c.nodes {
		s := c.nodes[i].Stats()
		all.add(&s)
	}
	return all
}

// add joins the counts of another node to s.
func (s *Stats) add(o *Stats) {
	s.PacketsSent += o.PacketsSent
	s.PacketsReceived += o.PacketsReceived
	s.PacketsDropped += o.PacketsDropped
	s.MessagesLost += o.MessagesLost
	s.HandlerCalls += o.HandlerCalls
	s.HandlerCycles += o.HandlerCycles
	if o.FirstHandler != 0 && (s.FirstHandler == 0 || o.FirstHandler < s.FirstHandler) {
		s.FirstHandler = o.FirstHandler
	}
	s.LastHandler = max(s.LastHandler, o.LastHandler)
	s.LostActions += o.LostActions
	s.FlowControl += o.FlowControl
	s.CPUBusy = s.CPUBusy.Plus(o.CPUBusy)
	s.HostMemoryBytes += o.HostMemoryBytes
}

func (n *Node) now() sim.Time      { return n.cluster.engine.Now() }
func (n *Node) pool() *messagePool { return &n.cluster.pool }

func (n *Node) post(at sim.Time, kind sim.Kind, a uint64, ref any) {
	n.cluster.engine.Post(at, n.id, n.id, kind, a, 0, ref)
}

// Handle carries out one event; it implements sim.Actor.
func (n *Node) Handle(e *sim.Event) {
	n.handling = true
	n.handle(e)
	if n.queued {
		n.drain()
	}
	n.handling = false
	if poison.On {
		n.check()
	}
}

func (n *Node) handle(e *sim.Event) {
	if poison.On {
		checkLive(e.P)
	}
	switch e.Kind {
	case fabric.KindArrive:
		p := fabric.Unpack(e)
		n.port.Release(p)
		if m := p.Ref.(*message); !n.faulty || m.firstTime(p.Seq) {
			n.arrive(m, int(p.Seq))
		}
	case fabric.KindCorrupt: // the check fails; the fabric has it among its losses
		n.port.Release(fabric.Unpack(e))
	case kindPacket:
		n.packet(e.P.(*message), int(e.A))
	case kindDispatched:
		n.execute(&n.hpus.runs[e.A])
	case kindSegmentEnd:
		n.segmentEnd(&n.hpus.runs[e.A])
	case kindDeposited:
		n.deposited(e.P.(*message), int(e.A))
	case kindReadRequest:
		n.readRequest(e.P.(*message))
	case kindReadNext:
		n.readNext()
	case kindReadSlot:
		n.readSlot(e.P.(*message), int(e.A))
	case kindReadDone:
		n.readDone(e.P.(*message), int(e.A))
	case fabric.KindReady:
		n.inject(fabric.Class(e.A))
	case fabric.KindSent:
		n.onWire()
	case kindMatched:
		n.matched(e.P.(*message))
	case kindFinish:
		n.finish(e.P.(*message))
	case kindAcked:
		n.acked(e.P.(*message))
	case kindSent:
		n.sent(n.nis[e.A], e.P.(*portals.Op), portals.FailType(e.B))
	case kindLoopback:
		n.arrive(e.P.(*message), int(e.A))
	case kindDMA:
		n.dmaStage(e.P.(*dmaOp), int(e.A))
	case kindEgressSpace:
		n.egressSpace()
	case kindDrain: // Handle does it
	case kindIssue:
		n.issueDue(e.P.(*issue))
	}
}
