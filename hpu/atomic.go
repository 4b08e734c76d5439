package hpu

import "encoding/binary"

// Atomic32 is an operation of atomic32 (docs/abi.md, Atomics on HPU memory).
type Atomic32 uint32

// The operations of atomic32: the operations of RISC-V's extension A, and
// compare-and-swap.
const (
	Swap32 Atomic32 = iota
	CSwap32
	Add32
	And32
	Or32
	Xor32
	Min32 // of signed numbers
	Max32
	MinU32
	MaxU32
	numAtomics32
)

var atomicNames = [numAtomics32]string{"swap", "cswap", "add", "and", "or", "xor", "min", "max", "minu", "maxu"}

// String names the operation.
func (o Atomic32) String() string { return atomicNames[o] }

// apply returns the value that an operation stores in place of before.
func (o Atomic32) apply(before, operand, compare uint32) uint32 {
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

func (c *Context) atomic32(o Atomic32, addr, operand, compare uint32) uint64 {
	at := c.program.mem[addr : addr+4]
	before := binary.LittleEndian.Uint32(at)
	binary.LittleEndian.PutUint32(at, o.apply(before, operand, compare))
	return uint64(before)
}
