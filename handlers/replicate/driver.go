//go:build !tinygo

package replicate

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// By is who sends copies to servers.
type By int

// Who does.
const (
	Handlers By = iota // of the servers' network interfaces; no host takes part
	Hosts              // programs of the servers, each when it has the message
	Client             // who writes: each server by itself, which does nothing
)

// Options say what a group of servers is.
type Options struct {
	// Servers are the nodes that have copies, 1 to replicate.MaxServers. The
	// first one that is alive gets writes, unless the client sends to all.
	Servers []int
	// Bytes is what each has, 1 to 1 TiB.
	Bytes int64
	// Tree says that each server passes on to two others, else to the next one.
	Tree bool
	By   By
	// Clients is how many processes may open the group, 1 to MaxClients.
	Clients int
	// PT is the first of the portal table entries of the group, of two at each
	// node: several groups may share nodes.
	PT uint32
	// Timeout is how long a client waits for the next answer; 0: for ever. An
	// access that ends with ErrSilent may have been carried out, in part, or
	// still be.
	Timeout sim.Time
	// Key has servers guarded: requests need a capability that was signed with
	// it (Grant). Who may write is looked at before anything is written, which
	// takes handlers. nil: whoever reaches a server may read and write.
	Key *Key
	// Fill writes what the memory holds at the beginning, from a place on; nil: zeros.
	Fill func(offset int64, b []byte)
}

// MaxClients is the largest number of clients of a group.
const MaxClients = raid5.MaxSlots / clientSlots

const maxBytes = 1 << 40

// Group is servers with copies. What is in it does not change once programs run.
type Group struct {
	o       Options
	c       *runtime.Cluster
	mtu     int64
	module  *handlers.Module
	servers []*server
}

// server is one of the group, at its node.
type server struct {
	node   int
	pid    uint32
	index  int
	memory runtime.View
	in     *handlers.Installed
}

