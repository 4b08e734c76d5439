package chakra

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/goal"
)

// Processors of a rank whose nodes may overlap. The delays of the chunks of a
// collective follow the last one.
const (
	Sends    = iota
	GPU      // computations
	CPU      // operations of the CPU
	Receives // a processor of its own, so that --O can be the second link of a switch
	Joins    // no time: many operations before many others
	delays
)

// Files sorts the names of the files of a trace, PREFIX.NPU.et, by the NPU. It
// refuses names of two traces, and a missing NPU.
func Files(names []string) ([]string, error) {
	prefix, sorted := "", make([]string, len(names))
	for i, name := range names {
		rest, ok := strings.CutSuffix(name, ".et")
		dot := strings.LastIndexByte(rest, '.')
		if !ok || dot < 0 {
			return nil, fmt.Errorf("%s: expected a name like trace.0.et, with the number of the NPU", name)
		}
		npu, err := strconv.Atoi(rest[dot+1:])
		switch {
		case err != nil || npu < 0:
			return nil, fmt.Errorf("%s: expected a name like trace.0.et, with the number of the NPU", name)
		case i > 0 && rest[:dot] != prefix:
			return nil, fmt.Errorf("%s and %s are files of two traces, expected one", names[0], name)
		case npu >= len(names):
			return nil, fmt.Errorf("%s: with %d files, the NPUs are expected to be 0 to %d; a file is missing", name, len(names), len(names)-1)
		case sorted[npu] != "":
			return nil, fmt.Errorf("%s and %s are both of NPU %d", sorted[npu], name, npu)
		}
		prefix, sorted[npu] = rest[:dot], name
	}
	return sorted, nil
}

// Importer makes the schedule of a trace, NPU by NPU.
type Importer struct {
	system System
	npus   int
	told   map[string][]int // process groups by name
	groups map[string]*group
	// groups that the current NPU has used, by their names in its trace; the
	// first one is of all NPUs
	current []*group
	used    []*group // each once
	all     *group
	b       *goal.Builder
	ops     int
	trace   trace
	queue   queue
	notes   notes

	chain bool  // each node of the current NPU waits for the one before
	last  []int // the operation that ends each node, or none
	after []int // operations that the next one waits for
	busy  int   // the operation that ends the last collective, or none
}

// none is the place of an operation that is not there: what waits for it is
// ready at the start.
const none = -1

// New returns an importer for the trace of a number of NPUs. groups are the
// process groups that the trace does not tell itself.
func New(npus int, system System, groups map[string][]int) *Importer {
	im := &Importer{system: system, npus: npus, told: groups, groups: make(map[string]*group), b: goal.NewBuilder(), notes: notes{attributes: make(map[string]bool)}}
	im.trace.notes = &im.notes
	im.all = &group{name: "of all NPUs", ranks: make([]int, npus), whole: true}
	for i := range im.all.ranks {
		im.all.ranks[i] = i
	}
	return im
}

// Rank reads the file of an NPU. The NPUs come in ascending order.
func (im *Importer) Rank(npu int, file string, in io.Reader) error {
	t := &im.trace
	if err := t.read(file, in); err != nil {
		return err
	}
	im.b.Rank(npu)
	im.chain = t.chain() && !slices.ContainsFunc(t.nodes, im.system.overlaps)
	im.notes.overlap = im.notes.overlap || !im.chain
	im.busy = none
	im.current, im.used = im.current[:0], im.used[:0]
	im.last = room(im.last[:0], len(t.nodes))[:len(t.nodes)]
	if err := t.order(&im.queue, func(i int) error { return im.node(npu, i) }); err != nil {
		return err
	}
	for _, g := range im.used {
		if err := g.leave(file); err != nil {
			return err
		}
	}
	return nil
}

// Schedule returns the schedule.
func (im *Importer) Schedule() (*goal.Schedule, error) {
	for _, g := range im.groups {
		if g.seen != len(g.ranks) {
			return nil, fmt.Errorf("group %s has %d NPUs, and %d of them take part in its collectives", g.name, len(g.ranks), g.seen)
		}
	}
	if im.all.seen != 0 && im.all.seen != im.npus {
		return nil, fmt.Errorf("of %d NPUs, %d take part in the collectives of all", im.npus, im.all.seen)
	}
	return im.b.Schedule()
}

