//go:build !tinygo

package raid5

import (
	_ "embed"
	"fmt"
	"slices"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

//go:generate go run ../../internal/build/cmd -o raid5.wasm guest

//go:embed raid5.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("raid5", wasm)

// ServerSlot is a server of an array with parity.
var ServerSlot = Library.Slot(handlers.Slot{
	Name: "server", Short: "a server of an array with parity",
	Handlers: []string{Open, Write, Apply, Done, Gather, Fold, Fill, Encode, Collect, Blend},
	Expects: []string{
		"Entries and their handlers are in handlers/raid5/README.md.",
		"A write is answered when data and parity are in memory.",
	},
})

// Names of its handlers.
const (
	Open   = "open"   // header, of a write
	Write  = "write"  // payload
	Apply  = "apply"  // payload, of a difference
	Done   = "done"   // header
	Gather = "gather" // header
	Fold   = "fold"   // payload
	Fill   = "fill"   // payload

	// With several parity servers these replace Write, Gather and Fold.
	Encode  = "encode"  // payload, of a write
	Collect = "collect" // header
	Blend   = "blend"   // payload
)

// Mode selects who serves an array.
type Mode int

// Values of By.
const (
	Handlers Mode = iota // of the servers' network interfaces; no host takes part
	// programs: the core of a data server computes the difference, and the core
	// of the parity server applies it
	Hosts
	// as Hosts, but the data server's network interface answers the client,
	// with an operation that the parity server's answer triggers
	Triggered
)

// Options describe an array.
type Options struct {
	Layout
	// Servers are the nodes of the data servers, followed by the nodes of the
	// parity servers: none, one (RAID-5), or up to raid5.MaxParity. As many
	// servers may fail as there are parity servers.
	Servers []int
	Mode    Mode
	// Clients is how many processes may open the array, 1 to MaxClients.
	Clients int
	// Cores is how many cores of each server serve it with Hosts and Triggered,
	// each for a part of the memory; 0: 1.
	Cores int
	// PT is the first of two portal table entries of the array at each node.
	// Several arrays may share nodes.
	PT uint32
	// Timeout is how long a client waits for the next answer, or, while a
	// server has failed, for rows that another client has locked (ErrHeld); 0:
	// for ever. An access that ends with ErrSilent may have been carried out in
	// part, or may still be.
	Timeout sim.Time
	// Fill writes the initial bytes of the array from offset on; nil: zeros.
	Fill func(offset int64, b []byte)
	// Durable means that a write ends when the storage devices of all changed
	// servers have it. Their nodes must have such devices (storage.kind).
	Durable bool
	// Lost are servers that have zeros instead, like new ones in the place of
	// failed ones.
	Lost []int
}

// MaxClients is the largest number of clients of an array.
const MaxClients = MaxSlots / service.Slots

// Array is a number of servers. Its fields do not change once programs run.
type Array struct {
	o       Options
	c       *runtime.Cluster
	mtu     int64
	module  *handlers.Module
	servers []*server
	code    Code
}

// server is a server of the array, at its node.
type server struct {
	node  int
	pid   uint32 // of its first process
	index int
	parts []runtime.View // memory: one, or one for each core
	in    *handlers.Installed

	flusher uint32     // with Durable: the process that owns the storage device
	disk    *host.Disk // there
}

// New checks the options and starts the servers. For example:
//
//	array, err := raid5.New(cluster, raid5.Options{
//		Layout: raid5.Layout{Data: 4, Unit: 4096, Rows: 1 << 20}, Servers: []int{2, 3, 4, 5, 1},
//		Mode: raid5.Handlers, Clients: 1,
//	})
//	client, err := array.Open(p, 0)  // in a process, before it first waits
//	err = client.Write(offset, view) // any offset and length; returns when parity has it
//	err = client.Read(offset, view)
//	err = client.Fail(2)             // from now on without server 2
//	err = client.Rebuild()           // one in its place is filled; no client writes meanwhile
//	client.Restored()
func New(c *runtime.Cluster, o Options) (*Array, error) {
	if o.Cores == 0 || o.Mode == Handlers {
		o.Cores = 1
	}
	if err := o.check(c); err != nil {
		return nil, err
	}
	a := &Array{o: o, c: c, mtu: int64(c.Profile().Fabric.MTU)}
	if n := len(o.Servers) - o.Data; n > 0 {
		a.code = NewCode(o.Data, n)
	}
	if o.Mode == Handlers {
		var err error
		if a.module, err = ServerSlot.Load(c); err != nil {
			return nil, err
		}
	}
	for i, node := range o.Servers {
		s := &server{node: node, pid: uint32(c.Processes(node)), index: i, parts: make([]runtime.View, o.Cores)}
		a.servers = append(a.servers, s)
		for core := range o.Cores {
			program := func(p *runtime.Proc) error { return a.serve(p, s, core) }
			if err := c.SpawnService(node, fmt.Sprintf("server %d", i), program); err != nil {
				return nil, err
			}
		}
		if o.Durable {
			if err := a.flusher(s); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

func (o *Options) check(c *runtime.Cluster) error {
	if err := o.Validate(); err != nil {
		return err
	}
	switch n := len(o.Servers); {
	case n < o.Data || n > o.Data+MaxParity:
		return fmt.Errorf("raid5: %d servers for %d data servers, expected %d to %d: up to %d for parity", n, o.Data, o.Data, o.Data+MaxParity, MaxParity)
	case n > MaxServers:
		return fmt.Errorf("raid5: %d servers, expected at most %d", n, MaxServers)
	case n > o.Data+1 && o.Mode == Triggered:
		return fmt.Errorf("raid5: %d parity servers and triggered operations, expected one: an operation waits for one counter", n-o.Data)
	}
	if err := service.Distinct("raid5", c, o.Servers, MaxNID, "data"); err != nil {
		return err
	}
	switch {
	case o.Clients < 1 || o.Clients > MaxClients:
		return fmt.Errorf("raid5: %d clients, expected 1 to %d", o.Clients, MaxClients)
	case o.Cores < 1 || o.Cores > c.Profile().Host.Cores:
		return fmt.Errorf("raid5: %d cores of each server, expected 1 to %d (host.cores)", o.Cores, c.Profile().Host.Cores)
	case o.Mode < Handlers || o.Mode > Triggered:
		return fmt.Errorf("raid5: served by %d, expected %d to %d", o.Mode, Handlers, Triggered)
	}
	return nil
}

// parities returns the number of parity servers, which follow the data servers.
func (a *Array) parities() int { return len(a.servers) - a.o.Data }

// replyPT returns the portal table entry of clients.
func (a *Array) replyPT() uint32 { return a.o.PT + 1 }

// target returns the process that has a byte of a server, and the byte's place
// there.
func (a *Array) target(server int, at int64) (portals.ID, uint64) {
	s, cores := a.servers[server], int64(a.o.Cores)
	chunk := at / Chunk
	return portals.PhysID(uint32(s.node), s.pid+uint32(chunk%cores)), uint64(chunk/cores*Chunk + at%Chunk)
}

// partBytes returns the size of one core's part of a server's memory.
func (a *Array) partBytes() int {
	cores := int64(a.o.Cores)
	chunks := (a.o.ServerBytes() + Chunk - 1) / Chunk
	if cores == 1 {
		return int(a.o.ServerBytes())
	}
	return int((chunks + cores - 1) / cores * Chunk)
}

// serve is a server's program for one core.
func (a *Array) serve(p *runtime.Proc, s *server, core int) error {
	s.parts[core] = p.Alloc(a.partBytes())
	s.parts[core].Lock()
	a.fill(s, core)
	if a.o.Mode == Handlers {
		return a.install(p, s)
	}
	return a.host(p, s, core)
}

// fill initialises the memory of a server's core.
func (a *Array) fill(s *server, core int) {
	if a.o.Fill == nil || slices.Contains(a.o.Lost, s.index) {
		return
	}
	memory := s.parts[core].Raw()
	unit := make([]byte, a.o.Unit)
	for at := int64(0); at < a.o.ServerBytes(); { // to the end of a chunk or of a unit
		n := min(Chunk-at%Chunk, a.o.Unit-at%a.o.Unit)
		chunk := at / Chunk
		if to := chunk/int64(a.o.Cores)*Chunk + at%Chunk; int(chunk)%a.o.Cores == core {
			for d := range a.o.Data {
				if c := a.coefficient(s.index, d); c != 0 {
					a.o.Fill(a.o.Byte(d, at), unit[:n])
					add(memory[to:to+n], unit[:n], c)
				}
			}
			if s.disk != nil {
				copy(s.disk.Content()[at:at+n], memory[to:])
			}
		}
		at += n
	}
}

// install gives a server its handlers; its process has nothing more to do.
func (a *Array) install(p *runtime.Proc, s *server) error {
	prof := a.c.Profile()
	buffers := min(prof.HPU.Cores*prof.HPU.Contexts, MaxBuffers)
	state := State{
		Free: 1<<buffers - 1, BufferSize: uint32(a.mtu), Slots: uint32(a.o.Clients * service.Slots), PT: a.o.PT, ReplyPT: a.replyPT(),
		Index: uint32(s.index), Parity: NoParity,
	}
	if a.parities() > 0 {
		state.Parity, state.Code, state.Steps = uint32(a.o.Data), a.code, a.steps(s.index)
	}
	for i, other := range a.servers {
		state.Servers[i] = Server{NID: uint32(other.node), PID: other.pid}
	}
	var err error
	s.in, err = a.module.Install(p, handlers.Options{
		Header: Open, Payload: Write, State: &state, Memory: int64(unsafe.Sizeof(state)) + state.Memory(buffers), Shared: true,
	})
	if err != nil {
		return err
	}
	u := handlers.NewSetup("raid5", p)
	u.Table(a.o.PT, portals.EQNone, 0)
	for _, e := range a.entries() {
		on := u.Spin(s.in, e.header, e.payload)
		if e.header == Gather || e.header == Collect {
			on.UserHdrLen = RangeSize
		}
		a.append(u, s.parts[0], portals.ME{
			MatchBits: e.bits, IgnoreBits: e.ignore, Spin: on, Options: s.in.EntryOptions | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable,
		}, e.header == Done)
	}
	a.readable(u, s, s.parts[0])
	return u.Err
}

// append appends an entry: one for anybody, or one for each parity server if
// nobody else may answer.
func (a *Array) append(u *handlers.Setup, memory runtime.View, me portals.ME, answers bool) {
	if !answers {
		u.Append(a.o.PT, portals.AnyID, memory, me)
		return
	}
	for _, s := range a.servers[a.o.Data:] {
		u.Append(a.o.PT, portals.PhysID(uint32(s.node), portals.PIDAny), memory, me)
	}
}

// entry is an entry of a server, with its handlers.
type entry struct {
	bits, ignore    uint64
	header, payload string
}

func (a *Array) entries() []entry {
	const above = ^uint64(KindMask)
	list := []entry{
		{WriteBits, WriteBits ^ AloneBits, Open, Write},
		{DeltaBits, 0, "", Apply},
		{DoneBits, DoneBits ^ FailedBits, Done, ""},
		{GatherBits, above, Gather, ""},
		{FoldBits, above, "", Fold},
		{FillBits, 0, "", Fill},
	}
	if a.parities() > 1 {
		list[0] = entry{WriteBits, above, Open, Encode}
		list[3] = entry{CollectBits, above, Collect, ""}
		list[4] = entry{BlendBits, above, "", Blend}
	}
	return list
}

// readable lets clients read a server's memory, and swap words at a parity
// server. No host takes part in these.
func (a *Array) readable(u *handlers.Setup, s *server, memory runtime.View) {
	const options = portals.OptMEOpGet | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable
	if s.index >= a.o.Data {
		u.Append(a.o.PT, portals.AnyID, u.Locked(8*rowLocks), portals.ME{MatchBits: LockBits, Options: portals.OptMEOpPut | options})
	}
	u.Append(a.o.PT, portals.AnyID, memory, portals.ME{MatchBits: ReadBits, Options: options})
}

// Peek returns the memory of a server, for tests and for filling an array
// before a run. Byte y is in chunk y / Chunk.
func (a *Array) Peek(server int, at int64) []byte {
	chunk, cores := at/Chunk, int64(a.o.Cores)
	from := chunk / cores * Chunk
	part := a.servers[server].parts[chunk%cores]
	to := min(from+Chunk, int64(part.Len()), from+a.o.ServerBytes()-chunk*Chunk)
	return part.Slice(int(from+at%Chunk), int(to)).Read()
}

// Check compares the parity servers with the code of the data; for the first
// one that is the exclusive or.
func (a *Array) Check() error {
	for parity := a.o.Data; parity < len(a.servers); parity++ {
		for at := int64(0); at < a.o.ServerBytes(); at += Chunk {
			sum := slices.Clone(a.Peek(parity, at))
			for d := range a.o.Data {
				add(sum, a.Peek(d, at), a.coefficient(parity, d))
			}
			for i, b := range sum {
				if b != 0 {
					return fmt.Errorf("raid5: byte %d of each server: parity server %d is %#02x off the code of the data", at+int64(i), parity, b)
				}
			}
		}
	}
	return nil
}

// Contents returns a range of the array from its data servers.
func (a *Array) Contents(offset, length int64) []byte {
	all := make([]byte, length)
	for x := offset; x < offset+length; {
		server, at := a.o.Place(x)
		x += int64(copy(all[x-offset:], a.Peek(server, at)[:min(a.o.Unit-at%a.o.Unit, Chunk-at%Chunk)]))
	}
	return all
}

// Node returns the node of a server.
func (a *Array) Node(server int) *runtime.Node { return a.c.Node(a.servers[server].node) }

// Counts returns the counts of a server's handlers, or zeros without handlers.
func (a *Array) Counts(server int) Counts { return handlers.Peek[State](a.servers[server].in).Counts }
