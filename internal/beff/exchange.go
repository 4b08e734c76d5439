package beff

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Method is how neighbours exchange messages.
type Method int

// The methods.
const (
	Sendrecv    Method = iota // to the right and from the left, then to the left and from the right
	Alltoallv                 // nothing for other ranks
	Nonblocking               // both receives, both sends, and a wait for all
)

var methods = [...]string{Sendrecv: "Sendrecv", Alltoallv: "Alltoallv", Nonblocking: "nonblocking"}

func (m Method) String() string { return methods[m] }

// end is a rank of a run.
type end struct {
	b           *Benchmark
	r           *mpi.Rank
	c           *mpi.Comm
	send, recv  cyclic
	word        runtime.View // for times
	left, right int
	counts      []int // bytes for and from each rank
	places      []int // places of the messages to send
	origins     []int // places of the messages to receive
	round       byte  // in the first and last bytes of messages, together with the sender
}

// cyclic is memory that is used part after part, again and again.
type cyclic struct {
	memory runtime.View
	next   int
}

// take returns the next n bytes.
func (m *cyclic) take(n int) runtime.View {
	if m.next+n > m.memory.Len() {
		m.next = 0
	}
	v := m.memory.Slice(m.next, m.next+n)
	m.next += n
	return v
}

// Tags of messages, by their direction.
const (
	toRight = 1
	toLeft  = 2
)

// measure returns the time of the slowest rank for some rounds of exchanges.
func (x *end) measure(m Method, n int, cold bool) (took sim.Time, rounds int, err error) {
	rounds = 1
	if !cold {
		if took, err = x.time(m, n, 1); err != nil {
			return 0, 0, err
		}
		rounds = int(min(max(x.b.Loop/max(took, 1), 1), MostRounds))
	}
	took, err = x.time(m, n, rounds)
	return took, rounds, err
}

// time returns the time of the slowest rank for a number of exchanges after a
// barrier.
func (x *end) time(m Method, n, rounds int) (sim.Time, error) {
	if err := x.c.Barrier(); err != nil {
		return 0, err
	}
	begin := x.r.Now()
	for range rounds {
		if err := x.exchange(m, n); err != nil {
			return 0, err
		}
	}
	mine, most := x.word.Slice(0, 8), x.word.Slice(8, 16)
	binary.LittleEndian.PutUint64(mine.Write(), uint64(x.r.Now()-begin))
	if err := x.c.Allreduce(mine, most, mpi.Int64, mpi.Max); err != nil {
		return 0, err
	}
	return sim.Time(binary.LittleEndian.Uint64(most.Read())), nil
}

// exchange sends a message to each neighbour and receives one from each.
func (x *end) exchange(m Method, n int) error {
	x.round++
	out, in := x.send.take(2*n), x.recv.take(2*n)
	right, left := out.Slice(0, n), out.Slice(n, 2*n)
	fromLeft, fromRight := in.Slice(0, n), in.Slice(n, 2*n)
	x.mark(right, toRight)
	x.mark(left, toLeft)
	var err error
	switch m {
	case Sendrecv:
		if _, err = x.c.Sendrecv(right, x.right, toRight, fromLeft, x.left, toRight); err == nil {
			_, err = x.c.Sendrecv(left, x.left, toLeft, fromRight, x.right, toLeft)
		}
	case Alltoallv:
		err = x.alltoallv(out, in, n)
	default:
		err = x.nonblocking(right, left, fromLeft, fromRight)
	}
	if err != nil {
		return err
	}
	if err := x.check(fromLeft, x.left, toRight); err != nil {
		return err
	}
	return x.check(fromRight, x.right, toLeft)
}

// alltoallv sends both messages with one call. In a ring of two they are one
// message of twice the length. The first half, which one rank sends to the
// right, comes from the left of the other; the second half from its right.
func (x *end) alltoallv(out, in runtime.View, n int) error {
	clear(x.counts)
	clear(x.places)
	clear(x.origins)
	x.counts[x.right] += n
	x.counts[x.left] += n
	x.places[x.left], x.places[x.right] = n, 0
	x.origins[x.right], x.origins[x.left] = n, 0
	return x.c.Do(mpi.Alltoallv{
		Send: mpi.Data{Memory: out}, Counts: x.counts, Places: x.places, Recv: mpi.Data{Memory: in}, RecvCounts: x.counts, RecvPlaces: x.origins,
	})
}

func (x *end) nonblocking(right, left, fromLeft, fromRight runtime.View) error {
	var list [4]*mpi.Request
	var err error
	if list[0], err = x.c.Irecv(fromLeft, x.left, toRight); err != nil {
		return err
	}
	if list[1], err = x.c.Irecv(fromRight, x.right, toLeft); err != nil {
		return err
	}
	if list[2], err = x.c.Isend(right, x.right, toRight); err != nil {
		return err
	}
	if list[3], err = x.c.Isend(left, x.left, toLeft); err != nil {
		return err
	}
	return x.r.WaitAll(list[:], nil)
}

// value returns the first and last byte of a message.
func (x *end) value(from int, tag byte) byte { return x.round*31 + byte(from)*7 + tag }

func (x *end) mark(v runtime.View, tag byte) {
	n := v.Len()
	v.Slice(0, 1).Write()[0] = x.value(x.r.Rank(), tag)
	v.Slice(n-1, n).Write()[0] = x.value(x.r.Rank(), tag)
}

func (x *end) check(v runtime.View, from int, tag byte) error {
	n := v.Len()
	for _, at := range []int{0, n - 1} {
		if got, want := v.Slice(at, at+1).Read()[0], x.value(from, tag); got != want {
			return fmt.Errorf("byte %d of %d from rank %d is %d, expected %d", at, n, from, got, want)
		}
	}
	return nil
}
