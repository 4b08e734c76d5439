package breakdown

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// reference is an account that looks at each picosecond separately.
type reference struct {
	spans [][]span
	marks [][2][]sim.Time // Begin, End
}

func (r *reference) has(c int, at sim.Time) bool {
	for _, s := range r.spans[c] {
		if s.from <= at && at < s.to {
			return true
		}
	}
	for _, begin := range r.marks[c][0] {
		end := sim.MaxTime
		for _, e := range r.marks[c][1] {
			if e >= begin {
				end = min(end, e)
			}
		}
		if begin <= at && at < end {
			return true
		}
	}
	return false
}

// Whatever was recorded, in any order, each picosecond belongs to the first
// active category, and the times add up to the interval.
func TestEveryPicosecondOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		categories := rapid.IntRange(1, 5).Draw(r, "categories")
		a, ref := New(categories), &reference{spans: make([][]span, categories), marks: make([][2][]sim.Time, categories)}
		at := rapid.Int64Range(0, 120)
		for range rapid.IntRange(0, 60).Draw(r, "notes") {
			c := rapid.IntRange(0, categories-1).Draw(r, "category")
			switch rapid.IntRange(0, 5).Draw(r, "note") {
			case 0:
				x := sim.Time(at.Draw(r, "begin"))
				a.Begin(c, x)
				ref.marks[c][0] = append(ref.marks[c][0], x)
			case 1:
				x := sim.Time(at.Draw(r, "end"))
				a.End(c, x)
				ref.marks[c][1] = append(ref.marks[c][1], x)
			default:
				from, to := sim.Time(at.Draw(r, "from")), sim.Time(at.Draw(r, "to"))
				a.Span(c, from, to)
				ref.spans[c] = append(ref.spans[c], span{from, to})
			}
		}
		for range 3 { // Attribute changes nothing
			from, to := sim.Time(at.Draw(r, "first")), sim.Time(at.Draw(r, "last"))
			got, want := make([]sim.Time, categories+1), make([]sim.Time, categories+1)
			a.Attribute(got, from, to)
			for x := from; x < to; x++ {
				c := 0
				for c < categories && !ref.has(c, x) {
					c++
				}
				want[c]++
			}
			require.Equal(r, want, got)
			sum := sim.Time(0)
			for _, g := range got {
				sum += g
			}
			require.Equal(r, max(0, to-from), sum)
		}
	})
}

// The rule of Chain fills the gap between two parts. After a break the gap
// belongs to no category.
func TestChains(t *testing.T) {
	const wire, match, handler, wait = 0, 1, 2, 3
	gap := func(before, after int) int {
		switch {
		case before == wire && after == match:
			return wire
		case after == handler:
			return wait
		}
		return NoGap
	}
	a := New(4)
	a.Chain(7, wire, 0, 10, gap)
	a.Chain(8, wire, 30, 31, gap)    // another message
	a.Chain(7, match, 15, 20, gap)   // wire until 15
	a.Chain(7, handler, 28, 40, gap) // waits from 20
	a.Chain(7, handler, 35, 38, gap) // within the one before
	a.Chain(7, match, 50, 52, gap)   // the gap belongs to no category
	a.Break(7)
	a.Chain(7, match, 60, 62, nil)
	a.Chain(7, handler, 65, 66, nil) // from 62
	times := make([]sim.Time, 5)
	a.Attribute(times, 0, 70)
	require.Equal(t, []sim.Time{15 + 1, 5 + 2 + 2, 12 - 1 + 4, 8, 10 + 8 + 4}, times)
}

type seen struct{ lines []string }

func (s *seen) Track(t *Track) int { s.lines = append(s.lines, t.Group+" "+t.Name); return 5 }
func (s *seen) Span(t *Track, name string, from, to sim.Time, flow uint64, args []sim.Arg) {
	n, _ := Number(args, "n")
	s.lines = append(s.lines, t.Name+" span "+name, sim.Time(n).String(), from.String(), to.String(), sim.Time(flow).String(), sim.Time(t.Kind).String())
}

func (s *seen) Instant(t *Track, name string, at sim.Time, flow uint64, args []sim.Arg) {
	_, found := Number(args, "n")
	if found {
		s.lines = append(s.lines, "an argument")
	}
	s.lines = append(s.lines, t.Name+" instant "+name, at.String(), sim.Time(flow).String())
}

// copyOf is the tracer behind a tap.
type copyOf struct {
	seen
	counters int
}

func (c *copyOf) Track(group string, id int, name string) sim.TrackID {
	c.seen.Track(&Track{Group: group, ID: id, Name: name})
	return sim.TrackID(40 + id)
}

func (c *copyOf) Span(t sim.TrackID, name string, from, to sim.Time, flow uint64, args ...sim.Arg) {
	c.seen.Span(&Track{Name: "A", Kind: int(t) - 36}, name, from, to, flow, args)
}

func (c *copyOf) Instant(_ sim.TrackID, name string, at sim.Time, flow uint64, args ...sim.Arg) {
	c.seen.Instant(&Track{Name: "A"}, name, at, flow, args)
}
func (c *copyOf) Counter(sim.TrackID, string, sim.Time, float64) { c.counters++ }

// A tap passes everything to the observer and to the next tracer, each with its
// own line numbers.
func TestTap(t *testing.T) {
	var o seen
	var next copyOf
	for _, p := range []*Tap{NewTap(&o, &next), NewTap(&o, nil)} {
		o.lines = nil
		id := p.Track("rank", 1, "A")
		require.Equal(t, id, p.Track("rank", 1, "A"))
		p.Span(id, "work", 1, 2, 3, sim.Arg{Key: "n", Num: 9})
		p.Instant(id, "event", 4, 5)
		p.Counter(id, "c", 1, 1)
		require.Equal(t, []string{"rank A", "A span work", "9 ps", "1 ps", "2 ps", "3 ps", "5 ps", "A instant event", "4 ps", "5 ps"}, o.lines)
		require.Equal(t, o.lines, next.lines)
	}
	require.Equal(t, 1, next.counters)
}

func TestWrongNumberOfTimes(t *testing.T) {
	require.Panics(t, func() { New(2).Attribute(make([]sim.Time, 2), 0, 1) })
}
