package mpi

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/runtime"
)

// Starter selects who starts the transfer of a large message over ExaNet when
// its receive has matched. The steps of TR-488 §5.2.1 describe one way, its
// summary the other ("read-based").
type Starter string

// The starters.
const (
	// StartByUnit is an RDMA read: the receiver's CTS goes to the RDMA unit at
	// the data, which starts.
	StartByUnit Starter = "unit"
	// StartByProcess is an RDMA write: the sending process starts it when it
	// finds the CTS in its mailbox.
	StartByProcess Starter = "process"
)

// Starters lists the starters; the first is the default.
func Starters() []Starter { return []Starter{StartByUnit, StartByProcess} }

// PageOpener opens a page of RDMA channels for a process. It is channels.Engine
// or a driver that handles page faults (handlers/part).
type PageOpener interface {
	Open(p *runtime.Proc, o rdma.Options) (*rdma.Page, error)
}

// ExaNetOptions are the options of transport ExaNet. The zero value follows
// TR-488 where the report gives a value.
type ExaNetOptions struct {
	// Start selects who starts transfers; "": host.library.start of the profile,
	// or StartByUnit.
	Start Starter
	// Touch makes both sides touch each page of a large message's buffer before
	// its transfer, so that the transfer meets no page fault. This is the
	// baseline of Psistakis et al. (IEEE TPDS 2022). A page that is present
	// costs one memory latency.
	Touch bool
	// PDID is the protection domain of the ranks; 0: exanet.DefaultPDID.
	PDID exanet.PDID
	// Depth is the number of messages that a mailbox holds, a power of two up
	// to 65,536; 0: 256.
	Depth int
	// State holds options of the library mailbox (exanet.Options.State), RDMA
	// the options of the library rdma, except the PDID.
	State map[string]any
	RDMA  rdma.Options
	// Load loads the RDMA engine; nil: the engine of handlers/rdma. With that
	// engine, memory must be present or comes after time-outs.
	Load func(c *runtime.Cluster) (PageOpener, error)
}

// DefaultExaNetOptions returns the options of ExaNet-MPI: messages of up to 32
// B are eager (TR-488 §5.2.1), and the process matches.
func DefaultExaNetOptions() Options {
	return Options{Transport: ExaNet, Matching: Host, Eager: exanetEager, Buffers: 1, BufferBytes: 1 << 10}
}

// validate reports options that the transport cannot have.
func (o *ExaNetOptions) validate(all *Options, wrong func(option, format string, args ...any)) {
	if all.transport() != ExaNet {
		return
	}
	if o.Start != "" && !slices.Contains(Starters(), o.Start) {
		wrong("start of transfers", "%q, expected one of %v", o.Start, Starters())
	}
	if all.Matching == Offload {
		wrong("matching", "%q, expected %s: over ExaNet the process matches", all.Matching, Host)
	}
	if all.Eager > exanetEager {
		wrong("eager", "%d B, expected 0 to %d B: what the packetizer carries beside %d B of control", all.Eager, exanetEager, controlBytes)
	}
	if o.Depth < 0 || o.Depth > 1<<16 || o.Depth&(o.Depth-1) != 0 {
		wrong("depth of a mailbox", "%d, expected a power of two from 1 to 65536", o.Depth)
	}
}

// loadRDMA is the default of ExaNetOptions.Load.
func loadRDMA(c *runtime.Cluster) (PageOpener, error) {
	e, err := rdma.Load(c)
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	return e, nil
}
