package identify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/ledger"
)

// device is an invented device: a message of n bytes takes call + n/rate, and
// twice the call if it is copied. Its turns are counted.
type device struct {
	call, rate float64
	copied     bool
	turns      int
}

var sizes = []float64{8, 64, 512, 4096, 32768, 262144}

func (d device) time(n float64) float64 {
	t := d.call + n/d.rate
	if d.copied {
		t += d.call
	}
	return t
}

// ours are the rows of a device.
func (d device) ours() map[string]ledger.Ours {
	all := map[string]ledger.Ours{"copies": {Holds: d.copied}}
	for i, n := range sizes {
		all[fmt.Sprint("t", i)] = ledger.Ours{Numbers: []float64{d.time(n)}}
	}
	return all
}

// study is about a device: what today's differs in from the true one.
func study(t require.TestingT, today, truth device) *Study {
	list, err := ledger.ParseQuestions("question\twhat\talternative\tset\tsource\n" +
		"call\tcost of a call\ttoday\t\tours\n" +
		"call\t\tany\tcall=0.5us..8us\tours\n" +
		"rate\trate\ttoday\t\tours\n" +
		"rate\t\tany\trate=10..2000\tours\n" +
		"copy\tis it copied\ttoday\t\tours\n" +
		"copy\t\tother\tcopied=true\tours\n" +
		"turns\twho turns\ttoday\t\tours\n" +
		"turns\t\ttwice\tturns=2\tours\n" +
		"odd\tan alternative that no device has\ttoday\t\tours\n" +
		"odd\t\tnone\todd=1\tours\n")
	require.NoError(t, err)
	s := &Study{Questions: list, Today: map[string]float64{"call": today.call, "rate": today.rate}}
	exact := truth.ours()
	for i := range sizes {
		id := fmt.Sprint("t", i)
		v, err := ledger.ParseValue(strconv.FormatFloat(exact[id].Numbers[0], 'e', 9, 64), ledger.Exact)
		require.NoError(t, err)
		s.Rows = append(s.Rows, Row{&ledger.Row{ID: id, Published: v}, fmt.Sprint("experiment", i%3)})
	}
	if truth.copied {
		v, err := ledger.ParseValue("true", ledger.Exact)
		require.NoError(t, err)
		s.Rows = append(s.Rows, Row{&ledger.Row{ID: "copies", Published: v}, "experiment0"})
	}
	s.Measure = func(_ context.Context, settings [][]string) ([]Outcome, error) {
		out := make([]Outcome, len(settings))
		for i, set := range settings {
			d := today
			for _, one := range set {
				name, value, _ := strings.Cut(one, "=")
				x, _ := strconv.ParseFloat(strings.TrimSuffix(value, "us"), 64)
				switch name {
				case "call":
					d.call = x
				case "rate":
					d.rate = x
				case "copied":
					d.copied = true
				case "turns":
					d.turns = 2
				case "odd":
					out[i].Err = errors.New("no such device")
				}
			}
			out[i].Ours, out[i].Other = d.ours(), map[string]float64{"turns of compare x": float64(1 + d.turns), "time of 1 B": d.time(1)}
		}
		return out, nil
	}
	return s
}

// The search does not see the rows of an experiment that is left out: if only
// they tell the rate of the link, they are as far as with today's. Distances are
// computed as in the ledger.
func TestLeftOutRowsAreNotSeen(t *testing.T) {
	today := device{call: 2, rate: 100}
	s := study(t, today, device{call: 2, rate: 400})
	s.Questions = s.Questions[1:2]
	s.Rows = []Row{study(t, today, today).Rows[0], s.Rows[len(sizes)-1]}
	s.Rows[0].Experiment, s.Rows[1].Experiment = "short", "long"
	v, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, v.Rows, 2)
	off, err := s.Rows[1].Off(today.ours()[s.Rows[1].ID])
	require.NoError(t, err)
	long := v.Rows[1]
	require.InDelta(t, off.Distance, long.Today, 1e-9)
	require.InDelta(t, off.Distance, long.LeftOut, 1e-9)
	require.Less(t, long.Fitted, 0.02)
	require.InDelta(t, v.Rows[0].Fitted, v.Rows[0].LeftOut, 0.01, "the long message tells what changes the short one")
	rows, err := s.LeaveOut(t.Context())
	require.NoError(t, err)
	require.Equal(t, v.Rows, rows)
	s.Rows[1].Experiment = "short"
	v, err = s.Run(t.Context())
	require.NoError(t, err)
	require.True(t, math.IsNaN(v.LeftOut.Median), "there is no other experiment")
}

