package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// said is a message to control, and its effect.
type said struct {
	name              string
	before            func(r *backupring.RingState)
	nid, pid          uint32
	kind, ring        uint32
	number            uint64
	generation        uint64
	legal, told, tail bool // the IOuser is told of head; changes of the tail are reported
	after             func(r *backupring.RingState)
}

// words are messages to an interface with three rings. Ring 0 has four
// descriptors and bits and belongs to process 20, ring 1 has no bits and
// belongs to process 21, and ring 2 does not exist.
var words = []said{
	{name: "a tail", nid: 3, pid: firstPID, kind: backupring.Posted, number: 9, legal: true, after: func(r *backupring.RingState) { r.Tail = 9 }},
	{name: "a full ring", nid: 3, pid: firstPID, kind: backupring.Posted, number: 10, legal: true, before: func(r *backupring.RingState) { r.Head = 6 }, after: func(r *backupring.RingState) { r.Tail = 10 }},
	{name: "more than the ring has", nid: 3, pid: firstPID, kind: backupring.Posted, number: 11, before: func(r *backupring.RingState) { r.Head = 6 }},
	{name: "far more", nid: 3, pid: firstPID, kind: backupring.Posted, number: 1 << 40},
	{name: "an old tail", nid: 3, pid: firstPID, kind: backupring.Posted, number: 4, legal: true},
	{name: "one that is too old", nid: 3, pid: firstPID, kind: backupring.Posted, number: 3},
	{name: "the same tail", nid: 3, pid: firstPID, kind: backupring.Posted, number: 8, legal: true},
	{name: "a tail that is watched", nid: 3, pid: firstPID, kind: backupring.Posted, number: 9, legal: true, tail: true, before: func(r *backupring.RingState) { r.Watched = 1 }, after: func(r *backupring.RingState) { r.Tail = 9 }},
	{name: "a tail of another process", nid: 3, pid: 21, kind: backupring.Posted, number: 9},
	{name: "a tail of another node", nid: 4, pid: firstPID, kind: backupring.Posted, number: 9},
	{name: "a tail of the IOprovider", nid: 3, pid: provider, kind: backupring.Posted, number: 9},
	{name: "a tail of no ring", nid: 3, pid: 0, kind: backupring.Posted, ring: 2},
	{name: "a ring that cannot be", nid: 3, pid: firstPID, kind: backupring.Posted, ring: backupring.MaxRings, number: 9},
	{name: "slots of an IOuser", nid: 3, pid: firstPID, kind: backupring.GivenBack, number: 9},
	{name: "no kind", nid: 3, pid: provider, kind: 9},

	{name: "watch what is there", nid: 3, pid: provider, kind: backupring.Watch, number: 8, legal: true, tail: true, after: func(r *backupring.RingState) { r.Watched = 1 }},
	{name: "watch what is not", nid: 3, pid: provider, kind: backupring.Watch, number: 9, legal: true, after: func(r *backupring.RingState) { r.Watched = 1 }},
	{name: "watch no more", nid: 3, pid: provider, kind: backupring.Watch, legal: true, before: func(r *backupring.RingState) { r.Watched = 1 }, after: func(r *backupring.RingState) { r.Watched = 0 }},
	{name: "watch of an IOuser", nid: 3, pid: firstPID, kind: backupring.Watch, number: 8},
	{name: "watch no ring", nid: 3, pid: provider, kind: backupring.Watch, ring: 2, number: 8},

	{
		name: "the oldest fault", nid: 3, pid: provider, kind: backupring.Resolved, number: 6, legal: true, told: true,
		before: func(r *backupring.RingState) { r.Bitmap[0], r.Next, r.Done[0] = 1<<(6%4)|1<<(7%4), 8, 1<<(7%4) },
		after:  func(r *backupring.RingState) { r.Bitmap[0], r.Head, r.BitmapIndex, r.HeadPlace = 1<<(7%4), 6, 7, 2 },
	},
	{
		name: "a later fault", nid: 3, pid: provider, kind: backupring.Resolved, number: 7, legal: true, told: true,
		before: func(r *backupring.RingState) { r.Bitmap[0], r.Next = 1<<(6%4)|1<<(7%4), 8 }, after: func(r *backupring.RingState) { r.Bitmap[0], r.Done[0] = 1<<(6%4), 1<<(6%4) },
	},
	{
		name: "a fault before a frame under way", nid: 3, pid: provider, kind: backupring.Resolved, number: 6, legal: true, told: true,
		before: func(r *backupring.RingState) { r.Bitmap[0], r.Begun, r.Next = 1<<(6%4), 1, 8 },
		after:  func(r *backupring.RingState) { r.Bitmap[0], r.Head, r.BitmapIndex, r.HeadPlace = 0, 6, 7, 2 },
	},
	{
		name: "a fault before frames that are there, over the end of the ring", nid: 3, pid: provider, kind: backupring.Resolved, number: 6, legal: true, told: true,
		before: func(r *backupring.RingState) { r.Bitmap[0], r.Done[0], r.Next = 1<<(6%4), 1<<(6%4)|1<<(7%4), 8 },
		after: func(r *backupring.RingState) {
			r.Bitmap[0], r.Done[0], r.Head, r.BitmapIndex, r.HeadPlace = 0, 0, 8, 9, 0
		},
	},
	{name: "the bit of another one", nid: 3, pid: provider, kind: backupring.Resolved, number: 10, before: func(r *backupring.RingState) { r.Bitmap[0], r.Next = 1<<(6%4), 8 }},
	{name: "no fault", nid: 3, pid: provider, kind: backupring.Resolved, number: 7, before: func(r *backupring.RingState) { r.Bitmap[0], r.Next = 1<<(6%4), 8 }},
	{name: "a fault of a ring without bits", nid: 3, pid: provider, kind: backupring.Resolved, ring: 1, number: 6},
	{
		name: "the end of a ring", nid: 3, pid: provider, kind: backupring.Closed, legal: true,
		after: func(r *backupring.RingState) { r.Generation = 1 },
	},
	{name: "the end of a ring, says the IOuser", nid: 3, pid: firstPID, kind: backupring.Closed},
	{name: "the end of a ring that is not yet there", nid: 3, pid: provider, kind: backupring.Closed, generation: 1},
	{name: "the end of no ring", nid: 3, pid: provider, kind: backupring.Closed, ring: 2},
	{name: "a tail of the ring before", nid: 3, pid: firstPID, kind: backupring.Posted, number: 9, legal: true, before: func(r *backupring.RingState) { r.Generation = 1 }},
	{name: "a tail of the ring behind the one before", nid: 3, pid: firstPID, kind: backupring.Posted, number: 9, generation: 1, legal: true, before: func(r *backupring.RingState) { r.Generation = 1 }, after: func(r *backupring.RingState) { r.Tail = 9 }},
	{name: "a tail of a ring to come", nid: 3, pid: firstPID, kind: backupring.Posted, number: 9, generation: 2, before: func(r *backupring.RingState) { r.Generation = 1 }},
	{
		name: "a fault of the ring before", nid: 3, pid: provider, kind: backupring.Resolved, number: 6, legal: true,
		before: func(r *backupring.RingState) { r.Bitmap[0], r.Next, r.Generation = 1<<(6%4), 8, 1 },
	},
	{name: "a fault, says the IOuser", nid: 3, pid: firstPID, kind: backupring.Resolved, number: 6, before: func(r *backupring.RingState) { r.Bitmap[0], r.Next = 1<<(6%4), 8 }},
}

