package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// adviseFlags are the flags of "advise": the module and device, as in "handler
// run", and the messages.
type adviseFlags struct {
	deviceFlags
	state                       []string
	payloadFile, handlerHost    string
	header, payload, completion string
	userHeader                  int
	engine, size                string
	hpus                        int
}

// maxAdvised is the longest message, bytes.
const maxAdvised = 1 << 20

func adviseCommand() *cobra.Command {
	var f adviseFlags
	c := &cobra.Command{
		Use:   "advise MODULE",
		Short: "Measure whether a handler holds line rate on a device, and what limits it",
		Long: `Advise loads a module, a .wasm file or a built-in one, into a device and sends messages to it. First it sends some messages one by one, to measure
the time that their handlers use on the HPUs, the bus and the link. Then it sends as many as the packet buffer holds, as fast as the link carries them. It answers
in three sentences whether handlers hold line rate, what limits them, and what would help: by Little's law from the measurement, and as
simulated. Line rate means 95% of it or more.

A message is one packet of the longest length, unless --size gives another. Its bytes are zeros, or those of --payload-file. The initial state of the
handlers is the module's, changed by --state. docs/breakdown.md explains the table.

The exit status is 0 whether handlers hold line rate or not, and 1 if one fails.`,
		Example: `  spinsim advise count --profile spin-int
  spinsim advise accumulate --profile spin-dis --size 1KiB
  spinsim advise filter/filter.wasm --set hpu.clock=1GHz --hpus 8`,
		Args: exactArguments("MODULE"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.profile, "profile", "spin-dis", "device and network: `NAME` or file")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as hpu.clock=1GHz; may be repeated")
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	flags.StringVar(&f.size, "size", "", "`BYTES` of a message, such as 1KiB, at most 1MiB (default: fabric.mtu, one packet; of accumulate, whole elements)")
	flags.IntVar(&f.hpus, "hpus", 0, "`NUMBER` of HPUs instead of the profile's hpu.cores")
	flags.StringVar(&f.payloadFile, "payload-file", "", "messages are the bytes of a `FILE`")
	flags.StringVar(&f.header, "header", "", "`EXPORT` that handles headers (default: header, or the only one of its kind if no handler is named; - for none)")
	flags.StringVar(&f.payload, "payload", "", "`EXPORT` that handles packets (default: payload, or as for headers)")
	flags.StringVar(&f.completion, "completion", "", "`EXPORT` that ends messages (default: completion, or as for headers)")
	flags.IntVar(&f.userHeader, "user-header", 0, "`BYTES` of the user header of every message (default: what the module needs)")
	flags.StringArrayVar(&f.state, "state", nil, "initial state: `VALUES` NAME=VALUE, or hexadecimal; may be repeated")
	flags.StringVar(&f.handlerHost, "handler-host-memory", "0", "handler host memory: `BYTES` (default: what the module needs)")
	flags.StringVar(&f.engine, "engine", "wazero", "WebAssembly engine: wazero, or wasmtime if built in")
	return c
}

func (f *adviseFlags) run(c *cobra.Command, name string) error {
	if c.Flags().Changed("hpus") {
		if f.hpus < 1 || f.hpus > 4096 {
			return badInput(fmt.Errorf("--hpus: %d, expected 1 to 4096", f.hpus))
		}
		f.overrides = append(f.overrides, fmt.Sprintf("hpu.cores=%d", f.hpus))
	}
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return badInput(fmt.Errorf("--format: %w", err))
	}
	f.format = "text" // of open
	p, m, err := f.open(name)
	if err != nil {
		return err
	}
	message, messageErr := f.message(longest(m, int(p.Fabric.MTU)))
	chosen := f.preset(m, len(message))
	var had used.Set
	cfg := &handlerlab.Config{
		Module: m, Profile: p, Engine: f.engine, Header: f.header, Payload: f.payload, Completion: f.completion, UserHeader: f.userHeader, Nodes: 1, Watched: runtime.Config{Used: had.Join},
	}
	errs := []error{messageErr, f.setState(cfg)}
	if cfg.HandlerHost, err = handlerlab.HostMemory(f.handlerHost, nil); err != nil {
		errs = append(errs, fmt.Errorf("--handler-host-memory: %w", err))
	}
	if err := runtime.CheckEngine(f.engine); err != nil {
		errs = append(errs, fmt.Errorf("--engine: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return badInput(err)
	}
	a, err := handlerlab.Advise(c.Context(), cfg, message)
	switch failed := (*handlerlab.FailedError)(nil); {
	case errors.As(err, &failed):
		return fmt.Errorf("%s: %w; --size, --payload-file, --state, --header, --payload and --completion say otherwise what runs on what", name, err)
	case errors.Is(err, context.Canceled):
		return err
	case err != nil && f.header+f.payload+f.completion == "":
		return badInput(fmt.Errorf("%w (--header, --payload, --completion)", err))
	case err != nil:
		return badInput(err)
	}
	record, err := f.record(c, p, m)
	if err != nil {
		return err
	}
	record.Command, record.Unused = "advise", profile.Unused(f.overrides, had)
	t := adviceTable(a, m.Name, p.Name)
	t.Title = fmt.Sprintf("advise %s: messages of %v on %s", m.Name, sim.Size(a.Size), p.Name)
	t.Answer, t.Notes, t.Origin = adviceText(a, m.Name, p.Name), append(record.UnusedNotes(), adviceNotes(a)...), record
	if chosen != "" {
		t.Notes = append(t.Notes, chosen)
	}
	if f.payloadFile == "" {
		t.Notes = append(t.Notes, "The bytes of messages were zeros; a handler that looks into them may take another way with yours: --payload-file.")
	}
	cli.SayBeside(c, format, record.UnusedNotes())
	return t.Write(c.OutOrStdout(), format)
}

// setState sets the state of the flag, behind the user header. Without it the
// module's remains.
func (f *adviseFlags) setState(cfg *handlerlab.Config) error {
	if f.userHeader < 0 {
		return fmt.Errorf("--user-header: %d, expected 0 or more", f.userHeader)
	}
	_, err := cfg.Layout()
	if err != nil || f.state == nil {
		return err
	}
	if err = cfg.SetState(strings.Join(f.state, ",")); err != nil {
		err = fmt.Errorf("--state: %w", err)
	}
	return err
}

// usual lists handlers and states to use if the user names none. It is for
// libraries that have several handlers of a kind, or handlers that cannot
// process a message of zeros.
var usual = map[string]struct{ header, payload, completion, state string }{
	"bcast":    {payload: "stream_payload", completion: "stream_completion"},
	"pingpong": {payload: "stream_payload", completion: "stream_completion"},
	"datatype": {payload: "unpack", state: "size=BYTES,block=64,stride=64"},
	// a data server without a parity server
	"raid5":     {header: "open", payload: "write", state: "parity=32,slots=64"},
	"replicate": {header: "open", payload: "store", state: "bytes=BYTES,slots=64"},
}

// preset chooses the usual handlers and state of a built-in library for
// messages of n bytes and returns a note, if the user named no handler.
func (f *adviseFlags) preset(m *handlers.Library, n int) string {
	u, ok := usual[m.Name]
	if !ok || m.Path != "" || f.header+f.payload+f.completion != "" {
		return ""
	}
	f.header, f.payload, f.completion = u.header, u.payload, u.completion
	var ran []string
	for _, name := range []string{u.header, u.payload, u.completion} {
		if name != "" {
			ran = append(ran, name)
		}
	}
	text := fmt.Sprintf("Of the handlers of %s these ran: %s; --header, --payload and --completion name others.", m.Name, strings.Join(ran, ", "))
	if u.state != "" && f.state == nil {
		f.state = []string{strings.ReplaceAll(u.state, "BYTES", fmt.Sprint(n))}
		text += " The state was " + f.state[0] + " (--state)."
	}
	return text
}

// longest returns the longest packet of at most mtu bytes that a library
// accepts.
func longest(m *handlers.Library, mtu int) int {
	if m.Name == "accumulate" && m.Path == "" {
		mtu -= mtu % accumulate.ElementSize // its handler fails packets with parts of elements
	}
	return mtu
}

// message returns the message to send, by default a packet of the longest
// length, in bytes.
func (f *adviseFlags) message(longest int) ([]byte, error) {
	if f.payloadFile != "" {
		if f.size != "" {
			return nil, errors.New("--size: given beside --payload-file, expected one of them")
		}
		b, err := file.Read(f.payloadFile, maxAdvised)
		if err == nil && len(b) == 0 {
			err = fmt.Errorf("%s is empty, expected a message", f.payloadFile)
		}
		if err != nil {
			return nil, fmt.Errorf("--payload-file: %w", err)
		}
		return b, nil
	}
	n := int64(longest)
	if f.size != "" {
		var err error
		if n, err = parseAdvised(f.size); err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
	}
	return make([]byte, n), nil
}

// parseAdvised reads the length of a message.
func parseAdvised(text string) (int64, error) {
	n, err := handlerlab.ParseMemory(text)
	if err == nil && (n < 1 || n > maxAdvised) {
		err = fmt.Errorf("%v, expected 1B to %v", sim.Size(n), sim.Size(maxAdvised))
	}
	return int64(n), err
}

// adviceText writes whether handlers hold line rate, what limits them and what
// would help.
func adviceText(a *handlerlab.Advice, module, profile string) []string {
	rate := float64(sim.Second) / float64(a.Line)
	comes := fmt.Sprintf("a message of %v every %.2f ns, %.1f GiB/s", sim.Size(a.Size), a.Line.Nanoseconds(), rate*float64(a.Size)/(1<<30))
	needs := fmt.Sprintf("by Little's law they need %.2f of %d %s", a.Needed, a.Processors, processorsOf(a))
	first := fmt.Sprintf("%s: handlers of %s hold line rate, %s: %s%s.", profile, module, comes, needs, reached(a))
	if !a.Holds() {
		first = fmt.Sprintf("%s: handlers of %s do not hold line rate, %s: they need %.2f %s by Little's law and have %d%s.", profile, module, comes, a.Needed, processorsOf(a), a.Processors, reached(a))
	}
	return []string{first, limitText(a), mendText(a)}
}

// processorsOf names the processors that run handlers.
func processorsOf(a *handlerlab.Advice) string {
	if a.Pool == handlerlab.HPU {
		return "HPUs"
	}
	return "processors of pool " + a.Pool
}

// reached describes the simulated throughput.
func reached(a *handlerlab.Advice) string {
	s := a.Stream
	if s == nil {
		return ""
	}
	if a.Holds() && s.Share < handlerlab.LineRate {
		return fmt.Sprintf(", and keep up with the %.1f%% of it that simulated senders and network bring", 100*s.Brought)
	}
	return fmt.Sprintf(", and reach %.1f%% of it as simulated", 100*s.Share)
}

// limitText names the resource that limits throughput.
func limitText(a *handlerlab.Advice) string {
	n := a.Limit()
	if !a.Holds() && n.Load <= 1 {
		return fmt.Sprintf("None of the resources is the limit: of %s line rate takes most, %.0f%%, by what messages take that come alone; at line rate handlers wait for each other, for locks, or for room in the egress.",
			n.Resource, 100*n.Load)
	}
	verb := "is"
	if n == &a.Needs[0] && a.Pool == handlerlab.HPU {
		verb = "are"
	}
	what := "used most"
	if !a.Holds() {
		what = "the limit"
	}
	text := fmt.Sprintf("%s %s %s: line rate takes %.0f%% of what there is, a message %.2f ns", n.Resource, verb, what, 100*n.Load, n.Used.Nanoseconds())
	switch inside := a.Inside / sim.Time(a.Contexts); {
	case n != &a.Needs[0]:
	case inside > a.Computes:
		text += fmt.Sprintf(" of one (%d cycles of handlers, which are there for %.2f ns, waiting included, in one of its %d contexts)", a.Cycles, a.Inside.Nanoseconds(), a.Contexts)
	case a.Pool == handlerlab.HPU:
		text += fmt.Sprintf(" of one (%d cycles)", a.Cycles)
	default:
		text += " of one"
	}
	return text + "."
}

// mendText describes what would hold line rate, or how much is to spare.
func mendText(a *handlerlab.Advice) string {
	for _, n := range a.Needs[1:] {
		if n.Load > 1 {
			return fmt.Sprintf("No number of %s mends that: %s must be %.2f times as much, or handlers must move less; --size and --set try it.", processorsOf(a), n.What, n.Load)
		}
	}
	room := fmt.Sprintf("; on %d, handlers of a message may take %.0f cycles", a.Processors, float64(a.Cycles)*float64(a.Processors)/a.Needed)
	switch {
	case a.Pool != handlerlab.HPU:
		room = ""
	case a.Inside/sim.Time(a.Contexts) > a.Computes:
		room = fmt.Sprintf("; more of hpu.contexts, %d, help too, down to the %.2f HPUs that handlers compute on", a.Contexts, float64(a.Computes)/float64(a.Line))
	}
	if a.Advised > 0 {
		return fmt.Sprintf("The least that holds it as simulated is --set %s=%d, %.1f%% of line rate%s.", a.Field, a.Advised, 100*a.AtAdvised.Share, room)
	}
	if a.Tried > 0 {
		return fmt.Sprintf("No number of %s that was simulated holds it, up to %d: handlers take longer then than alone, by which Little's law has %d.", processorsOf(a), a.Tried, max(1, int(math.Ceil(a.Needed))))
	}
	takes := "takes"
	if a.Holds() {
		takes = "needs no more than"
	}
	return fmt.Sprintf("By Little's law it %s --set %s=%d%s.", takes, a.Field, max(1, int(math.Ceil(a.Needed))), room)
}

// adviceNotes returns what the table leaves out.
func adviceNotes(a *handlerlab.Advice) (notes []string) {
	share := min(1, 1/a.Limit().Load)
	if a.Stream != nil {
		share = a.Stream.Share
	}
	if share < 1 && !a.Holds() {
		notes = append(notes, fmt.Sprintf("The packet buffer of %v takes a burst of %.1f MiB at line rate; behind that packets are lost, or wait in the network where it has credits.", sim.Size(a.Buffer), float64(a.Buffer)/(1-share)/(1<<20)))
	}
	if a.Fails != "" {
		return append(notes, "As simulated at line rate handlers fail: "+a.Fails+".")
	}
	if a.Stream == nil {
		notes = append(notes, fmt.Sprintf("Nothing was simulated at line rate: the packet buffer of %v does not hold enough messages for a steady state.", sim.Size(a.Buffer)))
	} else {
		notes = append(notes, fmt.Sprintf("Simulated: %d messages; %s computed %.0f%% of the time, and at most %.0f KiB waited in the packet buffer.", a.Stream.Messages, processorsOf(a), 100*a.Stream.Busy, float64(a.Stream.Waiting)/1024))
	}
	return notes
}

func adviceColumns() []report.Column {
	programs := func(c report.Column) report.Column { c.ForPrograms = true; return c }
	return []report.Column{
		programs(report.Column{Name: "module", Kind: report.Text, Help: "Whose handlers run."}),
		programs(report.Column{Name: "profile", Kind: report.Text, Help: "The device and network."}),
		programs(report.Column{Name: "bytes", Kind: report.Size, Help: "Length of a message."}),
		programs(report.Column{Name: "line", Unit: "ns", Kind: report.Duration, Help: "Time between two messages at line rate."}),
		programs(report.Column{Name: "cycles", Kind: report.Count, Help: "Cycles of all handlers of a message."}),
		programs(report.Column{Name: "processors", Kind: report.Count, Help: "Processors of handlers that there are."}),
		programs(report.Column{Name: "needed", Kind: report.Number, Help: "Processors that line rate needs by Little's law."}),
		programs(report.Column{Name: "reached", Kind: report.Share, Help: "Share of the line rate that handlers reach as simulated; empty if the packet buffer does not hold enough messages."}),
		programs(report.Column{Name: "advised", Kind: report.Count, Help: "Least processors with which they hold line rate as simulated, 95% of it; empty if none do."}),
		{Name: "resource", Kind: report.Text, Help: "Processors of handlers, the bus to and from host memory, the link out, and the link in if answers come on it, too."},
		{Name: "used", Unit: "ns", Kind: report.Duration, Scale: "used", Help: "What the handlers of a message take of one of it: of a processor, what they compute or, if that is more, all from their beginnings to their ends by the contexts that share it."},
		{Name: "at_line_rate", Kind: report.Share, Help: "Share of all there is of it that is taken if messages come at line rate; above 100% it is too little."},
		{Name: "enough", Kind: report.Flag, Help: "Whether there is enough."},
		{Name: "field", Kind: report.Text, Help: "Field of the profile that says how much there is."},
	}
}

func adviceTable(a *handlerlab.Advice, module, profile string) *report.Table {
	t := report.New(adviceColumns()...)
	var reached, advised any
	if a.Stream != nil {
		reached = a.Stream.Share
	}
	if a.Advised > 0 {
		advised = a.Advised
	}
	for _, n := range a.Needs {
		t.Add(module, profile, a.Size, a.Line, a.Cycles, a.Processors, a.Needed, reached, advised, n.Resource, n.Used, n.Load, n.Load <= 1, n.What)
	}
	return t
}