// The parameters of an invented device come back within 5%, whatever they are,
// although there are alternatives that could take their place. Rows that the
// search has not seen are near, too.
func TestParametersComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		truth := device{call: rapid.Float64Range(0.6, 7).Draw(r, "call"), rate: rapid.Float64Range(20, 1500).Draw(r, "rate")}
		today := device{call: rapid.Float64Range(0.6, 7).Draw(r, "today's call"), rate: rapid.Float64Range(20, 1500).Draw(r, "today's rate")}
		v, err := study(r, today, truth).Run(context.Background())
		require.NoError(r, err)
		d := today
		for _, set := range v.Set {
			name, value, _ := strings.Cut(set, "=")
			x, _ := strconv.ParseFloat(strings.TrimSuffix(value, "us"), 64)
			switch name {
			case "call":
				d.call = x
			case "rate":
				d.rate = x
			}
		}
		if slices.Contains(v.Set, "copied=true") { // two calls of half the cost are the same
			d.call *= 2
		}
		require.InEpsilon(r, truth.call, d.call, 0.05, "%+v for %+v", d, truth)
		require.InEpsilon(r, truth.rate, d.rate, 0.05, "%+v for %+v", d, truth)
		require.Less(r, v.Fitted.Median, 0.02)
		require.Less(r, v.LeftOut.Median, 0.1)
	})
}

// What moves nothing is found, what no device has is said, an answer that no
// other answer makes good is excluded, and a number is named that would tell
// apart what remains.
func TestVerdict(t *testing.T) {
	truth := device{call: 2, rate: 400, copied: true}
	v, err := study(t, device{call: 2, rate: 100}, truth).Run(context.Background())
	require.NoError(t, err)
	of := map[string]Effect{}
	for _, e := range v.Effects {
		of[e.Question+" "+e.Alternative] = e
	}
	require.Empty(t, of["turns twice"].Moved)
	require.EqualError(t, of["odd none"].Err, "no such device")
	moved := of["copy other"].Moved
	at := slices.IndexFunc(moved, func(m Move) bool { return m.Row == "copies" })
	require.InDelta(t, 1, moved[at].Before, 1e-9)
	require.Zero(t, moved[at].Then)
	require.True(t, math.IsNaN(moved[at].Factor))
	at = slices.IndexFunc(moved, func(m Move) bool { return m.Row == "t0" })
	require.InDelta(t, (2*2+8.0/100)/(2+8.0/100), moved[at].Factor, 1e-9)
	require.Contains(t, v.Excluded, Exclusion{"copy", "today's", "copies", 1, "other", 0})
	var names []string
	for _, x := range v.Separate {
		names = append(names, x.Alternative+": "+x.Number)
	}
	require.Contains(t, names, "twice: turns of compare x")
	require.NotContains(t, strings.Join(names, "\n"), "none")
	require.Equal(t, "time of 1 B", v.First.Number, "it tells the call and the copies, the other one only the turns")
	require.Len(t, v.First.Tells, 2)
	require.Equal(t, 3, v.First.Of)
	require.Greater(t, v.Before.Median, v.Fitted.Median)
	require.Less(t, v.Fitted.Median, 1e-3)
	require.Less(t, math.Expm1(mean([]float64{math.Log(2), 0}, every)), 1.0)
}

