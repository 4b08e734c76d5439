package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// handlerRunName is the name of handler run in the record of a result.
const handlerRunName = "handler run"

// benchFlags are the flags of "handler run" and "handler profile" besides those
// of every experiment.
type benchFlags struct {
	stateFormat, stateFile    string
	state                     []string
	hex                       []string
	userHeader                int
	memory, host, handlerHost string
	hostFile, handlerHostFile string
	faults                    []string
	node                      int
	bytes, race, lines        bool
	// says how people see a run
	show func(c *cobra.Command, b *handlerlab.Bench, made *experiment.Made) error
}

func handlerRunCommand() *cobra.Command {
	var f benchFlags
	var expect string
	var plain bool
	f.show = func(c *cobra.Command, b *handlerlab.Bench, made *experiment.Made) error {
		return showRun(c, b, made, plain, expect)
	}
	c := f.command(handlerRunName, "run MODULE", `Run loads a module, a .wasm file or a built-in one, into the device of one node of a simulated cluster: node 0, or --device-node.
The other nodes send messages to it over the network of the profile. Run prints each handler with its actions, return code and cycles,
the events that follow, and the changes in HPU memory and host memory. Times are simulated; those of actions count from the
beginning of the handler. If a flag has several values, or --all is given, it prints a table with a row for each run; with --bytes also one of the
actions.

Messages come from --packets, --hex, --payload-file or --size. A packets file has
`+indent(handlerlab.PacketSyntax)+`

The state in HPU memory begins with the values in the module's manifest, which handler inspect shows; --state changes them. For a module without
a manifest, --state-format gives the types of its fields.

The entry accepts every message. Handlers may send to the other nodes, at any portal table index. A get from there returns
the bytes 0, 1, 2 …

A handler that accesses the first 1,024 bytes of memory, for example through NULL, ends with an error. With --race a run also fails if
handlers read and write the same memory without an order between them (docs/handlers.md).

A report lists at most 10,000 handlers, 100,000 actions and 10,000 events, and counts the others.

The exit status is 1 if a handler fails, a message is refused, a limit ends the run, or the output differs from --expect.`)
	c.Short = "Send messages to a handler on a device and show all its actions"
	c.Example = `  spinsim handler run count --hex '00*9000'
  spinsim handler run filter.wasm --packets packets.txt --state messages=7
  spinsim handler run pingpong --payload stream_payload --hex '"hello"' --state pt=5,match_bits=0x99
  spinsim handler run accumulate --hex '00*64' --fault 2=denied
  spinsim handler run filter.wasm --packets packets.txt --race
  spinsim handler run count --size 64..64KiB*4 --profile spin-dis,spin-int --plot count.svg`
	flags := c.Flags()
	flags.BoolVar(&plain, "plain", false, "leave out times, cycles and HPUs, which depend on the profile and the compiler")
	flags.StringVar(&expect, "expect", "", "compare with the output of --plain in a `FILE`")
	return c
}

// showRun makes the page of a run. If a file has what is expected, the page says
// whether it is so.
func showRun(c *cobra.Command, b *handlerlab.Bench, made *experiment.Made, plain bool, expect string) (err error) {
	var want []byte
	switch {
	case expect != "":
		if want, err = file.Read(expect, file.MaxData); err != nil {
			return fmt.Errorf("--expect: %w", err)
		}
		made.Alone, made.Judged = "--expect", true
	case plain:
		made.Alone = "--plain"
	}
	made.Page = func(out io.Writer, result *experiment.Result, below []string) error {
		var text bytes.Buffer
		r, err := b.Report(c.Context(), result)
		if err == nil {
			err = handlerlab.Text{Plain: made.Alone != ""}.Write(&text, r)
		}
		switch {
		case err != nil:
		case made.Judged:
			err = handlerlab.Compare(expect, want, text.Bytes())
			text.Reset()
			fmt.Fprintf(&text, "as in %s\n", expect)
		case !plain:
			fmt.Fprintf(&text, "\n%s\n", strings.Join(below, "\n"))
		}
		if err == nil {
			_, err = text.WriteTo(out)
		}
		return err
	}
	return cli.CheckInputs(c.Context(), []string{expect})
}

