package mpi_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/typetest"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var typedPrograms = flag.Int("typed.programs", 25, "random programs with datatypes on each transport")

type carried struct {
	name  string
	world func(t require.TestingT, cleanup func(func()), ranks int, cfg runtime.Config, overrides ...string) *mpi.World
}

func carriers() []carried {
	list := []carried{
		{"exanet", func(t require.TestingT, cleanup func(func()), ranks int, cfg runtime.Config, overrides ...string) *mpi.World {
			return exanetWorld(t, cleanup, ranks, mpi.DefaultExaNetOptions(), cfg, append(overrides, allThere...)...)
		}},
		{"exanet/portals", func(t require.TestingT, cleanup func(func()), ranks int, cfg runtime.Config, overrides ...string) *mpi.World {
			return exanetWorld(t, cleanup, ranks, options(mpi.Offload), cfg, append(overrides, allThere...)...)
		}},
	}
	for _, form := range mpi.Forms() {
		list = append(list, carried{string(form), func(t require.TestingT, cleanup func(func()), ranks int, cfg runtime.Config, overrides ...string) *mpi.World {
			return makeWorld(t, cleanup, ranks, options(form), cfg, overrides...)
		}})
	}
	return append(list, carried{"infiniband", func(t require.TestingT, cleanup func(func()), ranks int, cfg runtime.Config, overrides ...string) *mpi.World {
		o := mpi.DefaultInfiniBandOptions()
		o.Eager = 1000
		return infiniBandWorld(t, cleanup, ranks, o, cfg, append(overrides, allThere...)...)
	}})
}

// side is the elements at one end of a message.
type side struct {
	kind      *datatype.Type
	count     int
	low, high int64
}

func (s *side) size() int { return int(s.kind.Size()) * s.count }

// typedMessage is a message of a random program: two types with equal numbers
// of bytes.
type typedMessage struct {
	source, target int
	from, to       side
	any, late      bool // any: from any source; late: posted long after the message came
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// drawTyped draws two types, with numbers of elements that make messages of the
// same length, up to 8,000 B. Few are empty or in one piece.
func drawTyped(rt *rapid.T, ranks int) typedMessage {
	simple := rapid.IntRange(0, 9).Draw(rt, "simple") == 9
	m := rapid.Custom(func(rt *rapid.T) (m typedMessage) {
		m.from.kind, m.to.kind = typetest.Draw(rt, 2), typetest.Draw(rt, 3)
		a, b := int(m.from.kind.Size()), int(m.to.kind.Size())
		g := max(1, divisor(a, b))
		times := rapid.IntRange(0, max(0, 8000*g/max(1, a*b))).Draw(rt, "times")
		m.from.count, m.to.count = times*b/g, times*a/g
		return m
	}).Filter(func(m typedMessage) bool {
		layout, err := m.to.kind.Layout(m.to.count)
		if err != nil || m.from.size() != m.to.size() {
			return false
		}
		if !simple && (layout.Root == nil || layout.Root.Kind == datatype.Leaf || layout.Root.Size < 100) {
			return false
		}
		overlaps, err := m.to.kind.Overlaps(m.to.count)
		return err == nil && !overlaps
	}).Draw(rt, "types")
	m.source, m.target = rapid.IntRange(0, ranks-1).Draw(rt, "source"), rapid.IntRange(0, ranks-1).Draw(rt, "target")
	for _, s := range []*side{&m.from, &m.to} {
		s.low, s.high = typetest.Reach(s.kind, s.count)
	}
	m.any, m.late = rapid.Bool().Draw(rt, "any"), rapid.IntRange(0, 2).Draw(rt, "late") == 0
	return m
}

// memory returns memory for a side of message i; fill makes its bytes.
func (s *side) memory(r *mpi.Rank, seed int) (mpi.Data, error) {
	v, err := message(r, int(s.high-s.low)+7, seed)
	return mpi.Data{Memory: v, At: int(-s.low) + 3, Count: s.count, Type: s.kind}, err
}

func (m *typedMessage) expected(t require.TestingT, i int) []byte {
	from, to := make([]byte, m.from.high-m.from.low+7), make([]byte, m.to.high-m.to.low+7)
	fill(from, mpi.Status{Source: i})
	fill(to, mpi.Status{Source: i + 1000})
	stream := make([]byte, m.from.size())
	require.NoError(t, m.from.kind.Pack(stream, from, int(-m.from.low)+3, m.from.count))
	require.NoError(t, m.to.kind.Unpack(to, int(-m.to.low)+3, stream, m.to.count))
	return to
}

// Random programs with random types, different ones at each end, on every
// transport. Every byte of every receive's memory, gaps included, follows MPI:
// for expected and unexpected messages, with wildcards, with memory that comes
// when it is touched, and with devices that cannot keep messages.
func TestTyped(t *testing.T) {
	for _, over := range carriers() {
		t.Run(over.name, func(t *testing.T) {
			byNIC := int64(0)
			random := rapid.Custom(func(rt *rapid.T) bool {
				byNIC += runTyped(t, rt, over)
				return true
			})
			for seed := range *typedPrograms {
				random.Example(seed)
			}
			require.Equal(t, over.name == "offload" || over.name == "exanet/portals", byNIC > 0, "%d messages were unpacked by NICs", byNIC)
		})
	}
}

func runTyped(t require.TestingT, rt *rapid.T, over carried) (byNIC int64) {
	const ranks = 3
	messages := make([]typedMessage, rapid.IntRange(1, 8).Draw(rt, "messages"))
	for i := range messages {
		messages[i] = drawTyped(rt, ranks)
	}
	var ends []func()
	headers := rapid.SampledFrom([]int{1, 65536}).Draw(rt, "unexpected headers")
	w := over.world(t, func(f func()) { ends = append(ends, f) }, ranks, runtime.Config{Pages: drawPaging(rt)}, fmt.Sprintf("limits.max_unexpected_headers=%d", headers))
	for me := range ranks {
		require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error { return typedRank(t, r, messages) }))
	}
	require.NoError(t, w.Run(context.Background()))
	s := w.Stats()
	require.EqualValues(t, len(messages), s.Received)
	for _, f := range ends {
		f()
	}
	return s.UnpackedByNIC
}

