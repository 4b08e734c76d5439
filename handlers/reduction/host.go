//go:build !tinygo

package reduction

import (
	_ "embed"
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o reduction.wasm guest

//go:embed reduction.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("reduction", wasm)

// AggregatorSlot is an aggregator of a tree.
var AggregatorSlot = Library.Slot(handlers.Slot{
	Name: "aggregator", Short: "an aggregator of an allreduce, in a switch or a NIC",
	Handlers: []string{Handler},
	Expects: []string{
		"A child's message is whole blocks of its vector, a packet each; only the last block of a vector is shorter.",
		"Each block of the result goes to every child as one message, when the blocks of all children have come.",
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
	Members []portals.ID // its processes, in the order of their ranks
	Tree    Tree         // see Switches and NICs
	// Number of the group, below Groups: processes may be members of several.
	Number int
	// Window is how many blocks a member may have sent without their results, 1 to
	// MaxWindow. 0: as many as fit into the packet buffer and the HPU memory of
	// every aggregator, at most DefaultWindow.
	Window int
	// Beside is how many other groups at most have aggregators at a node of this one
	// and calls at the same time: they share the packet buffer.
	Beside int
}

// DefaultWindow is the most blocks of Options.Window 0.
const DefaultWindow = 256

// Groups is how many groups there may be. Each has a portal table entry, behind
// those of packetizers and mailboxes. Those of package allreduce come from the
// other end.
const Groups = 255 - lastPT

const lastPT = 2 + 2*mailbox.Interfaces

// Portal returns the portal table entry of a group. Package sparse has groups
// among the same numbers.
func Portal(number int) uint32 { return lastPT + 1 + uint32(number) }

// Group is a group of processes with a tree of aggregators.
type Group struct {
	o      Options
	pt     uint32
	block  int
	parent []int                 // of each member, its aggregator
	place  []int                 // likewise, among the children
	pids   []uint32              // of each aggregator
	in     []*handlers.Installed // likewise; there when the run has begun
}

// Group starts the aggregators of a group, as services at the present time.
// Call it before the programs of the members run.
func (l *Loaded) Group(o Options) (*Group, error) {
	block := int(l.cluster.Profile().Fabric.MTU) &^ 7
	if mtu := int(l.cluster.Profile().Fabric.MTU); mtu != block || mtu == 0 {
		return nil, fmt.Errorf("reduction: packets of %d B (fabric.mtu), expected a multiple of 8", mtu)
	}
	g := &Group{o: o, pt: Portal(o.Number), block: block}
	if err := g.check(l); err != nil {
		return nil, err
	}
	g.parent, g.place = make([]int, len(o.Members)), make([]int, len(o.Members))
	for i := range o.Tree {
		for place, c := range o.Tree[i].Children {
			if !c.Inner {
				g.parent[c.Number], g.place[c.Number] = i, place
			}
		}
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

// check fills in the window and refuses invalid options.
func (g *Group) check(l *Loaded) error {
	o, p := &g.o, l.cluster.Profile()
	switch {
	case len(o.Members) == 0 || len(o.Tree) == 0:
		return fmt.Errorf("reduction: %d members and %d aggregators, expected at least one of each", len(o.Members), len(o.Tree))
	case o.Number < 0 || o.Number >= Groups:
		return fmt.Errorf("reduction: group %d, expected one below %d", o.Number, Groups)
	case o.Beside < 0:
		return fmt.Errorf("reduction: %d groups beside, expected none or more", o.Beside)
	case o.Window < 0 || o.Window > MaxWindow:
		return fmt.Errorf("reduction: a window of %d blocks, expected 1 to %d", o.Window, MaxWindow)
	}
	most := 0
	for i := range o.Tree {
		most = max(most, len(o.Tree[i].Children))
	}
	if most > MaxChildren {
		return fmt.Errorf("reduction: an aggregator with %d children, expected at most %d", most, MaxChildren)
	}
	s := State{Children: uint32(most), Block: uint32(g.block)}
	room := min(int64(p.NIC.PacketBuffer)/int64((1+o.Beside)*most*(g.block+int(p.Fabric.Header))),
		(p.HPU.MaxHPUMemory-l.plan.State.Size-ChildBytes*int64(most))/(2*int64(s.SlotBytes())))
	if room < 1 {
		return fmt.Errorf("reduction: no room for a block of %d B of each of %d children, with %d groups beside: nic.packet_buffer has %d B, hpu.max_hpu_memory %d B",
			g.block, most, o.Beside, p.NIC.PacketBuffer, p.HPU.MaxHPUMemory)
	}
	if o.Window == 0 {
		o.Window = int(min(room, DefaultWindow))
	}
	if int64(o.Window) > room {
		return fmt.Errorf("reduction: a window of %d blocks of %d children, expected at most %d: nic.packet_buffer or hpu.max_hpu_memory has no room for more", o.Window, most, room)
	}
	nodes := l.cluster.Nodes()
	if units := fabric.UnitsOf(l.cluster.Fabric()); units != nil {
		_, nodes = units.Nodes()
	}
	if err := o.Tree.Check(len(o.Members), nodes); err != nil {
		return fmt.Errorf("reduction: %w", err)
	}
	return nil
}

// install makes the entry of an aggregator. It takes no time.
func (g *Group) install(l *Loaded, p *runtime.Proc, i int) error {
	a := &g.o.Tree[i]
	u := handlers.NewSetup("reduction", p)
	s := State{Children: uint32(len(a.Children)), Window: uint32(g.o.Window), Block: uint32(g.block)}
	fields := map[string]any{"pt": g.pt, "children": s.Children, "window": s.Window, "block": s.Block, "root": 1}
	if a.Parent >= 0 {
		parent := &g.o.Tree[a.Parent]
		fields["root"], fields["parent_nid"], fields["parent_pid"], fields["place"] = 0, uint32(parent.Node), g.pids[a.Parent], uint32(a.Place)
	}
	in, err := l.plan.Install(p, handlers.Options{Memory: l.plan.State.Size + s.Bytes(), Shared: true, State: fields})
	if err != nil {
		return err
	}
	g.in[i] = in
	table := in.HPU.Present()[l.plan.State.Size:]
	for k, c := range a.Children {
		var id portals.ID
		inner := uint32(0)
		if c.Inner {
			id, inner = portals.PhysID(uint32(g.o.Tree[c.Number].Node), g.pids[c.Number]), 1
		} else {
			id = g.o.Members[c.Number]
		}
		for j, v := range [...]uint32{id.NID, id.PID, inner, 0} {
			binary.LittleEndian.PutUint32(table[ChildBytes*k+4*j:], v)
		}
	}
	u.Of = fmt.Sprintf(" of group %d", g.o.Number)
	u.Append(u.Table(g.pt, portals.EQNone, 0), portals.AnyID, p.Alloc(g.o.Window*g.block), portals.ME{
		IgnoreBits: ^uint64(0), Spin: in.Spin,
		Options: in.EntryOptions | portals.OptMEOpPut | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable,
	})
	return u.Err
}

// Window is how many blocks a member may have sent without their results.
func (g *Group) Window() int { return g.o.Window }

// Counts returns the sum of the counts of all aggregators so far.
func (g *Group) Counts() (sum Counts) {
	for _, in := range g.in {
		c := handlers.Peek[State](in).Counts
		sum.Vectors += c.Vectors
		sum.Early += c.Early
		sum.Blocks += c.Blocks
		sum.Results += c.Results
		sum.Strange += c.Strange
	}
	return sum
}
