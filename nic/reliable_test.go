package nic

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// The reliable transport alone: below it links that lose, double and delay
// packets as the test says, above it nobody but lists.

// carried is what becomes of a packet: when each copy of it arrives, after its turn.
type carried []sim.Time

// transports are some nodes of which there is nothing but the transport.
type transports struct {
	t      require.TestingT
	engine *sim.Engine
	nodes  []*transportNode
	// from one turn on a node's link to the next
	gap  sim.Time
	wire func(from, to int32, ack bool, seq uint32) carried // of a packet that leaves
}

// transportNode is a node: the stage, and in place of those beside it what they were told.
type transportNode struct {
	*transports
	r     reliable
	free  sim.Time // the next turn on the link
	came  []sentPacket
	at    []sim.Time // when
	cut   map[sentPacket]bool
	ended map[uint64]ending
	held  int                    // packets from HPU memory
	order map[int32][]sentPacket // handed to the stage, by target
}

// sentPacket is a packet as the receiver knows it.
type sentPacket struct {
	source  int32
	message uint64
	i       int
}

// ending is what the stage says of a message.
type ending struct {
	fail portals.FailType
	left int
	at   sim.Time
}

// Events of the test: those of its links and of its programs.
const (
	kindTurnComes   sim.Kind = kindsOfSchedule + iota // departure
	kindCopyArrives                                   // source, number
	kindSendMessage                                   // packet, *Frame
)

func newTransports(t require.TestingT, nodes int, spec TransportSpec) *transports {
	x := &transports{t: t, engine: sim.New(1), gap: 10 * sim.Nanosecond}
	x.wire = func(int32, int32, bool, uint32) carried { return carried{sim.Microsecond} }
	core := new(Core) // of all nodes, as in a domain: what one gives back another gets
	for rank := range int32(nodes) {
		n := &transportNode{transports: x, cut: map[sentPacket]bool{}, ended: map[uint64]ending{}, order: map[int32][]sentPacket{}}
		e := &env{engine: x.engine, rank: rank, core: core, fabric: &fabric.Spec{MTU: 64}, report: new(Report)}
		e.id = x.engine.Add(fmt.Sprint("node ", rank), n)
		n.r = reliable{env: e, spec: &spec, below: n, next: n, peers: map[int32]*peer{}, failed: map[uint64]int{}}
		x.nodes = append(x.nodes, n)
	}
	return x
}

// frame is a message of so many packets from node to node.
func (x *transports) frame(from, to int32, number uint64, packets int) *Frame {
	return &Frame{Data: make([]byte, 64*packets), Length: 64 * packets, MTU: 64, Packets: packets, Source: from, Target: to, Number: number}
}

// sends has transmit hand packet i of a message to the stage at a time.
func (x *transports) sends(at sim.Time, f *Frame, i int) {
	n := x.nodes[f.Source]
	x.engine.Post(at, n.r.id, n.r.id, kindSendMessage, uint64(i), 0, f)
}

func (n *transportNode) Handle(e *sim.Event) {
	switch e.Kind {
	case kindSendMessage:
		f := e.P.(*Frame)
		n.order[f.Target] = append(n.order[f.Target], sentPacket{f.Source, f.Number, int(e.A)})
		n.r.send(packet{f: f, i: int(e.A), device: f.Self})
	case kindTurnComes:
		n.leaves(e.P.(*departure))
	case kindCopyArrives:
		n.r.arrived(fabric.Packet{Src: int32(e.A), Dst: n.r.rank, Seq: uint32(e.B), Ref: e.P})
	case kindEnded:
		number := e.A >> failBits
		_, twice := n.ended[number]
		require.False(n.t, twice, "message %d of node %d ends twice", number, n.r.rank)
		n.ended[number] = ending{portals.FailType(e.A & (1<<failBits - 1)), int(e.B), n.r.now()}
	case kindHeard, kindEgressSpace:
	default:
		n.r.handle(e)
	}
	for _, p := range n.r.peers { //lint:maporder each by itself
		require.LessOrEqual(n.t, p.window.len(), n.r.spec.Window)
		require.True(n.t, p.window.len() == n.r.spec.Window || p.backlog.len() == 0, "packets wait although the window has room")
	}
}

