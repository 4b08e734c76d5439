//go:build tinygo

package spin

import "unsafe"

// The imports of docs/abi.md. The pragma noescape lets arguments stay on the stack: it is right for
// calls that have done with their arguments when they return, and wrong for the non-blocking ones,
// whose memory must be known to the compiler as shared until the handler has waited.

//go:wasmimport spin dma_to_host
//go:noescape
func dmaToHost(space Space, offset uint64, local *byte, n uint32) Result

//go:wasmimport spin dma_from_host
//go:noescape
func dmaFromHost(space Space, offset uint64, local *byte, n uint32) Result

//go:wasmimport spin dma_to_host_nb
func dmaToHostNB(space Space, offset uint64, local *byte, n uint32) Handle

//go:wasmimport spin dma_from_host_nb
func dmaFromHostNB(space Space, offset uint64, local *byte, n uint32) Handle

//go:wasmimport spin dma_cas
//go:noescape
func dmaCAS(space Space, offset, compare, swap uint64, found *uint64) Result

//go:wasmimport spin dma_cas_nb
func dmaCASNB(space Space, offset, compare, swap uint64, found *uint64) Handle

//go:wasmimport spin dma_fadd
//go:noescape
func dmaFAdd(space Space, offset, inc uint64, found *uint64) Result

//go:wasmimport spin dma_fadd_nb
func dmaFAddNB(space Space, offset, inc uint64, found *uint64) Handle

//go:wasmimport spin dma_test
func dmaTest(h Handle) Result

//go:wasmimport spin dma_wait
func dmaWait(h Handle) Result

//go:wasmimport spin cas
//go:noescape
func cas(p *uint64, compare, swap uint64) Result

//go:wasmimport spin fadd
//go:noescape
func fadd(p *uint64, inc uint64) uint64

//go:wasmimport spin yield
func yield()

//go:wasmimport spin put_from_host
//go:noescape
func putFromHost(op *Op) Result

//go:wasmimport spin put_from_device
//go:noescape
func putFromDevice(op *Op) Result

//go:wasmimport spin get_from_host
//go:noescape
func getFromHost(op *Op) Result

//go:wasmimport spin get_from_device
//go:noescape
func getFromDevice(op *Op) Result

//go:wasmimport spin atomic_from_host
//go:noescape
func atomicFromHost(op *Op) Result

//go:wasmimport spin atomic_from_device
//go:noescape
func atomicFromDevice(op *Op) Result

//go:wasmimport spin ct_get
//go:noescape
func ctGet(c Counter, out *[2]uint64) Result

//go:wasmimport spin ct_set
func ctSet(c Counter, success, failure uint64) Result

//go:wasmimport spin ct_inc
func ctInc(c Counter, success, failure uint64) Result

//go:wasmimport spin ack
func ack(status int32) Result

//go:wasmimport spin timer
//go:noescape
func timer(delay uint64, op *Op) Result

//go:wasmimport spin to_self
//go:noescape
func toSelf(op *Op) Result

//go:wasmimport spin num_hpus
func numHPUs() int32

//go:wasmimport spin my_hpu
func myHPU() int32

//go:wasmimport spin cycles
func cycles() uint64

//go:wasmimport spin log
//go:noescape
func log(line *byte, n uint32)

// resolve returns the pointer of an address: they are the same in wasm.
func resolve(p Ptr, _ uint32) *byte { return (*byte)(unsafe.Pointer(uintptr(p))) }

// address returns the address of a pointer: they are the same in wasm.
func address(p *byte, _ uintptr) Ptr { return Ptr(uintptr(unsafe.Pointer(p))) }
