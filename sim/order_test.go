package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// place is an event's place in the total order.
type place struct {
	at       Time
	dst, src ID
	seq      uint64
}

func placeOf(e *Event) place { return place{e.Time, e.Dst, e.Src, e.Seq} }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.dst, b.dst), cmp.Compare(a.src, b.src), cmp.Compare(a.seq, b.seq))
}

const checkedActors = 5

// checker is every actor of an engine. It keeps all pending events in a slice
// sorted by the law, and requires that each event it handles is the first.
type checker struct {
	t       *rapid.T
	eng     *Engine
	pending []place
	seqs    [checkedActors]uint64
	tokens  map[uint64]place // by A: to check the event's contents
	posts   int              // handlers may still post them
	pops    int              // events until Stop
}

func newChecker(t *rapid.T) *checker {
	c := &checker{t: t, eng: New(0), tokens: map[uint64]place{}, posts: 150}
	c.eng.AddGroup(checkedActors, func(i int) string { return fmt.Sprint(i) }, c)
	return c
}

func (c *checker) drawTime() Time {
	return min(c.drawAnyTime(), Horizon)
}

func (c *checker) drawAnyTime() Time {
	now := c.eng.Now()
	switch rapid.IntRange(0, 5).Draw(c.t, "class") {
	case 0:
		return now
	case 1:
		return now + Time(rapid.Int64Range(0, 3).Draw(c.t, "few ps"))
	case 2: // the time of another event, or one beside it
		if len(c.pending) > 0 {
			p := c.pending[rapid.IntRange(0, len(c.pending)-1).Draw(c.t, "beside")]
			return max(now, p.at+Time(rapid.Int64Range(-1, 1).Draw(c.t, "off")))
		}
		return now
	case 3:
		return now + Time(rapid.Int64Range(0, int64(Microsecond)).Draw(c.t, "below 1 µs"))
	case 4: // across the boundaries of the wheel's digits
		return now | (1<<rapid.IntRange(0, 61).Draw(c.t, "bits") - 1)
	default:
		return max(now, Time(rapid.Int64Range(0, 1<<62).Draw(c.t, "far")))
	}
}

func (c *checker) post() {
	dst := ID(rapid.IntRange(0, checkedActors-1).Draw(c.t, "dst"))
	src := ID(rapid.IntRange(0, checkedActors-1).Draw(c.t, "src"))
	p := place{c.drawTime(), dst, src, c.seqs[src]}
	c.seqs[src]++
	token := uint64(src)<<32 | p.seq
	c.tokens[token] = p
	i, _ := slices.BinarySearchFunc(c.pending, p, comparePlaces)
	c.pending = slices.Insert(c.pending, i, p)
	c.eng.Post(p.at, dst, src, Kind(dst), token, ^token, c)
}

func (c *checker) Handle(e *Event) {
	require.NotEmpty(c.t, c.pending)
	require.Equal(c.t, c.pending[0], placeOf(e))
	require.Equal(c.t, c.tokens[e.A], placeOf(e))
	require.Equal(c.t, ^e.A, e.B)
	require.Same(c.t, c, e.P)
	require.Equal(c.t, Kind(e.Dst), e.Kind)
	require.Equal(c.t, e.Time, c.eng.Now())
	c.pending = c.pending[1:]
	if c.pops--; c.pops == 0 {
		c.eng.Stop()
	}
	was := *e
	for c.posts > 0 && rapid.Bool().Draw(c.t, "post") {
		c.posts--
		c.post()
	}
	require.Equal(c.t, was, *e, "it is valid during the whole call, whatever is posted meanwhile")
}

// check compares the visible state.
func (c *checker) check() {
	require.Equal(c.t, len(c.pending), c.eng.Pending())
	at, ok := c.eng.Next()
	require.Equal(c.t, len(c.pending) > 0, ok)
	if ok {
		require.Equal(c.t, c.pending[0].at, at)
	}
}

// The wheel agrees with a sorted slice: any mixture of posting, running for
// some events, running to some time and looking.
func TestEventsComeInTheOrderOfTheLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChecker(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				for range rapid.IntRange(1, 40).Draw(t, "posts") {
					c.post()
				}
			case 2:
				c.pops = rapid.IntRange(1, 20).Draw(t, "pops")
				require.NoError(t, c.eng.Run())
				c.check()
				// The engine may have stopped among events of one time: nothing is due
				// before it.
				now, pending := c.eng.Now(), len(c.pending)
				require.NoError(t, c.eng.RunUntil(now-1))
				require.Equal(t, []any{now, pending}, []any{c.eng.Now(), c.eng.Pending()})
			case 3:
				until := c.drawTime()
				c.pops = 0
				require.NoError(t, c.eng.RunUntil(until))
				require.Equal(t, until, c.eng.Now())
				require.True(t, len(c.pending) == 0 || c.pending[0].at > until)
			}
			c.check()
		}
		c.pops = 0
		require.NoError(t, c.eng.Run())
		require.Empty(t, c.pending)
		c.check()
	})
}