// command makes the command of an experiment with one module.
func (f *benchFlags) command(name, use, long string) *cobra.Command {
	e := handlerlab.Any()
	e.Long = long
	c := experiment.Command(e, experiment.CommandOptions{
		Build: thisBuild(), Command: name, Use: use,
		Input: func(c *cobra.Command, modules []string) (*experiment.Made, error) { return f.open(c, name, modules[0]) },
	})
	f.register(c.Flags())
	for _, name := range append([]string{"handler-set"}, handlerlab.Sources...) {
		c.Flags().Lookup(name).DefValue = "" // of Sources one is given
	}
	c.Flags().Lookup("ack").NoOptDefVal = "true"
	until := c.Flags().Lookup("until")
	until.DefValue = "10ms"
	if err := until.Value.Set(until.DefValue); err != nil {
		panic("main: " + err.Error()) //lint:panic programmer's mistake
	}
	for _, never := range []string{"breakdown", "samples", "over-open"} {
		c.Flags().Lookup(never).Hidden = true // the error says why
	}
	return c
}

// register adds the flags that a run is made with.
func (f *benchFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.hex, "hex", nil, "a message of these `BYTES`, such as '0100 00*60'; may be repeated")
	flags.IntVar(&f.userHeader, "user-header", 0, "`BYTES` of the user header of every message (default: what the module needs)")
	flags.StringVar(&f.stateFormat, "state-format", "", "`TYPES` of the fields of the state, such as u64,u32*2,f64 (default: the fields that the module names)")
	flags.StringArrayVar(&f.state, "state", nil, "initial state: `VALUES` NAME=VALUE or NAME=LIST, or values in the order of --state-format (ct0: a counter of the host), or hexadecimal; may be repeated")
	flags.StringVar(&f.stateFile, "state-file", "", "initial state: the bytes of a `FILE`")
	flags.StringVar(&f.memory, "memory", "", "HPU memory: `BYTES`, such as 64KiB (default: 64KiB, or what the module needs)")
	flags.StringVar(&f.host, "host-memory", "64KiB", "host memory of the entry: `BYTES`")
	flags.StringVar(&f.hostFile, "host-file", "", "initial content of the entry's host memory, which is at least as large: `FILE`")
	flags.StringVar(&f.handlerHost, "handler-host-memory", "0", "handler host memory: `BYTES` (default: what the module needs)")
	flags.StringVar(&f.handlerHostFile, "handler-host-file", "", "initial content of the handler host memory, which is at least as large: `FILE`")
	flags.StringSliceVar(&f.faults, "fault", nil, "make DMA operations fail: `N[=RESULT]`, the N-th of all handlers, with fault, denied, …; may be repeated")
	flags.IntVar(&f.node, "device-node", 0, "`NODE` of the device; messages without a source come from the first other node")
	flags.BoolVar(&f.bytes, "bytes", false, "show the bytes that handlers send or write to host memory, the first 256 of each action")
	flags.BoolVar(&f.race, "race", false, "find loads and stores of shared memory without an order between them")
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// open makes the experiment of a module and its messages.
func (f *benchFlags) open(c *cobra.Command, name, module string) (*experiment.Made, error) {
	flags := c.Flags()
	if format := flags.Lookup("format"); format != nil && format.Value.String() == "text" {
		if err := format.Value.Set("table"); err != nil {
			return nil, err
		}
	}
	if err := f.seen(flags); err != nil {
		return nil, err
	}
	params, err := flags.GetStringArray("param")
	if err != nil {
		return nil, err
	}
	single, axes, err := experiment.GivenParameters(params)
	if err != nil {
		return nil, err
	}
	axes = slices.AppendSeq(axes, maps.Keys(single))
	for _, a := range handlerlab.Axes() {
		if flags.Changed(a.Name) && !slices.Contains(axes, a.Name) {
			axes = append(axes, a.Name)
		}
	}
	fields, err := f.fields()
	for _, one := range fields {
		axis, _, _ := strings.Cut(one, "=")
		if slices.Contains(axes, axis) {
			err = errors.Join(err, fmt.Errorf("--param: %s is given by --state, too", axis))
		}
		axes = append(axes, axis)
		err = errors.Join(err, flags.Set("param", one))
	}
	m := newMaking(c, name)
	l, wrong := handlers.Open(module)
	if wrong != nil {
		return nil, wrong
	}
	b, wrong := f.bench(m, l, axes)
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	made := &experiment.Made{Experiment: b.Experiment(), Inputs: m.Inputs, Given: f.given(flags, module)}
	return made, f.show(c, b, made)
}

