package spin

// Atomic32 is an operation of [Apply32]: an atomic of RISC-V's extension A, or
// compare-and-swap (docs/abi.md, Atomics on HPU memory).
type Atomic32 uint32

// The operations on 32 bits.
const (
	Swap32  Atomic32 = iota
	CSwap32          // see [CAS32]
	Add32
	And32
	Or32
	Xor32
	Min32 // of signed numbers
	Max32
	MinU32
	MaxU32
)

// Apply returns the value that the operation stores in place of before.
func (o Atomic32) Apply(before, operand, compare uint32) uint32 {
	switch o {
	case CSwap32:
		if before != compare {
			return before
		}
	case Add32:
		return before + operand
	case And32:
		return before & operand
	case Or32:
		return before | operand
	case Xor32:
		return before ^ operand
	case Min32:
		return uint32(min(int32(before), int32(operand)))
	case Max32:
		return uint32(max(int32(before), int32(operand)))
	case MinU32:
		return min(before, operand)
	case MaxU32:
		return max(before, operand)
	}
	return operand
}
