package fabric

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// comer is a packet of the model of a port.
type comer struct {
	p     Packet
	at    sim.Time // at the port
	order int
}

// bytesOf is how many bytes a list of packets has, headers included.
func bytesOf(spec *Spec, list []comer) (sum int64) {
	for _, c := range list {
		sum += int64(c.p.Bytes + spec.Header)
	}
	return sum
}

// simulatePort simulates the port of node 0 of a crossbar, packet by packet: two lists,
// and the time when the link is free.
func simulatePort(spec *Spec, all []comer) (got []arrival, lost []uint32, trimmed uint32) {
	slices.SortFunc(all, func(a, b comer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.p.Src, b.p.Src), cmp.Compare(a.order, b.order))
	})
	var lists [Classes][]comer
	var free sim.Time
	leave := func(c comer, now sim.Time) {
		c.p.Marked = c.p.Class == Requests && spec.MarkTo > 0 && bytesOf(spec, lists[Requests]) >= spec.MarkTo
		free = now + spec.Serial(int(c.p.Bytes))
		got = append(got, arrival{free + spec.Wire, c.p, KindArrive})
	}
	serve := func(until sim.Time) {
		for free <= until && len(lists[Requests])+len(lists[Answers]) > 0 {
			class := Answers
			if len(lists[class]) == 0 {
				class = Requests
			}
			c := lists[class][0]
			lists[class] = lists[class][1:]
			leave(c, free)
		}
	}
	for _, c := range all {
		serve(c.at)
		room := func() bool {
			wait := spec.Rate.Time(bytesOf(spec, lists[c.p.Class])) + spec.Serial(int(c.p.Bytes))
			if c.p.Class == Requests {
				wait += max(0, free-c.at)
			}
			return wait <= spec.Rate.Time(spec.Queue)
		}
		if c.p.Class == Requests && !room() {
			if spec.Trim == "" {
				lost = append(lost, c.p.Seq)
				continue
			}
			k := len(lists[Requests])
			if k > 0 && spec.Trim == TrimEither && mixed(0, trimmed, 1)&1 == 1 && lists[Requests][k-1].p.Bytes >= c.p.Bytes {
				c, lists[Requests][k-1] = lists[Requests][k-1], c
			}
			trimmed++
			c.p.Class, c.p.Trimmed, c.p.Bytes = Answers, true, 0
		}
		if c.p.Class == Answers && !room() {
			lost = append(lost, c.p.Seq)
			continue
		}
		if free <= c.at {
			leave(c, c.at)
		} else {
			lists[c.p.Class] = append(lists[c.p.Class], c)
		}
	}
	serve(1 << 60)
	return got, lost, trimmed
}

// A port with two queues marks, trims, drops and sends as the model says, to
// the picosecond, and its books are right.
func TestPortAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := spinDis()
		spec.Kind, spec.Header, spec.AnswersFirst = Crossbar, 16, true
		spec.Gap = 0
		spec.Queue = spec.full() * rapid.Int64Range(1, 4).Draw(t, "room")
		spec.Trim = rapid.SampledFrom([]string{"", TrimArriving, TrimEither}).Draw(t, "trim")
		if rapid.Bool().Draw(t, "marks") {
			spec.MarkTo = rapid.Int64Range(1, spec.Queue).Draw(t, "mark to")
			spec.MarkFrom = spec.MarkTo
		}
		spec.Rate = sim.NewRate(sim.Time(rapid.IntRange(1, 30).Draw(t, "rate")), 1)
		require.NoError(t, spec.Validate())
		const nodes = 8
		s := build(t, spec, nodes, nil)
		var all []comer
		var free [nodes]sim.Time
		at, sent := sim.Time(0), int64(0)
		for i := range rapid.IntRange(1, 80).Draw(t, "packets") {
			at += sim.Time(rapid.IntRange(0, 30).Draw(t, "pause")) * sim.Nanosecond
			p := Packet{
				Src: rapid.Int32Range(1, nodes-1).Draw(t, "src"), Seq: uint32(i), Class: Class(rapid.IntRange(0, 1).Draw(t, "class")),
				Bytes: rapid.SampledFrom([]int32{0, 1, 64, 1000, 4096}).Draw(t, "bytes"), Path: uint16(i % Paths),
			}
			start := max(at, free[p.Src])
			free[p.Src] = start + spec.Serial(int(p.Bytes))
			all = append(all, comer{p, start + spec.Wire + spec.Switch, i})
			s.inject(at, p)
			sent += int64(p.Bytes)
		}
		want, lost, trimmed := simulatePort(&spec, all)
		got := s.run(t)
		require.Equal(t, want, got)
		_, n := s.f.Losses()
		require.Len(t, lost, n)
		for i := range got {
			sent -= int64(got[i].p.Bytes)
		}
		b, exact := BalanceOf(s.f)
		require.True(t, exact)
		require.Equal(t, Balance{Lost: Tally{int64(n), sent}, Trimmed: int64(trimmed)}, b)
	})
}

