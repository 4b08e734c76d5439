package mpi

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// MPI over InfiniBand follows MVAPICH and Open MPI (Liu, Wu, Panda, "High
// Performance RDMA-Based MPI Implementation over InfiniBand", International
// Journal of Parallel Programming 32(3), 2004; Woodall, Shipman, Bosilca,
// Maccabe, "High Performance RDMA Protocols in HPC", EuroPVM/MPI 2006). Each
// pair of ranks has a reliable connection.
//
// A message of up to Options.Eager bytes is copied to a buffer of the library,
// sent to a buffer that the other end has posted, and copied out of it. These
// buffers stay pinned. A larger message is announced (RTS). When it has a
// receive, the receiver makes its memory ready, one piece at a time, and sends
// the address (CTS). The sender makes its own memory ready, writes the piece by
// RDMA, and sends a FIN behind it. There are no copies but those of a strategy
// of package pinning. The process matches, in all calls that wait or test.
//
// No rank counts the free buffers of the other end. When all are in use, the
// receiving interface asks the sending interface to pause, as with every late
// receive (the hardware-based scheme of Liu, Panda, "Implementing Efficient and
// Scalable Flow Control Schemes in MPI over InfiniBand", IPDPS 2004). A message
// without a receive is copied to memory of the library, and its buffer is
// posted again.

type infiniBandCarrier struct {
	o       Options
	library *rnr.Loaded
}

func newInfiniBandCarrier(w *World) (carrier, error) {
	if kind := w.o.InfiniBand.kind(); kind != pinning.NoneKind && !w.c.Profile().OS.On() {
		return nil, fmt.Errorf("mpi: pinning %q, expected %s: profile %s has no operating system (os.kind)", kind, pinning.NoneKind, w.c.Profile().Name)
	}
	lib, err := rnr.Load(w.c, w.o.InfiniBand.Connections)
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	return &infiniBandCarrier{w.o, lib}, nil
}

