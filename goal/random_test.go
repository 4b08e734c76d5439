package goal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomSchedule returns a schedule of few operations on few ranks. A tame one can be completed unless a wildcard
// takes what another receive needs; in a wild one messages lack a receive, receives come in any order, and
// dependencies have cycles.
func randomSchedule(t testing.TB, rng *rand.Rand, tame bool) *Schedule {
	type rank struct{ ops []Op }
	ranks := make([]rank, 1+rng.IntN(5))
	cpus, nics, tags := 1+rng.IntN(3), 1+rng.IntN(3), 1+rng.IntN(3)
	if rng.IntN(2) == 0 {
		cpus = 1
	}
	sizes := []uint64{0, 1, 2, 8, 100, 99, 101, 102, 500}
	lane := func(op Op) Op {
		op.CPU, op.NIC = uint8(rng.IntN(cpus)), uint8(rng.IntN(nics))
		return op
	}
	tag := func() uint32 {
		if !tame && rng.IntN(10) == 0 {
			return Any
		}
		return uint32(rng.IntN(tags))
	}
	messages := rng.IntN(20)
	if rng.IntN(50) == 0 {
		messages *= 10 // long queues
	}
	for range messages {
		from, to := rng.IntN(len(ranks)), rng.IntN(len(ranks))
		size, tg := sizes[rng.IntN(len(sizes))], tag()
		send := lane(Op{Kind: Send, Size: size, Peer: uint32(to), Tag: tg})
		recv := lane(Op{Kind: Recv, Size: size, Peer: uint32(from), Tag: tg})
		if rng.IntN(5) == 0 {
			recv.Peer = Any
		}
		if rng.IntN(8) == 0 && tame {
			recv.Tag = Any
		} else if rng.IntN(8) == 0 && !tame {
			recv.Tag = tag()
		}
		if !tame && rng.IntN(10) == 0 {
			recv.Size = sizes[rng.IntN(len(sizes))]
		}
		ranks[from].ops = append(ranks[from].ops, send)
		if tame || rng.IntN(50) != 0 {
			ranks[to].ops = append(ranks[to].ops, recv)
		}
	}
	for range rng.IntN(8) {
		r := &ranks[rng.IntN(len(ranks))]
		r.ops = slices.Insert(r.ops, rng.IntN(len(r.ops)+1), lane(Op{Kind: Calc, Size: []uint64{0, 1, 5, 30, 400}[rng.IntN(5)]}))
	}
	b := NewBuilder()
	for r := range ranks {
		b.Rank(r)
		ops := ranks[r].ops
		if !tame && rng.IntN(2) == 0 {
			rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		}
		for _, op := range ops {
			b.Add(op)
		}
		if len(ops) < 2 {
			continue
		}
		for range rng.IntN(2 * len(ops)) {
			x, y := rng.IntN(len(ops)), rng.IntN(len(ops))
			if tame && x == y {
				continue
			}
			if x < y && (tame || rng.IntN(60) != 0) {
				x, y = y, x
			}
			b.depend(x, y, rng.IntN(3) == 0)
		}
	}
	s, err := b.Schedule()
	require.NoError(t, err)
	return s
}

// randomParams returns parameters that make events coincide often.
func randomParams(rng *rand.Rand) Params {
	pick := func(of ...int64) int64 { return of[rng.IntN(len(of))] }
	return Params{
		L: pick(0, 1, 10, 250), Overhead: pick(0, 1, 10, 150), Gap: pick(0, 1, 10, 100),
		ByteGap: pick(0, 0, 1, 6), ByteOverhead: pick(0, 0, 1, 7), Eager: uint64(pick(0, 100, 100, 1000)),
	}
}

// The simulator and the literal model must agree on every rank. Catches any shortcut of wait queues, event queue or
// release order that changes a result.
func TestAgreesWithLiteralModel(t *testing.T) {
	t.Parallel()
	const schedules = 25000
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
			m.scanLimit = 1 // so that short lists are indexed
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
