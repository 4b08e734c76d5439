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

// linkAlone is a link between a port of a network that pushes back and a list of what has come up.
type linkAlone struct {
	l       link
	t       *rapid.T
	credits [fabric.Classes]int
	asked   [fabric.Classes]bool // the link waits for KindReady
	back    func(fabric.Class) sim.Time
	later   sim.Time // from the room to the news of it
	sent    []fabric.Packet
	at      []sim.Time
	came    []sentPacket
	damaged int
	taken   int // packets released
	spaces  int // that handlers were told of
}

const (
	kindDepart sim.Kind = kindsOfSchedule + iota // *departure
	kindCredit                                   // class
)

func newLinkAlone(t *rapid.T, spec Spec, bounded bool) *linkAlone {
	x := &linkAlone{t: t, credits: [fabric.Classes]int{1 << 30, 1 << 30}}
	eng := sim.New(1)
	e := &env{engine: eng, rank: 0, spec: &spec, core: new(Core), fabric: &fabric.Spec{MTU: 64}}
	e.id = eng.Add("link", x)
	x.l = link{env: e, port: x, next: x, room: x, classes: bounded}
	return x
}

func (x *linkAlone) Handle(e *sim.Event) {
	switch e.Kind {
	case kindDepart:
		x.l.depart(*e.P.(*departure))
	case kindCredit:
		c := fabric.Class(e.A)
		x.credits[c]++
		if x.asked[c] {
			x.asked[c] = false
			x.l.post(x.l.now()+x.later, fabric.KindReady, e.A, nil)
		}
	default:
		x.l.handle(e)
	}
}

// Ready, Send and Release are the port.
func (x *linkAlone) Ready(c fabric.Class) bool {
	x.asked[c] = x.asked[c] || x.credits[c] == 0
	return x.credits[c] > 0
}

func (x *linkAlone) Send(p fabric.Packet) {
	require.Positive(x.t, x.credits[p.Class], "the network has no room")
	x.credits[p.Class]--
	x.sent, x.at = append(x.sent, p), append(x.at, x.l.now())
	if x.back != nil {
		x.l.post(x.l.now()+x.back(p.Class), kindCredit, uint64(p.Class), nil)
	}
	if p.Notify {
		x.l.engine.Post(x.l.now(), x.l.id, x.l.id, fabric.KindSent, 0, uint64(p.Seq), p.Ref)
	}
}

func (x *linkAlone) Release(fabric.Packet) { x.taken++ }

func (x *linkAlone) abandoned(int32) { require.Fail(x.t, "a link gives nothing up") }

// packetArrived is what comes up.
func (x *linkAlone) packetArrived(f *Frame, i int, damaged bool) {
	x.came = append(x.came, sentPacket{f.Source, f.Number, i})
	if damaged {
		x.damaged++
	}
}

func (x *linkAlone) egressSpace() { x.spaces++ }

// A network that pushes back gets every packet once, when it has room for one
// of its class, those of a class in their order, and none that could go waits;
// what waits in one class holds up nothing of the other, and the place that a
// packet of a handler takes is given back when it has left.
func TestLinkWaitsForRoom(t *testing.T) {
	waited := 0
	rapid.Check(t, func(t *rapid.T) {
		x := newLinkAlone(t, Spec{EgressPackets: 1 << 10, Loopback: 50}, true)
		for c := range x.credits {
			x.credits[c] = rapid.IntRange(1, 3).Draw(t, "credits")
		}
		pauses := rapid.SliceOfN(rapid.IntRange(0, 900), 1, 5).Draw(t, "back")
		x.later = sim.Time(rapid.IntRange(0, 200).Draw(t, "later"))
		k := 0
		x.back = func(fabric.Class) sim.Time {
			k++
			return sim.Time(pauses[k%len(pauses)])
		}
		var order [fabric.Classes][]uint64
		device, own, now := 0, 0, sim.Time(0)
		n := rapid.IntRange(1, 60).Draw(t, "packets")
		for i := range n {
			kind := rapid.SampledFrom([]portals.OpKind{portals.OpPut, portals.OpGet, portals.OpAck, portals.OpReply}).Draw(t, "kind")
			f := &Frame{Header: portals.Header{Kind: kind}, Packets: 1, MTU: 64, Target: int32(rapid.IntRange(0, 3).Draw(t, "target")), Number: uint64(i) + 1}
			d := departure{ref: f, target: f.Target, class: x.l.classOf(kind), device: rapid.Bool().Draw(t, "from HPU memory")}
			require.Equal(t, kind >= portals.OpAck, d.class == fabric.Answers)
			now += sim.Time(rapid.SampledFrom([]int{0, 0, 10, 500}).Draw(t, "pause"))
			if d.device {
				device++
			}
			if d.target == 0 {
				own++
			} else {
				order[d.class] = append(order[d.class], f.Number)
			}
			x.l.post(now, kindDepart, 0, &d)
		}
		require.NoError(t, x.l.engine.Run())
		var got [fabric.Classes][]uint64
		for i, p := range x.sent {
			got[p.Class] = append(got[p.Class], p.Ref.(*Frame).Number)
			if i > 0 && x.at[i] != x.at[i-1] {
				waited++
			}
		}
		require.Equal(t, order, got)
		require.Len(t, x.came, own)
		require.Equal(t, device, x.spaces)
		require.Zero(t, x.l.device)
		require.EqualValues(t, n, x.l.sent)
		for c := range x.l.waiting {
			require.Zero(t, x.l.waiting[c].len())
		}
	})
	require.Positive(t, waited)
}

