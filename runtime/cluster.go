package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Config says what to simulate.
type Config struct {
	// Profile describes the nodes and the network; see profile.Load.
	Profile *profile.Profile
	// Nodes is the number of nodes, at least 1.
	Nodes int
	// Fabric makes the network of nodes 0 to nodes-1, whose events it gives to eng; nil: fabric.New. One's own topology goes to
	// fabric.NewNetwork; fabric.Tap and fabric.NewFaulty wrap any.
	Fabric func(eng *sim.Engine, spec fabric.Spec, nodes int) (fabric.Fabric, error)
	// Seed is the seed of all random streams of the run.
	Seed uint64
	// Engine executes handlers: "wazero" (also the empty string) or "wasmtime".
	Engine string
	// Tracer records a timeline; nil: none. Results do not depend on it.
	Tracer sim.Tracer
	// Limits end a run with a *sim.LimitError; the zero value is none.
	Limits sim.Limits
	// Stop, if not nil, is asked now and then while the nodes are built, which takes minutes for millions of them; its error becomes
	// that of NewCluster. That of a context's end is context.Cause.
	Stop func() error
	// Log receives the lines that handlers log; nil: they are dropped.
	Log func(rank int, at sim.Time, program, line string)
	// Explain is told of every step of the processes' Portals interfaces as it happens, events included; nil: nobody. Results
	// do not depend on it.
	Explain portals.Tracer
	// Watch is told of every step of every handler, in the order in which they are executed; nil: nobody. Results do not depend
	// on it.
	Watch func(s *HandlerStep)
	// InjectDMA, if not nil, is asked at the beginning of every DMA operation of a handler that is otherwise allowed. A negative
	// answer, such as hpu.Fault, becomes the result of the operation: it takes its time, but no byte moves.
	InjectDMA func(rank int, op hpu.Op) int64
}

// Cluster is one simulation: nodes on a fabric, and the host programs that run on them.
type Cluster struct {
	profile  *profile.Profile
	engine   *sim.Engine
	fabric   fabric.Fabric
	executor hpu.Engine
	nodes    []Node
	pool     messagePool
	dmaOps   dmaPool
	issues   issuePool
	flows    uint64
	log      func(rank int, at sim.Time, program, line string)
	explain  portals.Tracer
	inject   func(rank int, op hpu.Op) int64
	errors   []HandlerError
	dropped  int // handler errors beyond those kept
	losses   []LostMessage
	lost     int           // messages, those that are not kept included
	network  networkLosses // as they were last asked for
	codes    map[codeKey]hpu.Image
}

type codeKey struct {
	module *hpu.Module
	bytes  uint32
}

// HandlerError is a handler that failed: it trapped, was killed, or returned an error or an illegal code.
type HandlerError struct {
	Rank    int
	At      sim.Time
	Program string
	Handler string
	Err     error
}

// Error names rank, program, handler, time and cause.
func (e HandlerError) Error() string {
	return fmt.Sprintf("rank %d at %v: %s handler of %s: %v", e.Rank, e.At, e.Handler, e.Program, e.Err)
}

// Unwrap returns the cause.
func (e HandlerError) Unwrap() error { return e.Err }

// keptErrors is how many handler errors a run remembers; the others are counted.
const keptErrors = 100

// NewCluster builds the nodes and the network. Close it when done.
func NewCluster(cfg Config) (*Cluster, error) {
	if cfg.Profile == nil {
		return nil, errors.New("runtime: no profile")
	}
	if cfg.Nodes < 1 {
		return nil, fmt.Errorf("runtime: %d nodes, expected at least 1", cfg.Nodes)
	}
	executor, err := newEngine(cfg.Engine)
	if err != nil {
		return nil, err
	}
	eng := sim.New(cfg.Seed)
	eng.SetTracer(cfg.Tracer)
	eng.SetLimits(cfg.Limits)
	if cfg.Fabric == nil {
		cfg.Fabric = fabric.New
	}
	fab, err := cfg.Fabric(eng, cfg.Profile.Fabric, cfg.Nodes)
	if err != nil {
		return nil, errors.Join(&NetworkError{cfg.Profile.Name, err}, executor.Close())
	}
	c := &Cluster{
		profile: cfg.Profile, engine: eng, fabric: fab, executor: executor,
		nodes: make([]Node, cfg.Nodes), log: cfg.Log, explain: cfg.Explain, inject: cfg.InjectDMA, codes: make(map[codeKey]hpu.Image),
	}
	c.pool.keep = fabric.HasFaults(fab)
	for i := range c.nodes {
		if cfg.Stop != nil && i%256 == 0 {
			if err := cfg.Stop(); err != nil {
				return nil, errors.Join(err, c.Close())
			}
		}
		n := &c.nodes[i]
		n.cluster, n.profile, n.rank, n.faulty = c, c.profile, int32(i), c.pool.keep
		n.id = eng.Add(fmt.Sprintf("Node[%d]", i), n)
		n.cores = make([]host.Server, c.profile.Host.Cores)
		n.memory.Rate = c.profile.Host.MemoryBandwidth
		n.dma.init(&c.profile.DMA, &n.memory)
		n.tx.behind = make(map[int32]int)
		n.hpus.init(n)
		n.trace = newNodeTrace(n)
		n.watch = newWatch(n, cfg.Watch)
		n.port = fab.Attach(i, n.id)
	}
	if eng.Tracing() {
		fab.Watch(func(p fabric.Packet, from, to sim.Time) {
			c.nodes[p.Src].trace.wire(p.Ref.(*message), int(p.Seq), from, to)
		})
	}
	eng.Watch(c)
	return c, nil
}

