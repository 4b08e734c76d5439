package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Handlers that can be active at once have different numbers below num_hpus
// (sPIN'17 §3.2.2). Two contexts of a processor that had one number would share
// what each takes for its own.
func TestEachContextOfAPoolHasItsOwnNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5)
		spec := &Spec{Cores: size.Draw(t, "cores"), Contexts: size.Draw(t, "contexts")}
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			spec.Others = append(spec.Others, Processors{size.Draw(t, "number"), size.Draw(t, "contexts")})
		}
		i := 0
		for p := range spec.Pools() {
			seen := map[int]bool{}
			for k := range p.Number * p.Contexts {
				unit, of, processor := spec.unit(i)
				require.Equal(t, p.Number*p.Contexts, of)
				require.Equal(t, k/p.Contexts, processor)
				require.True(t, unit >= 0 && unit < of && !seen[unit])
				seen[unit] = true
				i++
			}
		}
	})
}
