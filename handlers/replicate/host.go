//go:build !tinygo

package replicate

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

//go:generate go run ../../internal/build/cmd -o replicate.wasm guest

//go:embed replicate.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("replicate", wasm)

// ServerSlot is a server that keeps a copy and passes writes on.
var ServerSlot = Library.Slot(handlers.Slot{
	Name: "server", Short: "a server that keeps a copy and passes writes on",
	Handlers: []string{Open, Store, Admit, Send},
	Expects: []string{
		"Entries and their handlers are in handlers/replicate/README.md.",
		"The last server tells the client when a write is in its memory.",
	},
})

// Names of its handlers.
const (
	Open  = "open"  // header, of a write
	Store = "store" // payload
	Admit = "admit" // header, of a write to guarded servers
	Send  = "fetch" // header, of a read from them
)

// Mode selects who sends copies to servers.
type Mode int

// Values of By.
const (
	Handlers Mode = iota // of the servers' network interfaces; no host takes part
	Hosts                // programs of the servers, each after it has the whole message
	Client               // the client: to each server by itself, which does nothing
)

// Options describe a group of servers.
type Options struct {
	// Servers are the nodes with copies, 1 to replicate.MaxServers. The first
	// one that is alive gets writes, unless the client sends to all.
	Servers []int
	// Bytes is the size of the memory, 1 to 1 TiB.
	Bytes int64
	// Tree: each server passes on to two others, else to the next one.
	Tree bool
	Mode Mode
	// Clients is how many processes may open the group, 1 to MaxClients.
	Clients int
	// PT is the first of two portal table entries of the group at each node.
	// Several groups may share nodes.
	PT uint32
	// Timeout is how long a client waits for the next answer; 0: for ever. An
	// access that ends with ErrSilent may have been carried out in part, or may
	// still be.
	Timeout sim.Time
	// Key guards the servers: requests need a capability that was signed with
	// it (Grant). Handlers check the right to write before anything is written.
	// nil: every process may read and write.
	Key *Key
	// Fill writes the initial content of the memory from offset on; nil: zeros.
	Fill func(offset int64, b []byte)
}

// MaxClients is the largest number of clients of a group.
const MaxClients = raid5.MaxSlots / service.Slots

const maxBytes = 1 << 40

// Group is servers with copies. Its fields do not change once programs run.
type Group struct {
	o       Options
	c       *runtime.Cluster
	mtu     int64
	module  *handlers.Module
	servers []*server
}

// server is a server of the group, at its node.
type server struct {
	node   int
	pid    uint32
	index  int
	memory runtime.View
	in     *handlers.Installed
}

