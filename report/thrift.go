package report

import "encoding/binary"

// thrift writes structs in the compact protocol of Apache Thrift. It has only
// what Parquet footers need.
type thrift struct {
	out   []byte
	last  int16   // number of the previous field
	outer []int16 // the same for the surrounding structs
}

// Types of the protocol.
const (
	thriftI32    = 5
	thriftI64    = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

// field begins a field. Numbers rise by at most 15.
func (h *thrift) field(number int16, kind byte) {
	h.out = append(h.out, byte(number-h.last)<<4|kind) //nolint:gosec // up to 15
	h.last = number
}

func (h *thrift) varint(v int64)            { h.out = binary.AppendVarint(h.out, v) }
func (h *thrift) i32(number int16, v int32) { h.field(number, thriftI32); h.varint(int64(v)) }
func (h *thrift) i64(number int16, v int64) { h.field(number, thriftI64); h.varint(v) }

func (h *thrift) bytes(s string) {
	h.out = append(binary.AppendUvarint(h.out, uint64(len(s))), s...)
}

func (h *thrift) text(number int16, s string) { h.field(number, thriftBinary); h.bytes(s) }

// list begins a list. Its n elements follow.
func (h *thrift) list(number int16, n int, kind byte) {
	h.field(number, thriftList)
	if n < 15 {
		h.out = append(h.out, byte(n)<<4|kind) //nolint:gosec // less than 15
		return
	}
	h.out = binary.AppendUvarint(append(h.out, 0xf0|kind), uint64(n)) //nolint:gosec // not negative
}

// begin begins a struct field. end ends it.
func (h *thrift) begin(number int16) {
	h.field(number, thriftStruct)
	h.item()
}

// item begins a struct in a list. stop ends it.
func (h *thrift) item() {
	h.outer = append(h.outer, h.last)
	h.last = 0
}

func (h *thrift) end() { h.stop() }

// stop ends a struct.
func (h *thrift) stop() {
	h.out = append(h.out, 0)
	if n := len(h.outer); n > 0 {
		h.last, h.outer = h.outer[n-1], h.outer[:n-1]
	}
}

// keyValues writes a list of KeyValue.
func (h *thrift) keyValues(number int16, list [][2]string) {
	h.list(number, len(list), thriftStruct)
	for _, kv := range list {
		h.item()
		h.text(1, kv[0])
		h.text(2, kv[1])
		h.stop()
	}
}
