package memcached_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/sim"
)

// Chunks have the sizes that memcached 1.6.18 prints with -vv. One more size is
// for items beyond half a slab.
func TestClasses(t *testing.T) {
	require.Equal(t, []int{
		96, 120, 152, 192, 240, 304, 384, 480, 600, 752, 944, 1184, 1480, 1856, 2320, 2904, 3632, 4544, 5680, 7104, 8880, 11104, 13880, 17352, 21696, 27120, 33904, 42384, 52984, 66232,
		82792, 103496, 129376, 161720, 202152, 252696, 315872, 394840, 524288, 1 << 20,
	}, newStore(t, memcached.Config{}).ClassSizes())
	few := newStore(t, memcached.Config{Factor: 1.08, Chunk: 20}).ClassSizes() // -f 1.08 -n 20
	require.Equal(t, []int{9376, 10128, 10944, 1 << 19, 1 << 20}, few[len(few)-5:])
}

// An invalid configuration gives an error that explains it.
func TestConfig(t *testing.T) {
	for want, c := range map[string]memcached.Config{
		"limit of 100 bytes, expected 1048576 to 274876858368": {Limit: 100},
		"factor 1, expected more than 1, at most 100":          {Factor: 1},
		"chunk of 2048 bytes, expected 1 to 1,024":             {Chunk: 2048},
		"hash power 40, expected 12 to 32":                     {HashPower: 40},
	} {
		_, err := memcached.NewStore(new(memcached.Flat), c)
		require.ErrorContains(t, err, want)
	}
}

// model is a simple model of a server: a list for each class, the most recently
// used item first.
type model struct {
	sizes   []int
	limit   int
	slabs   []int
	classes [][]entry
	evicted int64
}

type entry struct{ key, value string }

func (m *model) class(n int) int {
	return slices.IndexFunc(m.sizes, func(size int) bool { return size >= n })
}

func (m *model) find(key string) (class, at int) {
	for c := range m.classes {
		if i := slices.IndexFunc(m.classes[c], func(e entry) bool { return e.key == key }); i >= 0 {
			return c, i
		}
	}
	return -1, -1
}

func (m *model) get(key string) (string, bool) {
	c, i := m.find(key)
	if c < 0 {
		return "", false
	}
	e := m.classes[c][i]
	m.classes[c] = slices.Insert(slices.Delete(m.classes[c], i, i+1), 0, e)
	return e.value, true
}

func (m *model) remove(key string) bool {
	c, i := m.find(key)
	if c >= 0 {
		m.classes[c] = slices.Delete(m.classes[c], i, i+1)
	}
	return c >= 0
}

// set takes room for the new item before it frees the old one, as memcached
// does.
func (m *model) set(key, value string) {
	c := m.class(48 + 8 + len(key) + 1 + len(value) + 2)
	if each := (1 << 20) / m.sizes[c]; len(m.classes[c]) == m.slabs[c]*each {
		total := 0
		for _, n := range m.slabs {
			total += n
		}
		if m.slabs[c] == 0 || total < m.limit {
			m.slabs[c]++
		} else {
			m.classes[c] = m.classes[c][:len(m.classes[c])-1]
			m.evicted++
		}
	}
	m.remove(key)
	m.classes[c] = slices.Insert(m.classes[c], 0, entry{key, value})
}

// Some hundred operations on a few slabs keep and evict the same items as the
// model, and no two items overlap.
func TestLikeTheModel(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		limit := 1 + rng.IntN(4)
		s := newStore(t, memcached.Config{Limit: int64(limit) << 20, Bump: -1})
		x := memcached.NewSession(s)
		m := &model{sizes: s.ClassSizes(), limit: limit}
		m.slabs, m.classes = make([]int, len(m.sizes)), make([][]entry, len(m.sizes))
		ask := func(send string) string {
			x.Feed([]byte(send))
			for x.Step(0) {
			}
			b := string(x.Output())
			x.Sent(len(b))
			return b
		}
		for i := range 400 {
			key := fmt.Sprint("key", rng.IntN(60))
			switch rng.IntN(10) {
			case 0:
				want := "NOT_FOUND\r\n"
				if m.remove(key) {
					want = "DELETED\r\n"
				}
				require.Equal(t, want, ask("delete "+key+"\r\n"))
			case 1, 2, 3, 4:
				value := string(bytes.Repeat([]byte{byte('a' + i%26)}, []int{1 + rng.IntN(40), 100_000 + rng.IntN(80_000), 400_000 + rng.IntN(500_000)}[rng.IntN(3)]))
				m.set(key, value)
				require.Equal(t, "STORED\r\n", ask(fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value)))
			default:
				want := "END\r\n"
				if value, ok := m.get(key); ok {
					want = fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value)
				}
				if got := ask("get " + key + "\r\n"); got != want { // values are long
					t.Fatalf("seed %d, operation %d: get %s: %d bytes, expected %d", seed, i, key, len(got), len(want))
				}
			}
		}
		require.Equal(t, m.evicted, s.Stats.Evictions, "seed %d", seed)
		require.Positive(t, s.Stats.Evictions+int64(limit-1), "seed %d: nothing was evicted", seed)
		apart(t, s, m)
	}
}