// New checks the options and starts the servers. For example:
//
//	group, err := replicate.New(cluster, replicate.Options{
//		Servers: []int{1, 2, 3}, Bytes: 1 << 20, Mode: replicate.Handlers, Clients: 1,
//	})
//	client, err := group.Open(p, 0)
//	err = client.Write(offset, view) // until every server has it
//	err = client.Fail(1)             // from now on without server 1
//	err = client.Copy(1)             // one in its place is filled; no client writes meanwhile
func New(c *runtime.Cluster, o Options) (*Group, error) {
	if err := o.check(c); err != nil {
		return nil, err
	}
	g := &Group{o: o, c: c, mtu: int64(c.Profile().Fabric.MTU)}
	if o.Mode == Handlers {
		var err error
		if g.module, err = ServerSlot.Load(c); err != nil {
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
	if err := service.Distinct("replicate", c, o.Servers, raid5.MaxNID, "two copies"); err != nil {
		return err
	}
	switch {
	case o.Bytes < 1 || o.Bytes > maxBytes:
		return fmt.Errorf("replicate: %d B, expected 1 to %d", o.Bytes, int64(maxBytes))
	case o.Clients < 1 || o.Clients > MaxClients:
		return fmt.Errorf("replicate: %d clients, expected 1 to %d", o.Clients, MaxClients)
	case o.Mode < Handlers || o.Mode > Client:
		return fmt.Errorf("replicate: sent by %d, expected %d to %d", o.Mode, Handlers, Client)
	case o.Key != nil && o.Mode != Handlers:
		return errors.New("replicate: a key without handlers: by the time that a host sees a write it is in its memory")
	}
	return nil
}

// replyPT returns the portal table entry of clients.
func (g *Group) replyPT() uint32 { return g.o.PT + 1 }

// id returns a server's process.
func (g *Group) id(server uint32) portals.ID {
	s := g.servers[server]
	return portals.PhysID(uint32(s.node), s.pid)
}

// serve is a server's program.
func (g *Group) serve(p *runtime.Proc, s *server) error {
	u := handlers.NewSetup("replicate", p)
	// messages also have user headers, which are not written
	all := u.Locked(int(g.o.Bytes) + FetchSize)
	if s.memory = all.Slice(0, int(g.o.Bytes)); g.o.Fill != nil {
		g.o.Fill(0, s.memory.Raw())
	}
	eq := portals.EQNone
	if g.o.Mode == Hosts {
		eq = u.Queue(g.o.Clients*service.Flights*(hostChunks+1)+1, "writes to copies")
	}
	u.Table(g.o.PT, eq, 0)
	entry := func(bits, ignore uint64, options portals.EntryOptions) {
		u.Append(g.o.PT, portals.AnyID, s.memory, portals.ME{MatchBits: bits, IgnoreBits: ignore, Options: options | portals.OptMEEventLinkDisable})
	}
	if g.o.Key == nil {
		entry(ReadBits, 0, portals.OptMEOpGet|portals.OptMEEventCommDisable)
	}
	switch g.o.Mode {
	case Client:
		entry(StoreBits, live, portals.OptMEOpPut|portals.OptMEEventCommDisable)
		return u.Err
	case Hosts:
		if entry(StoreBits, live|StoreBits^PassBits, portals.OptMEOpPut); u.Err != nil {
			return u.Err
		}
		return g.host(p, s, eq)
	}
	return g.install(u, p, s, all)
}

// live are the bits in the match bits of a write that list the servers that are
// alive.
const live = ^uint64(KindMask)

// install gives a server its handlers; its process has nothing more to do. all
// is its memory with room behind it.
func (g *Group) install(u *handlers.Setup, p *runtime.Proc, s *server, all runtime.View) (err error) {
	if u.Err != nil {
		return u.Err
	}
	state := State{
		Slots: uint32(g.o.Clients * service.Slots), PT: g.o.PT, ReplyPT: g.replyPT(), Index: uint32(s.index), Bytes: uint64(g.o.Bytes),
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
	entry := func(memory runtime.View, of portals.ID, bits, ignore uint64, header, payload string, userHdr uint64) {
		on := u.Spin(s.in, header, payload)
		on.UserHdrLen = userHdr
		options := s.in.EntryOptions | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable
		u.Append(g.o.PT, of, memory, portals.ME{MatchBits: bits, IgnoreBits: ignore, Spin: on, Options: options})
	}
	for _, other := range g.servers { // only from these: they check packets before they pass them on
		entry(s.memory, portals.PhysID(uint32(other.node), other.pid), PassBits, live, "", Store, 0)
	}
	if g.o.Key == nil {
		entry(s.memory, portals.AnyID, StoreBits, live, Open, Store, 0)
	} else {
		entry(all, portals.AnyID, AdmitBits, live, Admit, Store, CapabilitySize)
		entry(all, portals.AnyID, FetchBits, 0, Send, "", FetchSize)
	}
	return u.Err
}

// Peek returns the memory of a server, for tests and experiments.
func (g *Group) Peek(server int) []byte { return g.servers[server].memory.Snapshot() }

// Clear fills a server's memory with zeros, as if it had been replaced.
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

// Node returns the node of a server.
func (g *Group) Node(server int) *runtime.Node { return g.c.Node(g.servers[server].node) }

// Counts returns the counts of a server's handlers, or zeros without handlers.
func (g *Group) Counts(server int) Counts { return handlers.Peek[State](g.servers[server].in).Counts }
