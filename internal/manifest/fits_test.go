package manifest

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// A number fits a type if it is none of the numbers beyond its limits.
func TestFits(t *testing.T) {
	for _, typ := range Types() {
		if typ.Float() {
			continue
		}
		least, most := typ.Limits()
		for _, x := range []*big.Int{least, most, new(big.Int), big.NewInt(1), big.NewInt(-1)} {
			for _, d := range []int64{-200, -1, 0, 1, 200} {
				x := new(big.Int).Add(x, big.NewInt(d))
				require.Equal(t, x.Cmp(least) >= 0 && x.Cmp(most) <= 0, typ.fits(x), "%v for %s", x, typ)
			}
		}
	}
}
