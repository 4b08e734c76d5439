package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// World holds the ranks of a cluster. Call [World.Spawn] for every rank before
// the run: a message to a rank that is not spawned is lost.
type World struct {
	c       *runtime.Cluster
	o       Options
	carrier carrier
	ranks   []*Rank
	places  []portals.ID       // of the ranks' processes, as they are spawned
	at      map[portals.ID]int // the rank of a process
	bounds  map[int]int64
	modules *allreduce.Loaded // nil: no modules of NICs compute Allreduce
	trees   *trees            // nil: no trees do
	groups  []group           // of Options.Groups
	of      [][]int           // of each rank, its groups
	spawned int
}

// New prepares a cluster for ranks. It returns an error for options that are
// wrong or do not fit the cluster.
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
	if err = w.makeGroups(); err != nil {
		return nil, err
	}
	return w, w.loadModules()
}

// Cluster returns the cluster of the ranks.
func (w *World) Cluster() *runtime.Cluster { return w.c }

// Size returns the number of ranks.
func (w *World) Size() int { return len(w.ranks) }

// Place returns the process of a rank that has been spawned.
func (w *World) Place(rank int) portals.ID { return w.places[rank] }

// Options returns the options of the world.
func (w *World) Options() Options { return w.o }

// Bound promises that a rank gets at most this number of bytes in the whole run
// without asking for them (Options.Unasked). The rank then has no more buffers
// than these bytes can fill. Call it before Spawn.
func (w *World) Bound(rank int, bytes int64) {
	if w.bounds == nil {
		w.bounds = make(map[int]int64)
	}
	w.bounds[rank] = bytes
}

func (w *World) buffers(rank int) int {
	bytes, bounded := w.bounds[rank]
	if !bounded {
		return w.o.Buffers
	}
	// a full buffer holds at least this number of bytes
	used := int64(max(1, w.o.BufferBytes-w.o.Eager-matching.AnnouncementSize))
	return int(min(int64(w.o.Buffers), bytes/used+1))
}

// Spawn starts f as the program of a rank. If f returns an error, the run ends
// with it. If f returns nil, the rank stays until all its messages are
// acknowledged, as in MPI_Finalize.
func (w *World) Spawn(rank int, f func(r *Rank) error) error {
	if rank < 0 || rank >= len(w.ranks) {
		return fmt.Errorf("mpi: no rank %d, expected 0 to %d", rank, len(w.ranks)-1)
	}
	node, name := w.o.Program(rank)
	place := portals.PhysID(uint32(node), uint32(w.c.Processes(node)))
	w.places[rank], w.at[place] = place, rank
	err := w.c.Spawn(node, name, func(p *runtime.Proc) error {
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
	if w.spawned++; err == nil && w.spawned == len(w.ranks) && w.trees != nil {
		err = w.plant()
	}
	return err
}

// Run simulates until all programs have returned. It returns the errors of
// runtime.Cluster.Run and these: a message for which a NIC had no room; a
// message for which a rank had no buffer and that was not sent again because
// its program had ended; a handler that failed. The causes come first, then the
// ranks that still wait.
func (w *World) Run(ctx context.Context) error {
	err := w.c.Run(ctx)
	causes := w.c.Broken()
	if stuck, ok := errors.AsType[*sim.StuckError](err); ok && stuck.Waiting[0].Cause {
		return errors.Join(w.mismatch(), causes, w.lost(), err, w.stuck())
	} else if ok {
		return errors.Join(w.mismatch(), causes, w.lost(), w.stuck(), err)
	}
	return errors.Join(w.mismatch(), err, causes, w.lost())
}

// lost returns an error if messages were refused for lack of a buffer and not
// sent again.
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

// Stats counts the work of one rank or, in World.Stats, of all ranks.
type Stats struct {
	Sent        int64 // messages
	SentBytes   int64
	Received    int64 // messages whose data is where the program wants it
	Large       int64 // received messages that waited for their receive
	Unexpected  int64 // received messages that came before their receive
	Copied      int64 // received messages that a core copied, at least in part
	CopiedBytes int64
	// messages sent again because the target's buffers were full; each time
	// counts
	Resent int64
	// buffers that ranks added because all were full of messages without a
	// receive
	Grown     int64
	Offloaded int64 // calls of collectives that modules did; each rank counts
	// Messages of elements that are not in one piece, by the unit that packed
	// or unpacked them.
	PackedByCore   int64
	UnpackedByCore int64
	UnpackedByNIC  int64

	// calls that Options.Allreduce gives to modules but processes computed;
	// World.Fallbacks gives the reasons
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

// Pinning returns the counts of a rank's strategy over InfiniBand
// (InfiniBandOptions). Over other transports they are zero.
func (w *World) Pinning(rank int) (s PinningStats) {
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