// depart, and what follows, are the link below: one turn after the other.
func (n *transportNode) depart(d departure) {
	turn := max(n.r.now(), n.free)
	n.free = turn + n.gap
	if d.device {
		n.held++
	}
	n.r.post(turn, kindTurnComes, 0, &d)
}

func (n *transportNode) leaves(d *departure) {
	if !n.r.leaves(d.ref) {
		if d.device {
			n.held--
		}
		return
	}
	if d.notify {
		n.r.onWire(d.ref)
	}
	to := n.nodes[d.target]
	_, data := d.ref.(*segment)
	for _, after := range n.wire(n.r.rank, d.target, !data, d.seq) {
		n.engine.Post(n.r.now()+after, to.r.id, n.r.id, kindCopyArrives, uint64(n.r.rank), uint64(d.seq), d.ref)
	}
}

func (n *transportNode) send(k packet) { n.packetArrived(k.f, k.i, false) } // to the own node

func (n *transportNode) hold(_ uint16, k int) { n.held += k }

func (n *transportNode) onWire(uint16) { n.held-- }

func (n *transportNode) classOf(portals.OpKind) fabric.Class { return fabric.Requests }

// packetArrived and abandoned are what is above.
func (n *transportNode) packetArrived(f *Frame, i int, damaged bool) {
	require.False(n.t, damaged)
	k := sentPacket{f.Source, f.Number, i}
	require.False(n.t, n.cut[sentPacket{f.Source, f.Number, 0}], "%v comes after its message was ended", k)
	n.came, n.at = append(n.came, k), append(n.at, n.r.now())
}

func (n *transportNode) abandoned(source int32) {
	for _, k := range n.came {
		if k.source == source {
			n.cut[sentPacket{source, k.message, 0}] = true
		}
	}
}

// idle sees that nothing is left.
func (x *transports) idle() {
	for _, n := range x.nodes {
		require.Empty(x.t, n.r.failed)
		require.Zero(x.t, n.held, "packets from HPU memory")
		for _, p := range n.r.peers { //lint:maporder each by itself
			require.Zero(x.t, p.window.len()+p.backlog.len()+len(p.partial)+len(p.early))
		}
	}
}

// weather draws networks that lose, double and delay.
func weather(t *rapid.T, worst float64) func(from, to int32, ack bool, seq uint32) carried {
	loss, double, late := rapid.Float64Range(0, worst).Draw(t, "loss"), rapid.Float64Range(0, 0.3).Draw(t, "double"), rapid.Float64Range(0, 0.3).Draw(t, "late")
	rng := rapid.Custom(func(t *rapid.T) uint64 { return rapid.Uint64().Draw(t, "seed") }).Draw(t, "weather")
	next := func() float64 { // a generator of its own: rapid would draw too much
		rng = rng*6364136223846793005 + 1442695040888963407
		return float64(rng>>11) / (1 << 53)
	}
	return func(int32, int32, bool, uint32) (c carried) {
		copies := 1
		if next() < double {
			copies += 1 + int(3*next())
		}
		for range copies {
			after := sim.Microsecond
			if next() < late {
				after += sim.Time(next() * float64(40*sim.Microsecond))
			}
			if next() >= loss {
				c = append(c, after)
			}
		}
		return c
	}
}

// drawTraffic has nodes send each other messages, one after the other, or two
// at once packet by packet. It returns the frames.
func (x *transports) drawTraffic(t *rapid.T) (frames []*Frame) {
	for from := range int32(len(x.nodes)) {
		now := sim.Time(0)
		for number := uint64(1); number <= uint64(rapid.IntRange(0, 12).Draw(t, "messages")); number++ {
			to := int32(rapid.IntRange(0, len(x.nodes)-1).Draw(t, "to"))
			f := x.frame(from, to, number, rapid.SampledFrom([]int{1, 1, 2, 5, 20}).Draw(t, "packets"))
			f.Self = rapid.Bool().Draw(t, "from HPU memory")
			frames = append(frames, f)
			now += sim.Time(rapid.SampledFrom([]int{0, 0, 50, 3000}).Draw(t, "pause")) * sim.Nanosecond
			pace := sim.Time(rapid.SampledFrom([]int{0, 20, 400}).Draw(t, "pace")) * sim.Nanosecond
			for i := range f.Packets {
				x.sends(now+sim.Time(i)*pace, f, i)
			}
			if rapid.Bool().Draw(t, "one after the other") {
				now += sim.Time(f.Packets) * pace
			}
		}
	}
	return frames
}

