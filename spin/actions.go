package spin

import "unsafe"

// Actions of handlers. Those marked "suspends" may let another handler run on the same HPU before
// they return; the others return at once (docs/abi.md, Imports).

// DMAToHost writes b to host memory and returns when the bus has taken it or,
// on other devices, when it has landed. Suspends.
func DMAToHost(space Space, offset uint64, b []byte) Result {
	return dmaToHost(space, offset, unsafe.SliceData(b), uint32(len(b)))
}

// DMAFromHost reads host memory into b. Suspends.
func DMAFromHost(space Space, offset uint64, b []byte) Result {
	return dmaFromHost(space, offset, unsafe.SliceData(b), uint32(len(b)))
}

// WriteHost is DMAToHost of a variable: v points at it and size is its
// unsafe.Sizeof. Unlike a slice made by a generic function, it may lie on the
// stack in TinyGo. Suspends.
func WriteHost(space Space, offset uint64, v unsafe.Pointer, size uintptr) Result {
	return dmaToHost(space, offset, (*byte)(v), uint32(size))
}

// ReadHost is DMAFromHost into a variable, given as for [WriteHost]. Suspends.
func ReadHost(space Space, offset uint64, v unsafe.Pointer, size uintptr) Result {
	return dmaFromHost(space, offset, (*byte)(v), uint32(size))
}

// LoadHost reads the 8 bytes at offset in host memory. Suspends.
func LoadHost(space Space, offset uint64) (v uint64, r Result) {
	r = dmaFromHost(space, offset, (*byte)(unsafe.Pointer(&v)), 8)
	return v, r
}

// StoreHost writes v to the 8 bytes at offset in host memory. Suspends.
func StoreHost(space Space, offset, v uint64) Result {
	return dmaToHost(space, offset, (*byte)(unsafe.Pointer(&v)), 8)
}

// Handle names a DMA operation under way. A negative one is the [Result] of an
// operation that did not start.
type Handle int32

// DMAToHostNB starts to write b to host memory. b must not change until the operation has ended.
// In TinyGo it cannot lie on the stack, nor can the memory of other non-blocking operations.
func DMAToHostNB(space Space, offset uint64, b []byte) Handle {
	return dmaToHostNB(space, offset, unsafe.SliceData(b), uint32(len(b)))
}

// DMAFromHostNB starts to read host memory into b.
func DMAFromHostNB(space Space, offset uint64, b []byte) Handle {
	return dmaFromHostNB(space, offset, unsafe.SliceData(b), uint32(len(b)))
}

// Wait returns the result of the operation when it has ended, and frees the handle. Suspends.
func (h Handle) Wait() Result {
	if h < 0 {
		return Result(h)
	}
	return dmaWait(h)
}

// Test reports whether the operation has ended and with which result. The
// handle is then free. Suspends until simulated time has reached the handler's
// own time.
func (h Handle) Test() (done bool, r Result) {
	if h < 0 {
		return true, Result(h)
	}
	switch r = dmaTest(h); {
	case r > 0:
		return true, OK
	case r == 0:
		return false, OK
	default:
		return true, r
	}
}

// DMACAS compares the 8 bytes at offset in host memory with compare and, if
// they are equal, replaces them by swap, atomically; offset is a multiple of 8.
// It stores the value before in found. The result is 1 if it swapped, 0 if not.
// Suspends.
func DMACAS(space Space, offset, compare, swap uint64, found *uint64) Result {
	return dmaCAS(space, offset, compare, swap, found)
}

// DMACASNB starts a DMACAS; the result of Wait is 1 if it swapped.
func DMACASNB(space Space, offset, compare, swap uint64, found *uint64) Handle {
	return dmaCASNB(space, offset, compare, swap, found)
}

// DMAFAdd adds inc to the 8 bytes at offset in host memory, atomically; offset
// is a multiple of 8. It stores the value before in found. Suspends.
func DMAFAdd(space Space, offset, inc uint64, found *uint64) Result {
	return dmaFAdd(space, offset, inc, found)
}

// DMAFAddNB starts a DMAFAdd.
func DMAFAddNB(space Space, offset, inc uint64, found *uint64) Handle {
	return dmaFAddNB(space, offset, inc, found)
}

// DMAFAdd32 is [DMAFAdd] of 4 bytes at a multiple of 4. Suspends.
func DMAFAdd32(space Space, offset uint64, inc uint32, found *uint32) Result {
	return dmaFAdd32(space, offset, inc, found)
}

// DMAFAdd32NB starts a DMAFAdd32.
func DMAFAdd32NB(space Space, offset uint64, inc uint32, found *uint32) Handle {
	return dmaFAdd32NB(space, offset, inc, found)
}

// CAS replaces *p by swap if it equals compare, atomically between HPUs, and
// reports whether it did. p is in HPU memory. Suspends.
func CAS(p *uint64, compare, swap uint64) bool { return cas(p, compare, swap) > 0 }

// FAdd adds inc to *p, atomically between HPUs, and returns the value before. p is in HPU memory.
// Suspends.
func FAdd(p *uint64, inc uint64) uint64 { return fadd(p, inc) }

// FAdd32 is [FAdd] of 32 bits. Suspends.
func FAdd32(p *uint32, inc uint32) uint32 { return atomic32(Add32, p, inc, 0) }

// CAS32 is [CAS] of 32 bits. Suspends.
func CAS32(p *uint32, compare, swap uint32) bool {
	return atomic32(CSwap32, p, swap, compare) == compare
}

