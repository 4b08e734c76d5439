package portals

import "fmt"

// Code is a return code of the standard (Portals 4.x §3.3, "return codes").
// Functions return nil for PTL_OK. Otherwise they return an error that equals
// one of these codes under errors.Is.
type Code int

// Return codes. The comment gives the C name.
const (
	OK               Code = iota // PTL_OK; never returned as an error
	ErrArgInvalid                // PTL_ARG_INVALID: an argument is invalid
	ErrCTNoneReached             // PTL_CT_NONE_REACHED: no counter of a poll reached its test
	// PTL_EQ_DROPPED: an event is returned, and at least one before it was lost
	ErrEQDropped
	ErrEQEmpty     // PTL_EQ_EMPTY: no event in the queue
	ErrFail        // PTL_FAIL: unspecific failure; nothing here fails that way
	ErrIgnored     // PTL_IGNORED: the logical map is fixed by the run-time system
	ErrInUse       // PTL_IN_USE: the object is in use
	ErrListTooLong // PTL_LIST_TOO_LONG: the list has max_list_size entries
	ErrNoInit      // PTL_NO_INIT: the library or the interface is not initialised
	ErrNoSpace     // PTL_NO_SPACE: a limit of the interface is exhausted
	ErrPIDInUse    // PTL_PID_IN_USE: the process identifier is taken
	ErrPTFull      // PTL_PT_FULL: no free portal table entry
	ErrPTEQNeeded  // PTL_PT_EQ_NEEDED: flow control without an event queue
	ErrPTInUse     // PTL_PT_IN_USE: the portal table entry is allocated
	// PTL_ABORTED: Abort was called. If an object is freed during a wait for
	// it, the wait ends with ErrArgInvalid instead.
	ErrAborted
	codeCount
)

var codeNames = [codeCount]string{
	"OK", "ARG_INVALID", "CT_NONE_REACHED", "EQ_DROPPED", "EQ_EMPTY", "FAIL", "IGNORED", "IN_USE",
	"LIST_TOO_LONG", "NO_INIT", "NO_SPACE", "PID_IN_USE", "PT_FULL", "PT_EQ_NEEDED", "PT_IN_USE", "ABORTED",
}

// String returns the C name without its prefix, e.g. "PT_FULL".
func (c Code) String() string { return nameOf(codeNames[:], int(c)) }

// Error implements error.
func (c Code) Error() string { return "portals: PTL_" + c.String() }

// argError is ErrArgInvalid with the function and the reason.
type argError struct{ fn, why string }

// Error implements error.
func (e *argError) Error() string { return "portals: " + e.fn + ": PTL_ARG_INVALID: " + e.why }

// Unwrap makes errors.Is(err, ErrArgInvalid) hold.
func (e *argError) Unwrap() error { return ErrArgInvalid }

// invalid is not inlined, so that its callers need less of a stack.
//
//go:noinline
func invalid(fn, format string, args ...any) error {
	return &argError{fn: fn, why: fmt.Sprintf(format, args...)}
}

// limitError is a code with the exhausted limit of the interface, by its name
// in a profile.
type limitError struct {
	code  Code
	limit string
	most  int
}

// Error implements error.
func (e *limitError) Error() string {
	return fmt.Sprintf("%v: limits.%s is %d", e.code, e.limit, e.most)
}

// Unwrap makes errors.Is(err, e.code) hold.
func (e *limitError) Unwrap() error { return e.code }

// exhaustedLimit returns the error for an object beyond a limit.
func exhaustedLimit(code Code, limit string, most int) error { return &limitError{code, limit, most} }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) || names[i] == "" {
		return fmt.Sprintf("UNKNOWN(%d)", i)
	}
	return names[i]
}
