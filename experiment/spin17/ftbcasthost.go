package spin17

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	graph "github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// spawnGraph starts a rank whose host forwards the first copy to all
// neighbours. The entry of the user's memory is first in the list, so the first
// copy needs no copying. The others arrive in host memory, too.
func (f *failing) spawnGraph(rank int) error {
	list, _ := graph.NeighboursOf(uint32(rank), 0, uint32(f.Ranks))
	pass := func(p *runtime.Proc, md portals.Handle, from uint32) error {
		for _, n := range list {
			if n == from {
				continue
			}
			if err := p.NI().Put(portals.Put{MD: md, Length: uint64(f.Bytes), Target: experiment.Peer(int(n)), PT: experiment.RequestPT, MatchBits: experiment.RequestBits}); err != nil {
				return err
			}
		}
		return nil
	}
	if rank == 0 {
		return f.Spawn(rank, "broadcast", func(p *runtime.Proc) error {
			memory := p.Alloc(f.Bytes)
			copy(memory.Raw(), f.message)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(f.Bytes)})
			if err != nil {
				return err
			}
			return pass(p, md, 0)
		})
	}
	return f.Cluster.SpawnService(rank, "broadcast", func(p *runtime.Proc) error {
		eq, memory, err := f.graphEntries(p)
		if err != nil {
			return err
		}
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(f.Bytes)})
		if err != nil {
			return err
		}
		for {
			ev, err := p.NI().EQWait(eq)
			if err != nil {
				return err
			}
			p.Compute(p.Reads(used.Match).Host.Match)
			if ev.Type != portals.EventPut || ev.UserPtr != 0 {
				continue
			}
			if err := f.arrived(p, memory); err != nil {
				return err
			}
			if err := pass(p, md, ev.Initiator.NID); err != nil {
				return err
			}
		}
	})
}

// graphEntries appends an entry for each copy that may come, the user's memory
// first.
func (f *failing) graphEntries(p *runtime.Proc) (eq portals.Handle, memory runtime.View, err error) {
	ni := p.NI()
	copies := len(graph.Graph(uint32(f.Ranks)))
	if eq, err = ni.Objects().EQAlloc(uint64(2*copies + 2)); err != nil {
		return eq, memory, err
	}
	if _, err = ni.Objects().PTAlloc(0, eq, experiment.RequestPT); err != nil {
		return eq, memory, err
	}
	for i := range copies {
		into := p.Alloc(f.Bytes)
		if i == 0 {
			memory = into
		}
		_, err = ni.MEAppend(experiment.RequestPT, &portals.ME{
			Start: into.Addr(), Length: uint64(f.Bytes), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: experiment.RequestBits,
			Options: portals.OptMEOpPut | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
		}, portals.PriorityList, uint64(i))
		if err != nil {
			return eq, memory, err
		}
	}
	return eq, memory, nil
}

// Match bits of the messages of detectors. The header data are the attempt, and
// behind it a number: how many ranks have failed, or which one.
const (
	// the message, and behind it 4 B for each failed rank; each attempt has its
	// own place
	detectorData = experiment.RequestBits
	detectorDone = experiment.RequestBits + 1
	detectorNak  = experiment.RequestBits + 2
)

// detector is a rank of a broadcast that starts again when a rank is found to
// have failed.
type detector struct {
	*failing
	p        *runtime.Proc
	eq, md   portals.Handle
	memory   runtime.View
	attempt  uint32
	failed   []int // from the root, sorted
	parent   int
	waiting  map[int]sim.Time // children whose NICs have not acknowledged, with their deadlines
	unheard  int              // children whose subtrees do not all have the message
	finished bool
}

// spawnDetector starts a rank.
func (f *failing) spawnDetector(rank int) error {
	run := func(p *runtime.Proc) error {
		d := &detector{failing: f, p: p, waiting: map[int]sim.Time{}}
		if err := d.open(); err != nil {
			return err
		}
		return d.serve()
	}
	if rank == 0 {
		return f.Spawn(rank, "broadcast", run)
	}
	return f.Cluster.SpawnService(rank, "broadcast", run)
}

// open makes the rank ready.
func (d *detector) open() (err error) {
	ni := d.p.NI()
	d.memory = d.p.Alloc(d.attempts() * d.place())
	if d.eq, err = ni.Objects().EQAlloc(uint64(8*d.Ranks + 64)); err != nil {
		return err
	}
	if _, err = ni.Objects().PTAlloc(0, d.eq, experiment.RequestPT); err != nil {
		return err
	}
	d.md, err = ni.Objects().MDBind(&portals.MD{Start: d.memory.Addr(), Length: uint64(d.memory.Len()), EQ: d.eq, Options: portals.OptMDEventSendDisable})
	if err != nil {
		return err
	}
	for _, b := range []uint64{detectorData, detectorDone, detectorNak} {
		entry := portals.ME{
			UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: b, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
		}
		if b == detectorData {
			entry.Start, entry.Length = d.memory.Addr(), uint64(d.memory.Len())
		}
		if _, err = ni.MEAppend(experiment.RequestPT, &entry, portals.PriorityList, b); err != nil {
			return err
		}
	}
	return nil
}

// attempts is the maximum number of attempts. Before each, except the first, a
// rank was found that has failed.
func (d *detector) attempts() int { return d.Int("failed") + 1 }

// place is the memory of an attempt in bytes.
func (d *detector) place() int { return d.Bytes + 4*d.Int("failed") }

// at returns the place of the message of this attempt and its list of ranks.
func (d *detector) at(ranks int) (from, to int) {
	from = int(d.attempt-1) * d.place()
	return from, from + d.Bytes + 4*ranks
}