// Between the two marks the share of marked packets grows linearly: 100 packets
// leave 0 to 99 behind them, with marks from none to all.
func TestMarksGrowLinearly(t *testing.T) {
	spec := spinDis()
	spec.Kind, spec.Header, spec.AnswersFirst, spec.Gap = Crossbar, 0, true, 0
	const each = 100
	spec.MarkTo = each * 4096
	n, marked := 0, 0
	for dst := range int32(200) { // another link, and so other draws
		s := build(t, spec, 200+each, nil)
		for i := range int32(each) {
			s.ports[i+200].Send(Packet{Src: i + 200, Dst: dst, Bytes: 4096})
		}
		for _, a := range s.run(t) {
			n++
			if a.p.Marked {
				marked++
			}
		}
	}
	require.InDelta(t, 0.5, float64(marked)/float64(n), 0.02)
}

// With every topology that has paths, packets with different paths may take
// different ways, and those with one path take one way: a packet passes no
// other of its path.
func TestPathsByPacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := spinDis()
		spec.Kind = rapid.SampledFrom([]string{FatTree, LeafSpine}).Draw(t, "kind")
		if spec.Kind == FatTree {
			spec.Radix = 8
		} else {
			spec.LeafNodes, spec.Spines = 4, rapid.IntRange(1, 6).Draw(t, "spines")
		}
		spec.Paths = ByPacket
		const nodes = 64
		s := build(t, spec, nodes, nil)
		for i := range 100 {
			p := Packet{Src: rapid.Int32Range(0, 7).Draw(t, "src"), Dst: 63, Seq: uint32(i), Bytes: int32(rapid.IntRange(0, 4096).Draw(t, "bytes")), Path: uint16(rapid.IntRange(0, 3).Draw(t, "path"))}
			s.ports[p.Src].Send(p)
		}
		last := map[[2]int]uint32{}
		got := s.run(t)
		require.Len(t, got, 100)
		for _, a := range got {
			key := [2]int{int(a.p.Src), int(a.p.Path)}
			require.LessOrEqual(t, last[key], a.p.Seq)
			last[key] = a.p.Seq
		}
	})
}

// Of one flow at the full rate of its link, over four spines of a quarter of that
// rate, a switch that compares two ways lets the last packet arrive earlier than
// one that compares one, and four are not later than two. With nothing else in
// the way the last of 64 packets can be no earlier than 64 of them on a node's
// link and one on a spine's.
func TestPathsByLoad(t *testing.T) {
	last := map[int]sim.Time{}
	for _, choices := range []int{1, 2, 4} {
		spec := spinDis()
		spec.Kind, spec.LeafNodes, spec.Spines, spec.Paths, spec.Choices = LeafSpine, 2, 4, ByLoad, choices
		spec.Rate, spec.SwitchRate = sim.NewRate(20, 1), sim.NewRate(80, 1)
		require.NoError(t, spec.Validate())
		s := build(t, spec, 4, nil)
		for i := range uint32(64) {
			s.ports[0].Send(Packet{Dst: 3, Bytes: 4096, Seq: i})
		}
		got := s.run(t)
		require.Len(t, got, 64)
		last[choices] = got[63].at
	}
	require.Less(t, last[2], last[1])
	require.LessOrEqual(t, last[4], last[2])
	spec := spinDis()
	require.GreaterOrEqual(t, last[4], 64*spec.Serial(4096)+sim.NewRate(80, 1).Time(4096))
}

// Sprayed over 512 paths, packets of one pair use every spine.
func TestSprayUsesEverySpine(t *testing.T) {
	spec := spinDis()
	spec.Kind, spec.LeafNodes, spec.Spines, spec.Paths = LeafSpine, 4, 8, ByPacket
	s := build(t, spec, 8, nil)
	for i := range Paths {
		s.ports[0].Send(Packet{Dst: 7, Bytes: 64, Path: uint16(i)})
	}
	s.run(t)
	used := 0
	for _, l := range s.f.Links() {
		if l.Name[:3] == "Spi" {
			used++
			require.InDelta(t, Paths/8, l.Packets, 30)
		}
	}
	require.Equal(t, 8, used)
}
