package gsas_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet/gsas"
	"github.com/spinsim/spinsim/sim"
)

// The latency of an operation in messages is the sum of its parts: library
// code, a packetizer message there (exanet/latency_test.go computes it),
// library code and the look-up of the allocation, an access to memory, and a
// message back.
func TestLatencyIsTheSumOfItsParts(t *testing.T) {
	const (
		code   = 376.167
		look   = 100.0
		memory = 100.0
		line   = 64 / 2.2
	)
	for _, o := range []struct {
		name        string
		there, back int // bytes of the messages
		do          func(m *gsas.Member, at gsas.Pointer) error
	}{
		{"fetch-and-add", 24, 24, func(m *gsas.Member, at gsas.Pointer) error { _, err := m.FetchAdd(at, 1); return err }},
		{"compare-and-swap", 32, 24, func(m *gsas.Member, at gsas.Pointer) error { _, err := m.CompareAndSwap(at, 5, 6); return err }},
		{"read 8", 24, 24, func(m *gsas.Member, at gsas.Pointer) error { return m.Read(at, m.Proc().Alloc(8)) }},
		{"write 8", 24, 16, func(m *gsas.Member, at gsas.Pointer) error { return m.Write(at, m.Proc().Alloc(8)) }},
	} {
		for node := range 2 {
			want := code + message(o.there, node) + code + look + memory + line + message(o.back, node)
			require.InDelta(t, want, took(t, node, o.do).Seconds()*1e9, 0.05, "%s on node %d", o.name, node)
		}
	}
}

// message returns the latency of a message of n bytes in ns, from its stores to
// the look that finds it. The receiver is a process of the same node, or of the
// next node of the board.
func message(n, node int) float64 {
	const (
		axi   = 19.2 / 8 // bytes per nanosecond
		cycle = 20.0 / 3
	)
	words := float64(max(16, (n+15)/16*16))
	crossing := (words+32)/axi + 2*6.667 + 2*cycle
	if node != 0 {
		crossing = (words+32)/2 + 2*6.667 + 106.667 + 4*cycle
	}
	return 120 + 4*cycle + crossing + 3*cycle + (16+words)/axi + 60 + 15.333
}

// took returns the duration of an operation that follows others, on memory of a
// node.
func took(t *testing.T, node int, do func(m *gsas.Member, at gsas.Pointer) error) (d sim.Time) {
	c := newCluster(t, "exanest-qfdb", 2, 1, gsas.Options{PDID: 7}, still...)
	c.member(0, func(m *gsas.Member) error {
		at, err := m.Alloc(node, 64)
		if err != nil {
			return err
		}
		if err := m.Store(at, 5); err != nil {
			return err
		}
		m.Proc().Sleep(10 * sim.Microsecond)
		begin := m.Proc().Now()
		err = do(m, at)
		d = m.Proc().Now() - begin
		return err
	})
	c.run()
	return d
}
