package hpu

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/visible"
)

// LoadError is the reason why a module was refused.
type LoadError struct {
	Module string // name given to Load
	Func   string // "": the error is in no function
	Offset int    // bytes from the beginning of the module, -1 if unknown
	Cause  string
}

// Error names module, function, offset and cause.
func (e *LoadError) Error() string {
	return at(e.Module, e.Func, e.Offset) + ": " + visible.Line(e.Cause)
}

func at(module, function string, offset int) string {
	s := "module " + visible.Line(module)
	if function != "" {
		s += ", function " + visible.Line(function)
	}
	if offset >= 0 {
		s += fmt.Sprintf(", offset 0x%x", offset)
	}
	return s
}

// TrapKind is the reason why a handler ended before it returned.
type TrapKind uint8

// Kinds of traps. The count of cycles at a trap includes the whole basic block
// with the trap.
const (
	TrapNone TrapKind = iota
	// more cycles than the budget, at a check of the budget (docs/abi.md,
	// Metering)
	TrapBudget
	TrapKilled // Context.Kill
	// a memory access or an address for an import outside the memory
	TrapOutOfBounds
	// an address for cas, fadd or atomic32 that is not a multiple of the
	// operand's size
	TrapMisaligned
	TrapUnreachable       // the instruction unreachable: a panic of TinyGo, an abort of C
	TrapDivideByZero      // integer division or remainder
	TrapIntegerOverflow   // integer division or conversion
	TrapInvalidConversion // NaN to integer
	TrapIndirectCall      // no function at the index of the table
	// more active calls than Spec.MaxCallDepth, or fewer calls with large
	// frames
	TrapCallDepth
	TrapStackOverflow // the shadow stack is used up
	TrapForbidden     // an action in _initialize or the start function
	TrapEngine        // the engine's own stack is used up
	TrapArgument      // an operation that atomic32 does not know
	TrapNull          // an access below NullBytes in a module that is watched for them
	TrapSignature     // a function of another type at the index of the table
)

var trapNames = [...]string{
	"none", "killed: budget exceeded", "killed", "out of bounds memory access", "misaligned address", "unreachable",
	"integer divide by zero", "integer overflow", "invalid conversion to integer", "indirect call of a function that is not there",
	"call depth exceeded", "shadow stack overflow", "action not allowed at load", "engine stack overflow", "wrong argument",
	"NULL pointer", "indirect call with another signature than the function's",
}

// String describes the kind.
func (k TrapKind) String() string {
	if int(k) < len(trapNames) {
		return trapNames[k]
	}
	return fmt.Sprintf("trap %d", uint8(k))
}

// Code returns the return code that a trap counts as: SEGV for bad addresses,
// otherwise FAIL (docs/abi.md, Handlers).
func (k TrapKind) Code() Code {
	if k == TrapOutOfBounds || k == TrapMisaligned || k == TrapStackOverflow || k == TrapNull {
		return Segv
	}
	return Fail
}

// Trap is the end of a handler that did not return.
type Trap struct {
	Kind   TrapKind
	Module string
	Func   string // of the function, "" if unknown
	Index  int    // of the function, -1 if unknown
	Offset int    // of the instruction, bytes from the beginning of the module, -1 if unknown
	Source Source // of the instruction, if the module has debugging information
	Op     Op     // the import that was called, or OpNone
	Detail string // "" or more about the cause
}

// trapLimits are the fields of a profile that cause a kind of trap.
var trapLimits = map[TrapKind]string{
	TrapBudget: "hpu.max_cycles, hpu.max_cycles_per_byte", TrapCallDepth: "hpu.max_call_depth", TrapStackOverflow: "hpu.stack_bytes",
}

// Error names the cause and the place: module, function and line of the source.
// Without debugging information it names the offset in the module. If a limit
// of the profile is the cause, it names the limit.
func (t *Trap) Error() string {
	s := at(t.Module, t.Func, t.Offset) + ": "
	if t.Source.Line > 0 {
		s = fmt.Sprintf("module %s, %v: ", t.Module, t.Source)
	}
	if t.Op != OpNone {
		s += t.Op.String() + ": "
	}
	s += t.Kind.String()
	if t.Detail != "" {
		s += ": " + t.Detail
	}
	if limit := trapLimits[t.Kind]; limit != "" {
		s += " (" + limit + ")"
	}
	return s
}

// ErrClosed is returned by operations on an engine or code that has been closed.
var ErrClosed = errors.New("hpu: closed")
