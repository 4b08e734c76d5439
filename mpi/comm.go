package mpi

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/spinsim/spinsim/runtime"
)

// ProcNull is the rank of nobody. A message to or from it is complete at once
// and has no bytes.
const ProcNull = -2

// Undefined is the color of a rank that gets no communicator, and the index of
// no request.
const Undefined = -1

// Comm is a communicator: a group of ranks with its own numbers. Its messages
// never match receives of another communicator (MPI 4.1 §7). A Comm belongs to
// one rank; only the program of that rank may use it.
type Comm struct {
	r       *Rank
	id      uint16  // gives two contexts: point to point, and collective
	name    string  // the same at all its ranks
	rank    int     // the owner's number
	members []int32 // as ranks of the world; nil: all, in order
	numbers []int32 // by rank of the world, Undefined: no member; nil like members
	split   int     // communicators made from it so far
	log     callLog
	planned int // 1 + its place in Options.Groups; 0: it is none of them
	freed   bool
	module  *module // computes Allreduce; nil: no module does
}

// maxComms is the largest number of communicators that a rank has at a time.
// ExaNet-MPI takes the 16-bit contexts of MPICH 3.2.1, which keeps a mask of 64
// words of 32 bits for them.
const maxComms = 2048

// World returns the communicator of all ranks.
func (r *Rank) World() *Comm { return &r.world0 }

// Rank returns the owner's number in the communicator.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int {
	if c.members == nil {
		return c.r.Size()
	}
	return len(c.members)
}

// Owner returns the rank to which the Comm belongs.
func (c *Comm) Owner() *Rank { return c.r }

// Translate turns a number in the communicator into a rank of the world. It
// returns Undefined if no member has the number. AnySource and ProcNull stay.
func (c *Comm) Translate(rank int) int {
	if rank >= c.Size() {
		return Undefined
	}
	if c.members == nil || rank < 0 {
		return rank
	}
	return int(c.members[rank])
}

// rankOf returns the number of a member, given as a rank of the world.
func (c *Comm) rankOf(world int) int {
	if c.numbers == nil || world < 0 {
		return world
	}
	return int(c.numbers[world])
}

// point is the context of point-to-point messages, collective the context of
// collective operations.
func (c *Comm) point() uint16      { return 2 * c.id }
func (c *Comm) collective() uint16 { return 2*c.id + 1 }

func (c *Comm) usable() error {
	if c.freed {
		return fmt.Errorf("mpi: rank %d: communicator %s has been freed", c.r.rank, c.name)
	}
	return nil
}

// Split makes a communicator of all ranks that give the same color (0 to
// 2^31-1). They are numbered by key; ranks with equal keys keep their order in
// c. A rank with color Undefined gets nil. All ranks of c must call Split (MPI
// 4.1 §7.4.2). As in MPICH 3.2.1, an allgather of 8 B per rank exchanges colors
// and keys, and an allreduce of 256 B finds a context that is free at all
// ranks.
func (c *Comm) Split(color, key int) (*Comm, error) {
	if color < Undefined || color > maxMessage || key < -maxMessage || key > maxMessage {
		return nil, fmt.Errorf("mpi: rank %d: color %d and key %d, expected a color of 0 to %d or Undefined, %d, and a key of up to 31 bits", c.r.rank, color, key, maxMessage, Undefined)
	}
	r := c.r
	memory, err := r.temporary.get(r, 8*c.Size())
	if err != nil {
		return nil, err
	}
	defer r.temporary.put(memory)
	table := memory.Slice(0, 8*c.Size())
	mine := table.Slice(8*c.rank, 8*c.rank+8).Write()
	put32(mine, uint32(color))
	put32(mine[4:], uint32(key))
	r.modules.internal = true
	err = c.Allgather(InPlace, table)
	r.modules.internal = false
	if err != nil {
		return nil, err
	}
	n, err := c.fresh(color != Undefined)
	if err != nil || n == nil {
		return nil, err
	}
	type member struct{ key, number int32 }
	var group []member
	for i, b := 0, table.Read(); i < c.Size(); i++ {
		if int32(get32(b[8*i:])) == int32(color) {
			group = append(group, member{int32(get32(b[8*i+4:])), int32(i)})
		}
	}
	slices.SortStableFunc(group, func(a, b member) int { return int(a.key) - int(b.key) })
	n.name = fmt.Sprintf("%s/split%d:%d", c.name, c.split, color)
	n.members, n.numbers = make([]int32, len(group)), make([]int32, r.Size())
	for i := range n.numbers {
		n.numbers[i] = Undefined
	}
	for i, m := range group {
		world := c.Translate(int(m.number))
		n.members[i], n.numbers[world] = int32(world), int32(i)
	}
	n.rank = int(n.numbers[r.rank])
	return n, n.openModule(true)
}

// Dup makes a communicator of the same ranks. All of them must call it.
func (c *Comm) Dup() (*Comm, error) {
	n, err := c.fresh(true)
	if err != nil {
		return nil, err
	}
	n.name, n.rank, n.members, n.numbers = fmt.Sprintf("%s/dup%d", c.name, c.split), c.rank, c.members, c.numbers
	return n, n.openModule(true)
}

