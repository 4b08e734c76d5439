package gsas_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/exanet/gsas"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	histories   = flag.Int("linearizable.histories", 2000, "histories of TestLinearizable")
	historySeed = flag.Uint64("linearizable.seed", 1, "seed of the first system of TestLinearizable")
)

// A history is what processes do to one allocation at the same time, and what
// they observe. regionBytes is the size of the allocation, several cells. Reads
// and writes of a small part go in messages, of most of it by RDMA. Both
// overlap with words.
const (
	regionBytes    = 640
	regionsOfRound = 2
	roundsOfSystem = 25
)

// call is an operation of a history.
type call struct {
	kind    int // one of those below
	at, n   int // in bytes, of a read or write
	operand uint64
	expect  uint64 // of a compare-and-swap
	bytes   string // of a write
}

const (
	callRead = iota
	callWrite
	callAdd
	callSwap
	callCompare
	callXor
	callMax
	calls
)

// memory is the sequential model that every history must fit.
var memory = porcupine.Model{
	Init: func() any { return string(make([]byte, regionBytes)) },
	Step: func(state, input, output any) (bool, any) {
		s, c := state.(string), input.(call)
		if c.kind == callRead {
			return s[c.at:c.at+c.n] == output.(string), s
		}
		if c.kind == callWrite {
			return true, s[:c.at] + c.bytes + s[c.at+c.n:]
		}
		b := []byte(s)
		old := binary.LittleEndian.Uint64(b[c.at:])
		v := old
		switch c.kind {
		case callAdd:
			v += c.operand
		case callSwap:
			v = c.operand
		case callCompare:
			if old == c.expect {
				v = c.operand
			}
		case callXor:
			v ^= c.operand
		case callMax:
			v = uint64(max(int64(v), int64(c.operand)))
		}
		binary.LittleEndian.PutUint64(b[c.at:], v)
		return output.(uint64) == old, string(b)
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %x", input, output) },
}

// recorded is a system whose members record their operations.
type recorded struct {
	*cluster
	rng     *rand.Rand
	members int
	ops     int
	barrier gsas.Pointer
	regions [regionsOfRound]gsas.Pointer
	log     [roundsOfSystem][regionsOfRound][]porcupine.Operation
	of      []*gsas.Member
}

// newRecorded draws a random system: nodes, homes, members, and the faults of
// the network.
func newRecorded(t *testing.T, seed uint64) *recorded {
	rng := rand.New(rand.NewPCG(seed, 12))
	nodes := 1 + rng.IntN(3)
	chance := []float64{0, 0, 0.02, 0.1}[rng.IntN(4)]
	set := append([]string{
		fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: %dns}", chance, chance/2, chance, chance, 1+rng.IntN(100000)),
	}, still...)
	state := map[string]any{"timeout": 20000, "retries": 200, "sequence": uint64([]uint32{0, 1<<32 - 3}[rng.IntN(2)])}
	depth := []int{1, 2, 256}[rng.IntN(3)]
	o := gsas.Options{
		PDID: 3, Heap: 16 << 10, Home: exanet.Options{Depth: depth, State: state}, Member: exanet.Options{State: state},
		Channels: rdma.Options{State: map[string]any{"timeout": 30000}},
	}
	return &recorded{cluster: newCluster(t, "exanest", nodes, seed, o, set...), rng: rng, members: 2 + rng.IntN(4), ops: 3 + rng.IntN(3)}
}

// play lets the members do random operations at the same time, in rounds.
func (r *recorded) play(nodes int) {
	for i := range r.members {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), uint64(i)))
		r.member(i%nodes, func(m *gsas.Member) (err error) {
			r.of = append(r.of, m)
			if i == 0 {
				if r.barrier, err = m.NewBarrier(nodes-1, r.members); err != nil {
					return err
				}
			} else {
				m.Proc().SleepUntil(100 * sim.Millisecond) // the allocation is there by then
			}
			for round := range roundsOfSystem {
				if err := r.round(m, rng, i, round); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			return nil
		})
	}
	r.run()
}

func (r *recorded) round(m *gsas.Member, rng *rand.Rand, me, round int) (err error) {
	if me == 0 {
		for i := range r.regions {
			if r.regions[i], err = m.Alloc(rng.IntN(r.Nodes()), regionBytes); err != nil {
				return err
			}
		}
	}
	if err := m.Barrier(r.barrier); err != nil {
		return err
	}
	buffer := m.Proc().Alloc(regionBytes)
	for range r.ops {
		region := rng.IntN(regionsOfRound)
		c := randomCall(rng)
		begin := m.Proc().Now()
		output, err := do(m, r.regions[region], c, buffer)
		if err != nil {
			return err
		}
		r.log[round][region] = append(r.log[round][region], porcupine.Operation{
			ClientId: me, Input: c, Output: output, Call: int64(2 * begin), Return: int64(2*m.Proc().Now() + 1),
		})
		if rng.IntN(3) == 0 {
			m.Proc().Compute(sim.Time(rng.IntN(4000)) * sim.Nanosecond)
		}
	}
	if err := m.Barrier(r.barrier); err != nil || me != 0 {
		return err
	}
	for i := range r.regions {
		if err := m.Free(r.regions[i]); err != nil {
			return err
		}
	}
	return nil
}