// parts returns the message and the list of an attempt.
func (d *detector) parts(ranks int) (message, list runtime.View) {
	from, to := d.at(ranks)
	return d.memory.Slice(from, from+d.Bytes), d.memory.Slice(from+d.Bytes, to)
}

// serve is the program of a rank. The root's ends when all ranks have the
// message.
func (d *detector) serve() error {
	if d.p.Rank() == 0 {
		for i := range d.attempts() { // a library would send the user's memory again and again
			copy(d.memory.Raw()[i*d.place():], d.message)
		}
		if err := d.begin(); err != nil {
			return err
		}
	}
	for !d.finished {
		timeout := runtime.Forever
		for _, until := range d.waiting { //lint:maporder the least is the same in any order
			if left := max(until-d.p.Now(), 0); timeout == runtime.Forever || left < timeout {
				timeout = left
			}
		}
		ev, _, err := d.p.NI().EQPoll([]portals.Handle{d.eq}, timeout)
		if errors.Is(err, portals.ErrEQEmpty) {
			err = d.overdue()
		} else if err == nil {
			d.p.Compute(d.p.Reads(used.Match).Host.Match)
			err = d.event(&ev)
		}
		if err != nil {
			return err
		}
	}
	d.More["known"], d.More["attempts"] = d.p.Now(), int(d.attempt)
	return nil
}

func (d *detector) event(ev *portals.Event) error {
	attempt, what := uint32(ev.HdrData>>32), uint32(ev.HdrData)
	switch {
	case ev.Type == portals.EventAck:
		if uint32(ev.UserPtr>>32) == d.attempt {
			delete(d.waiting, int(uint32(ev.UserPtr)))
		}
		return nil
	case ev.Type != portals.EventPut:
		return nil
	case ev.UserPtr == detectorNak:
		return d.haveFailed([]int{int(what)})
	case ev.UserPtr == detectorDone:
		if attempt != d.attempt {
			return nil
		}
		d.unheard--
		return d.done()
	case attempt <= d.attempt:
		return nil // from an attempt that was given up
	}
	d.attempt, d.failed = attempt, d.failed[:0]
	message, ranks := d.parts(int(what))
	if err := d.arrived(d.p, message); err != nil {
		return err
	}
	for list := ranks.Read(); len(list) > 0; list = list[4:] {
		d.failed = append(d.failed, int(binary.LittleEndian.Uint32(list)))
	}
	d.parent = int(ev.Initiator.NID)
	return d.pass()
}

// begin begins the next attempt of the root.
func (d *detector) begin() error {
	d.attempt++
	_, ranks := d.parts(len(d.failed))
	list := ranks.Write()
	for i, rank := range d.failed {
		binary.LittleEndian.PutUint32(list[4*i:], uint32(rank))
	}
	return d.pass()
}

// pass puts the message to the children of the rank.
func (d *detector) pass() error {
	clear(d.waiting)
	children := d.children()
	d.unheard = len(children)
	from, to := d.at(len(d.failed))
	for _, child := range children {
		err := d.p.NI().Put(portals.Put{
			MD: d.md, Offset: uint64(from), Length: uint64(to - from), Ack: portals.Ack, Target: experiment.Peer(child), PT: experiment.RequestPT, MatchBits: detectorData, RemoteOffset: uint64(from),
			UserPtr: uint64(d.attempt)<<32 | uint64(child), HdrData: uint64(d.attempt)<<32 | uint64(len(d.failed)),
		})
		if err != nil {
			return err
		}
		d.waiting[child] = d.p.Now() + d.Time("timeout")
	}
	return d.done()
}

// children are the children in the binomial tree of the ranks that have not
// failed, the largest subtree first.
func (d *detector) children() (list []int) {
	up := d.Ranks - len(d.failed)
	below, _ := slices.BinarySearch(d.failed, d.p.Rank())
	place := d.p.Rank() - below
	distance := 1 << bits.Len(uint(up-1)) >> 1
	if place > 0 {
		distance = place & -place >> 1
	}
	for ; distance > 0; distance >>= 1 {
		if place+distance >= up {
			continue
		}
		child := place + distance
		for _, failed := range d.failed {
			if failed <= child {
				child++
			}
		}
		list = append(list, child)
	}
	return list
}

// done tells the parent that all ranks below have the message, if they have.
func (d *detector) done() error {
	if d.unheard > 0 {
		return nil
	}
	if d.p.Rank() == 0 {
		d.finished = true
		return nil
	}
	return d.tell(d.parent, detectorDone, 0)
}

func (d *detector) tell(rank int, what uint64, which uint32) error {
	return d.p.NI().Put(portals.Put{MD: d.md, Target: experiment.Peer(rank), PT: experiment.RequestPT, MatchBits: what, HdrData: uint64(d.attempt)<<32 | uint64(which)})
}

// overdue takes the children whose deadline is over for failed.
func (d *detector) overdue() error {
	var late []int
	for child, until := range d.waiting { //lint:maporder they are sorted
		if until <= d.p.Now() {
			late = append(late, child)
		}
	}
	slices.Sort(late)
	for _, child := range late {
		delete(d.waiting, child)
	}
	return d.haveFailed(late)
}

// haveFailed reports failed ranks to the root, which starts again.
func (d *detector) haveFailed(ranks []int) error {
	before := len(d.failed)
	for _, rank := range ranks {
		if d.p.Rank() != 0 {
			if err := d.tell(d.parent, detectorNak, uint32(rank)); err != nil {
				return err
			}
		} else if at, known := slices.BinarySearch(d.failed, rank); !known {
			d.failed = slices.Insert(d.failed, at, rank)
		}
	}
	if d.p.Rank() != 0 || len(d.failed) == before {
		return nil
	}
	if d.suspected = d.failed; len(d.failed) >= d.attempts() { // too many: finish reports it
		d.finished = true
		return nil
	}
	return d.begin()
}
