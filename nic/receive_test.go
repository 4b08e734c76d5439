package nic

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// receiveAlone is a receive stage between a list of arrivals and notes of what was found.
type receiveAlone struct {
	r      receive
	t      *rapid.T
	found  map[sentPacket]sim.Time // packets
	missed []sentPacket            // the first packet that is missing of messages that are given up
	rates  *fabric.Spec
}

const (
	kindComes     sim.Kind = kindsOfSchedule + iota // packet, *Frame
	kindAbandoned                                   // source
)

func newReceiveAlone(t *rapid.T, spec Spec) *receiveAlone {
	x := &receiveAlone{t: t, found: map[sentPacket]sim.Time{}, rates: &fabric.Spec{MTU: 64, Rate: sim.NewRate(20, 1)}}
	eng := sim.New(1)
	e := &env{engine: eng, spec: &spec, fabric: x.rates, core: new(Core)}
	e.id = eng.Add("receive", x)
	x.r = receive{env: e, next: x, open: map[uint64]*inbound{}}
	return x
}

func (x *receiveAlone) Handle(e *sim.Event) {
	switch e.Kind {
	case kindComes:
		x.r.packetArrived(e.P.(*Frame), int(e.A), false)
	case kindAbandoned:
		x.r.abandoned(int32(e.A))
	default:
		x.r.handle(e)
	}
}

func (x *receiveAlone) note(in *inbound, i int) {
	k := sentPacket{in.frame.Source, in.frame.Number, i}
	_, twice := x.found[k]
	require.False(x.t, twice, "%v is found twice", k)
	x.found[k] = x.r.now()
}

func (x *receiveAlone) matched(in *inbound) { x.note(in, 0) }

func (x *receiveAlone) packet(in *inbound, i int) {
	require.Positive(x.t, i)
	require.Contains(x.t, x.found, sentPacket{in.frame.Source, in.frame.Number, 0}, "a packet before its header")
	x.note(in, i)
}

func (x *receiveAlone) missing(in *inbound, i int) {
	x.missed = append(x.missed, sentPacket{in.frame.Source, in.frame.Number, i})
}

// drawReceive draws times, of both kinds of devices.
func drawReceive(t *rapid.T) Spec {
	ns := func(what string, most int) sim.Time {
		return sim.Time(rapid.IntRange(0, most).Draw(t, what)) * sim.Nanosecond
	}
	return Spec{
		MatchHeader: ns("header", 60), MatchPacket: ns("packet", 90), Receive: rapid.SampledFrom([]string{Pipelined, Serial}).Draw(t, "receive"),
	}
}

// Packets of messages of several sources come in any order. Each header is
// searched for once, each other packet is found once, and none before its
// header; when, is the sum of its arrival and its search, or where packets are
// taken one at a time what a queue of one server says. Numbers count messages
// in the order of their first packets. Nothing is left.
func TestReceiveFindsEachPacketOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawReceive(t)
		x := newReceiveAlone(t, spec)
		type arrival struct {
			f  *Frame
			i  int
			at sim.Time
		}
		var all []arrival
		for number := range uint64(rapid.IntRange(1, 10).Draw(t, "messages")) {
			kind := rapid.SampledFrom([]portals.OpKind{portals.OpPut, portals.OpGet, portals.OpReply, portals.OpAck}).Draw(t, "kind")
			n := rapid.IntRange(1, 10).Draw(t, "packets")
			length := 64*n - rapid.IntRange(0, 63).Draw(t, "short")
			f := &Frame{Header: portals.Header{Kind: kind}, Data: make([]byte, length), Length: length, MTU: 64, Packets: n, Source: int32(rapid.IntRange(1, 2).Draw(t, "source")), Number: number + 1}
			for i := range n {
				all = append(all, arrival{f: f, i: i})
			}
		}
		if rapid.Bool().Draw(t, "in any order") {
			all = rapid.Permutation(all).Draw(t, "order")
		}
		now := sim.Time(0)
		for k := range all {
			now += sim.Time(rapid.SampledFrom([]int{0, 1, 7, 100}).Draw(t, "pause")) * sim.Nanosecond
			all[k].at = now
			x.r.post(now, kindComes, uint64(all[k].i), all[k].f)
		}
		want, numbers := reference(&spec, x.rates, func(yield func(f *Frame, i int, at sim.Time)) {
			for _, a := range all {
				yield(a.f, a.i, a.at)
			}
		})
		require.NoError(t, x.r.engine.Run())
		require.Equal(t, want, x.found)
		require.Equal(t, numbers, x.r.begun)
		require.Empty(t, x.r.open)
		require.Nil(t, x.r.latest)
	})
}