// An alternative is not excluded if any setting that was measured with it brings
// the row near, although the sum of effects suggests another one: two answers
// that each come half of the way go too far together.
func TestWhatWasMeasuredIsNotExcluded(t *testing.T) {
	list, err := ledger.ParseQuestions("question\twhat\talternative\tset\tsource\n" +
		"a\t\ttoday\t\tours\na\t\tother\ta=1\tours\nb\t\ttoday\t\tours\nb\t\tother\tb=1\tours\n")
	require.NoError(t, err)
	v, err := ledger.ParseValue("100", ledger.Exact)
	require.NoError(t, err)
	s := &Study{Questions: list, Rows: []Row{{&ledger.Row{ID: "r", Published: v}, "e"}}}
	s.Measure = func(_ context.Context, settings [][]string) ([]Outcome, error) {
		out := make([]Outcome, len(settings))
		for i, set := range settings {
			x := map[string]float64{"": 10, "a=1": 93, "b=1": 11, "a=1 b=1": 10}[strings.Join(set, " ")]
			out[i].Ours = map[string]ledger.Ours{"r": {Numbers: []float64{x}}}
		}
		return out, nil
	}
	verdict, err := s.Run(t.Context())
	require.NoError(t, err)
	require.False(t, s.has(verdict.Excluded, 0, "other"), "%+v", verdict.Excluded)
	require.True(t, s.has(verdict.Excluded, 0, "today's"))
}

// If each alternative is excluded by another row, the question has no answer.
func TestContradiction(t *testing.T) {
	s := study(t, device{call: 2, rate: 100}, device{call: 2, rate: 100})
	s.Questions = s.Questions[2:3] // is it copied
	copied, err := ledger.ParseValue("true", ledger.Exact)
	require.NoError(t, err)
	s.Rows = append(s.Rows, Row{&ledger.Row{ID: "copies", Published: copied}, "experiment0"})
	v, err := s.Run(context.Background())
	require.NoError(t, err)
	require.Len(t, v.Unfit, 1)
	c := v.Unfit[0]
	require.Equal(t, "copy", c.Question)
	require.Len(t, c.Sides, 2, "%+v", c)
	by := map[string]Side{} // by what the side needs
	for _, side := range c.Sides {
		by[side.Needs] = side
	}
	require.Equal(t, Side{"copies", []string{"today's"}, "other", 0}, by["other"])
	require.Equal(t, []string{"other"}, by["today's"].Against)
	require.Equal(t, "t", by["today's"].Row[:1])
	require.Equal(t, "time of 1 B", c.Number.Number, "which side is right")
	require.ElementsMatch(t, []string{"today's", "other"}, []string{c.Number.Alternative, c.Number.Against})
	require.InDelta(t, 2, math.Exp(c.Number.by()), 0.01)
	require.NotEqual(t, "copy", v.First.Number, "what remains is another question")
	s.Rows = s.Rows[:len(s.Rows)-1]
	v, err = s.Run(context.Background())
	require.NoError(t, err)
	require.Empty(t, v.Unfit)
}

// A study whose measurement ends says so.
func TestStudyEnds(t *testing.T) {
	s := study(t, device{call: 2, rate: 100}, device{call: 1, rate: 50})
	measure, calls := s.Measure, 0
	s.Measure = func(ctx context.Context, settings [][]string) ([]Outcome, error) {
		if calls++; calls > 2 {
			return nil, context.Canceled
		}
		return measure(ctx, settings)
	}
	_, err := s.Run(context.Background())
	require.ErrorIs(t, err, context.Canceled)
	s.Rows = nil
	_, err = s.Run(context.Background())
	require.ErrorIs(t, err, errNoRows)
}

// sum is a study of a device whose times are a + b + n: rows of messages see the
// sum, and with both also b alone. Numbers are exact.
func sum(t require.TestingT, a, b float64, both bool) *Study {
	list, err := ledger.ParseQuestions("question\twhat\talternative\tset\tsource\n" +
		"a\t\ttoday\t\tours\na\t\tany\ta=20..300\tours\nb\t\ttoday\t\tours\nb\t\tany\tb=20..300\tours\n")
	require.NoError(t, err)
	ours := func(a, b float64) map[string]ledger.Ours {
		all := map[string]ledger.Ours{"host": {Numbers: []float64{250 + b}}}
		for i := range 6 {
			all[fmt.Sprint("t", i)] = ledger.Ours{Numbers: []float64{a + b + float64(int(10)<<(2*i))}}
		}
		return all
	}
	s := &Study{Questions: list, Today: map[string]float64{"a": 50, "b": 50}}
	for id, o := range ours(a, b) { //lint:maporder rows are independent
		if id == "host" && !both {
			continue
		}
		v, err := ledger.ParseValue(strconv.FormatFloat(o.Numbers[0], 'e', 9, 64), ledger.Exact)
		require.NoError(t, err)
		s.Rows = append(s.Rows, Row{&ledger.Row{ID: id, Published: v}, "e"})
	}
	slices.SortFunc(s.Rows, func(a, b Row) int { return strings.Compare(a.ID, b.ID) })
	s.Measure = func(_ context.Context, settings [][]string) ([]Outcome, error) {
		out := make([]Outcome, len(settings))
		for i, set := range settings {
			at := map[string]float64{"a": 50, "b": 50}
			for _, one := range set {
				name, value, _ := strings.Cut(one, "=")
				at[name], _ = strconv.ParseFloat(value, 64)
			}
			out[i].Ours, out[i].Other = ours(at["a"], at["b"]), map[string]float64{"b alone": at["b"], "a thrice": 3 * at["a"]}
		}
		return out, nil
	}
	return s
}