// apart fails if items of the model overlap.
func apart(t *testing.T, s *memcached.Store, m *model) {
	type span struct {
		from uint64
		n    int
	}
	var all []span
	for _, c := range m.classes {
		for _, e := range c {
			addr, n, ok := s.Span([]byte(e.key))
			require.True(t, ok)
			all = append(all, span{addr, n})
		}
	}
	require.Equal(t, s.Stats.Items, int64(len(all)))
	slices.SortFunc(all, func(a, b span) int { return int(a.from) - int(b.from) })
	for i := 1; i < len(all); i++ {
		require.LessOrEqual(t, all[i-1].from+uint64(all[i-1].n), all[i].from)
	}
}

// A used item moves to the head of its LRU once a minute
// (ITEM_UPDATE_INTERVAL). Further reads within the minute do not save it from
// eviction.
func TestBump(t *testing.T) {
	value := make([]byte, 500_000)
	read := func(after sim.Time) bool {
		s := newStore(t, memcached.Config{Limit: 1 << 20}) // two items
		x := memcached.NewSession(s)
		require.True(t, s.Set([]byte("a"), value))
		require.True(t, s.Set([]byte("b"), value))
		x.Feed([]byte("get a\r\n"))
		require.True(t, x.Step(after))
		require.True(t, s.Set([]byte("c"), value))
		_, _, kept := s.Span([]byte("a"))
		_, _, other := s.Span([]byte("b"))
		require.NotEqual(t, kept, other)
		return kept
	}
	require.False(t, read(60*sim.Second))
	require.True(t, read(61*sim.Second))
}

// A value that repeats one word is kept as the word, any other value as it is.
func TestValues(t *testing.T) {
	s := newStore(t, memcached.Config{})
	x := memcached.NewSession(s)
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 100 {
		value := make([]byte, n)
		for i := range value {
			value[i] = byte(rng.Uint32())
			if n%2 == 0 && i >= 8 {
				value[i] = value[i-8]
			}
		}
		require.True(t, s.Set([]byte("k"), value))
		require.Equal(t, n%2 == 1 || n < 8 && n > 0, s.Kept() == 1, n)
		x.Feed([]byte("get k\r\n"))
		require.True(t, x.Step(0))
		require.Equal(t, fmt.Sprintf("VALUE k 0 %d\r\n%s\r\nEND\r\n", n, value), string(x.Output()))
		x.Sent(len(x.Output()))
	}
}

// Reads and overwriting stores allocate nothing.
func TestAllocations(t *testing.T) {
	s := newStore(t, memcached.Config{})
	x := memcached.NewSession(s)
	set := []byte("set kkkkkkkkkkkkkkkk 0 0 1024\r\n" + string(bytes.Repeat([]byte("word8888"), 128)) + "\r\n")
	get := []byte("get kkkkkkkkkkkkkkkk none\r\n")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		x.Feed(set)
		x.Feed(get)
		for x.Step(0) {
		}
		x.Sent(len(x.Output()))
	}))
}

// A line may ask for the same large value many times. It gets an error before
// its answers use up the memory of the simulating computer.
func TestOneLineAsksForTooMuch(t *testing.T) {
	x := memcached.NewSession(newStore(t, memcached.Config{Limit: 4 << 20}))
	ask := func(line string) string {
		x.Feed([]byte(line + "\r\n"))
		for x.Step(0) {
		}
		answer := string(x.Output())
		x.Sent(len(answer))
		return answer
	}
	const n = 1 << 19
	require.Equal(t, "STORED\r\n", ask("set k 0 0 524288\r\n"+strings.Repeat("v", n)))
	require.Greater(t, len(ask("get"+strings.Repeat(" k", 100))), 100*n)
	for _, verb := range []string{"get", "gats 0"} {
		require.Equal(t, "SERVER_ERROR out of memory writing get response\r\n", ask(verb+strings.Repeat(" k", 900)), verb)
	}
	require.Equal(t, "END\r\n", ask("get nothing"), "and goes on")
}