// seen refuses --bytes where nothing shows the actions.
func (f *benchFlags) seen(flags *pflag.FlagSet) error {
	table, format := flags.Lookup("table"), flags.Lookup("format")
	switch {
	case !f.bytes:
		return nil
	case table == nil:
		return errors.New("--bytes: this shows no actions")
	case table.Value.String() == handlerlab.ActionsTable:
		return nil
	}
	switch format := report.Format(format.Value.String()); {
	case format == report.JSONFormat:
	case table.Value.String() != "", slices.Contains([]report.Format{report.CSVFormat, report.NDJSONFormat, report.ParquetFormat}, format):
		return fmt.Errorf("--bytes: is in the table of actions: expected --table %s", handlerlab.ActionsTable)
	}
	return nil
}

// given are the flags that were set, for the record. Files are inputs, and fields
// of the state are axes.
func (f *benchFlags) given(flags *pflag.FlagSet, module string) map[string]string {
	given := map[string]string{"": module}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(benchFlags).register(own)
	own.VisitAll(func(flag *pflag.Flag) {
		set := flags.Lookup(flag.Name)
		if fields, _ := f.fields(); !set.Changed || strings.HasSuffix(flag.Name, "-file") || flag.Name == "state" && fields != nil {
			return
		}
		given[flag.Name] = set.Value.String()
		if list, is := set.Value.(pflag.SliceValue); is {
			given[flag.Name] = strings.Join(list.GetSlice(), "\n")
		}
	})
	return given
}

// fields are the fields of the state with values, as axes with lists; nil: the
// state is given otherwise.
func (f *benchFlags) fields() (list []string, err error) {
	if f.stateFormat != "" || !strings.Contains(strings.Join(f.state, ","), "=") {
		return nil, nil
	}
	var names []string
	for _, text := range f.state {
		begun := false
		for part := range strings.SplitSeq(text, ",") {
			name, value, given := strings.Cut(part, "=")
			switch name = strings.TrimSpace(name); {
			case !given && !begun:
				return nil, fmt.Errorf("--state: %q: expected NAME=VALUE", part)
			case !given: // goes on with the list
				list[len(list)-1] += "," + part
				continue
			case slices.Contains(names, name):
				return nil, fmt.Errorf("--state: %s is given twice", name)
			}
			begun = true
			names, list = append(names, name), append(list, handlerlab.StatePrefix+name+"="+value)
		}
	}
	for i, one := range list {
		_, values, _ := strings.Cut(one, "=")
		if _, _, err := experiment.NewList(names[i], values); err != nil {
			return nil, fmt.Errorf("--state: %s: %w", names[i], err)
		}
	}
	return list, nil
}

// read reads the state from the one flag that gives it, unless axes have its
// fields. set is what ParseState gets; nil: nothing.
func (f *benchFlags) read(cfg *handlerlab.Config, file func(flag, name string) ([]byte, error)) (set *string, err error) {
	flag := "state-format"
	if f.stateFormat != "" {
		cfg.Format, err = handlerlab.ParseFormat(f.stateFormat)
	}
	switch {
	case err != nil:
	case f.stateFile != "" && f.state != nil:
		flag, err = "state-file", errors.New("given beside --state, expected one of them")
	case f.stateFile != "":
		flag = "state-file"
		cfg.State.Bytes, err = file(flag, f.stateFile)
	case f.state != nil || f.stateFormat != "":
		text := strings.Join(f.state, ",")
		set = &text
	}
	if err != nil {
		err = fmt.Errorf("--%s: %w", flag, err)
	}
	return set, err
}

