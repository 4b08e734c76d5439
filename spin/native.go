//go:build !tinygo

package spin

import (
	"sync"
	"unsafe"
)

// Device carries out the actions of handlers that run natively. Package spintest has one; handlers
// never see it.
type Device interface {
	// Act performs an action and returns its result. The result has 64 bits for
	// fadd, cycles, now, expiries, scratchpad and message_memory.
	Act(a *Action) int64
	// Address gives the n bytes at p an address, always the same for a
	// variable.
	Address(p *byte, n uintptr) Ptr
	// Resolve is the inverse of Address for the n bytes at p, which may lie within a variable.
	// It does not return if there are none.
	Resolve(p Ptr, n uint32) *byte
}

// Action is one call of a handler to its device when it runs natively.
type Action struct {
	Name     string     // of the import (docs/abi.md, Imports)
	Space    Space      // DMA: the host memory
	Offset   uint64     // DMA: bytes in the host memory
	Mem      []byte     // DMA: local memory; log: the line
	Word     *uint64    // cas, fadd: the word; dma_cas, dma_fadd: destination of the value found
	Word32   *uint32    // atomic32, wait32: the word; dma_fadd_typed: destination of the value found
	Atomic32 Atomic32   // atomic32: the operation; A is the operand, B the value to compare with
	Pair     *[2]uint64 // ct_get: where success and failure go
	// compare; increment; success; delay, ns; time, ps; status; value of
	// host_write; the value that wait32 expects; cluster
	A       uint64
	B       uint64  // swap; failure; period, ps
	Counter Counter // of ct_get, ct_set, ct_inc
	Handle  Handle  // of dma_test, dma_wait, timer_cancel
	Op      *Op     // of puts, gets, atomics, timer, timer_at, to_self
}

var (
	attachMu sync.Mutex // held while a device is attached
	attached Device
)

// Attach makes d the device of the handler that the caller is about to run,
// until the caller calls detach. It waits while another device is attached, so
// that parallel tests do not meet.
func Attach(d Device) (detach func()) {
	attachMu.Lock()
	attached = d
	return func() {
		attached = nil
		attachMu.Unlock()
	}
}

// device returns the attached device.
func device() Device {
	if attached == nil {
		panic("spin: an action outside a device: run the handler with package spintest")
	}
	return attached
}

func act(a *Action) Result { return Result(device().Act(a)) }

func dma(name string, space Space, offset uint64, local *byte, n uint32) Result {
	return act(&Action{Name: name, Space: space, Offset: offset, Mem: unsafe.Slice(local, n)})
}

func dmaToHost(space Space, offset uint64, local *byte, n uint32) Result {
	return dma("dma_to_host", space, offset, local, n)
}

func dmaFromHost(space Space, offset uint64, local *byte, n uint32) Result {
	return dma("dma_from_host", space, offset, local, n)
}

func dmaToHostNB(space Space, offset uint64, local *byte, n uint32) Handle {
	return Handle(dma("dma_to_host_nb", space, offset, local, n))
}

func dmaFromHostNB(space Space, offset uint64, local *byte, n uint32) Handle {
	return Handle(dma("dma_from_host_nb", space, offset, local, n))
}

func dmaCAS(space Space, offset, compare, swap uint64, found *uint64) Result {
	return act(&Action{Name: "dma_cas", Space: space, Offset: offset, A: compare, B: swap, Word: found})
}

func dmaCASNB(space Space, offset, compare, swap uint64, found *uint64) Handle {
	return Handle(act(&Action{Name: "dma_cas_nb", Space: space, Offset: offset, A: compare, B: swap, Word: found}))
}

func dmaFAdd(space Space, offset, inc uint64, found *uint64) Result {
	return act(&Action{Name: "dma_fadd", Space: space, Offset: offset, A: inc, Word: found})
}

func dmaFAddNB(space Space, offset, inc uint64, found *uint64) Handle {
	return Handle(act(&Action{Name: "dma_fadd_nb", Space: space, Offset: offset, A: inc, Word: found}))
}

func dmaTest(h Handle) Result { return act(&Action{Name: "dma_test", Handle: h}) }

func dmaWait(h Handle) Result { return act(&Action{Name: "dma_wait", Handle: h}) }

func cas(p *uint64, compare, swap uint64) Result {
	return act(&Action{Name: "cas", Word: p, A: compare, B: swap})
}