func randomCall(rng *rand.Rand) call {
	// few words, so that members compete for them, in several cells
	word := []int{0, 8, 320, 632}[rng.IntN(4)]
	values := []uint64{0, 1, 2, 3, ^uint64(0)}
	c := call{kind: rng.IntN(calls), at: word, n: 8, operand: values[rng.IntN(5)], expect: values[rng.IntN(5)]}
	if c.kind > callWrite {
		return c
	}
	switch rng.IntN(3) {
	case 0: // in a message
		c.n = 1 + rng.IntN(gsas.Inline)
		c.at = min(max(0, word-rng.IntN(16)), regionBytes-c.n)
	case 1: // by RDMA
		c.n = gsas.Inline + 1 + rng.IntN(regionBytes-gsas.Inline)
		c.at = rng.IntN(regionBytes - c.n + 1)
	}
	if c.kind == callWrite {
		b := make([]byte, c.n)
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		c.bytes = string(b)
	}
	return c
}

// do executes a call and returns what it saw, nil for a write.
func do(m *gsas.Member, region gsas.Pointer, c call, buffer runtime.View) (any, error) {
	at, part := region.Plus(int64(c.at)), buffer.Slice(0, c.n)
	switch c.kind {
	case callRead:
		err := m.Read(at, part)
		return string(part.Read()), err
	case callWrite:
		part.CopyFrom([]byte(c.bytes))
		return nil, m.Write(at, part)
	case callAdd:
		return word(m.FetchAdd(at, c.operand))
	case callSwap:
		return word(m.Swap(at, c.operand))
	case callCompare:
		return word(m.CompareAndSwap(at, c.expect, c.operand))
	case callXor:
		return word(m.FetchXor(at, c.operand))
	}
	v, err := m.FetchMax(at, int64(c.operand))
	return uint64(v), err
}

func word(v uint64, err error) (any, error) { return v, err }

// check looks for a sequential order of each history, and returns the first
// history without one.
func (r *recorded) check() (n int, wrong string) {
	for round := range r.log {
		for region, history := range r.log[round] {
			n++
			if result, _ := porcupine.CheckOperationsVerbose(memory, history, time.Minute); result != porcupine.Ok && wrong == "" {
				wrong = fmt.Sprintf("%s: round %d, allocation %d: %+v", result, round, region, history)
			}
		}
	}
	return n, wrong
}

// Whatever processes do at the same time, and whatever the network does to
// their messages, the result is as if each operation had happened as a whole,
// one after the other, each between its call and its return.
func TestLinearizable(t *testing.T) {
	var large, held, full, again, twice, damaged uint64
	for n, seed := 0, *historySeed; n < *histories; seed++ {
		r := newRecorded(t, seed)
		r.play(r.Nodes())
		done, wrong := r.check()
		require.Empty(t, wrong, "seed %d", seed)
		n += done
		for node := range r.Nodes() {
			c := r.space.Counts(node)
			require.Zero(t, c.Lost+c.Strange+c.Foreign+c.Refused, "seed %d", seed)
			large, held = large+c.Large, held+c.Held
		}
		for _, m := range r.of {
			c := m.Counts()
			full, again, twice, damaged = full+c.Sent.Relaunched, again+c.Sent.Retransmitted, twice+c.Received.Duplicates, damaged+c.Received.Damaged
			require.Zero(t, m.Outdated(), "seed %d", seed)
		}
	}
	for i, n := range []uint64{large, held, full, again, twice, damaged} {
		require.Positive(t, n, "the test meets everything: %d", i)
	}
}

// The test above detects a home that does not hold requests back for large ones
// under way. It also detects one wrong value.
func TestLinearizableFinds(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		r := newRecorded(t, 1000+seed)
		r.space.Unhold()
		r.play(r.Nodes())
		if _, wrong := r.check(); wrong != "" {
			found++
		}
	}
	require.Positive(t, found)
	r := newRecorded(t, 1)
	r.play(r.Nodes())
	for round := range r.log {
		for i := range r.log[round][0] {
			if v, is := r.log[round][0][i].Output.(uint64); is {
				r.log[round][0][i].Output = v + 77
				_, wrong := r.check()
				require.NotEmpty(t, wrong)
				return
			}
		}
	}
}