// fresh agrees with the other ranks of c on the lowest context that none of
// them uses. A rank that is no member takes part and gets nil.
func (c *Comm) fresh(member bool) (*Comm, error) {
	r := c.r
	c.split++
	mask, err := r.temporary.get(r, maxComms/8)
	if err != nil {
		return nil, err
	}
	defer r.temporary.put(mask)
	used := mask.Slice(0, maxComms/8)
	for i, b := 0, used.Write(); i < len(r.contexts); i++ {
		put64(b[8*i:], r.contexts[i])
	}
	r.modules.internal = true
	err = c.Allreduce(InPlace, used, Int32, BAnd)
	r.modules.internal = false
	if err != nil {
		return nil, err
	}
	id := -1
	for i, b := 0, used.Read(); i < len(r.contexts) && id < 0; i++ {
		if w := get64(b[8*i:]); w != 0 {
			id = 64*i + bits.TrailingZeros64(w)
		}
	}
	if id < 0 {
		return nil, fmt.Errorf("mpi: rank %d: no context is free at all ranks of %s for another communicator: a rank has at most %d", r.rank, c.name, maxComms)
	}
	if !member {
		return nil, nil
	}
	r.contexts[id/64] &^= 1 << (id % 64)
	n := &Comm{r: r, id: uint16(id)}
	r.comms = append(r.comms, n)
	return n, nil
}

// Free gives the communicator back when its operations are over. The world's
// communicator cannot be freed: that is an error.
func (c *Comm) Free() error {
	r := c.r
	if err := c.usable(); err != nil {
		return err
	}
	if c == &r.world0 || r.world.trees != nil && c.planned > 0 {
		return fmt.Errorf("mpi: rank %d: communicator %s is there for the whole run, and cannot be freed", r.rank, c.name)
	}
	for _, s := range r.running {
		if s.comm == c {
			return fmt.Errorf("mpi: rank %d: communicator %s is freed, but %s has not been waited for", r.rank, c.name, s.call.describe(c))
		}
	}
	if err := c.closeModule(); err != nil {
		return err
	}
	c.freed = true
	r.contexts[c.id/64] |= 1 << (c.id % 64)
	r.comms = slices.DeleteFunc(r.comms, func(o *Comm) bool { return o == c })
	return nil
}

// message checks the arguments that sends and receives have in common.
func (c *Comm) message(what string, bytes, peer, least int, tag uint32, wildcard bool) error {
	if err := c.usable(); err != nil {
		return err
	}
	limit := c.r.transport.limit()
	if peer < least && peer != ProcNull || peer >= c.Size() || tag == AnyTag && !wildcard || bytes > limit {
		wild := "no wildcard"
		if wildcard {
			wild = fmt.Sprintf("%d for any", AnySource)
		}
		return fmt.Errorf("mpi: rank %d: %s of %d B, rank %d of %s, tag %d: expected at most %d B (limits.max_msg_size), a rank below %d or %d for none, and %s",
			c.r.rank, what, bytes, peer, c.name, tag, limit, c.Size(), ProcNull, wild)
	}
	return nil
}

// blocking makes an operation to its end.
func blocking(o running, err error) error {
	if err != nil {
		return err
	}
	return o.wait()
}

// Barrier is Do with Barrier.
func (c *Comm) Barrier() error { return blocking(Barrier{}.begin(c)) }

// Bcast is Do with Bcast of bytes.
func (c *Comm) Bcast(v runtime.View, root int) error {
	return blocking(Bcast{Data: Data{Memory: v}, Root: root}.begin(c))
}

// Scatter is Do with Scatter of bytes.
func (c *Comm) Scatter(send, recv runtime.View, root int) error {
	return blocking(Scatter{Send: Data{Memory: send}, Recv: Data{Memory: recv}, Root: root}.begin(c))
}

// Gather is Do with Gather of bytes.
func (c *Comm) Gather(send, recv runtime.View, root int) error {
	return blocking(Gather{Send: Data{Memory: send}, Recv: Data{Memory: recv}, Root: root}.begin(c))
}

// Allgather is Do with Allgather of bytes.
func (c *Comm) Allgather(send, recv runtime.View) error {
	return blocking(Allgather{Send: Data{Memory: send}, Recv: Data{Memory: recv}}.begin(c))
}

// Alltoall is Do with Alltoall of bytes.
func (c *Comm) Alltoall(send, recv runtime.View) error {
	return blocking(Alltoall{Send: Data{Memory: send}, Recv: Data{Memory: recv}}.begin(c))
}

// Reduce is Do with Reduce of bytes.
func (c *Comm) Reduce(send, recv runtime.View, t Type, op *Op, root int) error {
	return blocking(Reduce{Send: Data{Memory: send}, Recv: Data{Memory: recv}, Type: t, Op: op, Root: root}.begin(c))
}

// Allreduce is Do with Allreduce.
func (c *Comm) Allreduce(send, recv runtime.View, t Type, op *Op) error {
	return blocking(Allreduce{send, recv, t, op}.begin(c))
}

// Scan is Do with Scan.
func (c *Comm) Scan(send, recv runtime.View, t Type, op *Op) error {
	return blocking(Scan{send, recv, t, op}.begin(c))
}

// Exscan is Do with Exscan.
func (c *Comm) Exscan(send, recv runtime.View, t Type, op *Op) error {
	return blocking(Exscan{send, recv, t, op}.begin(c))
}
