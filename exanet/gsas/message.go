package gsas

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/exanet"
)

// op is the operation of a request.
type op uint8

const (
	opAlloc op = iota + 1 // a: bytes
	opFree
	opRead         // a: bytes, b: destination, c: notification, both in the caller's memory
	opWrite        // a: bytes, b: source in the caller's memory
	opStore        // at most Inline bytes, inside the request
	opFetchAdd     // a: operand, as in those that follow
	opSwap         //
	opCompareSwap  // b: expected value
	opFetchOr      //
	opFetchAnd     //
	opFetchXor     //
	opFetchMin     // as signed numbers
	opFetchMax     //
	opFetchMinU    // as unsigned numbers
	opFetchMaxU    //
	opLoad         //
	opStoreWord    //
	opBarrierAlloc // a: processes
	opBarrierWait
	ops
)

var opNames = [ops]string{
	opAlloc: "alloc", opFree: "free", opRead: "read", opWrite: "write", opStore: "write", opFetchAdd: "fetch-and-add", opSwap: "swap", opCompareSwap: "compare-and-swap",
	opFetchOr: "fetch-and-or", opFetchAnd: "fetch-and-and", opFetchXor: "fetch-and-xor", opFetchMin: "fetch-and-min", opFetchMax: "fetch-and-max",
	opFetchMinU: "fetch-and-min", opFetchMaxU: "fetch-and-max", opLoad: "load", opStoreWord: "store",
	opBarrierAlloc: "new barrier", opBarrierWait: "barrier",
}

// atomic reports whether the operation changes a word of 8 bytes and returns
// its previous value.
func (o op) atomic() bool { return o >= opFetchAdd && o <= opStoreWord }

// status is the result of a request.
type status uint8

const (
	done status = iota
	noMemory
	dead
	beyond
	unaligned
	badSize
	notBarrier
	isBarrier
	transferFailed
	strange
)

// Inline is the number of data bytes that a message can carry. Larger reads and
// writes go by RDMA.
const Inline = exanet.MaxPayload - inlineAt

// Layout of a message, request or answer: op, status, length of the bytes,
// number; then the pointer of a request; then operands or bytes.
const (
	numberAt = 4
	targetAt = 8
	inlineAt = 16
)

// message is a request or an answer.
type message struct {
	op      op
	status  status
	length  int // of bytes
	number  uint32
	target  Pointer // of an answer to alloc: the new allocation
	a, b, c uint64  // of an answer: a is the value
	bytes   [Inline]byte
}

// encode writes the message into b and returns the part to send.
func (m *message) encode(b *[exanet.MaxPayload]byte) []byte {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = byte(m.op), byte(m.status), byte(m.length), 0
	le.PutUint32(b[numberAt:], m.number)
	le.PutUint64(b[targetAt:], uint64(m.target))
	if m.length > 0 {
		return b[:inlineAt+copy(b[inlineAt:], m.bytes[:m.length])]
	}
	last := 0
	for i, v := range [...]uint64{m.a, m.b, m.c} {
		le.PutUint64(b[inlineAt+8*i:], v)
		if v != 0 {
			last = i + 1
		}
	}
	return b[:inlineAt+8*last] // decode takes missing operands as 0
}

// err returns the error that an answer carries.
func (m *message) err() error {
	if why := m.b; m.status == transferFailed && why >= 1 && why <= uint64(len(transferErrors)) {
		return fmt.Errorf("%w: %w", ErrTransfer, transferErrors[why-1])
	}
	return statusErrors[m.status]
}

// decode reads a message of n bytes. It is false if these are no message.
func (m *message) decode(b *[exanet.MaxPayload]byte, n int) bool {
	if n < inlineAt {
		return false
	}
	clear(b[n:])
	le := binary.LittleEndian
	*m = message{op: op(b[0]), status: status(b[1]), length: int(b[2]), number: le.Uint32(b[numberAt:]), target: Pointer(le.Uint64(b[targetAt:]))}
	if m.op == 0 || m.op >= ops || m.length > Inline {
		return false
	}
	if m.length > 0 {
		copy(m.bytes[:], b[inlineAt:])
		return true
	}
	m.a, m.b, m.c = le.Uint64(b[inlineAt:]), le.Uint64(b[inlineAt+8:]), le.Uint64(b[inlineAt+16:])
	return true
}
