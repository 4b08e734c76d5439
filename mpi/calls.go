package mpi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/datatype"
)

// call holds everything the ranks of a communicator must agree on in a
// collective operation.
type call struct {
	kind  callKind
	op    *Op
	t     Type
	root  int
	bytes int                // of one rank's part or of all; -1: ranks may differ
	types datatype.Signature // of the same part; zero: bytes

	uneven bool // pieces have different lengths
}

type callKind uint8

const (
	callBarrier callKind = iota
	callBcast
	callScatter
	callScatterv
	callGather
	callGatherv
	callAllgather
	callAllgatherv
	callAlltoall
	callAlltoallv
	callReduce
	callAllreduce
	callReduceScatter
	callScan
	callExscan
	callAlltoallw
)

var callNames = [...]string{
	callBarrier: "Barrier", callBcast: "Bcast", callScatter: "Scatter", callScatterv: "Scatterv", callGather: "Gather", callGatherv: "Gatherv",
	callAllgather: "Allgather", callAllgatherv: "Allgatherv", callAlltoall: "Alltoall", callAlltoallv: "Alltoallv", callReduce: "Reduce",
	callAllreduce: "Allreduce", callReduceScatter: "ReduceScatter", callScan: "Scan", callExscan: "Exscan", callAlltoallw: "Alltoallw",
}

// noRoot stands for the root in a call without one.
const noRoot = -1

func (k call) describe(c *Comm) string {
	var b strings.Builder
	b.WriteString(callNames[k.kind])
	if k.bytes >= 0 && k.kind != callBarrier {
		fmt.Fprintf(&b, " of %d B", k.bytes)
	}
	if k.types.Elements > 0 {
		fmt.Fprintf(&b, ", %v", k.types)
	}
	if k.op != nil {
		fmt.Fprintf(&b, " (%s of %s)", k.op.name, k.t.name)
	}
	if k.root != noRoot {
		fmt.Fprintf(&b, ", root %d,", k.root)
	}
	return b.String() + " on " + c.name
}

func (k call) same(o call) bool {
	if (k.op == nil) != (o.op == nil) || k.op != nil && k.op.name != o.op.name {
		return false
	}
	return k.kind == o.kind && k.t == o.t && k.root == o.root && k.bytes == o.bytes && k.types == o.types
}

// hash combines everything the ranks must agree on.
func (k call) hash() uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	mix := func(x uint64) {
		for range 8 {
			h = (h ^ x&0xff) * 1099511628211
			x >>= 8
		}
	}
	mix(uint64(k.kind))
	mix(uint64(k.root))
	mix(uint64(k.bytes))
	if k.types.Elements > 0 {
		mix(uint64(k.types.Elements))
		mix(k.types.Sum)
	}
	if k.op != nil {
		for _, c := range []byte(k.op.name + " " + k.t.name) {
			mix(uint64(c))
		}
	}
	return h
}

// callLog records a rank's calls on a communicator: how many, and the last
// ones.
type callLog struct {
	calls  int
	recent [recentCalls]call
}

const recentCalls = 8

// add records a call and returns the tag for its messages. The tag holds the
// call's number and part of its hash, so messages of different calls never
// match.
func (l *callLog) add(k call) (tag uint32) {
	l.recent[l.calls%recentCalls] = k
	tag = uint32(l.calls)<<16 | uint32(uint16(k.hash()>>32))
	if l.calls++; tag == AnyTag {
		tag--
	}
	return tag
}

// at returns call i; false: the log no longer has it.
func (l *callLog) at(i int) (call, bool) {
	if i < 0 || i >= l.calls || i < l.calls-recentCalls {
		return call{}, false
	}
	return l.recent[i%recentCalls], true
}

// mismatch returns an error if two ranks made different calls at the same place
// in the order of calls on their communicator.
func (w *World) mismatch() error {
	seen := map[string]*Comm{}
	for _, r := range w.ranks {
		if r == nil {
			continue
		}
		for _, c := range r.comms {
			other := seen[c.name]
			if other == nil {
				seen[c.name] = c
				continue
			}
			if err := differ(other, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func differ(a, b *Comm) error {
	for i := max(a.log.calls, b.log.calls) - recentCalls; i < min(a.log.calls, b.log.calls); i++ {
		x, known := a.log.at(i)
		y, too := b.log.at(i)
		if known && too && !x.same(y) {
			return fmt.Errorf("mpi: the calls of %s do not match: call %d is %s at rank %d and %s at rank %d",
				a.name, i+1, x.describe(a), a.rank, y.describe(b), b.rank)
		}
	}
	return nil
}

// waiting describes the operation in which a rank is stuck. The rank's program
// may be over, with messages still under way that it did not wait for.
func (r *Rank) waiting() string {
	switch q := r.blocked; {
	case r.call != "":
		return r.call
	case q != nil && q.collective == nil:
		return q.describe()
	}
	if n := len(r.running); n > 0 {
		s := r.running[n-1]
		return fmt.Sprintf("%s, its call %d there", s.call.describe(s.comm), s.comm.log.calls)
	}
	for _, q := range r.requests.all {
		if !q.done {
			return q.describe()
		}
	}
	return ""
}

func (q *Request) describe() string {
	what, peer := "send to", q.peer
	if q.receives {
		what, peer = "receive from", q.env.source
	}
	if peer == AnySource {
		return fmt.Sprintf("%s any rank, %d B, tag %d", what, q.length, q.env.tag)
	}
	return fmt.Sprintf("%s rank %d, %d B, tag %d", what, peer, q.length, q.env.tag)
}

// stuckShown is the largest number of ranks that an error names.
const stuckShown = 4

// stuck describes the operations in which the ranks are stuck.
func (w *World) stuck() error {
	var all []error
	n := 0
	for _, r := range w.ranks {
		if r == nil || r.ended || r.waiting() == "" {
			continue
		}
		if n++; n <= stuckShown {
			all = append(all, fmt.Errorf("mpi: rank %d waits in %s", r.rank, r.waiting()))
		}
	}
	if n > stuckShown {
		all = append(all, fmt.Errorf("mpi: and %d other ranks wait", n-stuckShown))
	}
	return errors.Join(all...)
}
