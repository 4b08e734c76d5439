//go:build !tinygo

package sparse

import (
	_ "embed"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o sparse.wasm guest

//go:embed sparse.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("sparse", wasm)

// AggregatorSlot is an aggregator of a tree.
var AggregatorSlot = Library.Slot(handlers.Slot{
	Name: "aggregator", Short: "an aggregator of a sparse allreduce, in a switch or a NIC",
	Handlers: []string{Handler},
	Expects: []string{
		"A child's message is a packet of (index, value) pairs of a block; the block's last packet says so. A block of zeros is one pair of no index.",
		"The pairs of the result go to every child, likewise, when the blocks of all children have come.",
		"A child sends a block when it has the result of the block window before.",
	},
})

// Handler is the name of its handler.
const Handler = "aggregator"

// Loaded is the library on the devices of a cluster.
type Loaded struct {
	cluster *runtime.Cluster
	plan    *handlers.Plan
}

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := AggregatorSlot.Load(c)
	if err != nil {
		return nil, err
	}
	plan, err := m.Plan("", Handler, "")
	if err != nil {
		return nil, err
	}
	return &Loaded{c, plan}, nil
}

// Options are the options of a group.
type Options struct {
	Members []portals.ID   // its processes, in the order of their ranks
	Tree    reduction.Tree // see reduction.Switches and reduction.NICs
	// Number of the group, below reduction.Groups. Groups of package reduction
	// have others.
	Number int
	// Span is how many indices a block has, a power of two up to MaxSpan.
	Span int
	// Most is how many pairs of a block a member may have; 0: Span. The less, the
	// less memory aggregators need for packets that come before their turn.
	Most int
	// Table is how many sums of a block an aggregator has a place for, a power of
	// two up to Span; 0: Span, an array. Fewer are a hash table, and a pair whose
	// place another index has goes up at once. The root has an array.
	Table int
	// Window is how many blocks a member may have sent without their results, 1 to
	// MaxWindow. 0: as many as fit into the packet buffer and the HPU memory of
	// every aggregator, at most DefaultWindow, and Blocks if it is not 0. Groups that
	// call at the same time share the packet buffers of their nodes: give them less.
	Window int
	// Blocks is how many the longest vector has; 0: any number.
	Blocks int
}

// DefaultWindow is the most blocks of Options.Window 0.
const DefaultWindow = 256

// Group is a group of processes with a tree of aggregators.
type Group struct {
	o      Options
	pt     uint32
	states []State   // of each aggregator, as it begins
	tables [][]Child // likewise, its children
	parent []int     // of each member, its aggregator
	place  []int     // likewise, among the children
	pids   []uint32  // of each aggregator
	in     []*handlers.Installed
}

