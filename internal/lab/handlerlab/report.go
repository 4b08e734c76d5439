package handlerlab

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// Nanoseconds is virtual time that JSON shows as an exact number of
// nanoseconds.
type Nanoseconds sim.Time

// MarshalJSON writes the number.
func (n Nanoseconds) MarshalJSON() ([]byte, error) { return []byte(n.text(-1)), nil }

// Whole returns the number without its fraction.
func (n Nanoseconds) Whole() int64 { return int64(n / Nanoseconds(sim.Nanosecond)) }

// text formats the number with the given digits behind the point, at most 3;
// -1: as many as are necessary.
func (n Nanoseconds) text(digits int) string {
	whole, rest := n/Nanoseconds(sim.Nanosecond), n%Nanoseconds(sim.Nanosecond)
	s := fmt.Sprintf("%d.%03d", whole, rest)
	if digits < 0 {
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return strings.TrimSuffix(s[:len(s)-3+digits], ".")
}

// digits returns how many digits behind the point text needs.
func (n Nanoseconds) digits() int {
	s := n.text(-1)
	if i := strings.IndexByte(s, '.'); i >= 0 {
		return len(s) - i - 1
	}
	return 0
}

// Report is the result of a run. Its JSON form is the output of "spinsim
// handler run --format json".
type Report struct {
	Module   string           `json:"module"`
	Profile  string           `json:"profile"`
	Node     int              `json:"device_node"`
	HPUs     int              `json:"hpus"`
	ClockHz  int64            `json:"clock_hz"`
	MTU      int              `json:"mtu_bytes"`
	Messages []MessageReport  `json:"messages"`
	Handlers []*HandlerReport `json:"handlers"` // by message and packet
	Events   []EventReport    `json:"events"`   // by time
	Counters []CounterReport  `json:"counters,omitempty"`
	State    MemoryReport     `json:"state"` // HPU memory
	Fields   []FieldReport    `json:"state_fields,omitempty"`
	Host     MemoryReport     `json:"host_memory"`
	Handler  MemoryReport     `json:"handler_host_memory"`
	End      Nanoseconds      `json:"end_ns"`
	Cycles   int64            `json:"cycles"`
	Races    []*RaceReport    `json:"races,omitempty"`
	// cycles and instructions by line, if the configuration asks for them
	Lines *Lines `json:"-"`
	// errors of handlers in the order of time; empty after a good run
	Errors  []string `json:"errors,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Omitted *Omitted `json:"omitted,omitempty"` // what is not listed; nil: nothing

	format        *Format
	same, outside int   // numbers of the state that Fields does not list
	end           error // why the run stopped early; nil: it did not
}

// Omitted counts the parts that a report leaves out to stay short.
type Omitted struct {
	Handlers int `json:"handlers"`
	Actions  int `json:"actions"`
	Events   int `json:"events"`
}

// Limits of the lists of a report.
const (
	listedHandlers = 10_000
	listedActions  = 100_000 // of all handlers
	listedEvents   = 10_000
)

// MessageReport is the fate of a message.
type MessageReport struct {
	Number    int    `json:"message"` // from 1
	Source    int    `json:"source"`
	Bytes     int    `json:"bytes"`
	Offset    uint64 `json:"offset"`
	MatchBits uint64 `json:"match_bits"`
	HdrData   uint64 `json:"hdr_data"`
	Refused   string `json:"refused,omitempty"` // why the device refused it
}

// HandlerReport is one run of a handler.
type HandlerReport struct {
	Kind    string `json:"handler"`
	Message int    `json:"message"` // 0: a message that a handler sent to its own process
	ID      uint64 `json:"msg_id"`
	Packet  int    `json:"packet"`
	// payload handler: bytes of the packet; header handler: bytes of the user
	// header
	Bytes   uint64         `json:"bytes"`
	Offset  uint64         `json:"offset"`         // payload handler: of the packet in the message
	Pool    string         `json:"pool,omitempty"` // of processors; "": the HPUs
	HPU     int            `json:"hpu"`
	Start   Nanoseconds    `json:"start_ns"`
	Took    Nanoseconds    `json:"took_ns"`
	Cycles  int64          `json:"cycles"`
	Code    int            `json:"code"`
	Return  string         `json:"return"`
	Trap    string         `json:"trap,omitempty"`
	Actions []ActionReport `json:"actions"`

	ended bool
	cut   bool // an action is not listed
}

// ActionReport is one action of a handler. Times count from the beginning of
// the handler.
type ActionReport struct {
	Name   string       `json:"action"`
	At     Nanoseconds  `json:"at_ns"`
	Cycles int64        `json:"cycles"`
	What   string       `json:"what"`
	Result int64        `json:"result"`
	Answer string       `json:"answer,omitempty"`    // the result in words
	Done   *Nanoseconds `json:"done_ns,omitempty"`   // when the handler went on after waiting
	Landed *Nanoseconds `json:"landed_ns,omitempty"` // when a non-blocking operation took effect
	// bytes that it sends or writes to host memory, in hexadecimal, if the
	// configuration asks for them
	Bytes  string `json:"bytes,omitempty"`
	Failed string `json:"failed,omitempty"` // the error of a non-blocking operation

	op     hpu.Op
	handle int
}

// EventReport is a full event of a node's process.
type EventReport struct {
	At        Nanoseconds `json:"at_ns"`
	Node      int         `json:"node"`
	Type      string      `json:"type"`
	Fail      string      `json:"fail"`
	PT        int         `json:"pt"`
	Source    int         `json:"source"`
	Length    uint64      `json:"length"`
	Requested uint64      `json:"requested"`
	Offset    uint64      `json:"offset"`
	MatchBits uint64      `json:"match_bits"`
	HdrData   uint64      `json:"hdr_data"`
}

// CounterReport is a counter of the host at the end.
type CounterReport struct {
	Name    string `json:"name"`
	Success uint64 `json:"success"`
	Failure uint64 `json:"failure"`
}

// MemoryReport is memory before and after the run.
type MemoryReport struct {
	Bytes  int       `json:"bytes"`
	Before HexString `json:"before"`
	After  HexString `json:"after"`
}

// HexString is bytes that JSON shows in hexadecimal, without the zeros at the
// end.
type HexString []byte

// MarshalText writes the digits.
func (h HexString) MarshalText() ([]byte, error) {
	n := len(h)
	for n > 0 && h[n-1] == 0 {
		n--
	}
	return fmt.Appendf(nil, "%x", []byte(h[:n])), nil
}

// invalidCode stands for a return code that the kind of handler may not return.
// For example, 0 is SUCCESS, but not for a header handler.
const invalidCode = "INVALID"

func codeName(c hpu.Code) string {
	return cmp.Or(c.Name(), strconv.Itoa(int(c)))
}

var resultNames = map[int64]string{
	hpu.OK: "OK", hpu.Fault: "FAULT", hpu.Denied: "DENIED", hpu.Invalid: "INVALID", hpu.NoSpace: "NO_SPACE",
	hpu.NotSupported: "NOT_SUPPORTED",
}

func resultName(r int64) string {
	if name, ok := resultNames[r]; ok {
		return name
	}
	return strconv.FormatInt(r, 10)
}

// ParseResult reads the name of an error of an action, such as fault. Case does
// not matter.
func ParseResult(s string) (int64, error) {
	for r := hpu.Fault; r >= hpu.NotSupported; r-- {
		if strings.EqualFold(resultNames[r], s) {
			return r, nil
		}
	}
	return 0, fmt.Errorf("no result %q, expected fault, denied, invalid, no_space or not_supported", s)
}

// vague reports whether the action names a place in memory that the compiler
// chose.
func (a *ActionReport) vague() bool {
	return a.op != hpu.OpLog && strings.Contains(a.What, "memory 0x")
}