// Two latencies that add up come back although one of them alone brings all rows
// but one nearly where they were published. Where no row tells them apart, each
// is named as a rival of the other, with a number that would.
func TestLatenciesThatAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := rapid.Float64Range(60, 250).Draw(r, "a"), rapid.Float64Range(60, 250).Draw(r, "b")
		v, err := sum(r, a, b, true).Run(context.Background())
		require.NoError(r, err)
		found := map[string]float64{"a": 50, "b": 50}
		for _, set := range v.Set {
			name, value, _ := strings.Cut(set, "=")
			found[name], _ = strconv.ParseFloat(value, 64)
		}
		require.InEpsilon(r, a, found["a"], 0.02, v.Set)
		require.InEpsilon(r, b, found["b"], 0.02, v.Set)
	})
	v, err := sum(t, 91, 73, false).Run(t.Context())
	require.NoError(t, err)
	require.Len(t, v.Set, 1, "one of them fits all rows")
	require.Len(t, v.Rivals, 1)
	require.Len(t, v.Rivals[0].Set, 1)
	require.NotEqual(t, v.Set[0][:1], v.Rivals[0].Set[0][:1])
	require.InDelta(t, 0, v.Rivals[0].Distance, 0.002)
	require.Contains(t, []string{"a thrice", "b alone"}, v.First.Number)
	require.Equal(t, v.First.Number, v.Rivals[0].Apart.Number)
	require.Equal(t, 1, v.First.Of)
}

// Two rows that give the same number as 10 and as 1,000 stand against each
// other. One that no answer moves is far whatever is chosen.
func TestFarRowsNameWhatStandsAgainstThem(t *testing.T) {
	list, err := ledger.ParseQuestions("question\twhat\talternative\tset\tsource\n" +
		"x\t\ttoday\t\tours\nx\t\tany\tx=1..2000\tours\n")
	require.NoError(t, err)
	s := &Study{Questions: list, Today: map[string]float64{"x": 11}}
	for _, r := range [][2]string{{"low", "10"}, {"again", "10"}, {"high", "1000"}, {"still", "4"}} {
		v, err := ledger.ParseValue(r[1], ledger.Exact)
		require.NoError(t, err)
		s.Rows = append(s.Rows, Row{&ledger.Row{ID: r[0], Published: v}, "e"})
	}
	s.Measure = func(_ context.Context, settings [][]string) ([]Outcome, error) {
		out := make([]Outcome, len(settings))
		for i, set := range settings {
			x := 11.0
			if len(set) > 0 {
				x, _ = strconv.ParseFloat(strings.TrimPrefix(set[0], "x="), 64)
			}
			one := func(x float64) ledger.Ours { return ledger.Ours{Numbers: []float64{x}} }
			out[i].Ours = map[string]ledger.Ours{"low": one(x), "again": one(x), "high": one(x), "still": one(1)}
		}
		return out, nil
	}
	v, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, v.Far, 2, "%+v", v.Far)
	high, still := v.Far[0], v.Far[1]
	require.Equal(t, "high", high.Row)
	require.Greater(t, high.Fitted, 50.0)
	require.LessOrEqual(t, high.Nearest, 0.5)
	require.Len(t, high.Set, 1)
	var against []string
	for _, m := range high.Against {
		against = append(against, m.Row)
		require.Greater(t, m.Then, m.Before)
	}
	require.Equal(t, []string{"low", "again"}, against)
	require.Equal(t, "still", still.Row)
	require.InDelta(t, 3, still.Nearest, 1e-9)
	require.InDelta(t, still.Fitted, still.Nearest, 1e-9)
}
