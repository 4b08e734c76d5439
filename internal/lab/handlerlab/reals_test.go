package handlerlab

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Functions of real numbers give what Go's give.
func TestRealNumbers(t *testing.T) {
	numbers := []float64{0, 2, -2.5, 1e300, 0.75, -0.25, math.Inf(1), math.NaN(), 1 << 53, -1e-300}
	cfg := module(t, "clibrary")
	cfg.Payload, cfg.Host = "reals", make([]byte, 80*len(numbers))
	for i, x := range numbers {
		data := binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
		cfg.Messages = append(cfg.Messages, Message{Source: 1, Data: data, Offset: uint64(80 * i)})
	}
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	for i, x := range numbers {
		f := float64(float32(x))
		for k, want := range []float64{
			math.Sqrt(x), math.Abs(x), math.Floor(x), math.Ceil(x), math.Trunc(x),
			float64(float32(math.Sqrt(f))), math.Abs(f), math.Floor(f), math.Ceil(f), math.Trunc(f),
		} {
			got := math.Float64frombits(binary.LittleEndian.Uint64(r.Host[80*i+8*k:]))
			require.True(t, got == want || got != got && want != want, "result %d of %g is %g, expected %g", k, x, got, want)
		}
	}
}
