package mpi

import (
	"cmp"
	"fmt"

	"github.com/spinsim/spinsim/runtime"
)

// InPlace is the zero View. Pass it for the data to send where that data
// already lies in the memory for the result (MPI_IN_PLACE). At the root of
// Scatter, pass it for the result. Also pass it for arguments that have no
// meaning at a rank.
var InPlace runtime.View

// All ranks of a communicator must call its collective operations in the same
// order. Memory comes from Rank.Alloc; lengths and places are in bytes. Each
// operation has a form that begins with I and returns a request. Such an
// operation makes progress while the program is in a call that waits or tests.

func (c *Comm) wrong(k callKind, format string, args ...any) error {
	return fmt.Errorf("mpi: rank %d: %s on %s: %s", c.r.rank, callNames[k], c.name, fmt.Sprintf(format, args...))
}

func (c *Comm) owned(k callKind, root int, views ...runtime.View) error {
	if err := c.usable(); err != nil {
		return err
	}
	if root != noRoot && (root < 0 || root >= c.Size()) {
		return c.wrong(k, "root %d, expected a rank below %d", root, c.Size())
	}
	for i, v := range views {
		if v.Proc() == nil {
			continue
		}
		if err := c.r.own(v); err != nil {
			return err
		}
		if v.Len() > maxMessage {
			return c.wrong(k, "%d B, expected at most %d B", v.Len(), maxMessage)
		}
		for _, w := range views[:i] {
			if overlap(v, w) {
				return c.wrong(k, "%d B at %#x and %d B at %#x overlap, expected memory apart or InPlace", w.Len(), w.Addr(), v.Len(), v.Addr())
			}
		}
	}
	return nil
}

// whole checks the total length of the blocks of all ranks.
func (c *Comm) whole(k callKind, n int) error {
	if n > maxMessage/c.Size() {
		return c.wrong(k, "%d blocks of %d B, expected at most %d B in all", c.Size(), n, maxMessage)
	}
	return nil
}

func overlap(a, b runtime.View) bool {
	return a.Len() > 0 && b.Len() > 0 && a.Addr() < b.Addr()+uint64(b.Len()) && b.Addr() < a.Addr()+uint64(a.Len())
}

func (c *Comm) apart(what string, a, b runtime.View) error {
	if overlap(a, b) {
		return fmt.Errorf("mpi: rank %d: %s: %d B at %#x and %d B at %#x overlap", c.r.rank, what, a.Len(), a.Addr(), b.Len(), b.Addr())
	}
	return nil
}

// layout checks the lengths and places of the blocks of v, one for each rank.
// If places is nil, the blocks follow each other.
func (c *Comm) layout(k callKind, v runtime.View, counts, places []int) (vector, error) {
	if len(counts) != c.Size() || places != nil && len(places) != c.Size() {
		return vector{}, c.wrong(k, "%d lengths and %d places, expected one for each of %d ranks", len(counts), len(places), c.Size())
	}
	b := vector{v: v, counts: counts, places: places}
	if places == nil {
		b.places = make([]int, len(counts))
		at := 0
		for i, n := range counts {
			b.places[i] = at
			at += n
		}
	}
	for i, n := range counts {
		if at := b.places[i]; n < 0 || at < 0 || at > v.Len() || n > v.Len()-at {
			return vector{}, c.wrong(k, "block of rank %d: %d B at %d, expected a part of %d B", i, n, at, v.Len())
		}
	}
	return b, nil
}

// rooted checks the arguments of a call in which the root has the memory for
// all ranks (whole) and each rank has one part.
func (c *Comm) rooted(k callKind, root int, whole, part runtime.View) error {
	if err := c.owned(k, root, whole, part); err != nil {
		return err
	}
	if c.rank == root {
		return c.need(k, whole)
	}
	return c.need(k, part)
}

// need checks that arguments a rank must give are not InPlace.
func (c *Comm) need(k callKind, views ...runtime.View) error {
	for _, v := range views {
		if v.Proc() == nil {
			return c.wrong(k, "InPlace, expected memory of Alloc")
		}
	}
	return nil
}

// blocking runs a schedule to its end.
func blocking(s *schedule, err error) error {
	if err != nil {
		return err
	}
	return s.wait()
}

func started(s *schedule, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	return s.launch(true)
}

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier() error { return blocking(c.barrier()) }

// Ibarrier starts Barrier.
func (c *Comm) Ibarrier() (*Request, error) { return started(c.barrier()) }

func (c *Comm) barrier() (*schedule, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callBarrier, root: noRoot})
	s.barrier()
	return s, nil
}

// Bcast copies the bytes of v at the root to v at all ranks.
func (c *Comm) Bcast(v runtime.View, root int) error { return blocking(c.bcast(v, root)) }

// Ibcast starts Bcast.
func (c *Comm) Ibcast(v runtime.View, root int) (*Request, error) { return started(c.bcast(v, root)) }

