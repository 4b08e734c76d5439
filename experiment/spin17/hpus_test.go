package spin17

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	handler "github.com/spinsim/spinsim/handlers/work"
)

// The results of handlers are compared. A result that belongs to no packet,
// another number of iterations, or a byte in host memory ends the measurement
// with an error.
func TestResultsOfHPUsAreCompared(t *testing.T) {
	const packet, packets, iterations = 64, 6, 9
	result := func(offset uint64, n int) uint64 {
		x := handler.Seed(offset)
		for range n {
			x = handler.Step(x)
		}
		return x
	}
	good := func() (handler.State, []byte) {
		s := handler.State{Iterations: iterations}
		s.Results[0], s.Results[2] = result(5*packet, iterations), result(0, iterations)
		return s, make([]byte, packets*packet)
	}
	for _, tc := range []struct {
		what   string
		change func(s *handler.State, host []byte)
		want   string
	}{
		{"as it should be", func(*handler.State, []byte) {}, ""},
		{"an iteration too few", func(s *handler.State, _ []byte) { s.Results[2] = result(0, iterations-1) }, "results that belong to no packet: 1 of"},
		{"of a packet that was not sent", func(s *handler.State, _ []byte) { s.Results[0] = result(packets*packet, iterations) }, "results that belong to no packet: 1 of"},
		{"no result", func(s *handler.State, _ []byte) { clear(s.Results[:]) }, "no HPU has left a result"},
		{"other iterations", func(s *handler.State, _ []byte) { s.Iterations++ }, "10 iterations, 9 were set"},
		{"deposited", func(_ *handler.State, host []byte) { host[77] = 1 }, "byte 77 of host memory is 0x1"},
	} {
		state, host := good()
		tc.change(&state, host)
		err := bench{&experiment.Bench{Point: &experiment.Point{}, Bytes: packet}}.worked(&state, host, iterations)
		if tc.want == "" {
			require.NoError(t, err, tc.what)
		} else {
			require.ErrorContains(t, err, tc.want, tc.what)
		}
	}
}