// Whatever the network does, as long as something gets through: each packet is
// handed on once, those of a pair in the order of sending, each message ends
// well once, and nothing is left.
func TestReliableDeliversEachPacketOnceInOrder(t *testing.T) {
	again, twice := int64(0), int64(0)
	rapid.Check(t, func(t *rapid.T) {
		x := newTransports(t, rapid.IntRange(2, 3).Draw(t, "nodes"), TransportSpec{
			Timeout: sim.Time(rapid.IntRange(1, 20).Draw(t, "timeout")) * sim.Microsecond, Window: rapid.SampledFrom([]int{1, 2, 7, 64}).Draw(t, "window"), Retries: 1 << 16,
		})
		x.wire = weather(t, 0.5)
		frames := x.drawTraffic(t)
		require.NoError(t, x.engine.Run())
		x.idle()
		for _, to := range x.nodes {
			by := map[int32][]sentPacket{}
			for _, k := range to.came {
				by[k.source] = append(by[k.source], k)
			}
			for _, from := range x.nodes {
				require.Equal(t, from.order[to.r.rank], by[from.r.rank], "from %d to %d", from.r.rank, to.r.rank)
			}
			require.Empty(t, to.cut)
			again += to.r.again
			twice += to.r.twice
		}
		for _, f := range frames {
			if end, is := x.nodes[f.Source].ended[f.Number]; f.Target != f.Source {
				require.True(t, is && end.fail == portals.NIOK, "message %d of node %d", f.Number, f.Source)
			}
		}
	})
	require.Positive(t, min(again, twice))
}

// With few retries messages are given up: each still ends once, well only if
// all of it has arrived. What arrives keeps its order and comes once; of what
// was given up nothing comes behind the end of its message, and a message of
// which something is missing is ended before a later one begins.
func TestReliableGivesUpInOrder(t *testing.T) {
	failed := 0
	rapid.Check(t, func(t *rapid.T) {
		x := newTransports(t, 2, TransportSpec{
			Timeout: 5 * sim.Microsecond, Window: rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "window"), Retries: rapid.IntRange(0, 2).Draw(t, "retries"),
		})
		x.wire = weather(t, 0.9)
		frames := x.drawTraffic(t)
		require.NoError(t, x.engine.Run())
		// The sky clears: the next message goes through, and tells of what will never come.
		x.wire = func(int32, int32, bool, uint32) carried { return carried{sim.Microsecond} }
		for from := range int32(2) {
			f := x.frame(from, 1-from, 1000, 3)
			for i := range f.Packets {
				x.sends(x.engine.Now(), f, i)
			}
			frames = append(frames, f)
		}
		require.NoError(t, x.engine.Run())
		x.idle()
		came := map[sentPacket]bool{}
		for _, to := range x.nodes {
			next := map[int32]int{} // in the order of sending
			for _, k := range to.came {
				came[k] = true
				order := x.nodes[k.source].order[to.r.rank]
				for order[next[k.source]] != k {
					next[k.source]++
					require.Less(t, next[k.source], len(order), "%v comes twice, or too late", k)
				}
				next[k.source]++
			}
		}
		for _, f := range frames {
			if f.Source == f.Target {
				continue
			}
			end, is := x.nodes[f.Source].ended[f.Number]
			require.True(t, is, "message %d of node %d has no end", f.Number, f.Source)
			require.True(t, f.Number < 1000 || end.fail == portals.NIOK)
			first, last := came[sentPacket{f.Source, f.Number, 0}], came[sentPacket{f.Source, f.Number, f.Packets - 1}]
			if first && !last {
				require.True(t, x.nodes[f.Target].cut[sentPacket{f.Source, f.Number, 0}], "message %d of node %d has come in part, and nobody knows", f.Number, f.Source)
			}
			there := f.Packets - end.left
			if end.fail != portals.NIOK {
				failed++
				require.Equal(t, portals.NIUndeliverable, end.fail)
				require.True(t, 1 <= end.left && end.left <= f.Packets, "%d of %d packets not acknowledged", end.left, f.Packets)
			}
			for i := range there {
				require.True(t, came[sentPacket{f.Source, f.Number, i}], "packet %d of message %d of node %d is acknowledged and has not come", i, f.Number, f.Source)
			}
		}
	})
	require.Positive(t, failed)
}

