package handlerlab

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/sim"
)

// ns formats a time as nanoseconds with the given digits behind the point, at
// most 3; -1: as many as are necessary.
func ns(t sim.Time, digits int) string {
	s := fmt.Sprintf("%d.%03d", t/sim.Nanosecond, t%sim.Nanosecond)
	if digits < 0 {
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return strings.TrimSuffix(s[:len(s)-3+digits], ".")
}

// digits returns how many digits behind the point ns needs.
func digits(t sim.Time) int {
	_, fraction, _ := strings.Cut(ns(t, -1), ".")
	return len(fraction)
}

// tables are the lists of a report.
func (r *Report) tables() (details []experiment.Detail, rows []experiment.Rows) {
	var actions []ActionReport
	for _, h := range r.Handlers {
		actions = append(actions, h.Actions...)
	}
	tables := []experiment.Detail{
		lab.TableOf[MessageReport]("sent", "Messages"), lab.TableOf[HandlerReport]("handlers", "Handlers"), lab.TableOf[ActionReport](ActionsTable, "Actions"),
		lab.TableOf[EventReport]("events", "Events"), lab.TableOf[CounterReport]("counters", "Counters"), lab.TableOf[FieldReport]("fields", "State"),
		lab.TableOf[MemoryReport]("memory", "Memory"),
	}
	return tables, []experiment.Rows{
		lab.RowsOf(r.Messages), lab.RowsOf(r.Handlers), lab.RowsOf(actions), lab.RowsOf(r.Events), lab.RowsOf(r.Counters), lab.RowsOf(r.Fields), lab.RowsOf(r.Memory),
	}
}

// Report is the result of a run. The experiment has its lists as tables, whose
// columns are the fields with the tag column.
type Report struct {
	Module   string
	Profile  string
	Node     int
	HPUs     int
	ClockHz  int64
	MTU      int
	Messages []MessageReport
	Handlers []*HandlerReport // by message and packet
	Events   []EventReport    // by time
	Counters []CounterReport
	Fields   []FieldReport
	Memory   []MemoryReport
	// HPU memory, that of the entry, and that of handlers after the run
	State, Host, Handler []byte
	End                  sim.Time
	Calls                int   // handlers that ran, listed or not
	Cycles               int64 // of all handlers
	Races                []*RaceReport
	// cycles and instructions by line, if the configuration asks for them
	Lines *Lines
	// errors of handlers in the order of time; empty after a good run
	Errors  []string
	Notes   []string
	Omitted Omitted // what is not listed

	format        *Format
	same, outside int               // numbers of the state that Fields does not list
	end           error             // why the run stopped early; nil: it did not
	of            *experiment.Point // that was run; nil: none
	totals        totals
}

// Omitted counts the parts that a report leaves out to stay short.
type Omitted struct{ Handlers, Actions, Events int }

// Limits of the lists of a report.
const (
	listedHandlers = 10_000
	listedActions  = 100_000 // of all handlers
	listedEvents   = 10_000
)

// MessageReport is the fate of a message.
type MessageReport struct {
	Number    int    `column:"message" help:"Its number, from 1."`
	Source    int    `column:"source" help:"Node that sent it."`
	Bytes     int    `column:"bytes" help:"Its length, with the user header."`
	Offset    uint64 `column:"offset,hex" help:"Remote offset."`
	MatchBits uint64 `column:"match_bits,hex" help:"Match bits."`
	HdrData   uint64 `column:"hdr_data,hex" help:"64 bits of the initiator."`
	Refused   string `column:"refused" help:"Why the device refused it; empty: it did not."`
}

// HandlerReport is one run of a handler.
type HandlerReport struct {
	Number  int      `column:"number" help:"Its number, by message and packet."`
	Kind    string   `column:"kind" help:"Kind of handler."`
	Message int      `column:"message" help:"Number of the message; 0: one that a handler sent to its own process."`
	ID      uint64   `column:"msg_id" help:"Number of the message on the device."`
	Packet  int      `column:"packet" help:"Number of the packet in the message."`
	Bytes   uint64   `column:"bytes" help:"Of a payload handler the bytes of the packet, of a header handler those of the user header."`
	Offset  uint64   `column:"offset,hex" help:"Of a payload handler the place of the packet in the message, bytes."`
	Pool    string   `column:"pool" help:"Pool of its processor; empty: the HPUs."`
	HPU     int      `column:"hpu" help:"Its processor."`
	Start   sim.Time `column:"start" help:"When it began."`
	Took    sim.Time `column:"took" help:"From its beginning to its end."`
	Cycles  int64    `column:"cycles" help:"Cycles charged to it."`
	Code    int      `column:"code" help:"Return code."`
	Return  string   `column:"returned" help:"Name of the return code."`
	Trap    string   `column:"trap" help:"What ended it in place of a return; empty: nothing."`
	Ended   bool     `column:"ended" help:"Whether it ended before the run did."`
	Actions []ActionReport

	cut bool // an action is not listed
}

// ActionReport is one action of a handler. Times count from the beginning of
// the handler.
type ActionReport struct {
	Number int       `column:"number" help:"Number of the handler."`
	Name   string    `column:"action" help:"The import that it called."`
	At     sim.Time  `column:"at" help:"When, since the beginning of the handler."`
	Cycles int64     `column:"cycles" help:"Cycles charged to the handler by then."`
	What   string    `column:"what" help:"Its arguments in words."`
	Result int64     `column:"result" help:"What the call returned."`
	Answer string    `column:"answer" help:"The same in words."`
	Done   *sim.Time `column:"done" help:"When the handler went on after waiting; empty: it did not wait."`
	Landed *sim.Time `column:"landed" help:"When a non-blocking operation took effect."`
	Bytes  string    `column:"hex" help:"Bytes that it sent or wrote to host memory, with --bytes."`
	Failed string    `column:"failed" help:"Error that the call or its operation ended with; empty: none."`

	handle int
}

// EventReport is a full event of a node's process.
type EventReport struct {
	At        sim.Time `column:"time" help:"When the event was posted."`
	Node      int      `column:"node" help:"Node whose process got it."`
	Type      string   `column:"event" help:"Type of the event."`
	Fail      string   `column:"result" help:"OK, or why it failed."`
	PT        int      `column:"pt" help:"Portal table index."`
	Source    int      `column:"source" help:"Node of the initiator."`
	Length    uint64   `column:"bytes" help:"Bytes that were moved."`
	Requested uint64   `column:"requested_bytes" help:"Bytes that were asked for."`
	Offset    uint64   `column:"offset,hex" help:"Remote offset."`
	MatchBits uint64   `column:"match_bits,hex" help:"Match bits of the request."`
	HdrData   uint64   `column:"hdr_data,hex" help:"64 bits of the initiator."`
}

// CounterReport is a counter of the host at the end.
type CounterReport struct {
	Name    string `column:"counter" help:"Its name in --state."`
	Success uint64 `column:"success" help:"Successes."`
	Failure uint64 `column:"failure" help:"Failures."`
}

// MemoryReport is a memory with what has changed in it: whole lines of a dump.
type MemoryReport struct {
	Name   string `column:"memory" help:"Which memory."`
	Bytes  int    `column:"bytes" help:"Its length."`
	At     int    `column:"offset" help:"Of the first byte that is listed."`
	Before []byte `column:"before,hex" help:"Bytes from there before the run; empty: nothing has changed."`
	After  []byte `column:"after,hex" help:"The same bytes behind the run."`
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
	return a.Name != hpu.OpLog.String() && strings.Contains(a.What, "memory 0x")
}
