package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/host/pinning"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// World is the ranks of a cluster. [World.Spawn] must be called for every rank
// before the run: a message to a rank that has not been spawned is lost.
type World struct {
	c       *runtime.Cluster
	o       Options
	carrier carrier
	ranks   []*Rank
	places  []portals.ID       // of the ranks' processes, as far as they have been spawned
	at      map[portals.ID]int // the rank of a process
	bounds  map[int]int64
	modules *allreduce.Loaded // nil: processes compute everything
}

// New prepares a cluster for ranks. Errors: options that make no sense or do not fit the cluster.
func New(c *runtime.Cluster, o Options) (*World, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	room := c.Nodes() * o.perNode()
	ranks := cmp.Or(o.Ranks, len(o.Places), room)
	for rank, node := range o.Places {
		if node < 0 || node >= c.Nodes() {
			return nil, fmt.Errorf("mpi: rank %d on node %d, expected 0 to %d", rank, node, c.Nodes()-1)
		}
	}
	if o.Places == nil && ranks > min(room, maxRanks) {
		return nil, fmt.Errorf("mpi: %d ranks on %d nodes, expected at most %d", ranks, c.Nodes(), min(room, maxRanks))
	}
	w := &World{c: c, o: o, ranks: make([]*Rank, ranks), places: make([]portals.ID, ranks), at: make(map[portals.ID]int, ranks)}
	var err error
	if w.carrier, err = carriers[o.transport()](w); err != nil {
		return nil, err
	}
	return w, w.loadModules()
}

// Cluster is what the ranks run on.
func (w *World) Cluster() *runtime.Cluster { return w.c }

// Size is the number of ranks.
func (w *World) Size() int { return len(w.ranks) }

// Place is the process of a rank that has been spawned.
func (w *World) Place(rank int) portals.ID { return w.places[rank] }

// Options are those the world was made with.
func (w *World) Options() Options { return w.o }

// Bound promises that at most so many bytes come to a rank in the whole run
// without being asked for (Options.Unasked). The rank then has no more buffers
// than they can fill. It must be called before Spawn.
func (w *World) Bound(rank int, bytes int64) {
	if w.bounds == nil {
		w.bounds = make(map[int]int64)
	}
	w.bounds[rank] = bytes
}

// buffers is how many buffers a rank has.
func (w *World) buffers(rank int) int {
	bytes, bounded := w.bounds[rank]
	if !bounded {
		return w.o.Buffers
	}
	// what a buffer holds at least when it is full
	used := int64(max(1, w.o.BufferBytes-w.o.Eager-matching.AnnouncementSize))
	return int(min(int64(w.o.Buffers), bytes/used+1))
}

// Spawn starts f as the program of a rank. The run ends with its error, if it
// returns one. When it returns nil the rank stays, as in MPI_Finalize, until
// all that it has sent is acknowledged.
func (w *World) Spawn(rank int, f func(r *Rank) error) error {
	if rank < 0 || rank >= len(w.ranks) {
		return fmt.Errorf("mpi: no rank %d, expected 0 to %d", rank, len(w.ranks)-1)
	}
	node, name := rank/w.o.perNode(), "rank"
	if w.o.Places != nil {
		node = w.o.Places[rank]
	}
	if w.o.perNode() > 1 || w.o.Places != nil {
		name = fmt.Sprintf("MPI rank %d", rank)
	}
	place := portals.PhysID(uint32(node), uint32(w.c.Processes(node)))
	w.places[rank], w.at[place] = place, rank
	return w.c.Spawn(node, name, func(p *runtime.Proc) error {
		r, err := newRank(w, p, rank)
		if err != nil {
			return fmt.Errorf("mpi: rank %d: %w", rank, err)
		}
		w.ranks[rank] = r
		if err := f(r); err != nil {
			return err
		}
		return r.finish()
	})
}

// Run simulates until all programs have returned. A message that a NIC had no
// room for, one that a rank had no buffer for and that was not sent again
// because its program had ended, and a handler that failed are errors, and so
// is all that runtime.Cluster.Run reports. What ranks wait for in vain stands
// behind what they wait because of.
func (w *World) Run(ctx context.Context) error {
	err := w.c.Run(ctx)
	causes := w.c.Broken()
	var stuck *sim.StuckError
	if errors.As(err, &stuck) {
		return errors.Join(w.mismatch(), causes, w.lost(), w.stuck(), err)
	}
	return errors.Join(w.mismatch(), err, causes, w.lost())
}

// lost reports messages that were refused for want of a buffer and not sent again.
func (w *World) lost() error {
	for _, r := range w.ranks {
		if r == nil {
			continue
		}
		if err := r.transport.lost(); err != nil {
			return err
		}
	}
	return nil
}

// Stats counts what a rank or, with World.Stats, all ranks did.
type Stats struct {
	Sent        int64 // messages
	SentBytes   int64
	Received    int64 // messages whose data is where the program wants it
	Large       int64 // of them, those that waited for their receive
	Unexpected  int64 // of the messages received, those that came before their receive
	Copied      int64 // of the messages received, those that a core has copied, at least in part
	CopiedBytes int64
	// messages that were refused because the target's buffers were full, and
	// sent again; each time counts
	Resent int64
	// buffers that ranks have added because all were full of messages without a
	// receive
	Grown     int64
	Offloaded int64 // calls of Allreduce that modules of the NIC computed; each rank counts
	// Of messages of elements that are not in one piece: who packed and unpacked them.
	PackedByCore   int64
	UnpackedByCore int64
	UnpackedByNIC  int64

	// those that Options.Allreduce would have them compute and that processes
	// did: World.Fallbacks says why
	FellBack int64
}

func (s *Stats) add(t Stats) {
	s.Sent += t.Sent
	s.SentBytes += t.SentBytes
	s.Received += t.Received
	s.Large += t.Large
	s.Unexpected += t.Unexpected
	s.Copied += t.Copied
	s.CopiedBytes += t.CopiedBytes
	s.Resent += t.Resent
	s.Grown += t.Grown
	s.Offloaded += t.Offloaded
	s.FellBack += t.FellBack
	s.PackedByCore += t.PackedByCore
	s.UnpackedByCore += t.UnpackedByCore
	s.UnpackedByNIC += t.UnpackedByNIC
}

// Pinning counts what a rank's strategy has done over InfiniBand
// (InfiniBandOptions); over other transports nothing.
func (w *World) Pinning(rank int) (s pinning.Stats) {
	if r := w.ranks[rank]; r != nil {
		if t, is := r.transport.(*overInfiniBand); is {
			s = t.strategy.Stats()
		}
	}
	return s
}

// Stats returns the sums over all ranks.
func (w *World) Stats() (sum Stats) {
	for _, r := range w.ranks {
		if r != nil {
			sum.add(r.stats)
		}
	}
	return sum
}
