package spin_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/spin"
)

// format is a format of 16 bits, read from its definition.
type format struct {
	mantissa, bias int // bits, and of the exponent
	nan            uint16
	of             func(float32) uint16
	float          func(uint16) float32
	add            func(a, b uint16) uint16
}

var formats = map[string]*format{
	"half": {
		10, 15, 0x7E00,
		func(x float32) uint16 { return uint16(spin.HalfOf(x)) }, func(h uint16) float32 { return spin.Half(h).Float32() },
		func(a, b uint16) uint16 {
			to := []spin.Half{spin.Half(a)}
			spin.AddHalves(to, []spin.Half{spin.Half(b), 1})
			return uint16(to[0])
		},
	},
	"brain": {
		7, 127, 0x7FC0,
		func(x float32) uint16 { return uint16(spin.BrainOf(x)) }, func(h uint16) float32 { return spin.Brain(h).Float32() },
		func(a, b uint16) uint16 {
			to := []spin.Brain{spin.Brain(a)}
			spin.AddBrains(to, []spin.Brain{spin.Brain(b), 1})
			return uint16(to[0])
		},
	},
}

func (f *format) infinity() uint16       { return 0x7FFF &^ (1<<f.mantissa - 1) }
func (f *format) isNaN(bits uint16) bool { return bits&0x7FFF > f.infinity() }

// value is the number that the bits of a magnitude stand for; of infinity, which
// numbers are rounded to as if it were one, the next power of two.
func (f *format) value(magnitude uint16) *big.Float {
	exponent, m := int(magnitude>>f.mantissa), int64(magnitude&(1<<f.mantissa-1))
	if exponent == 0 {
		exponent = 1
	} else {
		m += 1 << f.mantissa
	}
	return new(big.Float).SetMantExp(new(big.Float).SetPrec(400).SetInt64(m), exponent-f.bias-f.mantissa)
}

// nearest requires that no other number is nearer to x than got, and that of two
// as near it is the even one.
func (f *format) nearest(t *testing.T, x *big.Float, got uint16) {
	t.Helper()
	far := func(bits uint16) *big.Float {
		d := new(big.Float).SetPrec(400).Sub(new(big.Float).Abs(x), f.value(bits))
		return d.Abs(d)
	}
	require.False(t, f.isNaN(got), "%v", x)
	require.Equal(t, x.Signbit(), got>>15 == 1, "%v", x)
	got &= 0x7FFF
	own := far(got)
	if got > 0 {
		c := own.Cmp(far(got - 1))
		require.True(t, c < 0 || c == 0 && got%2 == 0, "%v: %x, not the one before", x, got)
	}
	if got < f.infinity() {
		c := own.Cmp(far(got + 1))
		require.True(t, c < 0 || c == 0 && got%2 == 0, "%v: %x, not the one behind", x, got)
	}
}

func exact(x float32) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(float64(x)) }

// TestFloatsOf16Bits reads all 65,536 of each format, and writes them back.
func TestFloatsOf16Bits(t *testing.T) {
	for name, f := range formats {
		for i := range 1 << 16 {
			bits := uint16(i)
			x := f.float(bits)
			switch magnitude := bits & 0x7FFF; {
			case f.isNaN(bits):
				require.True(t, math.IsNaN(float64(x)), "%s %x", name, bits)
				require.Equal(t, f.nan, f.of(x), "%s %x", name, bits)
				continue
			case magnitude == f.infinity():
				require.True(t, math.IsInf(float64(x), 0))
			default:
				require.Zero(t, f.value(magnitude).Cmp(exact(x).Abs(exact(x))), "%s %x", name, bits)
			}
			require.Equal(t, bits>>15 == 1, math.Signbit(float64(x)), "%s %x", name, bits)
			require.Equal(t, bits, f.of(x), "%s %x", name, bits)
		}
	}
}

// TestRoundingToFloatsOf16Bits rounds the middle between each two neighbours, and
// the floats beside it, and a million others.
func TestRoundingToFloatsOf16Bits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, f := range formats {
		for bits := range f.infinity() {
			middle := new(big.Float).SetPrec(400).Add(f.value(bits), f.value(bits+1))
			m, _ := middle.Quo(middle, big.NewFloat(2)).Float32()
			for _, x := range []float32{m, math.Nextafter32(m, 0), math.Nextafter32(m, math.MaxFloat32), -m} {
				f.nearest(t, exact(x), f.of(x))
			}
		}
		for range 30_000 {
			if x := math.Float32frombits(rng.Uint32()); x == x && !math.IsInf(float64(x), 0) {
				f.nearest(t, exact(x), f.of(x))
			}
		}
		for _, x := range []float32{math.MaxFloat32, math.Float32frombits(0x7F800000), -math.MaxFloat32} {
			want := f.infinity()
			if x < 0 {
				want |= 0x8000
			}
			require.Equal(t, want, f.of(x), "%s %v", name, x)
		}
	}
}

// TestSumsOfFloatsOf16Bits compares sums with the exact ones.
func TestSumsOfFloatsOf16Bits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, f := range formats {
		for range 100_000 {
			a, b := uint16(rng.Uint32()), uint16(rng.Uint32())
			if rng.IntN(2) == 0 { // of about the same size
				b = a ^ uint16(rng.Uint32()&0x8FFF>>rng.IntN(8))
			}
			got, x, y := f.add(a, b), f.float(a), f.float(b)
			switch sum := float64(x) + float64(y); {
			case sum != sum: // a NaN
				require.Equal(t, f.nan, got, "%s %x %x", name, a, b)
			case math.IsInf(sum, 0):
				require.Equal(t, f.of(float32(sum)), got, "%s %x %x", name, a, b)
			default:
				f.nearest(t, new(big.Float).SetPrec(400).Add(exact(x), exact(y)), got)
			}
		}
	}
	require.Panics(t, func() { spin.AddHalves(make([]spin.Half, 2), make([]spin.Half, 1)) })
	require.Panics(t, func() { spin.AddBrains(make([]spin.Brain, 2), make([]spin.Brain, 1)) })
}
