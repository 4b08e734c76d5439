package goal

import (
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

var randomSchedules = flag.Int("model.schedules", 5000, "random schedules of TestAgreesWithLiteralModel; the promise is 25,000")

// randomizer makes schedules of few operations on few ranks. A tame one can
// finish, unless a wildcard takes the message that another receive needs. In a
// wild one messages lack a receive, receives come in any order, and
// dependencies have cycles.
type randomizer struct {
	*rand.Rand
	tame             bool
	cpus, nics, tags int
	ranks            [][]Op
}

func randomSchedule(t testing.TB, rng *rand.Rand, tame bool) *Schedule {
	g := &randomizer{Rand: rng, tame: tame, ranks: make([][]Op, 1+rng.IntN(5))}
	g.cpus, g.nics, g.tags = 1+rng.IntN(3), 1+rng.IntN(3), 1+rng.IntN(3)
	if rng.IntN(2) == 0 {
		g.cpus = 1
	}
	messages := rng.IntN(20)
	if rng.IntN(50) == 0 {
		messages *= 10 // long queues
	}
	for range messages {
		g.message()
	}
	for range rng.IntN(8) {
		r := rng.IntN(len(g.ranks))
		calc := g.lane(Op{Kind: Calc, Size: []uint64{0, 1, 5, 30, 400}[rng.IntN(5)]})
		g.ranks[r] = slices.Insert(g.ranks[r], rng.IntN(len(g.ranks[r])+1), calc)
	}
	b := NewBuilder()
	for r, ops := range g.ranks {
		b.Rank(r)
		if !tame && rng.IntN(2) == 0 {
			rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		}
		for _, op := range ops {
			g.collective(b)
			b.Add(op)
		}
		g.dependencies(b, len(ops))
	}
	s, err := b.Schedule()
	require.NoError(t, err)
	return s
}

// collective sometimes begins or ends operations of one of a few collectives.
func (g *randomizer) collective(b *Builder) {
	switch g.IntN(8) {
	case 0:
		b.End()
	case 1:
		kind := g.IntN(len(CollectiveKinds()))
		b.Begin(Collective{Name: "c" + strconv.Itoa(kind), Kind: CollectiveKinds()[kind], Bytes: uint64(kind)})
	}
}

func (g *randomizer) lane(op Op) Op {
	op.CPU, op.NIC = uint8(g.IntN(g.cpus)), uint8(g.IntN(g.nics))
	return op
}

func (g *randomizer) tag() uint64 {
	if !g.tame && g.IntN(10) == 0 {
		return AnyTag
	}
	return uint64(g.IntN(g.tags))
}

// message adds a send and usually its receive.
func (g *randomizer) message() {
	sizes := []uint64{0, 1, 2, 8, 100, 99, 101, 102, 500}
	from, to := g.IntN(len(g.ranks)), g.IntN(len(g.ranks))
	size, tag := sizes[g.IntN(len(sizes))], g.tag()
	send := g.lane(Op{Kind: Send, Size: size, Peer: uint32(to), Tag: tag})
	recv := g.lane(Op{Kind: Recv, Size: size, Peer: uint32(from), Tag: tag})
	if g.IntN(5) == 0 {
		recv.Peer = Any
	}
	if g.IntN(8) == 0 {
		recv.Tag = AnyTag
		if !g.tame {
			recv.Tag = g.tag()
		}
	}
	if !g.tame && g.IntN(10) == 0 {
		recv.Size = sizes[g.IntN(len(sizes))]
	}
	g.ranks[from] = append(g.ranks[from], send)
	if g.tame || g.IntN(50) != 0 {
		g.ranks[to] = append(g.ranks[to], recv)
	}
}

// dependencies adds dependencies to a rank of n operations.
func (g *randomizer) dependencies(b *Builder, n int) {
	if n < 2 {
		return
	}
	for range g.IntN(2 * n) {
		x, y := g.IntN(n), g.IntN(n)
		if g.tame && x == y {
			continue
		}
		if x < y && (g.tame || g.IntN(60) != 0) {
			x, y = y, x
		}
		b.depend(x, y, g.IntN(3) == 0)
	}
}

// randomParams returns parameters that often make events coincide.
func randomParams(rng *rand.Rand) Params {
	pick := func(of ...int64) int64 { return of[rng.IntN(len(of))] }
	perByte := func(of ...string) ByteTime {
		v, err := ParseByteTime(of[rng.IntN(len(of))])
		if err != nil {
			panic(err) //lint:panic a mistake in the list
		}
		return v
	}
	return Params{
		L: pick(0, 1, 10, 250), Overhead: pick(0, 1, 10, 150), Gap: pick(0, 1, 10, 100),
		ByteGap: perByte("0", "0.04", "1", "6", "1.5"), ByteOverhead: perByte("0", "0", "0.18", "7"), Eager: uint64(pick(0, 100, 100, 1000)),
	}
}

// The simulator and the literal model must agree on every rank. This catches
// any shortcut of wait queues, event queue or release order that changes a
// result.
func TestAgreesWithLiteralModel(t *testing.T) {
	t.Parallel()
	schedules := *randomSchedules
	complete, cpus := 0, 0
	for seed := range uint64(schedules) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := randomSchedule(t, rng, seed%4 != 0)
		p := randomParams(rng)
		var options []Option
		noise := func(_ int, t, work int64) int64 { return t + work }
		if seed%10 == 0 {
			detours := []Detour{{3, 2}, {11, 0}, {40, 30}, {150, 7}}
			trace, err := NewNoiseTrace(detours)
			require.NoError(t, err)
			n := trace.Noise(s.Ranks(), seed, false)
			options = append(options, WithNoise(n))
			noise = func(r int, t, work int64) int64 {
				return walk(detours, trace.Period(), t+n.offset[r], work) - n.offset[r]
			}
		}
		want, done := runModel(s, p, noise)
		m := NewSimulator(s)
		if seed%3 == 0 {
			m.match.scanLimit = 1 // so that short lists get an index
		}
		if seed%5 == 0 {
			_, err := m.Run(randomParams(rng)) // must leave nothing behind
			var e *UnfinishedError
			require.True(t, err == nil || errors.As(err, &e))
		}
		got, err := m.Run(p, options...)
		require.Equal(t, want, got.FinishNS, "seed %d, params %+v", seed, p)
		require.Equal(t, done, err == nil, "seed %d: %v", seed, err)
		if done {
			complete++
		}
		if s.MaxCPU() > 0 {
			cpus++
		}
	}
	require.Greater(t, complete, schedules/2, "most random schedules should complete")
	require.Greater(t, cpus, schedules/8)
	t.Logf("%d of %d complete, %d with several processors", complete, schedules, cpus)
}
