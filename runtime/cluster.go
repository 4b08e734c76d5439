package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Config describes a simulation.
type Config struct {
	// Profile describes the nodes and the network; see profile.Load.
	Profile *profile.Profile
	// Nodes is the number of nodes, at least 1. Units of switches
	// (fabric.Spec.Units) come on top, and follow them.
	Nodes int
	// NICs is how many NICs a host has; 0 and 1: each node is a host. With more, each
	// NIC is a node, and so many in a row, from node 0, are one host: they share
	// cores, last level cache, memory controller, operating system and storage. Each
	// has its own port of the network, bus to memory and SMMU, and its own processes,
	// whose memory no other reaches. Nodes is a multiple of it. A run with several
	// takes one core. With fabric.rails a host's NICs are at leaves of their own: rails
	// are a multiple of them.
	NICs int
	// Fabric makes the network of nodes 0 to nodes-1. The network posts its events
	// to eng. nil: fabric.New. Build your own topology with fabric.NewNetwork;
	// fabric.Tap and fabric.NewFaulty wrap any fabric.
	Fabric func(eng *sim.Engine, spec fabric.Spec, nodes int) (fabric.Fabric, error)
	// Seed seeds all random streams of the run.
	Seed uint64
	// Cores is on how many cores of the simulating machine the run takes place;
	// 0 and 1: on one. With more, the programs of different nodes run at the same
	// time. So they must not share variables, but for what no program writes. A
	// run with an observer, an event limit or a Fabric of its own takes one core.
	// Results do not depend on it.
	Cores int
	// Engine executes handlers: "wazero" (also the empty string) or "wasmtime".
	Engine string
	// Slots are modules for slots of handler libraries (handlers.Slot), by the name
	// of the slot. Others have the module of their library.
	Slots map[string]Module
	// Tracer records a timeline; nil: none. Results do not depend on it.
	Tracer sim.Tracer
	// Limits end a run with a *sim.LimitError; the zero value is none.
	Limits sim.Limits
	// Stop, if not nil, is called now and then while the nodes are built, which
	// takes minutes for millions of nodes. If it returns an error, NewCluster
	// returns that error. To stop at the end of a context, return context.Cause.
	Stop func() error
	// Pages makes the page table of each new process of a rank. nil: every page is
	// present, and a touch costs nothing.
	Pages func(rank int) host.PageTable
	// Log receives the lines that handlers log; nil: they are dropped.
	Log func(rank int, at sim.Time, program, line string)
	// Explain receives every step of the Portals interfaces of the processes,
	// events included; nil: none. Results do not depend on it.
	Explain portals.Tracer
	// Watch receives every step of every handler, in the order of execution, also
	// of those in kernels (KernelHandlers); nil: none. Results do not depend on it.
	Watch func(s *nic.HandlerStep)
	// InjectDMA, if not nil, is called at the beginning of every permitted DMA
	// operation of a handler. A negative answer, such as hpu.Fault, becomes the
	// result of the operation: the operation takes its time, but moves no byte.
	InjectDMA func(rank int, op hpu.Op) int64
	// Translator makes the translator between the bus of a node and the memory of
	// its processes. nil: the SMMU of the profile. Without an SMMU, every page is
	// present to the NIC.
	Translator MakeTranslator
	// Capture receives the network before anything is attached to it, to observe
	// the packets on its links; nil: none. If it returns an error, NewCluster
	// returns that error. Results do not depend on it.
	Capture Capture
	// Links receives the counts of the network's links at the end of every Run;
	// nil: none.
	Links WatchLinks
	// Used, if not nil, receives at Close what has happened: the facts with which
	// fields of the profile count.
	Used func(s used.Set)
}

// Module is a handler module. The name is for messages.
type Module struct {
	Name string
	Wasm []byte
}

// Capture observes a network; see fabric.Capturer.
type Capture func(f fabric.Fabric) error

// WatchLinks receives the counts of every link that carried a packet, from the
// beginning of the run to end.
type WatchLinks func(links []fabric.LinkStats, end sim.Time)

// MakeTranslator makes the translator of a node. It may post events of its own
// to eng.
type MakeTranslator func(eng *sim.Engine, rank int, bus *host.Bus) host.Translator