// New checks the options and starts the servers.
func New(c *runtime.Cluster, o Options) (*Group, error) {
	if err := o.check(c); err != nil {
		return nil, err
	}
	g := &Group{o: o, c: c, mtu: int64(c.Profile().Fabric.MTU)}
	if o.By == Handlers {
		var err error
		if g.module, err = handlers.Must("replicate").Load(c); err != nil {
			return nil, err
		}
	}
	for i, node := range o.Servers {
		s := &server{node: node, pid: uint32(c.Processes(node)), index: i}
		g.servers = append(g.servers, s)
		if err := c.SpawnService(node, fmt.Sprintf("copy %d", i), func(p *runtime.Proc) error { return g.serve(p, s) }); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (o *Options) check(c *runtime.Cluster) error {
	if n := len(o.Servers); n < 1 || n > MaxServers {
		return fmt.Errorf("replicate: %d servers, expected 1 to %d", n, MaxServers)
	}
	used := make(map[int]bool)
	for i, node := range o.Servers {
		if node < 0 || node >= c.Nodes() || node > raid5.MaxNID {
			return fmt.Errorf("replicate: server %d is on node %d of %d", i, node, c.Nodes())
		}
		if used[node] {
			return fmt.Errorf("replicate: two servers on node %d: its failure would lose two copies", node)
		}
		used[node] = true
	}
	switch {
	case o.Bytes < 1 || o.Bytes > maxBytes:
		return fmt.Errorf("replicate: %d B, expected 1 to %d", o.Bytes, int64(maxBytes))
	case o.Clients < 1 || o.Clients > MaxClients:
		return fmt.Errorf("replicate: %d clients, expected 1 to %d", o.Clients, MaxClients)
	case o.By < Handlers || o.By > Client:
		return fmt.Errorf("replicate: sent by %d, expected %d to %d", o.By, Handlers, Client)
	case o.Key != nil && o.By != Handlers:
		return errors.New("replicate: a key without handlers: by the time that a host sees a write it is in its memory")
	}
	return nil
}

// replyPT is the portal table entry of clients.
func (g *Group) replyPT() uint32 { return g.o.PT + 1 }

// id is a server's process.
func (g *Group) id(server uint32) portals.ID {
	s := g.servers[server]
	return portals.PhysID(uint32(s.node), s.pid)
}

// serve is a server's program.
func (g *Group) serve(p *runtime.Proc, s *server) error {
	// messages are longer by their user headers, which are not written
	all := p.Alloc(int(g.o.Bytes) + FetchSize)
	all.Lock()
	if s.memory = all.Slice(0, int(g.o.Bytes)); g.o.Fill != nil {
		g.o.Fill(0, s.memory.Raw())
	}
	var err error
	eq := portals.EQNone
	if g.o.By == Hosts {
		if eq, err = p.NI().Objects().EQAlloc(uint64(g.o.Clients*flights*(hostChunks+1) + 1)); err != nil {
			return err
		}
		p.NI().Objects().Label(eq, "writes to copies")
	}
	if _, err := p.NI().Objects().PTAlloc(0, eq, g.o.PT); err != nil {
		return fmt.Errorf("replicate: portal table entry %d: %w", g.o.PT, err)
	}
	if g.o.Key == nil {
		if err := g.append(p, s.memory, portals.AnyID, ReadBits, 0, portals.OptMEOpGet|portals.OptMEEventCommDisable, nil); err != nil {
			return err
		}
	}
	const live = ^uint64(KindMask)
	switch g.o.By {
	case Client:
		return g.append(p, s.memory, portals.AnyID, StoreBits, live, portals.OptMEOpPut|portals.OptMEEventCommDisable, nil)
	case Hosts:
		if err := g.append(p, s.memory, portals.AnyID, StoreBits, live|StoreBits^PassBits, portals.OptMEOpPut, nil); err != nil {
			return err
		}
		return g.host(p, s, eq)
	}
	return g.install(p, s, all, live)
}

// install gives a server its handlers; its process has nothing more to do. all
// is its memory and room behind it.
func (g *Group) install(p *runtime.Proc, s *server, all runtime.View, live uint64) (err error) {
	state := State{
		Slots: uint32(g.o.Clients * clientSlots), PT: g.o.PT, ReplyPT: g.replyPT(), Index: uint32(s.index), Bytes: uint64(g.o.Bytes),
	}
	if g.o.Tree {
		state.Tree = 1
	}
	for i, other := range g.servers {
		state.Servers[i] = Server{NID: uint32(other.node), PID: other.pid}
	}
	if g.o.Key != nil {
		state.Key = *g.o.Key
	}
	s.in, err = g.module.Install(p, handlers.Options{
		Header: Open, Payload: Store, State: &state, Memory: int64(unsafe.Sizeof(state)) + state.Memory(), Shared: true,
	})
	if err != nil {
		return err
	}
	entry := func(memory runtime.View, of portals.ID, bits, ignore uint64, header, payload string, userHdr uint64) error {
		on, err := s.in.HPU.Spin(header, payload, "")
		if err != nil {
			return err
		}
		on.UserHdrLen = userHdr
		return g.append(p, memory, of, bits, ignore, s.in.EntryOptions|portals.OptMEEventCommDisable, on)
	}
	for _, other := range g.servers { // from these only: what they pass on they have looked at
		if err := entry(s.memory, portals.PhysID(uint32(other.node), other.pid), PassBits, live, "", Store, 0); err != nil {
			return err
		}
	}
	if g.o.Key == nil {
		return entry(s.memory, portals.AnyID, StoreBits, live, Open, Store, 0)
	}
	return errors.Join(
		entry(all, portals.AnyID, AdmitBits, live, Admit, Store, CapabilitySize),
		entry(all, portals.AnyID, FetchBits, 0, Send, "", FetchSize),
	)
}

// append lets others reach a server's memory.
func (g *Group) append(p *runtime.Proc, memory runtime.View, of portals.ID, bits, ignore uint64, options portals.EntryOptions, on *portals.Spin) error {
	_, err := p.NI().MEAppend(g.o.PT, &portals.ME{
		Start: memory.Addr(), Length: uint64(memory.Len()), UID: portals.UIDAny, MatchID: of, MatchBits: bits, IgnoreBits: ignore, Spin: on,
		Options: options | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0)
	return err
}

// Peek returns what a server has, for tests and experiments.
func (g *Group) Peek(server int) []byte { return g.servers[server].memory.Snapshot() }

// Clear writes zeros over what a server has: it has been replaced.
func (g *Group) Clear(server int) { clear(g.servers[server].memory.Write()) }

// Check compares the copies of servers.
func (g *Group) Check(servers ...int) error {
	for _, i := range servers[1:] {
		if a, b := g.Peek(servers[0]), g.Peek(i); !bytes.Equal(a, b) {
			at := 0
			for a[at] == b[at] {
				at++
			}
			return fmt.Errorf("replicate: byte %d is %#02x at server %d and %#02x at server %d", at, a[at], servers[0], b[at], i)
		}
	}
	return nil
}

// Node is where a server runs.
func (g *Group) Node(server int) *runtime.Node { return g.c.Node(g.servers[server].node) }

// Counts are what the handlers of a server have done; without handlers nothing.
func (g *Group) Counts(server int) Counts {
	var s State
	if in := g.servers[server].in; in != nil {
		if err := spin.DecodeState(in.HPU.Bytes(), &s); err != nil {
			panic(err) //lint:panic the state is as long as the library's
		}
	}
	return s.Counts
}