func (c *Comm) bcast(v runtime.View, root int) (*schedule, error) {
	if err := cmp.Or(c.owned(callBcast, root, v), c.need(callBcast, v)); err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callBcast, root: root, bytes: v.Len()})
	s.bcast(v, root)
	return s, nil
}

// Scatter sends each rank one block of the root's send, which holds a block as
// long as recv for each rank. At the root recv may be InPlace.
func (c *Comm) Scatter(send, recv runtime.View, root int) error {
	return blocking(c.scatter(send, recv, root))
}

// Iscatter starts Scatter.
func (c *Comm) Iscatter(send, recv runtime.View, root int) (*Request, error) {
	return started(c.scatter(send, recv, root))
}

func (c *Comm) scatter(send, recv runtime.View, root int) (*schedule, error) {
	n := recv.Len()
	if err := c.rooted(callScatter, root, send, recv); err != nil {
		return nil, err
	}
	if c.rank == root {
		if recv.Proc() == nil {
			n = send.Len() / c.Size()
		}
		if send.Len() != n*c.Size() {
			return nil, c.wrong(callScatter, "%d B to send, expected %d blocks of %d B", send.Len(), c.Size(), n)
		}
	}
	if err := c.whole(callScatter, n); err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callScatter, root: root, bytes: n})
	s.scatter(send, recv, n, root)
	return s, nil
}

// Scatterv is Scatter with a length and a place in send for each block. Only
// the root gives them. places may be nil if the blocks follow each other. The
// root sends to one rank after the other.
func (c *Comm) Scatterv(send runtime.View, counts, places []int, recv runtime.View, root int) error {
	return blocking(c.scatterv(send, counts, places, recv, root))
}

// Iscatterv starts Scatterv.
func (c *Comm) Iscatterv(send runtime.View, counts, places []int, recv runtime.View, root int) (*Request, error) {
	return started(c.scatterv(send, counts, places, recv, root))
}

func (c *Comm) scatterv(send runtime.View, counts, places []int, recv runtime.View, root int) (*schedule, error) {
	if err := c.rooted(callScatterv, root, send, recv); err != nil {
		return nil, err
	}
	if c.rank != root {
		s := c.begin(call{kind: callScatterv, root: root, bytes: -1})
		s.scatterv(vector{}, recv, root)
		return s, nil
	}
	b, err := c.layout(callScatterv, send, counts, places)
	if err != nil {
		return nil, err
	}
	if recv.Proc() != nil && recv.Len() != counts[root] {
		return nil, c.wrong(callScatterv, "%d B for the root's block of %d B", recv.Len(), counts[root])
	}
	s := c.begin(call{kind: callScatterv, root: root, bytes: -1})
	s.scatterv(b, recv, root)
	return s, nil
}

// Gather collects the bytes of every rank's send in the root's recv, which has
// a block of that length for each rank. At the root send may be InPlace.
func (c *Comm) Gather(send, recv runtime.View, root int) error {
	return blocking(c.gather(send, recv, root))
}

// Igather starts Gather.
func (c *Comm) Igather(send, recv runtime.View, root int) (*Request, error) {
	return started(c.gather(send, recv, root))
}

func (c *Comm) gather(send, recv runtime.View, root int) (*schedule, error) {
	n := send.Len()
	if err := c.rooted(callGather, root, recv, send); err != nil {
		return nil, err
	}
	if c.rank == root {
		if send.Proc() == nil {
			n = recv.Len() / c.Size()
		}
		if recv.Len() != n*c.Size() {
			return nil, c.wrong(callGather, "%d B for the result, expected %d blocks of %d B", recv.Len(), c.Size(), n)
		}
	}
	if err := c.whole(callGather, n); err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callGather, root: root, bytes: n})
	s.gather(send, recv, n, root)
	return s, nil
}

// Gatherv is Gather with a length and a place in recv for each block. Only the
// root gives them. places may be nil if the blocks follow each other. All ranks
// send directly to the root. With 32 ranks or more they send synchronously.
func (c *Comm) Gatherv(send, recv runtime.View, counts, places []int, root int) error {
	return blocking(c.gatherv(send, recv, counts, places, root))
}

// Igatherv starts Gatherv.
func (c *Comm) Igatherv(send, recv runtime.View, counts, places []int, root int) (*Request, error) {
	return started(c.gatherv(send, recv, counts, places, root))
}

func (c *Comm) gatherv(send, recv runtime.View, counts, places []int, root int) (*schedule, error) {
	if err := c.rooted(callGatherv, root, recv, send); err != nil {
		return nil, err
	}
	if c.rank != root {
		s := c.begin(call{kind: callGatherv, root: root, bytes: -1})
		s.gatherv(send, vector{}, root)
		return s, nil
	}
	b, err := c.layout(callGatherv, recv, counts, places)
	if err != nil {
		return nil, err
	}
	if send.Proc() != nil && send.Len() != counts[root] {
		return nil, c.wrong(callGatherv, "%d B to send, expected the %d B that the root has room for", send.Len(), counts[root])
	}
	s := c.begin(call{kind: callGatherv, root: root, bytes: -1})
	s.gatherv(send, b, root)
	return s, nil
}
