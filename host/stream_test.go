package host_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// said is a translator's answer about a piece of a stream, and its delay.
type said struct {
	fault bool
	late  sim.Time
}

// scripted is a translator that gives the listed answers about each piece of a
// stream, and then OK.
type scripted struct {
	bus    *host.Bus
	engine *sim.Engine
	id     sim.ID
	lines  map[*use][][]said
}

func (s *scripted) Translate(a *host.Access, off, _ int) (host.Status, bool) {
	piece := &s.lines[a.Ref.(*use)][off/a.Piece]
	if len(*piece) == 0 {
		return host.OK, true
	}
	x := (*piece)[0]
	*piece = (*piece)[1:]
	status := host.OK
	if x.fault {
		status = host.Fault
	}
	if x.late == 0 {
		return status, true
	}
	s.engine.Post(s.engine.Now()+x.late, s.id, s.id, 0, uint64(status), 0, a)
	return status, false
}

func (s *scripted) Done(*host.Access, int, int) {}

func (s *scripted) Handle(e *sim.Event) {
	s.bus.Translated(e.P.(*host.Access), host.Status(e.A))
}

// streamer is the reference model of a stream.
type streamer struct {
	line   int
	pieces [][]said
	wants  sim.Time // when it wants its next turn
	let    bool
	at     []sim.Time // when its pieces are at the device
}

// turns gives each turn of the bus to the oldest stream that wants one and is
// first of its line. It reports whether two events have the same time: it does
// not order them.
func turns(all []*streamer, took, pause sim.Time) (tie bool) {
	var free, busy sim.Time // when the next turn may come, and when the last piece has passed
	var last *streamer
	for {
		var best *streamer
		first, seen, times := sim.MaxTime, map[int]bool{}, map[sim.Time]bool{}
		for _, s := range all {
			if len(s.at) == len(s.pieces) || s.line > 0 && seen[s.line] {
				continue
			}
			seen[s.line] = true
			tie = tie || times[s.wants] || s.wants == free && s != last
			times[s.wants] = true
			if at := max(s.wants, free); at < first {
				first, best = at, s
			}
		}
		if best == nil {
			return tie
		}
		k := len(best.at)
		last = best
		if script := best.pieces[k]; !best.let && len(script) > 0 {
			best.pieces[k] = script[1:]
			best.wants, best.let = first+script[0].late, !script[0].fault
			if script[0].fault {
				best.wants += latency + pause + latency
			}
			free = first
			continue
		}
		begins := max(first, busy)
		busy = begins + took
		best.at, best.wants, best.let = append(best.at, busy+latency), busy, false
		unfinished := false
		for _, s := range all {
			unfinished = unfinished || len(s.at) < len(s.pieces) && s.wants-latency <= first
		}
		if free = first; unfinished {
			free = busy
		}
	}
}

// The bus equals the reference: for any late or failed translations, each turn
// goes to the oldest stream that wants one and that no older stream of its line
// holds up; to the picosecond.
func TestStreamsTakeTurnsByAge(t *testing.T) {
	compared := 0
	rapid.Check(t, func(rt *rapid.T) {
		const piece, unique = 16384, 1009
		spec := buses()["full duplex"]
		took := spec.Bandwidth.Time(piece)
		s := &scripted{lines: map[*use][][]said{}}
		d := newDevice(spec, func(d *device) host.Translator {
			s.bus, s.engine = &d.bus, d.engine
			s.id = d.engine.Add("scripted", s)
			return s
		})
		d.tries = 1 << 20
		orders, space := make([]host.Order, 7), host.NewAddressSpace(nil)
		var all []*streamer
		now, different := sim.Time(0), sim.Time(0)
		for i := range rapid.IntRange(1, 12).Draw(rt, "streams") {
			now += sim.Time(rapid.IntRange(0, 400).Draw(rt, "pause"))*sim.Nanosecond + 1
			r := &streamer{line: rapid.IntRange(0, 6).Draw(rt, "line"), wants: now + latency}
			n := rapid.IntRange(1, 6).Draw(rt, "pieces")
			u := d.later(now, &use{stream: true, kind: host.FromMemory, Access: host.Access{Space: space, Addr: uint64(i) << 16, Length: n * piece, Piece: piece}})
			if r.line > 0 {
				u.Order = &orders[r.line]
			}
			for range n {
				var script []said
				for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "questions") {
					different += unique
					script = append(script, said{rapid.Bool().Draw(rt, "faults"), sim.Time(rapid.IntRange(0, 4).Draw(rt, "late"))*sim.Microsecond + different})
				}
				r.pieces = append(r.pieces, script)
				s.lines[u] = append(s.lines[u], script)
			}
			all = append(all, r)
		}
		require.NoError(rt, d.engine.Run())
		if turns(all, took, pause) {
			return
		}
		compared++
		for i, r := range all {
			require.Equal(rt, r.at, d.used[i].when, "stream %d", i)
		}
		for i := range orders {
			require.True(rt, orders[i].Empty())
		}
	})
	require.Greater(t, compared, 10)
}

// A stream whose second piece is absent, or whose translation is late, holds up
// only its own line. Streams that overtake cost it at most one piece.
func TestStreamsGoPastOneThatWaits(t *testing.T) {
	const piece, n = 1024, 8
	spec := buses()["full duplex"]
	took := spec.Bandwidth.Time(piece)
	for _, c := range []struct {
		said said
		back sim.Time // when it wants to continue, after the question
	}{
		{said{fault: true}, 2*latency + pause},
		{said{late: took/2 + took}, took/2 + took},
		{said{late: 100 * took, fault: true}, 100*took + 2*latency + pause},
	} {
		t.Run(fmt.Sprint(c.said), func(t *testing.T) {
			s := &scripted{lines: map[*use][][]said{}}
			d := newDevice(spec, func(d *device) host.Translator {
				s.bus, s.engine = &d.bus, d.engine
				s.id = d.engine.Add("scripted", s)
				return s
			})
			var orders [2]host.Order
			stream := func(line int) *use {
				u := d.later(0, &use{stream: true, kind: host.FromMemory, Access: host.Access{
					Space: host.NewAddressSpace(nil), Length: n * piece, Piece: piece, Order: &orders[line],
				}})
				s.lines[u] = make([][]said, n)
				return u
			}
			absent, same, other := stream(0), stream(0), stream(1)
			s.lines[absent][1] = []said{c.said}
			require.NoError(t, d.engine.Run())
			asked := latency + took
			passed := 2*latency + took // the first piece of the first stream is at the device
			require.Equal(t, passed, absent.when[0])
			require.Equal(t, passed+took, other.when[0], "at once")
			// It continues with the first turn after it wants to.
			pieces := min((c.back+took-1)/took, n)
			resumes := asked + max(c.back, pieces*took)
			require.Equal(t, resumes+took+latency, absent.when[1])
			require.Equal(t, resumes+took*(n-1)+latency, absent.when[n-1])
			require.Equal(t, absent.when[n-1]+took, same.when[0], "it waits for the one before, and is older than the other")
			if pieces == n {
				require.Equal(t, passed+n*took, other.when[n-1])
			} else {
				require.Equal(t, same.when[n-1]+(n-pieces)*took, other.when[n-1])
			}
		})
	}
}
