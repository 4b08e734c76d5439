package mpi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/datatype"
)

// call is what the ranks of a communicator must agree on in a collective operation.
type call struct {
	kind  callKind
	op    *Op
	t     Type
	root  int
	bytes int                // a rank's part, or that of all; -1 where ranks may differ
	types datatype.Signature // likewise; zero: bytes
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

// noRoot is the root of a call that has none.
const noRoot = -1

// describe says what the call is.
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

// same reports whether two ranks have called the same.
func (k call) same(o call) bool {
	if (k.op == nil) != (o.op == nil) || k.op != nil && k.op.name != o.op.name {
		return false
	}
	return k.kind == o.kind && k.t == o.t && k.root == o.root && k.bytes == o.bytes && k.types == o.types
}

// hash is a number for all that the ranks must agree on.
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

// callLog is what a rank has called on a communicator: a chain of all calls and
// the last ones themselves.
type callLog struct {
	calls  int
	recent [recentCalls]call
}

const recentCalls = 8

// add notes a call and returns the tag of its messages: its number, and a sign
// of what it is, so that those of another call never match.
func (l *callLog) add(k call) (tag uint32) {
	l.recent[l.calls%recentCalls] = k
	tag = uint32(l.calls)<<16 | uint32(uint16(k.hash()>>32))
	if l.calls++; tag == AnyTag {
		tag--
	}
	return tag
}

// at returns a call, if it is known still.
func (l *callLog) at(i int) (call, bool) {
	if i < 0 || i >= l.calls || i < l.calls-recentCalls {
		return call{}, false
	}
	return l.recent[i%recentCalls], true
}

// mismatch is an error if two ranks of a communicator have called different
// things at the same place in the order of their calls.
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

// differ compares the last calls of two ranks on a communicator.
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

// waiting says what a rank that has not ended is in; its program may have, with
// messages under way that it has not waited for.
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
	for _, q := range r.requests {
		if !q.done {
			return q.describe()
		}
	}
	return ""
}

// describe says what a message is that is sent or received.
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

// stuckShown is how many ranks an error names.
const stuckShown = 4

// stuck says what the ranks that have not ended wait in.
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
