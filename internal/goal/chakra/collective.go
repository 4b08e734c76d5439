package chakra

import (
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/goal"
)

// collNames are the schema's names, by number.
var collNames = []string{
	"ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER",
}

// broadcast is the number of a collective that is not expanded.
const broadcast = 5

func collName(n uint8) string {
	if int(n) < len(collNames) {
		return collNames[n]
	}
	return fmt.Sprintf("comm_type %d", n)
}

// kindOf returns the kind of a collective; false: it is not expanded.
func kindOf(n uint8) (Kind, bool) {
	switch collName(n) {
	case "ALL_REDUCE":
		return AllReduce, true
	case "ALL_GATHER":
		return AllGather, true
	case "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK":
		return ReduceScatter, true
	case "ALL_TO_ALL":
		return AllToAll, true
	}
	return 0, false
}

// tags of collectives begin at collTag.
const collTag = maxTag + 1

// collective appends the messages of a collective. It waits for the collective
// before.
func (im *Importer) collective(npu int, n *node) (int, error) {
	t := &im.trace
	kind, expanded := kindOf(n.coll)
	switch {
	case n.coll == broadcast:
		im.notes.broadcasts++
		im.busy = im.wait(uint64(n.ns()), Joins, append(im.after, im.busy)...)
		return im.busy, nil
	case !expanded:
		return none, t.at(n, "%s is not supported, as in ASTRA-sim: expected ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL or BROADCAST", collName(n.coll))
	case n.size == unset:
		return none, t.at(n, "comm_size is missing")
	case n.outside:
		return none, t.at(n, "involved_dim excludes the only dimension")
	}
	g, err := im.group(npu, n)
	if err == nil {
		err = g.join(t, n)
	}
	if err != nil {
		return none, err
	}
	begin := im.wait(0, Joins, append(im.after, im.busy)...)
	if len(g.ranks) == 1 {
		im.notes.alone++
		im.busy = begin
		return begin, nil
	}
	c := collective{im: im, g: g, kind: kind, n: len(g.ranks), me: g.me, delay: im.system.Delay, algorithm: im.system.Algorithms[kind]}
	if !g.whole {
		c.delay = im.system.GroupDelay
	}
	im.b.Begin(goal.Collective{Name: fmt.Sprintf("g%d_%d", g.index, g.next), Kind: goal.CollectiveKind(kind.String()), Bytes: n.size})
	im.busy, err = c.expand(n.size, begin)
	im.b.End()
	if err != nil {
		return none, t.at(n, "%s of %d NPUs: %w", collName(n.coll), c.n, err)
	}
	return im.busy, nil
}

// collective is a collective of an NPU.
type collective struct {
	im        *Importer
	g         *group
	kind      Kind
	algorithm Algorithm
	n, me     int // members of the group, and the place of this one
	delay     uint64
	// The current chunk:
	slot    int // of the chunks under way
	tag     uint32
	rounds  int // messages that are not reduced at the beginning of a round
	reduced int // those that may be after them
	step    int // delays so far
}

// chunks returns number and bytes of the chunks, as ASTRA-sim rounds them.
func (c *collective) chunks(size uint64) (n int, bytes uint64) {
	splits := uint64(c.im.system.Splits)
	bytes = size / splits
	if c.kind != AllGather && uint64(c.im.npus) > bytes {
		bytes = uint64(c.im.npus)
		size = splits * bytes
	}
	bytes = max(bytes, 1)
	return int((size + bytes - 1) / bytes), bytes
}

// expand appends the chunks. Some are under way, the others begin when one
// before them ends.
func (c *collective) expand(size uint64, begin int) (end int, err error) {
	if c.algorithm.Shape == Tree || c.algorithm.Shape == HalvingDoubling {
		if bits.OnesCount(uint(c.n)) != 1 {
			return none, fmt.Errorf("this algorithm needs a power of two of them")
		}
	}
	n, bytes := c.chunks(size)
	c.im.ops += min(n, goal.MaxOps) * min(c.operations(), goal.MaxOps)
	if c.im.ops > goal.MaxOps {
		return none, errTooLarge
	}
	active := min(n, c.im.system.Active)
	ends := make([]int, active)
	for i := range n {
		c.slot, c.step = i%active, 0
		from := begin
		if i >= active {
			from = ends[c.slot]
		}
		// Equal tags do no harm: two members exchange messages in one order. But
		// a tag of 32 ones would match all.
		c.tag = collTag | c.g.index&0x7fff<<16 | c.g.chunks%0xffff
		c.g.chunks++
		ends[c.slot] = c.chunk(bytes, from)
	}
	return c.im.wait(0, Joins, ends...), nil
}

// operations returns how many operations a chunk has, about.
func (c *collective) operations() int {
	switch steps := c.n - 1; {
	case c.algorithm.Shape == Ring && c.kind == AllToAll:
		return 3 * min(steps, 1<<20) * c.n / 2
	case c.algorithm.Shape == Tree:
		return 10
	case c.algorithm.Shape == HalvingDoubling:
		return 6 * bits.Len(uint(c.n))
	default:
		return 6*steps + 2
	}
}

func (c *collective) chunk(bytes uint64, from int) int {
	switch c.algorithm.Shape {
	case Direct:
		return c.direct(bytes, from)
	case HalvingDoubling:
		return c.halving(bytes, from)
	case Tree:
		return c.tree(bytes, from)
	default:
		return c.ring(bytes, from)
	}
}

