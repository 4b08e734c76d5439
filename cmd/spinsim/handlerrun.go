package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/sim"
)

// handlerRunFlags are the flags of "handler run".
type handlerRunFlags struct {
	deviceFlags
	hex                         []string
	packets, payloadFile        string
	header, payload, completion string
	userHeader                  int
	stateFormat, stateFile      string
	state                       []string
	memory, host, handlerHost   string
	hostFile, handlerHostFile   string
	faults                      []string
	node, nodes                 int
	bytes, race, lines          bool
	trace                       string
	engine, expect              string
	ack, plain                  bool
	limitFlags
}

func handlerRunCommand() *cobra.Command {
	var f handlerRunFlags
	c := &cobra.Command{
		Use:   "run MODULE",
		Short: "Send messages to a handler on a device and show all its actions",
		Long: `Run loads a module, a .wasm file or a built-in one, into the device of one node of a simulated cluster: node 0, or --device-node.
The other nodes send messages to it over the network of the profile. Run prints each handler with its actions, return code and cycles,
the events that follow, and the changes in HPU memory and host memory. Times are simulated; those of actions count from the
beginning of the handler.

Messages come from --packets, --hex or --payload-file. A packets file has` + indent(handlerlab.PacketSyntax) + `

The state in HPU memory begins with the values in the module's manifest, which handler inspect shows; --state changes them. For a module without
a manifest, --state-format gives the types of its fields.

The entry accepts every message. Handlers may send to the other nodes, at any portal table index. A get from there returns
the bytes 0, 1, 2 …

A handler that accesses the first 1,024 bytes of memory, for example through NULL, ends with an error. With --race a run also fails if
handlers read and write the same memory without an order between them (docs/handlers.md).

A report lists at most 10,000 handlers, 100,000 actions and 10,000 events, and counts the others.

The exit status is 1 if a handler fails, a message is refused, a limit ends the run, or the output differs from --expect.`,
		Example: `  spinsim handler run count --hex '00*9000'
  spinsim handler run filter.wasm --packets packets.txt --state messages=7
  spinsim handler run pingpong --payload stream_payload --hex '"hello"' --state pt=5,match_bits=0x99
  spinsim handler run accumulate --hex '00*64' --fault 2=denied
  spinsim handler run filter.wasm --packets packets.txt --race`,
		Args: exactArguments("MODULE"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	f.register(c)
	flags := c.Flags()
	flags.BoolVar(&f.bytes, "bytes", false, "show the bytes that handlers send or write to host memory, the first 256 of each action")
	flags.BoolVar(&f.race, "race", false, "find loads and stores of shared memory without an order between them")
	flags.BoolVar(&f.plain, "plain", false, "leave out times, cycles and HPUs, which depend on the profile and the compiler")
	flags.StringVar(&f.expect, "expect", "", "compare with the output of --plain in a `FILE`")
	return c
}

// register adds the flags that choose what to run.
func (f *handlerRunFlags) register(c *cobra.Command) {
	f.deviceFlags.register(c)
	flags := c.Flags()
	flags.StringVar(&f.packets, "packets", "", "messages, one per line: `FILE`")
	flags.StringArrayVar(&f.hex, "hex", nil, "a message of these `BYTES`, such as '0100 00*60'; may be repeated")
	flags.StringVar(&f.payloadFile, "payload-file", "", "a message of the bytes of a `FILE`")
	flags.StringVar(&f.header, "header", "", "`EXPORT` that handles headers (default: header, or the only one of its kind if no handler is named; - for none)")
	flags.StringVar(&f.payload, "payload", "", "`EXPORT` that handles packets (default: payload, or as for headers)")
	flags.StringVar(&f.completion, "completion", "", "`EXPORT` that ends messages (default: completion, or as for headers)")
	flags.IntVar(&f.userHeader, "user-header", 0, "`BYTES` of the user header of every message (default: what the module needs)")
	flags.StringVar(&f.stateFormat, "state-format", "", "`TYPES` of the fields of the state, such as u64,u32*2,f64 (default: the fields that the module names)")
	flags.StringArrayVar(&f.state, "state", nil, "initial state: `VALUES` NAME=VALUE, or values in the order of --state-format (ct0: a counter of the host), or hexadecimal; may be repeated")
	flags.StringVar(&f.stateFile, "state-file", "", "initial state: the bytes of a `FILE`")
	flags.StringVar(&f.memory, "memory", "", "HPU memory: `BYTES`, such as 64KiB (default: 64KiB, or what the module needs)")
	flags.StringVar(&f.host, "host-memory", "64KiB", "host memory of the entry: `BYTES`")
	flags.StringVar(&f.hostFile, "host-file", "", "initial content of the entry's host memory: `FILE`")
	flags.StringVar(&f.handlerHost, "handler-host-memory", "0", "handler host memory: `BYTES` (default: what the module needs)")
	flags.StringVar(&f.handlerHostFile, "handler-host-file", "", "initial content of the handler host memory: `FILE`")
	flags.StringSliceVar(&f.faults, "fault", nil, "make DMA operations fail: `N[=RESULT]`, the N-th of all handlers, with fault, denied, …; may be repeated")
	flags.IntVar(&f.node, "device-node", 0, "`NODE` of the device; messages without a source come from the first other node")
	flags.StringVar(&f.trace, "trace", "", "write a timeline for ui.perfetto.dev: `FILE.pftrace`, .json, or either with .gz")
	flags.IntVar(&f.nodes, "nodes", 1, "`NUMBER` of nodes besides the device, for handlers to send to")
	flags.BoolVar(&f.ack, "ack", false, "senders request acknowledgements")
	flags.StringVar(&f.Until, "until", "10ms", "end the run before the first event later than this `TIME`, of the simulation")
	f.limitFlags.Register(c, "the run", true)
	flags.StringVar(&f.engine, "engine", "wazero", "WebAssembly engine: wazero, or wasmtime if built in")
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// config turns the flags into a run. It reports everything wrong with them at
// once.
func (f *handlerRunFlags) config(c *cobra.Command, name string) (*handlerlab.Config, error) {
	p, m, err := f.open(name)
	if err != nil {
		return nil, err
	}
	cfg := &handlerlab.Config{
		Module: m, Profile: p, Engine: f.engine, Header: f.header, Payload: f.payload, Completion: f.completion,
		UserHeader: f.userHeader, Node: f.node, Nodes: f.nodes, Ack: f.ack, Bytes: f.bytes, Race: f.race, Lines: f.lines, Faults: map[int]int64{},
	}
	var errs []error
	keep := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	errs = append(errs, checkEngine(f.engine))
	cfg.Messages, err = f.messages()
	errs = append(errs, err)
	errs = append(errs, f.readState(cfg))
	if f.memory != "" {
		cfg.HPUMemory, err = handlerlab.ParseMemory(f.memory)
		keep("memory", err)
	}
	for _, m := range []struct {
		to         *[]byte
		size, file string
		flags      [2]string
	}{
		{&cfg.Host, f.host, f.hostFile, [2]string{"host-memory", "host-file"}},
		{&cfg.HandlerHost, f.handlerHost, f.handlerHostFile, [2]string{"handler-host-memory", "handler-host-file"}},
	} {
		flag := m.flags[0]
		if *m.to, err = handlerlab.HostMemory(m.size, m.file); err != nil && m.file != "" {
			if _, wrong := handlerlab.HostMemory(m.size, ""); wrong == nil {
				flag = m.flags[1]
			}
		}
		keep(flag, err)
	}
	for _, text := range f.faults {
		keep("fault", parseFault(cfg.Faults, text))
	}
	cfg.Limits, err = f.Limits(c)
	errs = append(errs, err)
	keep(f.messageFlag(), handlerlab.CheckMessages(cfg.Messages))
	if f.userHeader < 0 {
		keep("user-header", fmt.Errorf("%d, expected 0 or more", f.userHeader))
	}
	if f.node < 0 || f.node > handlerlab.MaxNode {
		keep("device-node", fmt.Errorf("%d, expected 0 to %d", f.node, handlerlab.MaxNode))
	}
	if f.nodes < 1 || f.nodes > handlerlab.MaxNode {
		keep("nodes", fmt.Errorf("%d, expected 1 to %d", f.nodes, handlerlab.MaxNode))
	}
	return cfg, badInput(errors.Join(errs...))
}

// readState reads the state from the one flag that gives it. Without such a
// flag the module's default remains.
func (f *handlerRunFlags) readState(cfg *handlerlab.Config) (err error) {
	flag := "state-format"
	if f.stateFormat != "" {
		cfg.Format, err = handlerlab.ParseFormat(f.stateFormat)
	} else if cfg.Format, err = cfg.Layout(); err != nil {
		return err
	}
	switch {
	case err != nil:
	case f.stateFile != "" && f.state != nil:
		flag, err = "state-file", errors.New("given beside --state, expected one of them")
	case f.stateFile != "":
		flag = "state-file"
		cfg.State.Bytes, err = file.Read(f.stateFile, file.MaxData)
	case f.state != nil || f.stateFormat != "":
		flag = "state"
		cfg.State, err = handlerlab.ParseState(strings.Join(f.state, ","), cfg.Format, cfg.Device())
	}
	if err != nil {
		err = fmt.Errorf("--%s: %w", flag, err)
	}
	return err
}

// messages reads the messages from the one flag that gives them.
func (f *handlerRunFlags) messages() ([]handlerlab.Message, error) {
	given := 0
	for _, is := range []bool{f.packets != "", len(f.hex) > 0, f.payloadFile != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("expected one of --packets, --hex and --payload-file: what to send")
	}
	switch {
	case f.packets != "":
		text, err := file.Read(f.packets, file.MaxData)
		if err != nil {
			return nil, fmt.Errorf("--packets: %w", err)
		}
		return handlerlab.ParsePackets(f.packets, text)
	case f.payloadFile != "":
		data, err := file.Read(f.payloadFile, file.MaxData)
		if err != nil {
			return nil, fmt.Errorf("--payload-file: %w", err)
		}
		return []handlerlab.Message{{Source: handlerlab.AnySource, Data: data}}, nil
	}
	var messages []handlerlab.Message
	for _, text := range f.hex {
		data, err := handlerlab.ParseHex(text)
		if err != nil {
			return nil, fmt.Errorf("--hex: %w", err)
		}
		messages = append(messages, handlerlab.Message{Source: handlerlab.AnySource, Data: data})
	}
	return messages, nil
}

// messageFlag returns the flag that gives the messages.
func (f *handlerRunFlags) messageFlag() string {
	switch {
	case f.packets != "":
		return "packets"
	case f.payloadFile != "":
		return "payload-file"
	}
	return "hex"
}

// parseFault reads N or N=RESULT.
func parseFault(faults map[int]int64, text string) error {
	number, result, given := strings.Cut(text, "=")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return fmt.Errorf("%q: expected the number of a DMA operation, from 1, such as 3 or 3=denied", text)
	}
	if !given {
		result = "fault"
	}
	faults[n], err = handlerlab.ParseResult(result)
	return err
}

// lab runs the handlers, with a timeline if one is asked for. The caller ends
// the files.
func (f *handlerRunFlags) lab(ctx context.Context, c *cobra.Command, cfg *handlerlab.Config, files *cli.RunFiles) (*handlerlab.Report, error) {
	if f.trace == "" {
		return handlerlab.Run(ctx, cfg)
	}
	record, err := f.record(c, cfg.Profile, cfg.Module)
	if err != nil {
		return nil, err
	}
	if cfg.Tracer, err = files.Trace("--trace", f.trace, record); err != nil {
		return nil, err
	}
	return handlerlab.Run(ctx, cfg)
}

func (f *handlerRunFlags) run(c *cobra.Command, name string) error {
	cfg, err := f.config(c, name)
	if err != nil {
		return err
	}
	var want []byte
	if f.expect != "" {
		if want, err = file.Read(f.expect, file.MaxData); err != nil {
			return badInput(fmt.Errorf("--expect: %w", err))
		}
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	var files cli.RunFiles
	report, err := f.lab(ctx, c, cfg, &files)
	if err != nil {
		return files.End(ctx, ended(err))
	}
	files.Ended = true
	failed := files.End(ctx, report.Err())
	if f.expect != "" {
		var plain bytes.Buffer
		text := handlerlab.Text{Plain: true}
		if err := errors.Join(text.Write(&plain, report), handlerlab.Compare(f.expect, want, plain.Bytes())); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "as in %s\n", f.expect)
		return nil
	}
	record, err := f.record(c, cfg.Profile, cfg.Module)
	if err != nil {
		return err
	}
	record.Engine = f.engine
	if f.format == "json" {
		cut := failed
		if limit := (*sim.LimitError)(nil); !errors.As(failed, &limit) { // the run has come to its end
			cut = nil
		}
		err = writeIndented(c.OutOrStdout(), record, report, cut)
	} else {
		err = handlerlab.Text{Plain: f.plain}.Write(c.OutOrStdout(), report)
		if !f.plain {
			err = errors.Join(err, writeLines(c.OutOrStdout(), record))
		}
	}
	return errors.Join(err, failed)
}

// ended returns the error of a run without result. The input is to blame unless
// a limit or the user has ended the run.
func ended(err error) error {
	if limit := (*sim.LimitError)(nil); errors.Is(err, context.Canceled) || errors.As(err, &limit) {
		return err
	}
	return badInput(err)
}
