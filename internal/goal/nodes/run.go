package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Config is the system that a schedule runs on.
type Config struct {
	// Config describes the cluster. Run sets its number of nodes.
	runtime.Config

	// MPI describes the message passing library and whether the NIC or the host
	// matches.
	MPI mpi.Options

	// Empty: messages have their lengths and times, but no bytes of their own, so
	// that schedules of gigabytes fit. Then no payload is checked.
	Empty bool
	// Cold: memory of messages is touched for the first time by the rank, as after
	// an allocation. Otherwise its pages are there from the beginning.
	Cold bool

	// Calls names collectives that the library does (CallKinds), as MPI.Allreduce
	// says. Each has one computation at each member, whose length is ignored.
	Calls map[string]bool

	threads bool // a rank with one cpu index has a thread for it, too, in tests
}

// Result is the outcome of a run.
type Result struct {
	Ranks    int
	Matching mpi.Matching
	// Finish is when each rank had done all of its operations, Max the largest
	// of these times, and MaxRank the first rank with it.
	Finish  []sim.Time
	Max     sim.Time
	MaxRank int
	// Computing is the time in which ranks computed, each on one core or several.
	Computing sim.Time
	// Windows are the times of the schedule's collectives.
	Windows []Window
	// Messages and Nodes are the counts of the library and of the nodes, summed
	// over all ranks.
	Messages mpi.Stats
	Nodes    runtime.Stats
	// Events is the number of events of the simulation.
	Events uint64
	Load   Load
}

// Load is what a run asked of the machines.
type Load struct {
	// LinkBytes is the bytes that all links carried, headers included.
	LinkBytes int64
	// Link is the one that was busy longest, and LinkBusy how long.
	Link     string
	LinkBusy sim.Time
	// CPU is how long a core was busy, at most, and Handlers how long handlers of a
	// device were under way: 2 s in a second are two at a time.
	CPU, Handlers sim.Time
}

// loadOf reads the counts of a cluster.
func loadOf(c *runtime.Cluster) (l Load) {
	for _, link := range c.Fabric().Links() {
		l.LinkBytes += link.Bytes
		if link.Busy > l.LinkBusy {
			l.Link, l.LinkBusy = link.Name, link.Busy
		}
	}
	devices := c.Nodes()
	if units := fabric.UnitsOf(c.Fabric()); units != nil {
		_, devices = units.Nodes()
	}
	for i := range devices {
		n := c.Node(i)
		l.CPU, l.Handlers = max(l.CPU, n.CPU().Busiest()), max(l.Handlers, n.Stats().HandlerTime)
	}
	return l
}

// Window is the time of a collective: from the first of its sends and computations
// on any rank, or the first receive that ends before, to the end of its last
// operation.
type Window struct{ Start, End sim.Time }

// windowsOf joins what the ranks have noted.
func windowsOf(s *goal.Schedule, players []*player) []Window {
	list := make([]Window, len(s.Collectives()))
	began := make([]bool, len(list))
	for _, p := range players {
		for c, w := range p.windows { //lint:maporder each is of another collective
			if at := &list[c]; began[c] {
				at.Start, at.End = min(at.Start, w.Start), max(at.End, w.End)
			} else {
				*at, began[c] = w, true
			}
		}
	}
	return list
}

// Share returns the share of the ranks' time, up to the finish of each, in
// which they did not compute: sending, receiving and waiting.
func (r *Result) Share() float64 {
	total := sim.Time(0)
	for _, t := range r.Finish {
		total = total.Plus(t)
	}
	if total == 0 {
		return 0
	}
	return 1 - float64(r.Computing)/float64(total)
}

// InputError wraps errors of configurations, and of schedules that cannot run
// on nodes.
type InputError struct{ Err error }

func (e InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e InputError) Unwrap() error { return e.Err }