// Cluster is one simulation: nodes on a fabric and their host programs.
type Cluster struct {
	profile *profile.Profile
	engine  *sim.Engine // of the first domain
	fabric  fabric.Fabric
	nodes   []Node
	hosts   int // nodes that are no units
	domains []domain
	pages   func(rank int) host.PageTable
	explain portals.Tracer
	network networkLosses // latest answer of networkLosses
	waits   knownLosses   // latest answer for mayWaitFor
	links   WatchLinks
	closed  bool
	mu      sync.Mutex
	used    used.Set // guarded by mu: what no node has noted
	tell    func(s used.Set)
	slots   map[string]Module
	laws    [2]hpu.Func // modules of the transport: a rate law, a path choice
	arbiter hpu.Func    // module that arbitrates between tenants; invalid: none
	log     func(rank int, at sim.Time, program, line string)
	watch   func(s *nic.HandlerStep)
}

// domain is what the nodes of a domain share: those that one core of the
// simulating machine handles.
type domain struct {
	engine   *sim.Engine
	executor hpu.Engine
	codes    map[codeKey]hpu.Image
	core     nic.Core
	spare    portals.Spare
	slab     host.Slab
	piece    []byte // buffer of View.Fill
}

// room returns n bytes until the next call.
func (d *domain) room(n int) []byte {
	d.piece = slices.Grow(d.piece[:0], n)[:n]
	return d.piece
}

type codeKey struct {
	module *hpu.Module
	bytes  uint32
}

// nodePrepared is about what a node with handlers takes of Go's heap, with
// garbage, in bytes: large pages back that much in clusters of many nodes.
const nodePrepared = 12 << 10