// NetworkError says why there is no network of a profile for that many nodes: it has too few places, or its faults name a link that it has
// not. Nothing was simulated.
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

// CheckEngine says why there is no WebAssembly engine of that name in this program; nil: there is one.
func CheckEngine(name string) error {
	e, err := newEngine(name)
	if err != nil {
		return err
	}
	return e.Close()
}

// Close ends all programs and frees the handlers' memory.
func (c *Cluster) Close() error {
	c.engine.Close()
	return c.executor.Close()
}

// Run simulates until nothing is left to happen. It returns the first error of a host program, a *sim.StuckError if a program
// or a handler still waits for something, or nil. Handler errors do not end a run; see HandlerErrors.
// When ctx is done the run ends with its cause; a *sim.LimitError as the cause is completed.
func (c *Cluster) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.engine.Interrupt(context.Cause(ctx)) })
	defer stop()
	return c.engine.Run()
}

// RunUntil simulates up to and including time t.
func (c *Cluster) RunUntil(t sim.Time) error { return c.engine.RunUntil(t) }

// Engine is the simulation's clock and event queue.
func (c *Cluster) Engine() *sim.Engine { return c.engine }

// Profile is what the cluster was built from.
func (c *Cluster) Profile() *profile.Profile { return c.profile }

// Fabric is the network.
func (c *Cluster) Fabric() fabric.Fabric { return c.fabric }

// Nodes is the number of nodes.
func (c *Cluster) Nodes() int { return len(c.nodes) }

func (c *Cluster) has(node uint32) bool { return uint64(node) < uint64(len(c.nodes)) }

// Node returns node i, 0 <= i < Nodes.
func (c *Cluster) Node(i int) *Node { return &c.nodes[i] }

// HandlerErrors returns the handlers that failed in the order of time, at most 100, and how many failed in all.
func (c *Cluster) HandlerErrors() ([]HandlerError, int) {
	return c.errors, len(c.errors) + c.dropped
}

func (c *Cluster) handlerFailed(e HandlerError) {
	if len(c.errors) == keptErrors {
		c.dropped++
		return
	}
	c.errors = append(c.errors, e)
}

// Waiting reports handlers that are suspended and messages that lack packets; it implements sim.Waiter.
func (c *Cluster) Waiting(report func(sim.Waiting)) {
	for i := range c.nodes {
		n := &c.nodes[i]
		for k := range n.hpus.runs {
			if r := &n.hpus.runs[k]; r.active {
				report(sim.Waiting{
					Who:   fmt.Sprintf("rank %d HPU %d: %s handler of %s", i, k/n.hpus.perCore, r.task.kind, r.task.m.rx.handlers.memory.name),
					Since: r.since, What: r.wait.String(),
				})
			}
		}
		if k := n.hpus.tasks.len(); k > 0 {
			report(sim.Waiting{Who: fmt.Sprintf("rank %d", i), Since: n.hpus.tasks.front().m.rx.started, What: fmt.Sprintf("an HPU for %d handlers", k)})
		}
	}
}

// LoadModule checks a handler module against the device and prepares it; it can then be given to any process of the cluster.
// The error, a *hpu.LoadError, names module, function, offset and cause.
func (c *Cluster) LoadModule(name string, wasm []byte) (*hpu.Module, error) {
	return hpu.Load(name, wasm, c.profile.Device())
}

func (c *Cluster) nextFlow() uint64 {
	c.flows++
	return c.flows
}