// A class whose buffers are full holds up nothing of the other.
func TestLinkClassesPassEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newLinkAlone(t, Spec{EgressPackets: maxEgress}, true)
		full := rapid.SampledFrom([]fabric.Class{fabric.Requests, fabric.Answers}).Draw(t, "full")
		x.credits[full] = 0
		kinds := map[fabric.Class]portals.OpKind{fabric.Requests: portals.OpPut, fabric.Answers: portals.OpReply}
		open := 0
		for range rapid.IntRange(1, 20).Draw(t, "packets") {
			c := fabric.Class(rapid.IntRange(0, 1).Draw(t, "class"))
			if c != full {
				open++
			}
			x.l.send(packet{f: &Frame{Header: portals.Header{Kind: kinds[c]}, Packets: 1, MTU: 64, Target: 1}})
			require.Len(t, x.sent, open)
		}
	})
}

// What has come is released once, whatever it is, so that its buffer is free
// for others; up goes what is whole, and once. Copies come in any order and at
// any time.
func TestLinkTakesEachPacketOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newLinkAlone(t, Spec{}, false)
		faulty := rapid.Bool().Draw(t, "network with faults")
		if faulty {
			x.l.known = map[int32]*arrivedOf{}
		}
		type copyOf struct {
			f       *Frame
			i       int
			corrupt bool
		}
		var all []copyOf
		var want []sentPacket
		nth := map[int32]uint64{}
		datagrams := 0
		for number := range uint64(rapid.IntRange(1, 20).Draw(t, "messages")) {
			f := &Frame{Packets: rapid.IntRange(1, 70).Draw(t, "packets"), MTU: 64, Source: int32(rapid.IntRange(1, 3).Draw(t, "source")), Number: number + 1}
			if f.Datagram = faulty && rapid.IntRange(0, 3).Draw(t, "datagram") == 0; f.Datagram {
				f.Packets = 1
			} else {
				nth[f.Source]++
				f.Nth = nth[f.Source]
			}
			for i := range f.Packets {
				copies := []bool{false}
				if faulty {
					copies = rapid.SliceOfN(rapid.Bool(), 0, 3).Draw(t, "damaged")
				}
				for _, corrupt := range copies {
					all = append(all, copyOf{f, i, corrupt})
					if corrupt && f.Datagram {
						datagrams++
					}
				}
				if !f.Datagram {
					copies = copies[:min(1, len(copies))*min(1, 1+slices.Index(copies, false))]
				}
				for range copies {
					want = append(want, sentPacket{f.Source, f.Number, i})
				}
			}
		}
		all = rapid.Permutation(all).Draw(t, "order")
		for k, c := range all {
			kind := fabric.KindArrive
			if c.corrupt {
				kind = fabric.KindCorrupt
			}
			fabric.Packet{Src: c.f.Source, Seq: uint32(c.i), Ref: c.f}.Arrive(x.l.engine, sim.Time(k), x.l.id, x.l.id, kind)
		}
		require.NoError(t, x.l.engine.Run())
		require.Equal(t, len(all), x.taken, "each is released once")
		require.ElementsMatch(t, want, x.came)
		require.Equal(t, datagrams, x.damaged)
		require.EqualValues(t, len(want), x.l.arrived)
	})
}

// An event of another stage is a mistake of the program.
func TestLinkKnowsItsEvents(t *testing.T) {
	var l link
	require.Panics(t, func() { l.handle(&sim.Event{Kind: kindsOfLink + 77}) })
}