// Apply32 carries out an atomic operation on 32 aligned bits of HPU memory and
// returns the value before. Suspends.
func Apply32(op Atomic32, p *uint32, operand uint32) uint32 { return atomic32(op, p, operand, 0) }

// Yield hints that another handler may run. Suspends.
func Yield() { yield() }

// PutFromHost enqueues a put of Length bytes at Offset of host memory, as if the host had posted
// it. It never blocks.
func PutFromHost(op *Op) Result { return putFromHost(op) }

// PutFromDevice sends one packet of Length bytes at Local; at most the device's largest payload.
// Suspends while the egress queue is full.
func PutFromDevice(op *Op) Result { return putFromDevice(op) }

// GetFromHost enqueues a get whose reply is deposited at Offset of host memory.
func GetFromHost(op *Op) Result { return getFromHost(op) }

// GetFromDevice gets Length bytes to Local and returns when they are there. Suspends.
func GetFromDevice(op *Op) Result { return getFromDevice(op) }

// AtomicFromHost enqueues an atomic whose operands are at Offset of host memory. It sets
// FetchOffset to none; for a result use [FetchAtomicFromHost].
func AtomicFromHost(op *Op) Result {
	op.FetchOffset = noFetch
	return atomicFromHost(op)
}

// FetchAtomicFromHost enqueues a fetching atomic or swap whose operands are at Offset of host
// memory and whose result goes to FetchOffset.
func FetchAtomicFromHost(op *Op) Result { return atomicFromHost(op) }

// AtomicFromDevice sends an atomic whose operands are at Local. If Fetch is not 0 it is a fetching
// atomic or swap and returns when the result is there. Suspends.
func AtomicFromDevice(op *Op) Result { return atomicFromDevice(op) }

// noFetch is the FetchOffset of an atomic from host that fetches nothing.
const noFetch = ^uint64(0)

// Counter is the handle of a Portals counting event, given to the handler by its host.
type Counter uint32

// Get returns the counter's two values. Suspends.
func (c Counter) Get() (success, failure uint64, r Result) {
	var v [2]uint64
	r = ctGet(c, &v)
	return v[0], v[1], r
}

// Set sets the counter's values.
func (c Counter) Set(success, failure uint64) Result { return ctSet(c, success, failure) }

// Inc adds to the counter's values.
func (c Counter) Inc(success, failure uint64) Result { return ctInc(c, success, failure) }

// Acknowledge acknowledges the message to its initiator now, in place of the
// automatic acknowledgement: status 0 for success, else an ni_fail_type
// (Portals 4.x §3.13). Once per message.
func Acknowledge(status int32) Result { return ack(status) }

// MaxTimer is the longest delay of a Timer, in nanoseconds: a second.
const MaxTimer = 1_000_000_000

// Timer delivers op to this process as a message to self after delay
// nanoseconds, at most MaxTimer; Invalid if it is longer. A result of 0 or more
// is the timer's number, for TimerCancel.
func Timer(delay uint64, op *Op) Result { return timer(delay, op) }

// Now returns the handler's own virtual time in picoseconds, the cost of this
// call included. All nodes have the same clock.
func Now() uint64 { return now() }

// TimerAt delivers op to this process as a message to self at time at and, if
// period is not 0, at at + k·period for ever, whatever handlers take. Both are
// picoseconds, at as [Now] gives it; one that has passed means at once. A
// message leaves only when the handlers of the timer's message before have
// ended: [Expiries] tells how many expiries it stands for. Invalid: at is more
// than a second away, or period is longer, or a periodic op is to complete an
// entry. A result of 0 or more is the timer's number, for TimerCancel.
func TimerAt(at, period uint64, op *Op) Result { return timerAt(at, period, op) }

// Expiries returns how many expiries of its periodic timer the message stands
// for that is being handled: 1, and those that came while the message before
// was handled. 0: it is no message of a periodic timer.
func Expiries() uint64 { return expiries() }

// TimerCancel cancels a timer of this program at the handler's own time. What
// expires before that is still delivered. Invalid: there is no such timer.
func TimerCancel(timer Result) Result { return timerCancel(timer) }

// ToSelf delivers op to this process as a message, like a put from device that
// does not use the wire.
func ToSelf(op *Op) Result { return toSelf(op) }

// NumHPUs returns the most handlers that can be active at once (sPIN'17
// §3.2.2): contexts of all HPUs of the device, those that wait included.
func NumHPUs() int { return int(numHPUs()) }

// MyHPU returns the context the handler runs in, from 0 to NumHPUs()-1. It does
// not change while the handler runs, and no other active handler has it, so that
// it can select memory of the handler's own.
func MyHPU() int { return int(myHPU()) }

// Cycles returns how many cycles this handler has been charged so far.
func Cycles() uint64 { return cycles() }

// Log writes a line for the person who debugs. It has no effect on the simulation.
func Log(line string) { log(unsafe.StringData(line), uint32(len(line))) }

// LogValue writes a line of label, a blank and v in hexadecimal. It cuts labels
// to 40 bytes.
func LogValue(label string, v uint64) {
	var b [60]byte
	n := copy(b[:40], label)
	n += copy(b[n:], " 0x")
	shift := 60
	for shift > 0 && v>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		b[n] = "0123456789abcdef"[v>>shift&15]
		n++
	}
	log(&b[0], uint32(n))
}
