package mpi_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

type operation struct {
	kind   int // send, receive, compute, test
	peer   int
	tag    uint32
	length int
	pause  sim.Time
	comm   int  // the world or a copy of it
	sync   bool // send: synchronous
}

const (
	opSend = iota
	opReceive
	opCompute
	opTest
	opProbe
)

// smallTags tags carry only eager messages, so that receives too short for a
// large message can match them.
const smallTags = 2

const largest = 6000

func drawProgram(t *rapid.T, rank, ranks int) (ops []operation) {
	eager := rapid.SampledFrom([]int{0, 1, 7, 496, 512, 513, 999, 1000})
	large := rapid.SampledFrom([]int{1001, 1008, 1009, 1520, 4096, largest})
	for range rapid.IntRange(0, 25).Draw(t, fmt.Sprintf("operations of rank %d", rank)) {
		op := operation{kind: rapid.SampledFrom([]int{opSend, opSend, opReceive, opReceive, opCompute, opTest, opProbe}).Draw(t, "kind")}
		op.comm = rapid.IntRange(0, 1).Draw(t, "communicator")
		switch op.kind {
		case opProbe:
			op.peer, op.tag = mpi.AnySource, mpi.AnyTag
		case opSend:
			op.sync = rapid.IntRange(0, 3).Draw(t, "synchronous") == 0
			op.peer = rapid.IntRange(0, ranks-1).Draw(t, "target")
			op.tag = rapid.Uint32Range(0, 3).Draw(t, "tag")
			if op.tag < smallTags || rapid.Bool().Draw(t, "small") {
				op.length = eager.Draw(t, "length")
			} else {
				op.length = large.Draw(t, "length")
			}
		case opReceive:
			op.peer = rapid.IntRange(mpi.AnySource, ranks-1).Draw(t, "source")
			op.tag = rapid.SampledFrom([]uint32{0, 1, 2, 3, mpi.AnyTag}).Draw(t, "tag")
			op.length = largest
			if op.tag < smallTags && rapid.Bool().Draw(t, "small") {
				op.length = 1000
			}
		case opCompute:
			op.pause = sim.Time(rapid.IntRange(0, 4000).Draw(t, "ns")) * sim.Nanosecond
		}
		ops = append(ops, op)
	}
	return ops
}

// observed is the view of a rank: messages in the order of arrival, and
// receives in the order of posting with their results.
type observed struct {
	arrived  []arrival
	posted   []operation
	received []mpi.Status // Sequence ^0: nothing yet
	early    []arrival    // messages that wait for earlier ones
	late     int          // number of messages that had to wait for another
}

type arrival struct {
	mpi.Status
	context int
}

var nothing = mpi.Status{Sequence: ^uint32(0)}

// recorder collects arrivals: with Offload when the NIC matches, with Host when
// the process gets the event.
type recorder struct {
	form  mpi.Matching
	rank  map[portals.ID]int
	ranks []observed
}

func (r *recorder) Trace(ni *portals.NI, t *portals.TraceRecord) {
	var bits, data uint64
	switch {
	case r.form == mpi.Offload && t.What == portals.TraceMatched && t.PT == 0:
		bits, data = t.Delivery.Header.MatchBits, t.Delivery.Header.HdrData
	case r.form == mpi.Host && t.What == portals.TraceEvent && t.Event.Type == portals.EventPut && t.Event.PTIndex == 0:
		bits, data = t.Event.MatchBits, t.Event.HdrData
	default:
		return
	}
	id, err := ni.PhysID()
	if err != nil {
		panic(err)
	}
	rank, is := r.rank[id]
	if !is { // of a process that is no rank
		return
	}
	r.ranks[rank].arrives(arrival{mpi.StatusOf(bits, data), mpi.ContextOf(bits)})
}

// arrives records a message. If events are out of order, the message waits for
// earlier ones.
func (o *observed) arrives(s arrival) {
	o.early = append(o.early, s)
	for {
		next := uint32(0)
		for _, a := range o.arrived {
			if a.Source == s.Source {
				next = a.Sequence + 1
			}
		}
		i := slices.IndexFunc(o.early, func(a arrival) bool { return a.Source == s.Source && a.Sequence == next })
		if i < 0 {
			o.late += len(o.early)
			return
		}
		o.arrived = append(o.arrived, o.early[i])
		o.early = slices.Delete(o.early, i, i+1)
	}
}

