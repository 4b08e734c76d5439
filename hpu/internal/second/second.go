// Package second is what package hpu asks of a WebAssembly runtime that is to
// check wazero. A runtime registers itself when its package is initialised; it
// may be in a module of its own, so that nobody fetches it who does not want
// it.
package second

import (
	"maps"
	"slices"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// Runtime compiles modules. It and all that it makes belong to one goroutine at a time.
type Runtime interface {
	// Compile makes machine code of a module that the loader has checked and rewritten.
	Compile(binary []byte) (Code, error)
	// Fault says what an error of Instance.Call was: what trapped, and the
	// functions on the stack, innermost first.
	Fault(err error) (Fault, []Frame)
	// Close gives everything back; what it has compiled must be closed.
	Close()
}

// Frame is a function that was running, by its number, and the offset of its
// present instruction in the module, bytes.
type Frame struct{ Func, Offset int }

// Code is a compiled module.
type Code interface {
	// Instantiate makes an instance with imports in the order of the module's.
	Instantiate(imports []Import) (Instance, error)
	Close()
}

// Import is a function of the host. Call finds its arguments in stack, the bits
// of each i32 or i64, and leaves its results there.
type Import struct {
	Type wasm.FuncType
	Call func(stack []uint64)
}

// Instance is an instance of a module with its memory.
type Instance interface {
	// Memory returns the linear memory, which stays where it is until it grows.
	Memory(name string) []byte
	// Grow makes the memory larger by pages of 64 KiB.
	Grow(name string, pages uint64) error
	// Global returns an exported global variable.
	Global(name string) Global
	// Call calls an exported function with the bits of its arguments and returns those of its results.
	Call(name string, args ...uint64) ([]uint64, error)
	Close()
}

// Global is a mutable global variable of any number type, as its bits.
type Global interface {
	Get() uint64
	Set(bits uint64)
}

// Fault is what made WebAssembly code trap.
type Fault uint8

// Faults that runtimes tell apart.
const (
	Unknown   Fault = iota // none of these
	Stack                  // the runtime's own stack is used up
	Memory                 // an access out of bounds
	Table                  // an indirect call to nothing
	Signature              // an indirect call of a function of another type
	Overflow
	DivideByZero
	Conversion // of a floating-point number that is no integer
	Unreachable
)

// Open makes a runtime.
type Open func() (Runtime, error)

var registered = map[string]Open{}

// Register makes a runtime known by its name; it is called by func init of a package that has one.
func Register(name string, open Open) { registered[name] = open }

// Find returns the runtime of a name, nil if this program has none.
func Find(name string) Open { return registered[name] }

// Names lists the runtimes that this program has.
func Names() []string { return slices.Sorted(maps.Keys(registered)) }