// NewCluster builds the nodes and the network. Close it when done.
func NewCluster(cfg Config) (*Cluster, error) {
	if cfg.Profile == nil {
		return nil, errors.New("runtime: no profile")
	}
	if cfg.Nodes < 1 {
		return nil, fmt.Errorf("runtime: %d nodes, expected at least 1", cfg.Nodes)
	}
	if cfg.NICs = max(cfg.NICs, 1); cfg.Nodes%cfg.NICs != 0 {
		return nil, fmt.Errorf("runtime: %d nodes, expected a multiple of %d, the NICs of a host", cfg.Nodes, cfg.NICs)
	}
	if rails := cfg.Profile.Fabric.Rails; rails > 1 && rails%cfg.NICs != 0 {
		return nil, &NetworkError{cfg.Profile.Name, fmt.Errorf("fabric.rails: %d, expected a multiple of %d, the NICs of a host", rails, cfg.NICs)}
	}
	eng := sim.New(cfg.Seed)
	eng.SetTracer(cfg.Tracer)
	eng.SetLimits(cfg.Limits)
	eng.Split(cfg.Domains())
	if cfg.Fabric == nil {
		cfg.Fabric = fabric.New
	}
	fab, err := cfg.Fabric(eng, cfg.Profile.Fabric, cfg.Nodes)
	if err != nil {
		return nil, &NetworkError{cfg.Profile.Name, err}
	}
	if cfg.Capture != nil {
		if err := cfg.Capture(fab); err != nil {
			return nil, err
		}
	}
	nodes := cfg.Nodes
	if u := fabric.UnitsOf(fab); u != nil {
		_, nodes = u.Nodes()
	}
	memory.Ask(int64(nodes) * int64(unsafe.Sizeof(Node{})))
	lazy.Prepare(nodes * nodePrepared)
	c := &Cluster{
		profile: cfg.Profile, engine: eng, fabric: fab,
		nodes: make([]Node, nodes), hosts: cfg.Nodes, domains: make([]domain, eng.Domains()), pages: cfg.Pages, explain: cfg.Explain, links: cfg.Links, slots: cfg.Slots, log: cfg.Log, watch: cfg.Watch,
	}
	for i := range c.domains {
		d := &c.domains[i]
		d.engine, d.codes, d.core.Number = eng.Domain(i), make(map[codeKey]hpu.Image), i
		if lazy.Shared {
			d.core.Slab = &d.slab
		}
		if d.executor, err = newEngine(cfg.Engine); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.build(&cfg); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if eng.Tracing() {
		fab.Watch(func(p fabric.Packet, from, to sim.Time) { c.nodes[p.Src].nic.Sent(&p, from, to) })
	}
	eng.Watch(c)
	c.tell = cfg.Used // a cluster that is half built has used nothing
	return c, nil
}

// Domains returns into how many domains a run is divided.
func (cfg *Config) Domains() int {
	if cfg.Cores < 2 || cfg.Nodes < 2 || cfg.NICs > 1 || cfg.Fabric != nil || cfg.Tracer != nil || cfg.Log != nil || cfg.Explain != nil || cfg.Watch != nil ||
		cfg.InjectDMA != nil || cfg.Translator != nil || cfg.Capture != nil || cfg.Limits.Events > 0 {
		return 1
	}
	return min(cfg.Cores, cfg.Profile.Fabric.MostDomains(cfg.Nodes))
}

// build makes the nodes and connects them.
func (c *Cluster) build(cfg *Config) error {
	p := c.profile
	if err := c.loadLaws(); err != nil {
		return err
	}
	faulty := fabric.HasFaults(c.fabric)
	if faulty && p.Transport.Kind == nic.Lossless {
		for i := range c.domains {
			c.domains[i].core.Keep()
		}
	}
	of := make(map[*sim.Engine]*domain, len(c.domains))
	for i := range c.domains {
		of[c.domains[i].engine] = &c.domains[i]
	}
	for i := range c.nodes {
		if cfg.Stop != nil && i%256 == 0 {
			if err := cfg.Stop(); err != nil {
				return err
			}
		}
		n := &c.nodes[i]
		n.cluster, n.rank, n.domain = c, int32(i), of[fabric.EngineOf(c.fabric, i, c.engine)]
		n.id = c.engine.Add(fmt.Sprintf("Node[%d]", i), &n.nic)
		n.host = n
		if i < cfg.Nodes {
			n.host = &c.nodes[i-i%cfg.NICs]
		}
		n.memory.Rate = p.Host.CoresRate()
		n.bus.Init(n.domain.engine, n.id, &p.DMA, &n.host.memory)
		if n.bus.Cache = n.host.bus.Cache; n.host == n {
			n.bus.Cache = host.NewCache(&p.Host)
		}
		n.boot(cfg)
		n.nic.Init(&nic.Config{
			Engine: n.domain.engine, ID: n.id, Rank: i, Nodes: len(c.nodes), Core: &n.domain.core,
			Spec: &p.NIC, HPU: &p.HPU, Pools: p.Pools, Serve: p.Serve, Tenants: p.Tenants, Transport: &p.Transport, Fabric: &p.Fabric, Bus: &n.bus, Record: p.DMA.EventBytes, Faulty: faulty,
			Ordered:   int(max(p.Limits.MaxWAWOrderedSize, p.Limits.MaxWAROrderedSize)),
			RoundTrip: func(to int) sim.Time { return c.roundTrip(i, to) },
			LawModule: n.lawModule,
			Log:       cfg.Log, Watch: cfg.Watch, InjectDMA: cfg.InjectDMA,
		})
		if c.arbiter.Valid() {
			n.nic.Arbitrate(func() (*nic.LawModule, error) { return n.pipeline(c.arbiter, nic.ArbiterMemory) })
		}
		n.nic.Connect(c.fabric.Attach(i, n.id))
	}
	return nil
}

// roundTrip is how long a full packet from one node to another and its
// acknowledgement take when nothing is in their way.
func (c *Cluster) roundTrip(from, to int) sim.Time {
	p := c.profile
	return c.fabric.Latency(from, to, p.Fabric.MTU) + c.fabric.Latency(to, from, int32(p.Transport.AckBytes))
}

// NetworkError reports why the network cannot be built for that many nodes: the
// profile has too few places, or its faults name a missing link. Nothing was
// simulated.
type NetworkError struct {
	Profile string
	Err     error
}

// Error names the profile and the field.
func (e *NetworkError) Error() string { return fmt.Sprintf("profile %s: %v", e.Profile, e.Err) }

// Unwrap returns the cause.
func (e *NetworkError) Unwrap() error { return e.Err }

func newEngine(name string) (hpu.Engine, error) {
	if name == "" {
		name = "wazero"
	}
	return hpu.NewEngine(name)
}

// CheckEngine returns an error if this program has no WebAssembly engine of
// that name.
func CheckEngine(name string) error {
	e, err := newEngine(name)
	if err != nil {
		return err
	}
	return e.Close()
}

// Close ends all programs and frees the memory of handlers and processes.
func (c *Cluster) Close() error {
	if c.tell != nil && !c.closed {
		c.tell(c.Used())
	}
	c.closed = true
	c.engine.Close()
	for i := range c.nodes {
		for _, p := range c.nodes[i].procs {
			p.memory.Release()
		}
	}
	var errs []error
	for i := range c.domains {
		if x := c.domains[i].executor; x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}

// Run simulates until no event is left. It returns the first error of a host
// program, a *sim.StuckError if a program or a handler still waits, or nil.
// Handler errors do not end a run; see HandlerErrors. When ctx is done the run
// ends with the cause of ctx; if the cause is a *sim.LimitError, Run fills in
// its fields.
func (c *Cluster) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.engine.Interrupt(context.Cause(ctx)) })
	defer stop()
	err := c.engine.Run()
	err = errors.Join(err, c.vanished(err))
	if c.links != nil {
		c.links(c.fabric.Links(), c.engine.Now())
	}
	return err
}

