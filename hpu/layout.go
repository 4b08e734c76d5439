package hpu

import (
	"fmt"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

const (
	// maxTotalMemory is the size of the largest memory of a program, bytes.
	// Addresses have 32 bits.
	maxTotalMemory = 1<<32 - wasm.PageSize
	// operandBytes is the size of the largest operand of an atomic. The memory
	// ends with the same number of unused bytes, so the check of an operand's
	// address accepts every address in the last context.
	operandBytes = 32
)

// recordBytes is the size of a context's argument record. The largest record of
// the ABI fits, with room for later versions.
const recordBytes = 128

// ShortPacket is the size of the largest packet that lies behind its record,
// bytes. The pages that a handler of a short message touches are then those of
// its block.
const ShortPacket = 128

// pageBytes is the size of a page on most machines that simulate. A packet
// buffer begins on a page, so that a large packet touches no more than it fills.
const pageBytes = 4096

// Layout is the memory map of a program (docs/abi.md, Module). The module's own
// memory comes first, then the HPU memory. A block for each context follows,
// with argument record and room for a short packet, and then packet buffers. A
// shadow stack whose size is known to suffice is the end of its block. The
// others lie behind the packet buffers. All values are bytes or byte addresses.
type Layout struct {
	Own         uint32 // size of the module's own memory, from address 0
	HPU         uint32 // address of the HPU memory, a multiple of 16
	HPUBytes    uint32
	Base        uint32 // address of the block of context 0
	Block       uint32 // size of a block
	Packets     uint32 // address of the packet buffer of context 0
	PacketBytes uint32 // size of a packet buffer
	Stacks      uint32 // address of the shadow stack of context 0
	StackEach   uint32 // from the stack of a context to the next one
	StackBytes  uint32 // size of a shadow stack
	Contexts    int
	Total       uint32 // size of the memory, whole pages
}

// layoutOf places a program with own bytes of the module's memory. A handler
// needs stack bytes of shadow stack at most; -1: there is no bound.
func layoutOf(own int64, hpuBytes uint32, spec *Spec, stack int64) (Layout, error) {
	if int64(hpuBytes) > spec.MaxHPUMemoryBytes {
		return Layout{}, fmt.Errorf("HPU memory of %d bytes, at most %d on this device (hpu.max_hpu_memory)", hpuBytes, spec.MaxHPUMemoryBytes)
	}
	n, packet := spec.contexts(), align(int64(spec.PacketBytes), 16)
	base := own + align(int64(hpuBytes), 16)
	block, far := int64(recordBytes+ShortPacket), align(int64(spec.StackBytes), 16)
	stacks, each, size := base+block, int64(0), far
	if stack >= 0 && stack <= far { // at the end of the block
		size, far = align(stack, 16), 0
		block += size
		each = block
	}
	packets := align(base+n*block, pageBytes)
	if far > 0 {
		stacks, each = packets+n*packet, far
	}
	total := align(packets+n*(packet+far)+operandBytes, wasm.PageSize)
	if total > maxTotalMemory {
		return Layout{}, fmt.Errorf("%d bytes of own memory, %d of HPU memory and %d contexts of %d bytes each are %d bytes together, at most %d (hpu.cores, hpu.contexts, hpu.stack_bytes)",
			own, hpuBytes, n, block+packet+far, total, int64(maxTotalMemory))
	}
	return Layout{
		Own: uint32(own), HPU: uint32(own), HPUBytes: hpuBytes, Base: uint32(base), Block: uint32(block),
		Packets: uint32(packets), PacketBytes: uint32(packet), Stacks: uint32(stacks), StackEach: uint32(each), StackBytes: uint32(size),
		Contexts: int(n), Total: uint32(total),
	}, nil
}

// align returns the first multiple of a power of two that is not below n.
func align(n, power int64) int64 { return (n + power - 1) &^ (power - 1) }

// Args returns the address of the argument record of context i.
func (l *Layout) Args(i int) uint32 { return l.Base + uint32(i)*l.Block }

// Packet returns the address where context i has a packet of a number of bytes.
func (l *Layout) Packet(i, bytes int) uint32 {
	if bytes <= ShortPacket {
		return l.Args(i) + recordBytes
	}
	return l.Packets + uint32(i)*l.PacketBytes
}

// StackLimit returns the lowest address of the shadow stack of context i.
func (l *Layout) StackLimit(i int) uint32 { return l.Stacks + uint32(i)*l.StackEach }

// StackTop returns where the shadow stack of context i is empty.
func (l *Layout) StackTop(i int) uint32 { return l.StackLimit(i) + l.StackBytes }

// Where names the part of a context that an address lies in: "record", "packet"
// or "stack", with the offset there; "": in none.
func (l *Layout) Where(addr uint32) (part string, offset uint32) {
	n := uint32(l.Contexts)
	if at := addr - l.Base; at < n*l.Block {
		switch at %= l.Block; {
		case at < recordBytes:
			return "record", at
		case at < recordBytes+ShortPacket:
			return "packet", at - recordBytes
		}
		return "stack", at - recordBytes - ShortPacket
	}
	if at := addr - l.Packets; at < n*l.PacketBytes {
		return "packet", at % l.PacketBytes
	}
	if at := addr - l.Stacks; l.Stacks > l.Packets && at < n*l.StackEach {
		return "stack", at % l.StackEach
	}
	return "", 0
}
