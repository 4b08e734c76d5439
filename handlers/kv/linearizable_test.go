package kv

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	histories   = flag.Int("linearizable.histories", 400, "histories of TestLinearizable")
	historySeed = flag.Uint64("linearizable.seed", 1, "seed of the first system of TestLinearizable")
)

// A history is what clients do with one key at the same time, and what they see.
const (
	keysOfRound    = 2
	roundsOfSystem = 20
)

// call is an operation of a history.
type call struct {
	op    uint32
	value string
	// expect is the version of a swap: one that its client has seen.
	expect uint64
}

// seen is what came of it.
type seen struct {
	there   bool
	changed bool
	value   string
	version uint64
}

// single is a key of the sequential store that every history must be one of.
// Versions of a key grow.
type single struct {
	there   bool
	value   string
	version uint64 // the last that was given
}

var oneKey = porcupine.Model{
	Init: func() any { return single{} },
	Step: func(state, input, output any) (bool, any) {
		s, c, saw := state.(single), input.(call), output.(seen)
		now := uint64(0)
		if s.there {
			now = s.version
		}
		switch c.op {
		case Get:
			return saw.there == s.there && (!s.there || saw.value == s.value && saw.version == now), s
		case Delete:
			return saw.there == s.there && (!s.there || saw.version == now), single{version: s.version}
		case Swap:
			if c.expect != now {
				return saw.changed && saw.version == now, s
			}
		}
		return !saw.changed && saw.version > s.version, single{true, c.value, saw.version}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// system is a store whose clients write down what they do.
type system struct {
	*shop
	rng     *rand.Rand
	clients int
	ops     int
	longest int
	values  int
	log     [roundsOfSystem][keysOfRound][]porcupine.Operation
	again   uint64
}

// newSystem draws one: few stripes, short walks, little room at the host and in
// stacks, and what the network does to packets.
func newSystem(t *testing.T, seed uint64, mode Mode) *system {
	rng := rand.New(rand.NewPCG(seed, 31))
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	chance := []float64{0, 0, 0.01, 0.05}[rng.IntN(4)]
	set := []string{"transport.kind=reliable", fmt.Sprintf("hpu.cores=%d", pick(1, 2, 4)), fmt.Sprintf("hpu.contexts=%d", pick(1, 2, 4))}
	if chance > 0 {
		set = append(set, fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: %dns}", chance, chance/2, chance, chance, 1+rng.IntN(20000)),
			"transport.retries=1000", "transport.timeout=20us")
	}
	o := Options{
		Mode: mode, Memory: 4 << 20, Stripes: pick(1, 1, 2, 8), Buckets: pick(1, 1, 2, 4), Steps: pick(1, 2, 8), Load: pick(1, 2, 100), Limit: pick(1, 2, 64), Depth: pick(4, 8, 64),
		Slots: pick(1, 2, 64), MaxValue: 20000, Clients: 16,
	}
	device := []string{"spin-int", "spin-dis"}[rng.IntN(2)]
	nodes := 1 + rng.IntN(4)
	return &system{
		shop: open(t, device, nodes, seed, o, set...), rng: rng, clients: 2 + rng.IntN(5), ops: 2 + rng.IntN(4),
		longest: pick(8, 200, 300, 5000), values: pick(0, 8, 300, 10000),
	}
}

func (s *system) play(nodes int) {
	var keys [roundsOfSystem][keysOfRound][]byte
	for round := range keys {
		for i := range keys[round] {
			keys[round][i] = fmt.Appendf(bytes.Repeat([]byte{'k'}, s.rng.IntN(s.longest)), "%d/%d", round, i)
		}
	}
	for i := range s.clients {
		rng := rand.New(rand.NewPCG(s.rng.Uint64(), uint64(i)))
		s.client(i%nodes, func(p *runtime.Proc, c *Client) error {
			for round := range roundsOfSystem {
				p.SleepUntil(max(p.Now(), sim.Time(round)*100*sim.Microsecond))
				var versions [keysOfRound]uint64
				for range s.ops {
					k := rng.IntN(keysOfRound)
					begin := p.Now()
					input := call{op: []uint32{Get, Put, Delete, Swap}[rng.IntN(4)], expect: versions[k]}
					if input.op == Put || input.op == Swap {
						input.value = fmt.Sprint(i, begin) + string(bytes.Repeat([]byte{byte(i)}, rng.IntN(s.values+1)))
					}
					output, err := do(c, keys[round][k], input)
					if err != nil {
						return fmt.Errorf("client %d, round %d: %w", i, round, err)
					}
					versions[k] = output.version
					s.log[round][k] = append(s.log[round][k], porcupine.Operation{
						ClientId: i, Input: input, Output: output, Call: int64(2 * begin), Return: int64(2*p.Now() + 1),
					})
				}
			}
			s.again += c.Again()
			return nil
		})
	}
	s.run()
}

// do carries a call out and returns what it saw.
func do(c *Client, key []byte, in call) (out seen, err error) {
	var value []byte
	switch in.op {
	case Get:
		value, out.version, err = c.Get(key)
		out.value = string(value)
	case Put:
		out.version, err = c.Put(key, []byte(in.value))
	case Delete:
		out.version, err = c.Delete(key)
	case Swap:
		out.version, err = c.Swap(key, in.expect, []byte(in.value))
		if changed := (*ChangedError)(nil); errors.As(err, &changed) {
			return seen{changed: true, version: changed.Version}, nil
		}
	}
	out.there = err == nil
	if errors.Is(err, ErrNotFound) {
		return seen{}, nil
	}
	return out, err
}

// check looks for a sequential order of each history, and returns the first that has none.
func (s *system) check() (n int, wrong string) {
	for round := range s.log {
		for key, history := range s.log[round] {
			n++
			if result, _ := porcupine.CheckOperationsVerbose(oneKey, history, time.Minute); result != porcupine.Ok && wrong == "" {
				wrong = fmt.Sprintf("%s: round %d, key %d: %+v", result, round, key, history)
			}
		}
	}
	return n, wrong
}

// The baselines are linearizable as well: one core that serves everything, and
// clients that read its memory while it changes.
func TestBaselinesAreLinearizable(t *testing.T) {
	for _, mode := range []Mode{Host, OneSided} {
		again, grown := uint64(0), uint64(0)
		for n, seed := 0, *historySeed; n < *histories/4; seed++ {
			s := newSystem(t, seed, mode)
			s.play(s.c.Nodes())
			checked, wrong := s.check()
			require.Empty(t, wrong, "%v: system %d", mode, seed)
			n += checked
			again += s.again
			grown += s.server.Stats().Grown
			s.close()
		}
		require.Equal(t, mode == OneSided, again > 0)
		require.NotZero(t, grown)
	}
}

// Whatever clients do with a key at the same time, and whatever happens to
// their messages, it is as if they had done it one after the other, each thing
// within its time: while handlers on several HPUs and the host serve them, and
// while the table grows.
func TestLinearizable(t *testing.T) {
	var all Counts
	var host Stats
	var again uint64
	for n, seed := 0, *historySeed; n < *histories; seed++ {
		s := newSystem(t, seed, Handlers)
		s.play(s.c.Nodes())
		checked, wrong := s.check()
		require.Empty(t, wrong, "system %d", seed)
		n += checked
		counts := s.server.Counts()
		all.Served += counts.Served
		all.Handed += counts.Handed
		all.Far += counts.Far
		all.Keys += counts.Keys
		all.Conflicts += counts.Conflicts
		all.Refilled += counts.Refilled
		all.Grown += counts.Grown
		require.Zero(t, counts.Illegal)
		host.Grown += s.server.Stats().Grown
		again += s.again
		s.close()
	}
	t.Logf("%+v %+v %d", all, host, again)
	for name, n := range map[string]uint64{
		"served": all.Served, "handed": all.Handed, "far": all.Far, "keys": all.Keys, "conflicts": all.Conflicts, "refilled": all.Refilled, "grown": all.Grown, "again": again,
	} {
		require.NotZero(t, n, name)
	}
}
