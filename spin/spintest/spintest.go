// Package spintest plays the device for handlers under test. With it, the
// source of a handler, which TinyGo compiles to wasm, is tested as plain Go.
// For example:
//
//	func TestPayload(t *testing.T) {
//		d := spintest.New(t, spintest.Config{HostMem: 8192})
//		s := State{PT: 7}
//		out := spintest.Deliver(d, spintest.Handlers[State]{Payload: payload}, &s,
//			spintest.Message{Data: make([]byte, 5000), SourceNID: 3})
//		require.Equal(t, []spin.Code{spin.Success, spin.Success}, out.Payloads)
//		require.Equal(t, uint32(3), d.Puts()[0].Op.TargetNID)
//	}
//
// The device has host memory, counters and HPUs but no time. Actions happen in
// the order of the calls and are recorded. Where a real device has freedom,
// this one makes the least convenient choice. For example, a non-blocking DMA
// operation takes effect only when the handler waits for it or ends, and its
// first test reports that it has not ended. An access outside the handler's
// memory, or a Go panic, ends the handler with spin.Segv and a line in the
// test's log.
package spintest

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/spinsim/spinsim/spin"
)

// Config describes a device.
type Config struct {
	HostMem        int // of the match entry's range, bytes
	HandlerHostMem int // of the handler host memory, bytes
	HPUs           int // 0: 4
	MTU            int // largest payload of a packet, user header included, bytes; 0: 4096
	Clusters       int // of HPUs, a divisor of them; 0: 1
	Scratchpad     int // memory of each cluster, bytes
	// memory of each message, bytes. It is filled with arbitrary bytes, so that
	// no handler relies on the content.
	MessageMemory int
	NID, PID      uint32 // of the process at this device
}

// Count is the value of a counter.
type Count struct{ Success, Failure uint64 }

// Call is an action of a handler.
type Call struct {
	Name    string // of the import (docs/abi.md, Imports)
	HPU     int
	Result  int64
	Space   spin.Space
	Offset  uint64
	A, B    uint64 // as in spin.Action
	Counter spin.Counter
	Handle  spin.Handle
	Op      spin.Op // of puts, gets, atomics, timer, timer_at, to_self
	UserHdr []byte  // of Op, at the time of the call
	Data    []byte  // the bytes that were sent, written, read or logged
}

// Device is a device for a handler under test. A test may read and change its
// fields between handlers.
type Device struct {
	Host        []byte // the match entry's range
	HandlerHost []byte // the handler host memory
	// Granted is memory of other processes. Its spaces begin at 2 (docs/abi.md,
	// Host memory).
	Granted [][]byte
	// Absent reports whether an access meets an absent page. An access with
	// TellFaults then ends with Fault. nil: all pages are present.
	Absent   func(space spin.Space, offset, n uint64, write bool) bool
	Counters map[spin.Counter]*Count
	HPU      int    // the HPU of the next handler
	Now      uint64 // what now returns, picoseconds
	Expiries uint64 // what expiries returns
	Calls    []Call // all actions so far
	// Remote returns the data for a get or a fetching atomic; nil: zeros.
	Remote func(c *Call) []byte
	// OnYield is called while a handler yields or waits for a word of memory,
	// for the actions of others; nil: there are none.
	OnYield func()

	tb        testing.TB
	config    Config
	memory    memory
	failures  map[string][]spin.Result
	pending   map[spin.Handle]*pending
	handles   spin.Handle
	timers    spin.Handle          // number of timers that were set
	cancelled map[spin.Handle]bool // timers that were cancelled
	messages  uint64
	clusters  []spin.Ptr // scratchpads of the clusters
	own       spin.Ptr   // memory of the message
	acked     bool
	message   bool // inside Deliver
	traps     []string
}

// New returns a device. Its host memory is zero and it has no counters.
func New(tb testing.TB, c Config) *Device {
	if c.HPUs == 0 {
		c.HPUs = 4
	}
	if c.MTU == 0 {
		c.MTU = 4096
	}
	c.Clusters = max(1, c.Clusters)
	return &Device{
		Host:        make([]byte, c.HostMem),
		HandlerHost: make([]byte, c.HandlerHostMem),
		Counters:    make(map[spin.Counter]*Count),
		tb:          tb,
		config:      c,
		failures:    make(map[string][]spin.Result),
		pending:     make(map[spin.Handle]*pending),
		cancelled:   make(map[spin.Handle]bool),
	}
}

// Fail makes the next times calls of the named import return r and do nothing.
func (d *Device) Fail(name string, r spin.Result, times int) {
	for range times {
		d.failures[name] = append(d.failures[name], r)
	}
}

// Named returns the calls so far of the named imports, in order.
func (d *Device) Named(names ...string) []Call {
	var found []Call
	for _, c := range d.Calls {
		for _, name := range names {
			if c.Name == name {
				found = append(found, c)
			}
		}
	}
	return found
}

// Puts returns the puts so far, from host and from device, in order.
func (d *Device) Puts() []Call { return d.Named("put_from_host", "put_from_device") }

// Names returns the names of all calls so far, in order.
func (d *Device) Names() []string {
	names := make([]string, len(d.Calls))
	for i, c := range d.Calls {
		names[i] = c.Name
	}
	return names
}

// Lines returns the lines that the handlers have logged.
func (d *Device) Lines() []string {
	var lines []string
	for _, c := range d.Named("log") {
		lines = append(lines, string(c.Data))
	}
	return lines
}

// Run runs one handler on d's present HPU and returns its code. The record may
// point anywhere. Addresses in it come from [Device.Memory] or [spin.Addr].
func Run[R, S any](d *Device, handler func(*R, *S) spin.Code, record *R, state *S) (code spin.Code) {
	if !d.message {
		d.acked = false
	}
	detach := spin.Attach(d)
	defer detach()
	defer func() {
		if cause := recover(); cause != nil {
			trap := fmt.Sprint(cause)
			d.traps = append(d.traps, trap)
			d.tb.Logf("spintest: the handler trapped: %s\n%s", trap, debug.Stack())
			code = spin.Segv
		}
		d.land()
	}()
	return handler(record, state)
}

// NewState returns a zero state with extra bytes of HPU memory behind it (see [spin.After]).
func NewState[S any](d *Device, extra int) *S {
	return newState[S](&d.memory, extra)
}

// Memory returns n bytes of HPU memory and their address.
func (d *Device) Memory(n int) ([]byte, spin.Ptr) { return d.memory.allocate(n) }