// typedRank posts the early receives, sends, waits, and then posts the late
// receives.
func typedRank(t require.TestingT, r *mpi.Rank, messages []typedMessage) error {
	into := make([]mpi.Data, len(messages))
	requests := make([]*mpi.Request, len(messages))
	for _, late := range []bool{false, true} {
		if err := startTyped(r, messages, late, into, requests); err != nil {
			return err
		}
		r.Compute(100 * sim.Microsecond)
		if q, err := r.Test(); err != nil {
			return err
		} else if q != nil && !q.Receives() {
			r.Free(q)
		}
	}
	for i, q := range requests {
		if q == nil {
			continue
		}
		s, err := r.Wait(q)
		if err != nil {
			return err
		}
		m := &messages[i]
		require.Equal(t, mpi.Status{Source: m.source, Tag: uint32(i), Bytes: m.to.size(), Sequence: s.Sequence}, s)
		if m.to.size() > 0 {
			require.Equal(t, m.to.count, s.Count(m.to.kind))
		}
		if want := m.expected(t, i); !bytes.Equal(want, into[i].Memory.Read()) {
			return fmt.Errorf("message %d of %d B: memory is not what it must be", i, m.to.size())
		}
	}
	for r.Active() > 0 {
		if _, err := r.Next(); err != nil {
			return err
		}
	}
	return nil
}

// startTyped posts the early receives and sends, or posts the late receives.
func startTyped(r *mpi.Rank, messages []typedMessage, late bool, into []mpi.Data, requests []*mpi.Request) (err error) {
	c := r.World()
	for i := range messages {
		m := &messages[i]
		if m.target == r.Rank() && m.late == late {
			if into[i], err = m.to.memory(r, i+1000); err != nil {
				return err
			}
			source := m.source
			if m.any {
				source = mpi.AnySource
			}
			if requests[i], err = c.Start(mpi.Recv{Data: into[i], From: source, Tag: uint32(i)}); err != nil {
				return fmt.Errorf("receive %d: %w", i, err)
			}
		}
		if m.source == r.Rank() && !late {
			from, err := m.from.memory(r, i)
			if err != nil {
				return err
			}
			if _, err := c.Start(mpi.Send{Data: from, To: m.target, Tag: uint32(i)}); err != nil {
				return fmt.Errorf("send %d: %w", i, err)
			}
		}
	}
	return nil
}