// attach implements carrier. It makes all connections first, because posting
// the first buffer waits for the other end.
func (c *infiniBandCarrier) attach(r *Rank) (transport, error) {
	t := &overInfiniBand{r: r, o: &c.o, memory: extents{r: r}, peers: make([]*ibPeer, r.Size()), sends: map[uint32]*ibSend{}, tickets: map[uint32]*ibPiece{}}
	var bytes uint64
	bytes, t.leases = c.o.InfiniBand.piece()
	t.piece = int(min(bytes, maxMessage))
	o := c.o.InfiniBand.strategy()
	o.Copy = t.copy
	var err error
	if t.strategy, err = pinning.New(nil, r.p.OS(), o); err != nil {
		return nil, err
	}
	for rank := range t.peers {
		if rank == r.rank {
			continue
		}
		if t.peers[rank], err = t.connect(c.library, rank); err != nil {
			return nil, err
		}
	}
	for _, p := range t.peers {
		if p == nil {
			continue
		}
		for i := range p.receives {
			if err := p.post(i); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

type overInfiniBand struct {
	r        *Rank
	o        *Options
	memory   extents
	peers    []*ibPeer // by rank; nil: the rank itself
	strategy pinning.Strategy
	piece    int // bytes of a message that are made ready at a time
	leases   int // most pieces received, and most sent, at a time

	lists     matcher[ibMessage]
	sends     map[uint32]*ibSend // sends that wait for their receiver, by number
	transfers []*ibTransfer      // large messages that have matched, not yet asked for in full
	tickets   map[uint32]*ibPiece
	ticket    uint32  // last number given to a piece
	clear     []frame // CTSs that wait for a lease
	writing   int     // leases of pieces being sent
	observe   func(envelope, Status)
	handles   []portals.Handle
	tests     []uint64
}

func (t *overInfiniBand) usable() memory { return &t.memory }

func (t *overInfiniBand) limit() int { return maxMessage }

func (t *overInfiniBand) copy(_ *host.Thread, to, from, n uint64) error {
	return t.r.p.CopyAt(to, from, n)
}

// message charges the process for the code of a message.
func (t *overInfiniBand) message() { t.r.p.Compute(t.r.p.Reads(used.Message).Host.Message) }

func (t *overInfiniBand) send(q *Request) error {
	t.message()
	f := frame{kind: frameEager, env: q.env, length: q.length, sequence: q.status.Sequence, id: q.id, wanted: q.synchronous}
	if q.length > t.o.Eager {
		f.kind = frameRTS
	}
	if f.kind == frameRTS || f.wanted {
		t.sends[q.id] = &ibSend{q: q, left: q.length}
	}
	if q.peer == t.r.rank {
		return t.toSelf(q, f)
	}
	return t.peers[q.peer].say(ibOutgoing{frame: f, q: q})
}

// toSelf matches a message to the rank itself. The bytes stay in place until it
// matches.
func (t *overInfiniBand) toSelf(q *Request, f frame) error {
	v, err := t.r.p.View(q.addr, q.length)
	if err != nil {
		return err
	}
	if err := t.arrives(f, v); err != nil {
		return err
	}
	if f.kind == frameEager && !f.wanted {
		t.r.complete(q)
	}
	return nil
}

func (t *overInfiniBand) step() error {
	for {
		if acted, err := t.act(); acted || err != nil {
			return err
		}
		t.handles, t.tests = t.handles[:0], t.tests[:0]
		var ni *runtime.NI
		for _, p := range t.peers {
			if p != nil {
				ni = p.conn.NI()
				t.handles, t.tests = append(t.handles, p.conn.Signal()), append(t.tests, p.seen+1)
			}
		}
		// act charges the look at what has happened.
		var err error
		also := &t.r.also
		switch {
		case also.ni != nil && ni == nil:
			_, _, err = also.ni.CTPollAt([]portals.Handle{also.ct}, []uint64{1}, runtime.Forever, 0)
		case also.ni != nil:
			if err = ni.CTPollOrOther(t.handles, t.tests, runtime.Forever, runtime.Counter{NI: also.ni, CT: also.ct, Test: 1}); errors.Is(err, portals.ErrCTNoneReached) {
				err = nil
			}
		case ni == nil:
			return t.alone()
		default:
			_, _, err = ni.CTPollAt(t.handles, t.tests, runtime.Forever, 0)
		}
		if err != nil {
			return fmt.Errorf("mpi: rank %d: %w", t.r.rank, err)
		}
		if also.ni != nil {
			return nil
		}
	}
}

// alone waits for ever: a rank without others waits for a message that nobody
// sends.
func (t *overInfiniBand) alone() error {
	t.r.p.Thread().Wait("a message of its own")
	return nil
}

// act handles what has happened; false: nothing has.
func (t *overInfiniBand) act() (acted bool, err error) {
	for _, p := range t.peers {
		if p == nil || p.count() == p.seen {
			continue
		}
		acted = true
		p.seen = p.count()
		err := p.sent()
		if err == nil {
			err = p.arrived()
		}
		if err != nil {
			return true, fmt.Errorf("mpi: rank %d: connection to rank %d: %w", t.r.rank, p.rank, err)
		}
		if err := t.advance(); err != nil {
			return true, err
		}
	}
	return acted, nil
}

func (t *overInfiniBand) ready() bool {
	for _, p := range t.peers {
		if p != nil && p.count() != p.seen {
			return true
		}
	}
	return false
}

// ended tells the other ranks that no more messages come. A rank may leave when
// it has heard this from all: it has then taken all their messages.
func (t *overInfiniBand) ended() error {
	for _, p := range t.peers {
		if p == nil {
			continue
		}
		if err := p.say(ibOutgoing{frame: frame{kind: frameBye}}); err != nil {
			return err
		}
	}
	return nil
}

func (t *overInfiniBand) quiet() bool {
	for _, p := range t.peers {
		if p != nil && (!p.bye || len(p.sending)+len(p.queue) > 0) {
			return false
		}
	}
	return len(t.sends)+len(t.tickets)+len(t.transfers)+len(t.clear) == 0
}

// leave unpins everything.
func (t *overInfiniBand) leave() error { return t.strategy.Close(t.r.p.Thread()) }

func (t *overInfiniBand) lost() error { return nil }