// vanished compares the books of all nodes at the end of a run. err is the
// result of the run. Every posted byte must be deposited, offered to a handler,
// recorded as lost, or waiting for something that the run did not reach. The
// error names the missing bytes.
func (c *Cluster) vanished(err error) error {
	var stuck *sim.StuckError
	pending := 0
	for i := range c.domains {
		pending += c.domains[i].engine.Pending()
	}
	books := c.Books(pending == 0)
	if err := books.Close(c.fabric, errors.As(err, &stuck)); err != nil {
		return fmt.Errorf("runtime: bytes have vanished, which is a mistake of spinsim or of the fabric that it was given: %w", err)
	}
	return nil
}

// Books returns the present books of all nodes. drained: no message is in
// flight.
func (c *Cluster) Books(drained bool) *nic.Books {
	books := nic.NewBooks(drained)
	for i := range c.nodes {
		books.Add(&c.nodes[i].nic)
	}
	return books
}

// Handled returns the number of events handled so far. No program may call it.
func (c *Cluster) Handled() (events uint64) {
	for i := range c.domains {
		events += c.domains[i].engine.Handled()
	}
	return events
}

// RunUntil simulates up to and including time t.
func (c *Cluster) RunUntil(t sim.Time) error { return c.engine.RunUntil(t) }

// Engine is the simulation's clock and event queue: of the first domain, if the
// run takes place on several cores.
func (c *Cluster) Engine() *sim.Engine { return c.engine }

// Reads is Proc.Reads for what a library does before the programs run. No event
// may call it.
func (c *Cluster) Reads(f used.Fact) *profile.Profile {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used.Add(f)
	return c.profile
}

// Used returns what has happened so far.
func (c *Cluster) Used() used.Set {
	c.mu.Lock()
	all := c.used
	c.mu.Unlock()
	for i := range c.domains {
		all.Join(c.domains[i].core.Used())
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		all.Join(n.cpu.Used())
		all.Join(n.nic.Used())
		for _, p := range n.procs {
			all.Join(p.portals.Used())
		}
		all.AddIf(n.memory.Bytes() > 0, used.Controller)
		if n.iommu != nil {
			k := n.iommu.SMMU().Counters()
			all.AddIf(len(n.procs) > 0, used.Admitted)
			all.AddIf(k.Requests+k.Denied > 0, used.Translation)
			all.AddIf(k.Walks > 0, used.Walk)
			all.AddIf(k.Faults+k.PermissionFaults > 0, used.SMMUFault)
		}
		if k := n.Kernel(); k != nil {
			k := k.Stats()
			all.AddIf(len(n.procs) > 0, used.OS)
			all.AddIf(k.Scanned > 0, used.Reclaim)
			all.AddIf(k.SwappedOut+k.SwappedIn+k.SwapFull+k.Early > 0, used.Swap)
		}
	}
	return all
}

// Profile returns the profile that the cluster was built from.
func (c *Cluster) Profile() *profile.Profile { return c.profile }

// Fabric is the network.
func (c *Cluster) Fabric() fabric.Fabric { return c.fabric }

// Nodes is the number of nodes without units. Units have the numbers behind
// (fabric.UnitsOf), and are nodes in everything else.
func (c *Cluster) Nodes() int { return c.hosts }

func (c *Cluster) has(node uint32) bool { return uint64(node) < uint64(len(c.nodes)) }

// Node returns node i, 0 <= i < Nodes, or a unit.
func (c *Cluster) Node(i int) *Node { return &c.nodes[i] }

// Waiting reports suspended handlers and handlers that wait for a processor. It
// implements sim.Waiter.
func (c *Cluster) Waiting(report func(sim.Waiting)) {
	for i := range c.nodes {
		c.nodes[i].nic.Waiting(func(w sim.Waiting) {
			w.What += c.mayWaitFor(i, portals.PIDAny)
			report(w)
		})
	}
}

// LoadModule checks a handler module against the device and prepares it for all
// processes of the cluster. The error, a *hpu.LoadError, names module,
// function, offset and cause.
func (c *Cluster) LoadModule(name string, wasm []byte) (*hpu.Module, error) {
	return hpu.Load(name, wasm, c.Reads(used.Module).Device())
}

// LoadSlot is LoadModule for the module that Config.Slots has for a slot; nil:
// it has none. The processors of the slot's library serve it.
func (c *Cluster) LoadSlot(slot, library string) (*hpu.Module, error) {
	given, has := c.slots[slot]
	if !has {
		return nil, nil //nolint:nilnil // the library's module runs
	}
	return hpu.LoadServing(given.Name, library, given.Wasm, c.Reads(used.Module).Device())
}