// The closed forms of one loss, of links alone: packets leave g apart and
// arrive L later. Packet k lost once comes T later, and what is behind it
// waits; so do the acknowledgements, but that of the last is no later than its
// own. Only the last acknowledgement is missed.
func TestReliablePriceOfALoss(t *testing.T) {
	const timeout, latency = 30 * sim.Microsecond, sim.Microsecond
	rapid.Check(t, func(t *rapid.T) {
		packets := rapid.IntRange(1, 60).Draw(t, "packets")
		k := rapid.IntRange(0, packets-1).Draw(t, "lost")
		times := rapid.IntRange(1, 4).Draw(t, "times")
		ack := rapid.Bool().Draw(t, "acknowledgement")
		x := newTransports(t, 2, TransportSpec{Timeout: timeout, Window: 64, Retries: 10})
		acks, lost := 0, 0
		x.wire = func(_, _ int32, isAck bool, seq uint32) carried {
			lose := !isAck && !ack && seq == uint32(k+1) && lost < times
			if isAck {
				lose = ack && acks == k
				acks++
			}
			if lose {
				lost++
				return nil
			}
			return carried{latency}
		}
		f := x.frame(0, 1, 1, packets)
		for i := range packets {
			x.sends(0, f, i)
		}
		require.NoError(t, x.engine.Run())
		x.idle()
		turn := func(i int) sim.Time { return sim.Time(i) * x.gap }
		to, end := x.nodes[1], x.nodes[0].ended[1]
		require.Len(t, to.came, packets)
		again := int64(0)
		for i, at := range to.at {
			want := turn(i) + latency
			if !ack && i >= k {
				want = max(want, turn(k)+sim.Time(times)*timeout+latency)
				again = int64(times)
			}
			require.Equal(t, want, at, "packet %d", i)
		}
		want := to.at[packets-1] + latency
		if ack && k == packets-1 {
			want = turn(k) + timeout + 2*latency
			again = 1
		}
		require.Equal(t, ending{portals.NIOK, 0, want}, end)
		require.Equal(t, again, x.nodes[0].r.again)
	})
}

// An event of another stage is a mistake of the program.
func TestReliableKnowsItsEvents(t *testing.T) {
	var r reliable
	require.Panics(t, func() { r.handle(&sim.Event{Kind: kindsOfReliable + 77}) })
}

// A packet that is acknowledged while it waits to be sent again stays as it is
// until its turn: no other node has its memory, although their packets have the
// same number.
func TestAcknowledgedWhileWaiting(t *testing.T) {
	x := newTransports(t, 3, TransportSpec{Kind: Reliable, Timeout: 1500 * sim.Nanosecond, Window: 4, Retries: 3, AckBytes: 8})
	x.gap = 5 * sim.Microsecond // the turn comes long after the acknowledgement
	var sent []int32
	x.wire = func(from, _ int32, ack bool, _ uint32) carried {
		if !ack {
			sent = append(sent, from)
		}
		return carried{sim.Microsecond}
	}
	x.sends(0, x.frame(0, 2, 1, 1), 0)
	x.sends(3*sim.Microsecond, x.frame(1, 2, 2, 1), 0)
	require.NoError(t, x.engine.Run())
	require.Equal(t, []sentPacket{{0, 1, 0}, {1, 2, 0}}, x.nodes[2].came)
	require.Equal(t, []int32{0, 1}, sent)
	require.Equal(t, portals.NIOK, x.nodes[0].ended[1].fail)
	require.Equal(t, portals.NIOK, x.nodes[1].ended[2].fail)
}