// Run runs a schedule. Its error is an InputError, a *goal.UnfinishedError if
// operations wait for ever, or about wrong bytes, a message that is too long
// for its receive, or one that arrived when all buffers were full.
func Run(ctx context.Context, s *goal.Schedule, cfg Config) (res *Result, err error) {
	nics, err := findInterfaces(s, cfg.MPI)
	if err = cmp.Or(err, CheckCalls(s, &cfg)); err != nil {
		return nil, err
	}
	numbers, err := layout(s, &cfg)
	if err != nil {
		return nil, err
	}
	calls := groupsOf(s, &cfg)
	cfg.MPI.Groups, cfg.MPI.Rooted = calls.members, cfg.MPI.Allreduce.Rooted()
	nics.place(&cfg)
	cfg.Stop = func() error { return context.Cause(ctx) }
	c, err := runtime.NewCluster(cfg.Config)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, InputError{err}
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w, err := mpi.New(c, cfg.MPI)
	if err != nil {
		return nil, InputError{err}
	}
	for rank, bytes := range nics.incoming(s, cfg.MPI) {
		w.Bound(rank, bytes)
	}
	players := make([]*player, s.Ranks())
	for rank, ops := range s.All() {
		p := newPlayer(rank, ops, nics, &cfg)
		players[rank] = p
		newCores(p, numbers[rank])
		p.findCalls(s, calls)
		for nic := range p.programs {
			if err := w.Spawn(nics.mpiRank(rank, nic), p.programs[nic].play); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Run(ctx); err != nil {
		// a deadlock of the network is no fault of the schedule
		if stuck := (*sim.StuckError)(nil); errors.As(err, &stuck) && !stuck.Waiting[0].Cause {
			err = errors.Join(unfinished(s, players), err)
		}
		return nil, err
	}
	if err := cmp.Or(fellBack(w, cfg.MPI), checkBarriers(s, &cfg, players)); err != nil {
		return nil, err
	}
	return results(s, w, players, &cfg)
}

// results gathers what the ranks have measured.
func results(s *goal.Schedule, w *mpi.World, players []*player, cfg *Config) (*Result, error) {
	c := w.Cluster()
	res := &Result{
		Windows: windowsOf(s, players),
		Ranks:   s.Ranks(), Matching: cfg.MPI.Matching, Messages: w.Stats(), Nodes: c.Stats(), Events: c.Handled(), Load: loadOf(c),
	}
	for rank, p := range players {
		res.Finish = append(res.Finish, p.finish)
		res.Computing = res.Computing.Plus(p.busy)
		if p.finish > res.Max {
			res.Max, res.MaxRank = p.finish, rank
		}
	}
	if m := res.Messages; m.Sent != m.Received {
		return nil, fmt.Errorf("nodes: %d messages were sent and %d received", m.Sent, m.Received)
	}
	return res, nil
}

// incoming bounds, for each rank of package mpi, the bytes that arrive before it
// asks for them.
func (n *interfaces) incoming(s *goal.Schedule, o mpi.Options) []int64 {
	bytes := make([]int64, o.Ranks)
	for rank, ops := range s.All() {
		for i := range ops.Len() {
			if op := ops.Op(i); op.Kind == goal.Send {
				bytes[n.mpiRank(int(op.Peer), n.of(rank, i))] += int64(o.Unasked(int(op.Size)))
			}
		}
	}
	return bytes
}

// Check runs a schedule in the endpoint model. Errors: an InputError if it
// cannot run on nodes, a *goal.UnfinishedError if it would not finish there.
func Check(s *goal.Schedule, o mpi.Options) error { return inModel(s, o) }

func inModel(s *goal.Schedule, o mpi.Options, options ...goal.Option) error {
	if err := o.Validate(); err != nil {
		return InputError{err}
	}
	if r, wide := s.WideTag(); wide {
		return InputError{fmt.Errorf("nodes: %v: a message on nodes has a tag of 32 bits, up to %d", r, goal.Any-1)}
	}
	for rank, ops := range s.All() {
		for i := range ops.Len() {
			switch op := ops.Op(i); {
			case op.Kind == goal.Send && op.Tag == goal.AnyTag:
				return InputError{fmt.Errorf("nodes: %v: a send needs a tag", s.Ref(rank, i))}
			case op.Kind != goal.Calc && op.Size > longestMessage:
				return InputError{fmt.Errorf("nodes: %v: expected at most %d bytes", s.Ref(rank, i), longestMessage)}
			}
		}
	}
	params := goal.DefaultParams()
	params.Eager = uint64(o.Eager)
	r, err := goal.NewSimulator(s).Run(params, options...)
	if err == nil && r.MaxNS > longestNS {
		err = InputError{fmt.Errorf("nodes: the schedule takes %d ns in the endpoint model, expected at most %d", r.MaxNS, longestNS)}
	}
	return err
}

// longestMessage is the most bytes of a message.
const longestMessage = math.MaxInt32

// longestNS is the longest time of a schedule in the model. Nodes may take
// longer than the model, and their time ends at 2^63 ps.
const longestNS = math.MaxInt64 / int64(sim.Nanosecond) / 4

// maxListed bounds how many operations of each kind an error lists.
const maxListed = 20

// unfinished names the operations that a run did not finish; nil: there are only
// calls of the library, which has its own error.
func unfinished(s *goal.Schedule, players []*player) error {
	e := &goal.UnfinishedError{}
	for rank, p := range players {
		for i, st := range p.state {
			switch op := p.ops.Op(i); {
			case st == waiting:
				e.Blocked++
			case st == started && op.Kind == goal.Recv:
				if e.NumReceives++; len(e.Receives) < maxListed {
					e.Receives = append(e.Receives, s.Ref(rank, i))
				}
			case st == started && op.Kind == goal.Send:
				if e.NumSends++; len(e.Sends) < maxListed {
					e.Sends = append(e.Sends, s.Ref(rank, i))
				}
			}
		}
	}
	if e.Blocked+e.NumReceives+e.NumSends == 0 {
		return nil
	}
	return e
}