func dmaFAdd32(space Space, offset uint64, inc uint32, found *uint32) Result {
	return act(&Action{Name: "dma_fadd_typed", Space: space, Offset: offset, A: uint64(inc), Word32: found})
}

func dmaFAdd32NB(space Space, offset uint64, inc uint32, found *uint32) Handle {
	return Handle(act(&Action{Name: "dma_fadd_typed_nb", Space: space, Offset: offset, A: uint64(inc), Word32: found}))
}

func fadd(p *uint64, inc uint64) uint64 {
	return uint64(device().Act(&Action{Name: "fadd", Word: p, A: inc}))
}

func yield() { act(&Action{Name: "yield"}) }

func putFromHost(op *Op) Result { return act(&Action{Name: "put_from_host", Op: op}) }

func putFromDevice(op *Op) Result { return act(&Action{Name: "put_from_device", Op: op}) }

func getFromHost(op *Op) Result { return act(&Action{Name: "get_from_host", Op: op}) }

func getFromDevice(op *Op) Result { return act(&Action{Name: "get_from_device", Op: op}) }

func atomicFromHost(op *Op) Result { return act(&Action{Name: "atomic_from_host", Op: op}) }

func atomicFromDevice(op *Op) Result { return act(&Action{Name: "atomic_from_device", Op: op}) }

func ctGet(c Counter, out *[2]uint64) Result {
	return act(&Action{Name: "ct_get", Counter: c, Pair: out})
}

func ctSet(c Counter, success, failure uint64) Result {
	return act(&Action{Name: "ct_set", Counter: c, A: success, B: failure})
}

func ctInc(c Counter, success, failure uint64) Result {
	return act(&Action{Name: "ct_inc", Counter: c, A: success, B: failure})
}

func ack(status int32) Result { return act(&Action{Name: "ack", A: uint64(uint32(status))}) }

func timer(delay uint64, op *Op) Result { return act(&Action{Name: "timer", A: delay, Op: op}) }

func now() uint64 { return uint64(device().Act(&Action{Name: "now"})) }

func timerAt(at, period uint64, op *Op) Result {
	return act(&Action{Name: "timer_at", A: at, B: period, Op: op})
}

func expiries() uint64 { return uint64(device().Act(&Action{Name: "expiries"})) }

func timerCancel(t Result) Result { return act(&Action{Name: "timer_cancel", Handle: Handle(t)}) }

func toSelf(op *Op) Result { return act(&Action{Name: "to_self", Op: op}) }

func atomic32(op Atomic32, p *uint32, operand, compare uint32) uint32 {
	return uint32(device().Act(&Action{Name: "atomic32", Atomic32: op, Word32: p, A: uint64(operand), B: uint64(compare)}))
}

func dmaToHostPosted(space Space, offset uint64, local *byte, n uint32) Result {
	return dma("dma_to_host_posted", space, offset, local, n)
}

func hostWrite(space Space, offset, value uint64) Result {
	return act(&Action{Name: "host_write", Space: space, Offset: offset, A: value})
}

func hostWriteNB(space Space, offset, value uint64) Handle {
	return Handle(act(&Action{Name: "host_write_nb", Space: space, Offset: offset, A: value}))
}

func wait32(p *uint32, expected uint32) {
	act(&Action{Name: "wait32", Word32: p, A: uint64(expected)})
}

func myCluster() int32 { return int32(act(&Action{Name: "my_cluster"})) }

func runtimeBegin() { act(&Action{Name: "runtime_begin"}) }

func runtimeEnd() { act(&Action{Name: "runtime_end"}) }

func numClusters() int32 { return int32(act(&Action{Name: "num_clusters"})) }

func flowID() uint32 { return uint32(act(&Action{Name: "flow_id"})) }

func scratchpad(cluster uint32) uint64 {
	return uint64(device().Act(&Action{Name: "scratchpad", A: uint64(cluster)}))
}

func messageMemory() uint64 { return uint64(device().Act(&Action{Name: "message_memory"})) }

func numHPUs() int32 { return int32(act(&Action{Name: "num_hpus"})) }

func myHPU() int32 { return int32(act(&Action{Name: "my_hpu"})) }

func cycles() uint64 { return uint64(device().Act(&Action{Name: "cycles"})) }

func log(line *byte, n uint32) { act(&Action{Name: "log", Mem: unsafe.Slice(line, n)}) }

func resolve(p Ptr, n uint32) *byte { return device().Resolve(p, n) }

func address(p *byte, n uintptr) Ptr { return device().Address(p, n) }
