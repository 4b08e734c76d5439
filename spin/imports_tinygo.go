//go:build tinygo

package spin

import "unsafe"

// The imports of docs/abi.md. TinyGo assumes that an import no longer uses the
// memory behind its pointers when it returns: it may keep variables on the
// stack or move accesses. That is wrong for non-blocking imports, so they take
// addresses, which the compiler does not see through. Posted writes take
// pointers, because the device takes their bytes at the call.

//go:wasmimport spin dma_to_host
func dmaToHost(space Space, offset uint64, local *byte, n uint32) Result

//go:wasmimport spin dma_from_host
func dmaFromHost(space Space, offset uint64, local *byte, n uint32) Result

//go:wasmimport spin dma_to_host_nb
func startDMAToHost(space Space, offset uint64, local Ptr, n uint32) Handle

func dmaToHostNB(space Space, offset uint64, local *byte, n uint32) Handle {
	return startDMAToHost(space, offset, address(local, 0), n)
}

//go:wasmimport spin dma_from_host_nb
func startDMAFromHost(space Space, offset uint64, local Ptr, n uint32) Handle

func dmaFromHostNB(space Space, offset uint64, local *byte, n uint32) Handle {
	return startDMAFromHost(space, offset, address(local, 0), n)
}

//go:wasmimport spin dma_cas
func dmaCAS(space Space, offset, compare, swap uint64, found *uint64) Result

//go:wasmimport spin dma_cas_nb
func startDMACAS(space Space, offset, compare, swap uint64, found Ptr) Handle

func dmaCASNB(space Space, offset, compare, swap uint64, found *uint64) Handle {
	return startDMACAS(space, offset, compare, swap, AddrOf(found))
}

//go:wasmimport spin dma_fadd
func dmaFAdd(space Space, offset, inc uint64, found *uint64) Result

//go:wasmimport spin dma_fadd_nb
func startDMAFAdd(space Space, offset, inc uint64, found Ptr) Handle

func dmaFAddNB(space Space, offset, inc uint64, found *uint64) Handle {
	return startDMAFAdd(space, offset, inc, AddrOf(found))
}

//go:wasmimport spin dma_fadd_typed
func dmaFAddTyped(space Space, offset uint64, t uint32, inc uint64, found *uint32) Result

//go:wasmimport spin dma_fadd_typed_nb
func startDMAFAddTyped(space Space, offset uint64, t uint32, inc uint64, found Ptr) Handle

func dmaFAdd32(space Space, offset uint64, inc uint32, found *uint32) Result {
	return dmaFAddTyped(space, offset, uint32(TypeUint32), uint64(inc), found)
}

func dmaFAdd32NB(space Space, offset uint64, inc uint32, found *uint32) Handle {
	return startDMAFAddTyped(space, offset, uint32(TypeUint32), uint64(inc), AddrOf(found))
}

//go:wasmimport spin dma_test
func dmaTest(h Handle) Result

//go:wasmimport spin dma_wait
func dmaWait(h Handle) Result

//go:wasmimport spin cas
func cas(p *uint64, compare, swap uint64) Result

//go:wasmimport spin fadd
func fadd(p *uint64, inc uint64) uint64

//go:wasmimport spin yield
func yield()

//go:wasmimport spin put_from_host
func putFromHost(op *Op) Result

//go:wasmimport spin put_from_device
func putFromDevice(op *Op) Result

//go:wasmimport spin get_from_host
func getFromHost(op *Op) Result

//go:wasmimport spin get_from_device
func getFromDevice(op *Op) Result

//go:wasmimport spin atomic_from_host
func atomicFromHost(op *Op) Result

//go:wasmimport spin atomic_from_device
func atomicFromDevice(op *Op) Result

//go:wasmimport spin ct_get
func ctGet(c Counter, out *[2]uint64) Result

//go:wasmimport spin ct_set
func ctSet(c Counter, success, failure uint64) Result

//go:wasmimport spin ct_inc
func ctInc(c Counter, success, failure uint64) Result

//go:wasmimport spin ack
func ack(status int32) Result

//go:wasmimport spin timer
func timer(delay uint64, op *Op) Result

//go:wasmimport spin now
func now() uint64

//go:wasmimport spin timer_at
func timerAt(at, period uint64, op *Op) Result

//go:wasmimport spin expiries
func expiries() uint64

//go:wasmimport spin to_self
func toSelf(op *Op) Result

//go:wasmimport spin timer_cancel
func timerCancel(t Result) Result

//go:wasmimport spin atomic32
func atomic32(op Atomic32, p *uint32, operand, compare uint32) uint32

//go:wasmimport spin dma_to_host_posted
func dmaToHostPosted(space Space, offset uint64, local *byte, n uint32) Result

//go:wasmimport spin host_write
func hostWrite(space Space, offset, value uint64) Result

//go:wasmimport spin host_write_nb
func hostWriteNB(space Space, offset, value uint64) Handle

//go:wasmimport spin wait32
func wait32(p *uint32, expected uint32)

//go:wasmimport spin my_cluster
func myCluster() int32

//go:wasmimport spin runtime_begin
func runtimeBegin()

//go:wasmimport spin runtime_end
func runtimeEnd()

//go:wasmimport spin num_clusters
func numClusters() int32

//go:wasmimport spin flow_id
func flowID() uint32

//go:wasmimport spin scratchpad
func scratchpad(cluster uint32) uint64

//go:wasmimport spin message_memory
func messageMemory() uint64

//go:wasmimport spin num_hpus
func numHPUs() int32

//go:wasmimport spin my_hpu
func myHPU() int32

//go:wasmimport spin cycles
func cycles() uint64

//go:wasmimport spin log
func log(line *byte, n uint32)

// resolve returns the pointer of an address: they are the same in wasm.
func resolve(p Ptr, _ uint32) *byte { return (*byte)(unsafe.Pointer(uintptr(p))) }

// address returns the address of a pointer: they are the same in wasm.
func address(p *byte, _ uintptr) Ptr { return Ptr(uintptr(unsafe.Pointer(p))) }
