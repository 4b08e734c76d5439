package nodes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// A call is an allreduce of the library, by processes or in NICs, for which the
// schedule has one computation at each rank. Ranks begin their calls in the order
// of the schedule's collectives, as MPI asks for.

// elementBytes is the size of an element of a call, an int32: all modules add them.
const elementBytes = 4

// CheckCalls returns an InputError if the library cannot do what Config.Calls names.
func CheckCalls(s *goal.Schedule, cfg *Config) error {
	switch {
	case len(cfg.Calls) == 0:
		return nil
	case cfg.Empty:
		return InputError{fmt.Errorf("nodes: without payload nothing can be added: allreduce by %s needs it", cfg.MPI.Allreduce)}
	}
	contents := s.Contents()
	for i, c := range s.Collectives() {
		if !cfg.Calls[c.Name] {
			continue
		}
		switch of := contents[i]; {
		case c.Kind != goal.AllReduce:
			return InputError{fmt.Errorf("nodes: %s by %s: expected an allreduce, not %s", c.Name, cfg.MPI.Allreduce, c.Kind)}
		case of.Ranks != s.Ranks():
			return InputError{fmt.Errorf("nodes: %s by %s: %d members, expected all %d ranks: communicators of some are not supported", c.Name, cfg.MPI.Allreduce, of.Ranks, s.Ranks())}
		case c.Bytes == 0 || c.Bytes%elementBytes != 0 || c.Bytes > longestMessage:
			return InputError{fmt.Errorf("nodes: %s by %s: %d bytes, expected whole int32, 4 to %d bytes", c.Name, cfg.MPI.Allreduce, c.Bytes, longestMessage)}
		}
	}
	return nil
}

// findCalls finds the calls of a rank.
func (p *player) findCalls(s *goal.Schedule, cfg *Config) {
	for i := range p.ops.Len() {
		if c := p.ops.Collective(i); c >= 0 && cfg.Calls[s.Collectives()[c].Name] {
			p.calls = append(p.calls, call{op: i, coll: c, bytes: int(s.Collectives()[c].Bytes)}) //nolint:gosec // checked
		}
	}
	slices.SortFunc(p.calls, func(a, b call) int { return cmp.Compare(a.coll, b.coll) })
	for k, c := range p.calls {
		if p.callOf == nil {
			p.callOf = make(map[int]int)
		}
		p.callOf[c.op] = k
	}
}

// call is a call of a rank.
type call struct {
	op, coll, bytes int
	ready           bool
	result          runtime.View
}

// called returns the call that an operation stands for; nil: it is none.
func (p *player) called(i int) *call {
	if k, known := p.callOf[i]; known {
		return &p.calls[k]
	}
	return nil
}

// dueCall returns the next call if it can begin; nil: it cannot.
func (p *player) dueCall() *call {
	if p.begun < len(p.calls) && p.calls[p.begun].ready {
		return &p.calls[p.begun]
	}
	return nil
}

// call begins a call.
func (p *player) call(r *mpi.Rank, c *call) error {
	p.begun++
	p.part(c.op, r.Now())
	for _, v := range []*runtime.View{&p.places[c.op], &c.result} {
		memory, err := p.pool.get(c.bytes)
		if err != nil {
			return err
		}
		*v = memory
	}
	data := p.places[c.op].Slice(0, c.bytes)
	data.Fill(func(at int, b []byte) {
		for i := 0; i < len(b); i += elementBytes {
			binary.LittleEndian.PutUint32(b[i:], uint32(p.rank+1)*element(at+i))
		}
	})
	q, err := r.World().Start(mpi.Allreduce{Send: data, Recv: c.result.Slice(0, c.bytes), Type: mpi.Int32, Op: mpi.Sum})
	if err != nil {
		return err
	}
	q.User = c.op
	p.starts(c.op)
	return nil
}

// element is the contribution of rank 0 at an offset.
func element(at int) uint32 { return uint32(at/elementBytes) + 1 }

// answered ends a call, after a look at the result.
func (p *player) answered(r *mpi.Rank, c *call) error {
	n := uint32(r.Size())
	sum := uint32(uint64(n) * uint64(n+1) / 2) // of the ranks, each plus 1
	b := c.result.Slice(0, c.bytes).Read()
	for at := 0; at < len(b); at += elementBytes {
		if got, want := binary.LittleEndian.Uint32(b[at:]), sum*element(at); got != want {
			return fmt.Errorf("allreduce of %d bytes: element %d is %d, expected %d", c.bytes, at/elementBytes, int32(got), int32(want))
		}
	}
	c.result.Discard()
	p.pool.put(c.result)
	return nil
}

// fellBack returns an error if processes did a call that NICs were to do.
func fellBack(w *mpi.World, o mpi.Options) error {
	for _, f := range w.Fallbacks() {
		return fmt.Errorf("nodes: processes did %d calls of allreduce that %s was to do: %s", f.Calls, o.Allreduce, f.Why)
	}
	return nil
}
