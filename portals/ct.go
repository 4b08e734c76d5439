package portals

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/used"
)

// ct is a counting event with the triggered operations that wait for it.
type ct struct {
	value  CTEvent
	heap   []trigRef
	passed int // polls that preferred a counter of lower index
	handle Handle
	title  title

	_ [48]byte // 128 bytes in all: it begins a cache line
}

// total is the number that thresholds are compared with. It saturates at
// 2^64-1.
func (c *ct) total() uint64 {
	sum, carry := bits.Add64(c.value.Success, c.value.Failure, 0)
	if carry != 0 {
		return SizeMax
	}
	return sum
}

// CTAlloc (PtlCTAlloc) makes a counting event of value zero. Errors:
// ErrNoInit; ErrNoSpace with max_cts counters.
func (ni *Objects) CTAlloc() (Handle, error) {
	if ni.dead {
		return InvalidHandle, ErrNoInit
	}
	ni.proc.used.Add(used.Counter)
	if ni.counters.all.live >= ni.limits.MaxCTs {
		return InvalidHandle, exhaustedLimit(ErrNoSpace, "max_cts", ni.limits.MaxCTs)
	}
	c := &ct{title: title{number: ni.counters.made}}
	ni.counters.made++
	c.handle = ni.counters.all.add(c)
	return c.handle, nil
}

// CTFree (PtlCTFree) frees a counting event and drops the triggered operations
// that wait for it. Later counts on it have no effect, and waits for it are
// interrupted. Errors: ErrNoInit, ErrArgInvalid.
func (ni *Objects) CTFree(h Handle) error {
	c, err := ni.ctOf("CTFree", h)
	if err != nil {
		return err
	}
	ni.cancelTriggered(c)
	ni.counters.all.remove(h)
	ni.witness.interrupted(h)
	return nil
}

// CTCancelTriggered (PtlCTCancelTriggered) drops the triggered operations that
// wait for a counting event. Errors: ErrNoInit, ErrArgInvalid.
func (ni *Objects) CTCancelTriggered(h Handle) error {
	c, err := ni.ctOf("CTCancelTriggered", h)
	if err != nil {
		return err
	}
	ni.cancelTriggered(c)
	return nil
}

// CTGet (PtlCTGet) returns the value of a counting event. Errors: ErrNoInit,
// ErrArgInvalid.
func (ni *Objects) CTGet(h Handle) (CTEvent, error) {
	c, err := ni.ctOf("CTGet", h)
	if err != nil {
		return CTEvent{}, err
	}
	return c.value, nil
}

// CTPoll is one step of PtlCTPoll, and of PtlCTWait for a single counter. It
// returns value and index of the first counter whose successes have reached its
// test, or that has counted a failure (Portals 4.x §3.14.6). If a counter of
// higher index is ready too, CTPoll passes over it a few times at most.
// ErrCTNoneReached means that the caller waits for the CounterChanged hook or
// its time-out. Other errors: ErrNoInit; ErrAborted after Abort; ErrArgInvalid
// if a handle names no counter, for example because the counter was freed
// during the wait.
func (ni *NI) CTPoll(hs []Handle, tests []uint64) (CTEvent, int, error) {
	if ni.proc.aborted {
		return CTEvent{}, 0, ErrAborted
	}
	if len(hs) != len(tests) {
		return CTEvent{}, 0, invalid("CTPoll", "%d counters but %d tests", len(hs), len(tests))
	}
	if ni.dead {
		return CTEvent{}, 0, ErrNoInit
	}
	first, starved := -1, -1
	for i, h := range hs {
		c, err := ni.ctOf("CTPoll", h)
		if err != nil {
			return CTEvent{}, 0, err
		}
		if !c.reached(tests[i]) {
			continue
		}
		if first < 0 {
			first = i
		}
		if starved < 0 && c.passed >= pollPatience {
			starved = i
		}
	}
	if first < 0 {
		return CTEvent{}, 0, ErrCTNoneReached
	}
	which := first
	if starved >= 0 {
		which = starved
	}
	for i, h := range hs {
		if c := ni.counters.all.get(h); i != which && c.reached(tests[i]) {
			c.passed++
		}
	}
	c := ni.counters.all.get(hs[which])
	c.passed = 0
	return c.value, which, nil
}

// reached is the condition of a wait: enough successes, or any failure.
func (c *ct) reached(test uint64) bool { return c.value.Success >= test || c.value.Failure != 0 }

// CTSet (PtlCTSet) sets a counting event. Triggered operations whose threshold
// the new value has reached fire. Errors: ErrNoInit, ErrArgInvalid.
func (ni *Objects) CTSet(h Handle, value CTEvent) error {
	c, err := ni.ctOf("CTSet", h)
	if err != nil {
		return err
	}
	ni.counters.set(c, value)
	ni.drain()
	return nil
}

// CTInc (PtlCTInc) adds to a counting event: either to the successes or to the
// failures. Triggered operations whose threshold is reached fire. Errors:
// ErrNoInit, ErrArgInvalid.
func (ni *Objects) CTInc(h Handle, increment CTEvent) error {
	c, err := ni.ctOf("CTInc", h)
	if err != nil {
		return err
	}
	if increment.Success != 0 && increment.Failure != 0 {
		return invalid("CTInc", "increment of both success and failure")
	}
	ni.counters.set(c, CTEvent{c.value.Success + increment.Success, c.value.Failure + increment.Failure})
	ni.drain()
	return nil
}
