package mpi

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/exanet/gvas"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/runtime"
)

// Starter says who starts the transfer of a large message over ExaNet when its
// receive has matched. TR-488 §5.2.1 says the one in its steps, the other in
// its summary ("read-based").
type Starter string

// The starters.
const (
	// the RDMA unit where the data is, which the receiver's CTS goes to: RDMA
	// read
	StartByUnit Starter = "unit"
	// the process that sends, when it finds the CTS in its mailbox: RDMA write
	StartByProcess Starter = "process"
)

// Starters lists them; the first is that of options that name none.
func Starters() []Starter { return []Starter{StartByUnit, StartByProcess} }

// PageOpener gives a process its page of RDMA channels: channels.Engine, or a
// driver that deals with page faults (handlers/part).
type PageOpener interface {
	Open(p *runtime.Proc, o rdma.Options) (*rdma.Page, error)
}

// ExaNetOptions are the options of transport ExaNet. The zero value has
// TR-488's, as far as it has any.
type ExaNetOptions struct {
	// Start says who starts transfers; "" stands for StartByUnit.
	Start Starter
	// Touch has both sides touch each page of a large message's buffer before
	// its transfer, so that it meets no page fault (the baseline of Psistakis
	// et al., IEEE TPDS 2022): a page that is there takes a look at memory.
	Touch bool
	// PDID is the protection domain of the ranks; 0: gvas.DefaultPDID.
	PDID gvas.PDID
	// Depth is how many messages a mailbox holds, a power of two up to 65,536; 0: 256.
	Depth int
	// State and RDMA are options of the libraries mailbox
	// (exanet.Options.State) and rdma (all but the PDID).
	State map[string]any
	RDMA  rdma.Options
	// Load makes the RDMA engine ready; nil: that of handlers/rdma, for which
	// memory is there or comes by time-outs.
	Load func(c *runtime.Cluster) (PageOpener, error)
}

// DefaultExaNetOptions returns the options of ExaNet-MPI: messages of up to 32
// B are eager (TR-488 §5.2.1), and matching is the process's.
func DefaultExaNetOptions() Options {
	return Options{Transport: ExaNet, Matching: Host, Eager: exanetEager, Buffers: 1, BufferBytes: 1 << 10}
}

// validate reports what does not fit the transport.
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