// Group starts the aggregators of a group, as services at the present time.
// Call it before the programs of the members run.
func (l *Loaded) Group(o Options) (*Group, error) {
	g := &Group{o: o, pt: reduction.Portal(o.Number)}
	if err := g.check(l.cluster); err != nil {
		return nil, fmt.Errorf("sparse: %w", err)
	}
	g.parent, g.place = make([]int, len(o.Members)), make([]int, len(o.Members))
	for i := range o.Tree {
		for place, c := range o.Tree[i].Children {
			if !c.Inner {
				g.parent[c.Number], g.place[c.Number] = i, place
			}
		}
	}
	if err := g.size(l); err != nil {
		return nil, fmt.Errorf("sparse: %w", err)
	}
	g.in = make([]*handlers.Installed, len(o.Tree))
	for i := range o.Tree {
		g.pids = append(g.pids, uint32(l.cluster.Processes(o.Tree[i].Node)))
		name := fmt.Sprintf("aggregator %d of group %d", i, o.Number)
		if err := l.cluster.SpawnService(o.Tree[i].Node, name, func(p *runtime.Proc) error { return g.install(l, p, i) }); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// check fills in defaults and refuses invalid options.
func (g *Group) check(c *runtime.Cluster) error {
	o, mtu := &g.o, int(c.Profile().Fabric.MTU)
	if o.Table == 0 {
		o.Table = o.Span
	}
	if o.Most == 0 {
		o.Most = o.Span
	}
	switch {
	case mtu == 0 || mtu%PairBytes != 0:
		return fmt.Errorf("packets of %d B (fabric.mtu), expected a multiple of %d", mtu, PairBytes)
	case len(o.Members) == 0 || len(o.Tree) == 0:
		return fmt.Errorf("%d members and %d aggregators, expected at least one of each", len(o.Members), len(o.Tree))
	case o.Number < 0 || o.Number >= reduction.Groups:
		return fmt.Errorf("group %d, expected one below %d", o.Number, reduction.Groups)
	case bits.OnesCount(uint(o.Span)) != 1 || o.Span > MaxSpan:
		return fmt.Errorf("blocks of %d indices, expected a power of two up to %d", o.Span, MaxSpan)
	case bits.OnesCount(uint(o.Table)) != 1 || o.Table > o.Span:
		return fmt.Errorf("a table of %d, expected a power of two up to the span of %d", o.Table, o.Span)
	case o.Most < 1 || o.Most > o.Span:
		return fmt.Errorf("%d pairs of a block, expected 1 to the span of %d", o.Most, o.Span)
	case o.Blocks < 0:
		return fmt.Errorf("%d blocks, expected none or more", o.Blocks)
	case o.Window < 0 || o.Window > MaxWindow:
		return fmt.Errorf("a window of %d blocks, expected 1 to %d", o.Window, MaxWindow)
	}
	for i := range o.Tree {
		if n := len(o.Tree[i].Children); n > MaxChildren {
			return fmt.Errorf("an aggregator with %d children, expected at most %d", n, MaxChildren)
		}
	}
	nodes := c.Nodes()
	if units := fabric.UnitsOf(c.Fabric()); units != nil {
		_, nodes = units.Nodes()
	}
	return o.Tree.Check(len(o.Members), nodes)
}

// size reckons what children send at most, so that every packet that comes before
// its turn has a place, and with it the window.
func (g *Group) size(l *Loaded) error {
	o, p := &g.o, l.cluster.Profile()
	g.states, g.tables = make([]State, len(o.Tree)), make([][]Child, len(o.Tree))
	pairs, err := g.below(0, uint32(p.Fabric.MTU))
	if err != nil {
		return err
	}
	if n := g.states[0].Packets(pairs); n > MaxPackets {
		return fmt.Errorf("%d packets of the result of a block, expected at most %d: a smaller Span or Most has fewer", n, MaxPackets)
	}
	room := int64(DefaultWindow)
	if o.Blocks > 0 && o.Window == 0 {
		room = min(room, int64(o.Blocks))
	}
	for i := range g.states {
		s, flying := &g.states[i], int64(0)
		for _, c := range g.tables[i] {
			flying += int64(c.Packets) * int64(int(c.Bytes)+int(p.Fabric.Header))
		}
		memory := p.HPU.MaxHPUMemory - l.plan.State.Size - ChildBytes*int64(s.Children)
		if flying > int64(p.NIC.PacketBuffer) || 2*int64(s.SlotBytes()) > memory {
			return fmt.Errorf("aggregator %d has no room for a block: %d B of packets of %d children, nic.packet_buffer has %d B; two slots of %d B, hpu.max_hpu_memory has %d B; a smaller Span or Most needs less",
				i, flying, s.Children, p.NIC.PacketBuffer, s.SlotBytes(), memory)
		}
		room = min(room, int64(p.NIC.PacketBuffer)/flying, memory/(2*int64(s.SlotBytes())))
	}
	if int64(o.Window) > room {
		return fmt.Errorf("a window of %d blocks, expected at most %d: nic.packet_buffer or hpu.max_hpu_memory has no room for more", o.Window, room)
	}
	if o.Window == 0 {
		o.Window = int(room)
	}
	for i := range g.states {
		g.states[i].Window, g.states[i].Results = uint32(o.Window), uint32(g.states[i].Packets(pairs))
	}
	return nil
}

// below fills in the state and the children of an aggregator and those below it,
// and returns how many pairs of a block it sends at most: with an array, one of
// each index; with a hash table, perhaps all that it gets.
func (g *Group) below(i int, packet uint32) (pairs int64, err error) {
	o, a := &g.o, &g.o.Tree[i]
	s := State{PT: g.pt, Children: uint32(len(a.Children)), Packet: packet, Span: uint32(o.Span), Table: uint32(o.Table), Root: 1}
	if a.Parent >= 0 {
		s.Root, s.ParentNID, s.Place = 0, uint32(o.Tree[a.Parent].Node), uint32(a.Place)
	} else {
		s.Table = s.Span
	}
	kept := int64(0)
	for _, r := range a.Children {
		most := int64(o.Most)
		if r.Inner {
			if most, err = g.below(r.Number, packet); err != nil {
				return 0, err
			}
		}
		c := Child{First: uint32(kept), Packets: uint32(s.Packets(most)), Bytes: uint32(min(int64(packet), PairBytes*most))}
		kept += int64(c.Packets) * int64(KeptHead+c.Bytes)
		if s.Packets(most) > MaxPackets || kept > 1<<30 {
			return 0, fmt.Errorf("aggregator %d: %d pairs of a block from a child, expected at most %d, and 1 GiB from all: a smaller Span or Most has fewer", i, most, MaxPackets*int64(packet)/PairBytes)
		}
		g.tables[i] = append(g.tables[i], c)
		pairs += most
	}
	s.Kept = uint32(kept)
	g.states[i] = s
	if s.Table == s.Span {
		pairs = min(pairs, int64(s.Span))
	}
	return pairs, nil
}

// install makes the entry of an aggregator. It takes no time.
func (g *Group) install(l *Loaded, p *runtime.Proc, i int) error {
	u := handlers.NewSetup("sparse", p)
	s, a := &g.states[i], &g.o.Tree[i]
	if a.Parent >= 0 {
		s.ParentPID = g.pids[a.Parent]
	}
	in, err := l.plan.Install(p, handlers.Options{Memory: l.plan.State.Size + s.Bytes(), Shared: true, State: spin.EncodeState(s)})
	if err != nil {
		return err
	}
	g.in[i] = in
	table := in.HPU.Present()[l.plan.State.Size:]
	for k, r := range a.Children {
		c := g.tables[i][k]
		if r.Inner {
			c.NID, c.PID = uint32(g.o.Tree[r.Number].Node), g.pids[r.Number]
		} else {
			c.NID, c.PID = g.o.Members[r.Number].NID, g.o.Members[r.Number].PID
		}
		copy(table[ChildBytes*k:], spin.EncodeState(&c))
	}
	u.Of = fmt.Sprintf(" of group %d", g.o.Number)
	u.Append(u.Table(g.pt, portals.EQNone, 0), portals.AnyID, p.Alloc(g.inbox()), portals.ME{
		IgnoreBits: ^uint64(0), Spin: in.Spin,
		Options: in.EntryOptions | portals.OptMEOpPut | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable,
	})
	return u.Err
}

// inbox is how many bytes the results of a window take in a process's memory.
// Aggregators get them at the same offsets.
func (g *Group) inbox() int {
	return g.o.Window * int(g.states[0].Results) * int(g.states[0].Packet)
}

// Window is how many blocks a member may have sent without their results.
func (g *Group) Window() int { return g.o.Window }

// Counts returns the sum of the counts of all aggregators so far.
func (g *Group) Counts() (sum Counts) {
	for _, in := range g.in {
		c := handlers.Peek[State](in).Counts
		sum.Packets += c.Packets
		sum.Early += c.Early
		sum.Spilled += c.Spilled
		sum.Blocks += c.Blocks
		sum.Results += c.Results
		sum.Strange += c.Strange
	}
	return sum
}