// wait appends the delay before the next message of some bytes, in ASTRA-sim's
// order: each round begins with messages that are not reduced.
func (c *collective) wait(bytes uint64, after ...int) int {
	round, at := c.step/(c.rounds+c.reduced), c.step%(c.rounds+c.reduced)
	c.step++
	reduced := at >= c.rounds && (c.kind == ReduceScatter || c.kind == AllReduce && round%2 == 0)
	return c.pause(bytes, reduced, c.slot, after...)
}

// pause appends a delay. Delays of one lane exclude each other.
func (c *collective) pause(bytes uint64, reduced bool, lane int, after ...int) int {
	ns := c.im.system.wait(c.delay, bytes, reduced)
	if ns == 0 {
		return c.im.wait(0, Joins, after...)
	}
	return c.im.wait(ns, delays+lane, after...)
}

func (c *collective) rank(place int) uint32 { return uint32(c.g.ranks[(place%c.n+c.n)%c.n]) }

func (c *collective) send(bytes uint64, to, after int) int {
	return c.im.add(goal.Op{Kind: goal.Send, Size: bytes, Peer: c.rank(to), Tag: uint64(c.tag), CPU: c.im.processor(Sends)}, after)
}

func (c *collective) recv(bytes uint64, from, after int) int {
	return c.im.add(goal.Op{Kind: goal.Recv, Size: bytes, Peer: c.rank(from), Tag: uint64(c.tag), CPU: c.im.processor(Receives)}, after)
}

// ring sends to the next member what came from the one before.
func (c *collective) ring(bytes uint64, from int) int {
	steps, size := c.n-1, bytes/uint64(c.n)
	switch c.kind {
	case AllReduce:
		steps *= 2
	case AllGather:
		size = bytes
	case AllToAll:
		steps = steps * c.n / 2
	}
	c.rounds, c.reduced = 1, c.n-1
	at := c.wait(size, from)
	for range steps {
		c.send(size, c.me+1, at)
		at = c.wait(size, c.recv(size, c.me-1, at))
	}
	return at
}

// direct sends to all other members, some messages at a time. An allreduce does
// that twice.
func (c *collective) direct(bytes uint64, from int) int {
	others, size, times := c.n-1, bytes/uint64(c.n), 1
	switch c.kind {
	case AllGather:
		size = bytes
	case AllReduce:
		times = 2
	}
	window := others
	if w := c.algorithm.Window; w > 0 {
		window = min(w, others)
	}
	c.rounds, c.reduced = window, window
	if !c.g.whole {
		c.reduced *= others
	}
	at, slot := c.wait(size, from), c.slot
	recvs := make([]int, others)
	for time := range times {
		for i := range others {
			begin := at
			if i >= window {
				c.slot, c.step = slot*window+i%window, time*others+i
				begin = c.wait(size, recvs[i-window])
			}
			c.send(size, c.me+1+i, begin)
			recvs[i] = c.recv(size, c.me-1-i, begin)
		}
		c.slot, c.step = slot, window+(time+1)*others-1
		at = c.wait(size, recvs...)
	}
	return at
}

// halving exchanges with members at distances of powers of two.
func (c *collective) halving(bytes uint64, from int) int {
	levels := bits.Len(uint(c.n)) - 1
	var sizes []uint64
	var distances []int
	add := func(size uint64, level int) {
		sizes, distances = append(sizes, size), append(distances, 1<<level)
	}
	size := bytes
	if c.kind != AllGather {
		for level := range levels {
			size /= 2
			add(size, level)
		}
		size = size / 2 * 2
	}
	if c.kind != ReduceScatter {
		for level := levels - 1; level >= 0; level-- {
			add(size, level)
			size *= 2
		}
	}
	c.rounds, c.reduced = 1, levels-1
	at := c.wait(sizes[0], from)
	for i, size := range sizes {
		next := size
		if i+1 < len(sizes) {
			next = sizes[i+1]
		}
		c.send(size, c.me^distances[i], at)
		at = c.wait(next, c.recv(size, c.me^distances[i], at))
	}
	return at
}

// tree reduces to a root and sends the result back. The members but the root
// are in the order of a binary tree, whose top is below the root. The root is
// the last member and the first one in turn.
func (c *collective) tree(bytes uint64, from int) int {
	root, shift := c.n-1, -1
	if c.g.trees%2 == 1 {
		root, shift = 0, 0
	}
	c.g.trees++
	if c.me == root {
		top := c.n/2 + shift
		at := c.pause(bytes, true, c.slot, c.recv(bytes, top, from))
		return c.send(bytes, top, at)
	}
	y := c.me - shift // from 1, in the order of the tree
	level := bits.TrailingZeros(uint(y))
	parent := y&^(1<<level) | 1<<(level+1)
	if up := parent + shift; parent >= c.n {
		parent = root
	} else {
		parent = up
	}
	at := from
	if level == 0 {
		at = c.pause(bytes, false, c.slot, at)
	} else {
		left, right := y-1<<(level-1)+shift, y+1<<(level-1)+shift
		at = c.pause(bytes, true, c.slot, c.recv(bytes, left, at), c.recv(bytes, right, at))
	}
	c.send(bytes, parent, at)
	at = c.pause(bytes, level > 0, c.slot, c.recv(bytes, parent, at))
	if level == 0 {
		return at
	}
	half := 1 << (level - 1)
	return c.im.wait(0, Joins, c.send(bytes, y-half+shift, at), c.send(bytes, y+half+shift, at))
}