// bench makes the experiment of a module with axes. It reports everything wrong
// with the flags at once.
func (f *benchFlags) bench(m *making, l *handlers.Library, axes []string) (*handlerlab.Bench, error) {
	slices.Sort(axes) // rows are in the same order again
	b := &handlerlab.Bench{Axes: axes}
	b.Module, b.UserHeader, b.Node, b.Bytes, b.Race, b.Lines, b.Faults = l, f.userHeader, f.node, f.bytes, f.race, f.lines, make(map[int]int64)
	var errs []error
	keep := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	read := func(flag, name string) (data []byte, err error) {
		err = m.input(name, func(r io.Reader) error {
			data, err = file.ReadFrom(r, name, file.MaxData)
			return err
		})
		if err == nil {
			m.Inputs[len(m.Inputs)-1].Flag = flag
		}
		return data, err
	}
	set, err := f.read(&b.Config, read)
	errs = append(errs, err, f.messages(&b.Config, axes))
	if b.StateText = set; f.memory != "" {
		b.HPUMemory, err = handlerlab.ParseMemory(f.memory)
		keep("memory", err)
	}
	for _, m := range []struct {
		to               *[]byte
		size, file, name string
	}{{&b.Host, f.host, f.hostFile, "host"}, {&b.HandlerHost, f.handlerHost, f.handlerHostFile, "handler-host"}} {
		var content []byte
		if m.file != "" {
			content, err = read(m.name+"-file", m.file)
			keep(m.name+"-file", err)
		}
		*m.to, err = handlerlab.HostMemory(m.size, content)
		keep(m.name+"-memory", err)
	}
	for _, text := range f.faults {
		keep("fault", parseFault(b.Faults, text))
	}
	if f.userHeader < 0 {
		keep("user-header", fmt.Errorf("%d, expected 0 or more", f.userHeader))
	}
	if f.node < 0 || f.node > handlerlab.MaxNode {
		keep("device-node", fmt.Errorf("%d, expected 0 to %d", f.node, handlerlab.MaxNode))
	}
	return b, errors.Join(errs...)
}

// messages reads the messages of --hex. Those of other flags are an axis.
func (f *benchFlags) messages(cfg *handlerlab.Config, axes []string) error {
	var given []string
	if f.hex != nil {
		given = append(given, "--hex")
	}
	for _, source := range handlerlab.Sources {
		if slices.Contains(axes, source) {
			given = append(given, "--"+source)
		}
	}
	if len(given) != 1 {
		return fmt.Errorf("expected one of --packets, --hex, --payload-file and --size, what to send; given: %s", cmp.Or(strings.Join(given, ", "), "none"))
	}
	cfg.From = "--hex"
	for _, text := range f.hex {
		data, err := handlerlab.ParseHex(text)
		if err != nil {
			return fmt.Errorf("--hex: %w", err)
		}
		cfg.Messages = append(cfg.Messages, handlerlab.Message{Source: handlerlab.AnySource, Data: data})
	}
	if err := handlerlab.CheckMessages(cfg.Messages); err != nil {
		return fmt.Errorf("--hex: %w", err)
	}
	return nil
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
	if _, twice := faults[n]; twice {
		return fmt.Errorf("operation %d is given twice", n)
	}
	faults[n], err = handlerlab.ParseResult(result)
	return err
}

// recordedHandler makes the experiment of a record of handler run.
func recordedHandler(r *provenance.Record, folder string, stdin io.Reader) (*experiment.Experiment, error) {
	given, err := experiment.GivenIn(r)
	if err != nil {
		return nil, fmt.Errorf("%w; handler run has the document of an experiment now: spinsim handler run MODULE --format json writes it anew", err)
	}
	if len(r.Handlers) != 1 {
		return nil, fmt.Errorf("provenance.handlers: %d, expected a module", len(r.Handlers))
	}
	single, axes, err := experiment.ParametersOf(r)
	if err != nil {
		return nil, err
	}
	axes = slices.AppendSeq(axes, maps.Keys(single))
	var f benchFlags
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(own)
	set := func(flag, value string) {
		if e := own.Set(flag, value); e != nil {
			err = errors.Join(err, fmt.Errorf("provenance.arguments: given: %s: %w", flag, e))
		}
	}
	for flag, values := range given { //lint:maporder each is set alone
		for value := range strings.SplitSeq(values, "\n") {
			if flag != "" {
				set(flag, value)
			}
		}
	}
	for i := range r.Inputs {
		if in := &r.Inputs[i]; !slices.Contains(handlerlab.Sources, in.Flag) {
			set(in.Flag, in.Name)
		}
	}
	m := repeating(r, folder, stdin)
	read := func(name string, limit int64) ([]byte, error) { return recordedFile(r, m, name, limit) }
	l, e := handlers.Builtin(r.Handlers[0].Name)
	if path := r.Handlers[0].Path; path != "" {
		l, e = handlers.OpenFile(path, read)
	}
	b, wrong := f.bench(m, l, axes)
	if err = errors.Join(err, e, wrong); err != nil {
		return nil, err
	}
	b.Read = read
	return b.Experiment(), nil
}