// Tests which messages IOusers and the IOprovider may send, who else may not,
// and their effects.
func TestControl(t *testing.T) {
	for _, c := range words {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false, [][2]uint64{{4, 4}, {4, 0}}, 2)
			first := &r.s.Rings[0]
			first.Tail, first.Head, first.BitmapIndex, first.HeadPlace, first.Next, first.NextPlace = 8, 5, 6, 1, 5, 1
			if c.before != nil {
				c.before(first)
			}
			want := *r.s
			if c.told {
				want.Rings[0].Told++
			}
			if !c.legal {
				want.Foreign++
			} else if c.after != nil {
				c.after(&want.Rings[0])
			}
			h := spin.Header{SourceNID: c.nid, SourcePID: c.pid, MatchBits: backupring.Bits(c.kind, uint64(c.ring)+backupring.MaxRings*c.generation), HdrData: c.number}
			spintest.Run(r.d, r.control.Header, &h, r.s)
			brief := func(s *backupring.State) []uint64 { // a State is long
				r := &s.Rings[0]
				return []uint64{s.Foreign, s.Free, r.Generation, r.Tail, r.Next, r.Head, uint64(r.HeadPlace), r.BitmapIndex, r.Bitmap[0], r.Done[0], uint64(r.Watched)}
			}
			require.Equal(t, brief(&want), brief(r.s))
			if want != *r.s {
				require.Fail(t, "something else has changed")
			}
			require.Equal(t, c.tail, r.d.Counters[2].Success == 1)
			told := r.d.Named("atomic_from_device")
			require.Equal(t, c.told, len(told) == 1)
			for _, one := range told {
				require.Equal(t, []any{uint32(3), uint32(firstPID), uint32(4), uint64(8)}, []any{one.Op.TargetNID, one.Op.TargetPID, one.Op.PTIndex, one.Op.Length})
				require.Equal(t, uint32(spin.OpMax), uint32(one.Op.AtomicOp), "messages may overtake each other")
			}
		})
	}
}

// Frames for rings that there are not are counted, and dropped; so are those
// that nobody has room for.
func TestFramesOfNobody(t *testing.T) {
	r := newRig(t, false, [][2]uint64{{4, 1}}, 2)
	for i, bits := range []uint64{1, backupring.MaxRings, 1 << 40, ^uint64(0)} {
		out := spintest.Deliver(r.d, r.frames, r.s, spintest.Message{Data: make([]byte, 20), MatchBits: bits, SourceNID: 1})
		require.Equal(t, []spin.Code{spin.Drop}, out.Payloads)
		require.EqualValues(t, i+1, r.s.Stray)
	}
	for range 3 {
		r.frame(0, 20)
	}
	require.Equal(t, backupring.Stats{NoBuffer: 3, Backed: 1, Dropped: 2}, r.s.Rings[0].Stats)
	r.s.Rings[0].Generation++
	out := spintest.Deliver(r.d, r.frames, r.s, spintest.Message{Data: make([]byte, 20), MatchBits: 0, SourceNID: 1})
	require.Equal(t, []spin.Code{spin.Drop}, out.Payloads)
	require.EqualValues(t, 5, r.s.Stray, "frames for a ring that is closed are nobody's, also when there is another in its place")
	require.EqualValues(t, 3, r.s.Rings[0].Ticket)
}