// ofComms returns the point-to-point messages, without collective operations.
func (o *observed) ofComms() []arrival {
	return slices.DeleteFunc(slices.Clone(o.arrived), func(a arrival) bool { return a.context%2 == 1 })
}

// match is MPI 4.1 §3.5 with a list and a loop: each receive, in the order of
// posting, gets the earliest message that it accepts. The result depends only
// on the two orders, not on when receives were posted.
func match(o *observed) []mpi.Status {
	var got []mpi.Status
	for range o.posted {
		got = append(got, nothing)
	}
	for _, a := range o.arrived {
		for i, q := range o.posted {
			if got[i] == nothing && a.context == 2*q.comm && (q.peer == mpi.AnySource || q.peer == a.Source) && (q.tag == mpi.AnyTag || q.tag == a.Tag) {
				got[i] = a.Status
				break
			}
		}
	}
	return got
}

type driver struct {
	*mpi.Rank
	seen            *observed
	buffers         []runtime.View // of the receives in the order of posting
	comms           [2]*mpi.Comm
	sends, received int
}

// program runs the operations of a rank. Then it posts receives for anything,
// until all expected messages have come.
func program(r *mpi.Rank, ops []operation, expected [2]int, o *observed) error {
	copied, err := r.World().Dup()
	if err != nil {
		return err
	}
	d := &driver{Rank: r, seen: o, comms: [2]*mpi.Comm{r.World(), copied}}
	for _, op := range ops {
		if err := d.do(op); err != nil {
			return err
		}
	}
	for comm, n := range expected {
		for range n {
			if err := d.do(operation{kind: opReceive, comm: comm, peer: mpi.AnySource, tag: mpi.AnyTag, length: largest}); err != nil {
				return err
			}
		}
	}
	for d.sends > 0 || d.received < expected[0]+expected[1] {
		q, err := r.Next()
		if err != nil {
			return err
		}
		if err := d.over(q); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) do(op operation) error {
	switch op.kind {
	case opCompute:
		d.Compute(op.pause)
		return nil
	case opProbe:
		_, _, err := d.comms[op.comm].Iprobe(op.peer, op.tag)
		return err
	case opTest:
		q, err := d.Test()
		if err != nil || q == nil {
			return err
		}
		return d.over(q)
	}
	data, err := d.Alloc(op.length)
	if err != nil {
		return err
	}
	if op.kind == opSend {
		fill(data.Write(), d.Upcoming(op.peer, op.tag, op.length))
		d.sends++
		if op.sync {
			_, err = d.comms[op.comm].Start(mpi.Send{Data: mpi.Data{Memory: data}, To: op.peer, Tag: op.tag, Mode: mpi.Synchronous})
		} else {
			_, err = d.comms[op.comm].Isend(data, op.peer, op.tag)
		}
		return err
	}
	d.seen.posted, d.seen.received = append(d.seen.posted, op), append(d.seen.received, nothing)
	q, err := d.comms[op.comm].Irecv(data, op.peer, op.tag)
	if err != nil {
		return err
	}
	q.User = len(d.buffers)
	d.buffers = append(d.buffers, data)
	return nil
}

func (d *driver) over(q *mpi.Request) error {
	defer d.Free(q)
	if !q.Receives() {
		d.sends--
		return nil
	}
	d.received++
	got, data := q.Status(), d.buffers[q.User].Read()
	d.seen.received[q.User] = got
	want := make([]byte, got.Bytes)
	fill(want, got)
	if !bytes.Equal(want, data[:got.Bytes]) || len(bytes.TrimRight(data[got.Bytes:], "\x00")) > 0 {
		return fmt.Errorf("rank %d: payload of %+v differs", d.Rank.Rank(), got)
	}
	return nil
}

// Random programs in both forms: every message arrives once and whole, pairs up
// like in the simple matcher, and keeps the order of sending between two ranks.
// This also holds when few messages find a buffer or room for their header, and
// when pages come late and go again.
func TestMatching(t *testing.T) {
	late := matchingOf(t, func(*rapid.T) runtime.Config { return runtime.Config{} })
	require.Zero(t, late, "events come in the order of their messages where memory is not late")
}

// The same with memory that is absent, and late, when the NIC accesses it.
func TestMatchingOnFaultyMemory(t *testing.T) {
	matchingOf(t, func(rt *rapid.T) runtime.Config {
		chance := rapid.SampledFrom([]float64{0, 0.05, 0.3})
		c := hosttest.Chances{
			Fault: chance.Draw(rt, "fault"), Most: rapid.IntRange(1, 10).Draw(rt, "most"), Late: chance.Draw(rt, "late"),
			Delay: sim.Time(rapid.IntRange(0, 5000).Draw(rt, "delay")) * sim.Nanosecond,
		}
		return runtime.Config{Seed: rapid.Uint64().Draw(rt, "seed"), Translator: (&hosttest.Nodes{Chances: c}).Make}
	})
}

func matchingOf(t *testing.T, drawConfig func(*rapid.T) runtime.Config) (late int) {
	for _, form := range mpi.Forms() {
		t.Run(string(form), func(t *testing.T) {
			resent, worlds := int64(0), int64(0)
			rapid.Check(t, func(rt *rapid.T) {
				cfg := drawConfig(rt)
				ranks := rapid.IntRange(1, 4).Draw(rt, "ranks")
				rec := &recorder{form: form, rank: map[portals.ID]int{}, ranks: make([]observed, ranks)}
				o := options(form)
				o.Buffers = rapid.SampledFrom([]int{1, 2, 40}).Draw(rt, "buffers") // 40: 4 ranks of 25 messages
				o.BufferBytes = rapid.SampledFrom([]int{o.Eager + 16, 4096}).Draw(rt, "bytes of a buffer")
				o.PerNode = rapid.IntRange(1, 3).Draw(rt, "ranks on a node")
				bystander := rapid.Bool().Draw(rt, "another process on each node")
				headers := rapid.SampledFrom([]int{1, 3, 65536}).Draw(rt, "unexpected headers")
				cfg.Explain, cfg.Pages = rec, drawPaging(rt)
				w := makeWorld(rt, rt.Cleanup, ranks, o, cfg, fmt.Sprintf("limits.max_unexpected_headers=%d", headers))
				expected := make([][2]int, ranks)
				programs := make([][]operation, ranks)
				for rank := range programs {
					programs[rank] = drawProgram(rt, rank, ranks)
					for _, op := range programs[rank] {
						if op.kind == opSend {
							expected[op.peer][op.comm]++
						}
					}
				}
				for node := range o.Nodes(ranks) {
					if bystander {
						require.NoError(rt, w.Cluster().Spawn(node, "bystander", func(*runtime.Proc) error { return nil }))
					}
				}
				for rank, ops := range programs {
					require.NoError(rt, w.Spawn(rank, func(r *mpi.Rank) error { return program(r, ops, expected[rank], &rec.ranks[rank]) }))
					rec.rank[w.Place(rank)] = rank
				}
				require.NoError(rt, w.Run(context.Background()))
				_, failures := w.Cluster().Failures()
				require.Zero(rt, failures)
				resent += w.Stats().Resent
				worlds++
				for rank := range rec.ranks {
					seen := &rec.ranks[rank]
					late += seen.late
					require.Len(rt, seen.ofComms(), expected[rank][0]+expected[rank][1])
					require.Equal(rt, match(seen), seen.received, "rank %d", rank)
					next := make(map[int]uint32)
					for _, a := range seen.arrived {
						require.Equal(rt, next[a.Source], a.Sequence, "messages of rank %d to %d overtook each other", a.Source, rank)
						next[a.Source]++
					}
				}
			})
			if worlds >= 100 { // short runs have too few
				require.Greater(t, resent, worlds/5, "too few messages were refused to say anything")
			}
		})
	}
	return late
}