// reference is the stage as a table: when each packet is found, and how many messages there were.
func reference(spec *Spec, rates *fabric.Spec, all func(func(f *Frame, i int, at sim.Time))) (found map[sentPacket]sim.Time, messages uint64) {
	found = map[sentPacket]sim.Time{}
	held := map[uint64][]int{}
	seen := map[uint64]bool{}
	var server, behind sim.Time // when the one server is free; when the last look-up in the CAM ends
	all(func(f *Frame, i int, at sim.Time) {
		if !seen[f.Number] {
			seen[f.Number] = true
			messages++
		}
		header, is := found[sentPacket{f.Source, f.Number, 0}]
		if i > 0 && !is { // it is looked for when its header is there
			held[f.Number] = append(held[f.Number], i)
			return
		}
		search := spec.MatchPacket
		if i == 0 && f.Header.Kind < portals.OpAck {
			search = spec.MatchHeader
		}
		end := at + search
		if spec.Receive == Serial {
			from, to := f.Span(i)
			server = max(server, at) + rates.Serial(to-from) + search
			end = server
		}
		switch {
		case i > 0:
			end = max(end, header)
			behind = max(behind, end)
		case f.Header.Kind < portals.OpAck:
			end = max(end, behind)
		}
		found[sentPacket{f.Source, f.Number, i}] = end
		if i == 0 {
			for _, k := range held[f.Number] {
				found[sentPacket{f.Source, f.Number, k}] = end
			}
		}
	})
	return found, messages
}

// What a source has given up ends with the packets that have come, in the order
// in which the messages began; nothing of others ends.
func TestReceiveEndsWhatIsGivenUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newReceiveAlone(t, drawReceive(t))
		var want []sentPacket
		whole, now := 0, sim.Time(0)
		open := make([][]*Frame, 3) // by source
		for number := range uint64(rapid.IntRange(1, 12).Draw(t, "messages")) {
			source := int32(rapid.IntRange(1, 2).Draw(t, "source"))
			n := rapid.IntRange(1, 6).Draw(t, "packets")
			came := rapid.IntRange(1, n).Draw(t, "came")
			f := &Frame{Data: make([]byte, 64*n), Length: 64 * n, MTU: 64, Packets: n, Source: source, Number: number + 1}
			for i := range came {
				now += sim.Time(rapid.IntRange(0, 30).Draw(t, "pause")) * sim.Nanosecond
				x.r.post(now, kindComes, uint64(i), f)
			}
			if whole += came; came < n {
				open[source] = append(open[source], f)
				if source == 1 {
					want = append(want, sentPacket{1, f.Number, came})
				}
			}
		}
		x.r.post(now, kindAbandoned, 1, nil)
		require.NoError(t, x.r.engine.Run())
		require.Equal(t, want, x.missed)
		require.Len(t, x.found, whole)
		require.Len(t, x.r.open, len(open[2]))
		for _, in := range x.r.open { //lint:maporder each by itself
			require.True(t, slices.Contains(open[2], in.frame))
		}
	})
}

// An event of another stage is a mistake of the program.
func TestReceiveKnowsItsEvents(t *testing.T) {
	var r receive
	require.Panics(t, func() { r.handle(&sim.Event{Kind: kindsOfReceive + 77}) })
}
