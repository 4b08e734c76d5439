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

// Layout is the memory map of a program (docs/abi.md, Module). The module's own
// memory comes first, then the HPU memory. A region for each context follows,
// with shadow stack, argument record and packet buffer. All values are bytes or
// byte addresses.
type Layout struct {
	Own      uint32 // size of the module's own memory, from address 0
	HPU      uint32 // address of the HPU memory, a multiple of 16
	HPUBytes uint32
	Base     uint32 // address of the region of context 0
	Region   uint32 // size of a region
	Stack    uint32 // size of the shadow stack, from the beginning of a region
	Contexts int
	Total    uint32 // size of the memory, whole pages
}

func layoutOf(own int64, hpuBytes uint32, spec *Spec) (Layout, error) {
	if int64(hpuBytes) > spec.MaxHPUMemoryBytes {
		return Layout{}, fmt.Errorf("HPU memory of %d bytes, at most %d on this device (hpu.max_hpu_memory)", hpuBytes, spec.MaxHPUMemoryBytes)
	}
	stack, packet := align16(int64(spec.StackBytes)), align16(int64(spec.PacketBytes))
	region := stack + argsBytes + packet
	n := spec.contexts()
	base := own + align16(int64(hpuBytes))
	total := base + n*region + operandBytes
	total = (total + wasm.PageSize - 1) / wasm.PageSize * wasm.PageSize
	if total > maxTotalMemory {
		return Layout{}, fmt.Errorf("%d bytes of own memory, %d of HPU memory and %d contexts of %d bytes each are %d bytes together, at most %d (hpu.cores, hpu.contexts, hpu.stack_bytes)",
			own, hpuBytes, n, region, total, int64(maxTotalMemory))
	}
	return Layout{
		Own: uint32(own), HPU: uint32(own), HPUBytes: hpuBytes, Base: uint32(base), Region: uint32(region), Stack: uint32(stack),
		Contexts: int(n), Total: uint32(total),
	}, nil
}

func align16(n int64) int64 { return (n + 15) &^ 15 }

// Args returns the address of the argument record of context i. The context's
// empty shadow stack begins there, too.
func (l *Layout) Args(i int) uint32 { return l.Base + uint32(i)*l.Region + l.Stack }

// Packet returns the address of the packet buffer of context i.
func (l *Layout) Packet(i int) uint32 { return l.Args(i) + argsBytes }

// StackLimit returns the lowest address of the shadow stack of context i.
func (l *Layout) StackLimit(i int) uint32 { return l.Base + uint32(i)*l.Region }
