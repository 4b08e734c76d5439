// Package second is the interface between package hpu and a second WebAssembly
// runtime, which checks wazero. A runtime registers itself when its package is
// initialised. It may be in its own module, so that only its users fetch it.
package second

import (
	"maps"
	"slices"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// Runtime compiles modules. It and all its objects belong to one goroutine at a
// time.
type Runtime interface {
	// Compile makes machine code of a module that the loader has checked and
	// rewritten.
	Compile(binary []byte) (Code, error)
	// Fault explains an error of Instance.Call: the cause of the trap, and the
	// functions on the stack, innermost first.
	Fault(err error) (Fault, []Frame)
	// Close gives everything back. The code that it has compiled must be closed
	// before.
	Close()
}

// Frame is a function that was running, by number. Offset is the offset of its
// present instruction in the module, bytes.
type Frame struct{ Func, Offset int }

// Code is a compiled module.
type Code interface {
	// Instantiate makes an instance. The imports are in the order of the
	// module.
	Instantiate(imports []Import) (Instance, error)
	Close()
}

// Import is a function of the host. Call finds its arguments in stack, as the
// bits of each i32 or i64, and leaves its results there.
type Import struct {
	Type wasm.FuncType
	Call func(stack []uint64)
}

// Instance is an instance of a module with its memory.
type Instance interface {
	// Memory returns the linear memory. It does not move until it grows.
	Memory(name string) []byte
	// Grow adds pages of 64 KiB to the memory.
	Grow(name string, pages uint64) error
	// Global returns an exported global variable.
	Global(name string) Global
	// Call calls an exported function with the bits of its arguments. It
	// returns the bits of its results.
	Call(name string, args ...uint64) ([]uint64, error)
	Close()
}

// Global is a mutable global variable of any number type, as its bits.
type Global interface {
	Get() uint64
	Set(bits uint64)
}

// Fault is the cause of a trap of WebAssembly code.
type Fault uint8

// Faults that runtimes distinguish.
const (
	Unknown   Fault = iota // none of these
	Stack                  // the runtime's own stack is used up
	Memory                 // an access out of bounds
	Table                  // an indirect call to nothing
	Signature              // an indirect call of a function with another type
	Overflow
	DivideByZero
	Conversion // of a floating-point number that has no integer value
	Unreachable
)

// Open makes a runtime.
type Open func() (Runtime, error)

var registered = map[string]Open{}

// Register makes a runtime known by a name. A package with a runtime calls it
// in func init.
func Register(name string, open Open) { registered[name] = open }

// Find returns the runtime with a name; nil: this program has none.
func Find(name string) Open { return registered[name] }

// Names lists the runtimes that this program has.
func Names() []string { return slices.Sorted(maps.Keys(registered)) }