// crowd handles many events of one time. Some post more for that time, to
// destinations before and after the present one.
type crowd struct {
	eng   *Engine
	last  place
	seen  int
	extra int
	bad   int
}

func (c *crowd) Handle(e *Event) {
	c.seen++
	p := placeOf(e)
	if e.Kind == 0 {
		// Only an event posted since the last one may come before it.
		if c.last.at == p.at && comparePlaces(p, c.last) <= 0 {
			c.bad++
		}
		c.last = p
	}
	if e.Kind == 0 && c.seen%3 == 0 {
		c.extra++
		c.eng.Post(e.Time, ID(c.seen%1000), e.Dst, 1, 0, 0, nil)
	}
}

// A quarter of a million events at one time: quadratic work would take minutes.
func TestManyEventsAtOneTime(t *testing.T) {
	const n = 250_000
	c := &crowd{eng: New(0)}
	c.eng.AddGroup(1000, func(i int) string { return fmt.Sprint(i) }, c)
	for i := range n {
		c.eng.Post(Second, ID(i*7919%1000), ID(i*104729%1000), 0, 0, 0, nil)
	}
	require.NoError(t, c.eng.Run())
	require.Equal(t, n+c.extra, c.seen)
	require.Zero(t, c.bad)
	require.Equal(t, Second, c.eng.Now())
}

// Both ways of sorting a batch, around the size where they change.
func TestSortRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, radixFrom - 1, radixFrom, 3 * radixFrom}).Draw(t, "n")
		mask := rapid.SampledFrom([]uint64{0, 0xf0, 0xff00000001, 1<<63 - 1}).Draw(t, "mask")
		var ranks []rank
		for i := range n {
			ranks = append(ranks, rank{who: rapid.Uint64().Draw(t, "who") & mask, seq: uint64(i)})
		}
		want := slices.Clone(ranks)
		slices.SortFunc(want, compareRanks)
		got, _ := sortRanks(ranks, nil)
		require.Equal(t, want, got)
	})
}

func TestPostAndRunAllocateNothing(t *testing.T) {
	for _, inc := range increments {
		h := newHolder(inc.draw, 1000)
		run := func() {
			h.left = 5000
			require.NoError(t, h.eng.Run())
		}
		run()
		require.Zero(t, testing.AllocsPerRun(10, run), inc.name)
	}
}

func TestPostIntoThePastPanics(t *testing.T) {
	e := New(0)
	id := e.Add("Node[0]", nil)
	require.NoError(t, e.RunUntil(Nanosecond))
	require.PanicsWithValue(t, "sim: Node[0] posts to Node[0] for 999 ps, before the present time 1 ns",
		func() { e.Post(999, id, id, 0, 0, 0, nil) })
}

func TestNames(t *testing.T) {
	e := New(0)
	require.Equal(t, ID(0), e.Add("first", nil))
	group := e.AddGroup(3, func(i int) string { return fmt.Sprintf("S[%d]", i) }, nil)
	last := e.Add("last", nil)
	require.Equal(t, "first", e.Name(0))
	require.Equal(t, "S[0]", e.Name(group))
	require.Equal(t, "S[2]", e.Name(group+2))
	require.Equal(t, "last", e.Name(last))
	require.Equal(t, "actor 5 (not registered)", e.Name(5))
}

func TestRandStreamsAreApartAndRepeatable(t *testing.T) {
	draw := func(seed uint64, stream string, ids ...int) uint64 { return New(seed).Rand(stream, ids...).Uint64() }
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 2} {
		for _, stream := range []string{"", "a", "b", "ab"} {
			for _, ids := range [][]int{nil, {0}, {1}, {0, 1}, {1, 0}, {-1}} {
				name, x := fmt.Sprint(seed, stream, ids), draw(seed, stream, ids...)
				require.Equal(t, x, draw(seed, stream, ids...))
				require.Empty(t, seen[x], name)
				seen[x] = name
			}
		}
	}
}
