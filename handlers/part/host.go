//go:build !tinygo

package part

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o part.wasm guest

//go:embed part.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest and the
// engine of package rdma.
var Library = handlers.Register("part", wasm)

// EngineSlot is the RDMA engine that replays transfers after page faults.
var EngineSlot = Library.Slot(handlers.Slot{
	Name: "engine", Short: "the RDMA engine that replays transfers after page faults",
	Handlers: []string{rdma.Control, rdma.Cells},
	Expects: []string{
		"All rules of slot rdma.engine.",
		"A cell for an absent page pushes an entry into the fault FIFO, counted by fault_ct, and the source sends its block again when it is asked, or at its time-out.",
	},
})

// Method is a way to bring pages in.
type Method int

// The methods.
const (
	// GetUserPages brings pages in in the kernel; the process sends the request
	// for the block (P).
	GetUserPages Method = iota
	// Touch has a thread of the process touch the pages, and then send the
	// request (T: the first version).
	Touch
	// InKernel is GetUserPages, but the kernel sends the request, without
	// netlink: "future work" in P and T.
	InKernel
)

var methodNames = []string{GetUserPages: "get_user_pages", Touch: "touch", InKernel: "in-kernel"}

// String returns the name in results.
func (m Method) String() string {
	if m < 0 || int(m) >= len(methodNames) {
		return fmt.Sprintf("method %d", int(m))
	}
	return methodNames[m]
}

// Options choose how to resolve faults.
type Options struct {
	Policy Policy // nil: PIO
	Method Method
}

// Part is the engine with PART, and its drivers on the nodes of a cluster.
type Part struct {
	cluster *runtime.Cluster
	engine  *rdma.Engine
	options Options
	nodes   []*Driver // by node; nil: no process has opened a page there
}

// Load makes the engine ready for the processes of a cluster. The profile must
// have an operating system and an SMMU.
func Load(c *runtime.Cluster, o Options) (*Part, error) {
	prof := c.Profile()
	if !prof.OS.On() || !prof.SMMU.On() {
		return nil, fmt.Errorf("part: profile %s has no operating system that could bring pages in (os.kind, smmu.kind)", prof.Name)
	}
	if o.Method < 0 || int(o.Method) >= len(methodNames) {
		return nil, fmt.Errorf("part: %v, expected one of %s", o.Method, strings.Join(methodNames, ", "))
	}
	if o.Method == Touch && prof.OS.DeviceTables == host.OwnTables {
		return nil, fmt.Errorf("part: profile %s has os.device_tables %s: a page that is touched would not be in them", prof.Name, host.OwnTables)
	}
	if o.Policy == nil {
		o.Policy = PIO
	}
	e, err := LoadEngine(c)
	if err != nil {
		return nil, err
	}
	return &Part{cluster: c, engine: e, options: o, nodes: make([]*Driver, c.Nodes())}, nil
}

// Open gives a process its page, and lets its node's driver serve it, with a
// thread of the process on the core next to its own. It takes no virtual time.
// Call it before the process first waits.
func (s *Part) Open(p *runtime.Proc, o rdma.Options) (*rdma.Page, error) {
	g, err := s.engine.Open(p, o)
	if err != nil {
		return nil, err
	}
	d := s.nodes[p.Rank()]
	if d == nil {
		d = newDriver(s, p.Rank(), p.Node())
		s.nodes[p.Rank()] = d
	}
	d.attach(p, g)
	return g, nil
}

// Driver returns the driver of a node, or nil if no process there has opened a
// page.
func (s *Part) Driver(node int) *Driver { return s.nodes[node] }

// Stats counts the work of a node's driver and of its processes' threads.
type Stats struct {
	Receives int64 // runs of the receive tasklet
	Sends    int64 // runs of the send tasklet
	Idle     int64 // runs of the receive tasklet that found nothing to do
	Entries  int64 // read from the FIFO
	Skipped  int64 // entries for pages that were already handled for their block
	Late     int64 // entries for other pages of a block whose request had left
	Ranges   int64 // brought in or touched
	Pages    int64 // in them
	Messages int64 // netlink messages
	Dropped  int64 // messages for which the process had no room
	Requests int64 // to send a block again
	Refused  int64 // pages that a process cannot have
	Short    int64 // ranges for which there was not enough memory
}
