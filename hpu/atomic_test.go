package hpu

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/spin"
)

// The operations of atomic32 against the table of RISC-V's extension A (The
// RISC-V Instruction Set Manual, volume I, 8.4), and against what handlers do
// that run natively. What a module gets is tested by handlerlab's handlers for
// PsPIN, which use them all.
func TestAtomic32(t *testing.T) {
	const before, operand = 0x8000_00f0, 0x0000_0fff
	for op, want := range map[Atomic32]uint32{
		Swap32: operand, CSwap32: before, Add32: 0x8000_10ef, And32: 0x0000_00f0, Or32: 0x8000_0fff, Xor32: 0x8000_0f0f,
		Min32: before, Max32: operand, MinU32: operand, MaxU32: before,
	} {
		require.Equal(t, want, op.apply(before, operand, 7), "%v", op)
	}
	require.Equal(t, uint32(operand), CSwap32.apply(before, operand, before))
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		a, b, c := random.Uint32(), random.Uint32(), random.Uint32()
		if random.IntN(2) == 0 {
			c = a
		}
		for op := range numAtomics32 {
			require.Equal(t, spin.Atomic32(op).Apply(a, b, c), op.apply(a, b, c), "%v of %#x, %#x, %#x", op, a, b, c)
		}
	}
}
