package experiment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// Eight bytes of a pattern are a number of a xorshift* generator, the highest
// byte first, and the rest of a length is the beginning of one.
func TestPattern(t *testing.T) {
	seed := uint64(7)
	x := seed*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	var want []byte
	for i := range 37 {
		if i%8 == 0 {
			x ^= x >> 12
			x ^= x << 25
			x ^= x >> 27
		}
		want = append(want, byte(x*0x2545f4914f6cdd1d>>(56-8*(i%8))))
	}
	for n := range want {
		got := make([]byte, n)
		experiment.Pattern(got, seed)
		require.Equal(t, want[:n], got)
	}
}