// Notes are sentences about what the schedule does not say as the trace does.
func (im *Importer) Notes() []string { return im.notes.lines() }

// node appends the operations of a node.
func (im *Importer) node(npu, i int) error {
	t := &im.trace
	n := &t.nodes[i]
	im.after = im.after[:0]
	for _, d := range t.before(i) {
		if op := im.last[d]; op != none {
			im.after = append(im.after, op)
		}
	}
	if im.ops += len(im.after) + 1; im.ops > goal.MaxOps {
		return t.at(n, "the trace has more than %d operations and dependencies", goal.MaxOps)
	}
	var err error
	switch {
	case n.computes():
		im.last[i] = im.compute(n)
	case n.kind == send || n.kind == recv:
		im.last[i], err = im.message(npu, n)
	case n.kind == coll:
		im.last[i], err = im.collective(npu, n)
	default:
		if n.kind != metadata {
			im.notes.untimed++
		}
		im.last[i] = im.wait(0, Joins, im.after...)
	}
	return err
}

// compute appends a computation.
func (im *Importer) compute(n *node) int {
	cpu := im.processor(GPU)
	if n.cpu {
		cpu = im.processor(CPU)
	}
	switch {
	case n.kind != comp:
		im.notes.launches++
	case n.micros == 0 && n.ops:
		im.notes.operations++
	}
	return im.add(goal.Op{Kind: goal.Calc, Size: uint64(n.ns()), CPU: cpu}, im.after...)
}

// message appends a send or receive of the trace.
func (im *Importer) message(npu int, n *node) (int, error) {
	op, own, other, names := goal.Op{Kind: goal.Send, Size: n.size, Tag: uint64(n.tag), CPU: im.processor(Sends)}, n.src, n.dst, [2]string{"comm_src", "comm_dst"}
	if n.kind == recv {
		op.Kind, op.CPU, own, other, names = goal.Recv, im.processor(Receives), n.dst, n.src, [2]string{"comm_dst", "comm_src"}
	}
	switch {
	case n.size == unset:
		return none, im.trace.at(n, "comm_size is missing")
	case other == unset:
		return none, im.trace.at(n, "%s is missing", names[1])
	case other >= uint64(im.npus):
		return none, im.trace.at(n, "%s: %d, and the trace has files of %d NPUs", names[1], other, im.npus)
	case own != unset && own != uint64(npu):
		return none, im.trace.at(n, "%s: %d in the file of NPU %d", names[0], own, npu)
	}
	op.Peer = uint32(other)
	return im.add(op, im.after...), nil
}

// add appends an operation that waits for others.
func (im *Importer) add(op goal.Op, after ...int) int {
	x := im.b.Add(op)
	for _, y := range after {
		if y != none {
			im.b.Requires(x, y)
		}
	}
	return x
}

// processor returns the processor of a rank for operations of a kind: the first
// one if no operations overlap. The model of LogGOPS'10 has no order between
// processors, so such a schedule has the same times there.
func (im *Importer) processor(of int) uint8 {
	switch {
	case im.chain:
		return 0
	case of < delays:
		return uint8(of)
	}
	return uint8(delays + (of-delays)%(1<<8-delays))
}

// wait returns an operation that ends a time after others have ended. If that
// is no time after a single one, it is that one.
func (im *Importer) wait(ns uint64, lane int, after ...int) int {
	if ns == 0 {
		others := 0
		last := none
		for _, y := range after {
			if y != none {
				others++
				last = y
			}
		}
		if others < 2 {
			return last
		}
	}
	return im.add(goal.Op{Kind: goal.Calc, Size: ns, CPU: im.processor(lane)}, after...)
}

// errTooLarge means that a collective needs more operations than a schedule can
// have.
var errTooLarge = errors.New("the schedule would have more operations than a schedule can have")
