package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Run is a cluster whose nodes have entries and programs, with the record of what
// happened there.
type Run struct {
	Cluster *runtime.Cluster
	Nodes   []Node    // by rank
	Events  []Event   // those that Keep chooses
	Refused []Refusal // the first ones; each node has their number

	Keep func(rank int, e *portals.Event) bool
	See  func(Step) // every step of every interface; nil: nobody sees them
}

// Node is the process of a rank.
type Node struct {
	*runtime.Proc                // nil: it has not begun
	Queue         portals.Handle // of the events of its entries

	Counted   [64]int64 // events by type
	Refused   int64     // messages that no entry took
	Truncated int64
	LastFail  portals.FailType // of an event
}

// Entry is a match list entry of a node, with what handles its messages.
type Entry struct {
	portals.ME // Start, Length and the part of the handlers are made from the rest

	PT       uint32
	PTs      portals.PTOptions // joined with those of other entries
	List     portals.List
	UserPtr  uint64
	Memory   runtime.View
	Handlers *handlers.Installed // nil: none
}

// Do makes the cluster and lets all ranks run main. Then it calls finish, while
// the cluster is there, with the error that has ended the run. c has what looks at
// the run and bounds it; its Explain is the run's.
func (r *Run) Do(ctx context.Context, c runtime.Config, name func(rank int) string, main func(*Node) error, finish func(error) error) (err error) {
	r.Nodes, c.Explain = make([]Node, c.Nodes), r
	if r.Cluster, err = runtime.NewCluster(c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Cluster.Close()) }()
	program := func(p *runtime.Proc) error {
		n := &r.Nodes[p.Rank()]
		n.Proc = p
		return main(n)
	}
	for rank := range r.Nodes {
		if err := r.Cluster.Spawn(rank, name(rank), program); err != nil {
			return err
		}
	}
	return finish(r.Cluster.Run(ctx))
}

// Early reports whether the error is how a run has ended before its time. What
// happened until then holds.
func Early(err error) bool {
	_, stuck := errors.AsType[*sim.StuckError](err)
	_, limited := errors.AsType[*sim.LimitError](err)
	return stuck || limited
}

// MakeQueue gives the process its event queue.
func (n *Node) MakeQueue(slots uint64) (err error) {
	n.Queue, err = n.NI().Objects().EQAlloc(slots)
	return err
}

// Install installs handlers with their host memory.
func (n *Node) Install(p *handlers.Plan, o handlers.Options, host runtime.View) (*handlers.Installed, error) {
	o.HostMemory = portals.Region{Start: host.Addr(), Length: uint64(host.Len())}
	return p.Install(n.Proc, o)
}

// Offer appends entries, in their order, and returns their handles. If it fails,
// the entry behind the last handle is to blame.
func (n *Node) Offer(entries []Entry) (list []portals.Handle, err error) {
	options := make(map[uint32]portals.PTOptions)
	for i := range entries {
		options[entries[i].PT] |= entries[i].PTs
	}
	for i := range entries {
		e := &entries[i]
		if o, first := options[e.PT]; first {
			delete(options, e.PT)
			if _, err := n.NI().Objects().PTAlloc(o, n.Queue, e.PT); err != nil {
				return list, fmt.Errorf("portal table entry %d: %w", e.PT, err)
			}
		}
		e.Start, e.Length = e.Memory.Addr(), uint64(e.Memory.Len())
		if e.Handlers != nil {
			e.Handlers.Attach(&e.ME)
		}
		h, err := n.NI().MEAppend(e.PT, &e.ME, e.List, e.UserPtr)
		if err != nil {
			return list, err
		}
		list = append(list, h)
	}
	return list, nil
}
