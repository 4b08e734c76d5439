//go:build !tinygo

package accumulate

import (
	_ "embed"
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o accumulate.wasm guest

//go:embed accumulate.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("accumulate", wasm)

// TargetSlot is a payload handler that multiplies the numbers of each packet
// into an array of its node.
var TargetSlot = Library.Slot(handlers.Slot{
	Name:     "target",
	Short:    "a payload handler that multiplies the numbers of each packet into an array of its node",
	Handlers: []string{Payload},
	More:     true,
	Fields:   []string{},
	Expects: []string{
		"The entry's memory is the array of complex numbers, two doubles each; a packet has whole numbers, and host_offset is their place in the array.",
		"The host waits until all bytes of the message are counted, and compares the product with its own.",
	},
})

// Payload is the name of its handler.
const Payload = "payload"

// MaxBuffers is the largest number of buffers.
const MaxBuffers = 64

// NewState returns the initial state for 1 to [MaxBuffers] buffers of size
// bytes each, and the HPU memory for state and buffers, bytes. size is the
// largest payload of a packet, a multiple of 8. Numbers outside these ranges
// are a programmer's mistake and panic.
func NewState(buffers, size int) (s State, memory int) {
	if buffers < 1 || buffers > MaxBuffers || size < 0 || size%8 != 0 {
		panic(fmt.Sprintf("accumulate: %d buffers of %d bytes, expected 1 to %d of a multiple of 8", buffers, size, MaxBuffers))
	}
	s = State{Free: 1<<buffers - 1, BufferSize: uint32(size)}
	return s, int(unsafe.Sizeof(s)) + buffers*size
}
