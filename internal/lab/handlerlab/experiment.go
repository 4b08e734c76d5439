package handlerlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Bench is a module with messages as an experiment. A point is a run.
type Bench struct {
	Config // what is the same at all points

	// StateText is the state as ParseState reads it, unless Axes has fields of it.
	StateText *string
	// Axes are the axes of the points: names of Axes, and of fields of the state
	// behind StatePrefix. Others are as in Config.
	Axes []string
	// Read reads a file that a point names; nil: from the disk.
	Read func(name string, limit int64) ([]byte, error)

	files   sync.Map               // packetsFile by name
	modules sync.Map               // *loaded by device
	last    atomic.Pointer[Report] // of the run that has ended last
}

// device is what the choice of handlers depends on. Most points have the same
// one, and loading a module takes longer than all else that is checked.
type device struct {
	profile *profile.Profile
	names   handlers.Exports
	set     string
}

// packetsFile is a file with messages.
type packetsFile struct {
	messages []Message
	record   provenance.Input
}

// ActionsTable is the name of the table of actions, which has what Config.Bytes
// asks for.
const ActionsTable = "actions"

// StatePrefix begins the name of an axis that is a field of the state.
const StatePrefix = "state."

// Sources are the axes of which one has the messages, unless Config has them.
var Sources = []string{"size", "packets", "payload-file"}

// Axes are the axes that runs may have, besides fields of the state.
func Axes() []experiment.Axis {
	export := func(name, what string) experiment.Axis {
		return experiment.Axis{Name: name, Default: name, Help: "exports that " + what + ", - for none; if no handler is named, also the only one of its kind"}
	}
	return []experiment.Axis{
		{Name: "size", Kind: report.Size, Default: "4KiB", Most: "64MiB", Help: "bytes of a message of zeros"},
		{Name: "packets", Default: "FILE", Help: "messages, one per line, in files"},
		{Name: "payload-file", Default: "FILE", Help: "a message of the bytes of a file"},
		export("header", "handle headers"), export("payload", "handle packets"), export("completion", "end messages"),
		{Name: "handler-set", Default: "NAME", Help: "sets of the module's handlers, in place of --header, --payload and --completion"},
		{Name: "nodes", Kind: report.Count, Least: "1", Most: fmt.Sprint(MaxNode), Help: "nodes besides the device, for handlers to send to"},
		{Name: "ack", Kind: report.Flag, Help: "whether senders request acknowledgements"},
	}
}

// Any is the experiment of no module: it has all axes but fields of the state.
func Any() *experiment.Experiment {
	b := &Bench{}
	for _, a := range Axes() {
		b.Axes = append(b.Axes, a.Name)
	}
	return b.Experiment()
}

// Experiment is the experiment of the bench.
func (b *Bench) Experiment() *experiment.Experiment {
	e := &experiment.Experiment{
		Name: "handler", Short: "one module's handlers, and what they do with messages", Profiles: []string{"spin-dis"},
		Run: b.run, Columns: columns(), Undivided: "the page of a run has the time of every action",
		View: experiment.View{
			Value: lab.EndColumn, Answer: answer, Quiet: []string{"nodes", "ack"},
			Summary: []string{experiment.ProfileColumn, lab.EndColumn, "handler_calls", "handler_cycles", "most_cycles", "returned"},
		},
	}
	if b.Module != nil {
		e.Short = "handlers of " + b.Module.Name
	}
	e.Details, _ = (&Report{}).tables()
	for i := range e.Details {
		t := &e.Details[i]
		t.Quiet = t.Name != ActionsTable || !b.Bytes // which are in it
	}
	(&lab.Points{Of: b.needs}).Fill(e)
	for _, a := range Axes() {
		if slices.Contains(b.Axes, a.Name) || !slices.Contains(Sources, a.Name) && a.Kind != report.Text {
			e.Axes = append(e.Axes, a)
		}
	}
	fields := slices.DeleteFunc(slices.Clone(b.Axes), func(name string) bool { return !strings.HasPrefix(name, StatePrefix) })
	lab.Parameters(e, fields, func(name string) (string, string) {
		return "0", "the field " + name[len(StatePrefix):] + " of the state"
	})
	return e
}

// columns are the columns of the table of runs.
func columns() []report.Column {
	return lab.Columns(
		report.Column{Name: "handler_calls", Kind: report.Count, Help: "handlers that ran"},
		report.Column{Name: "handler_cycles", Kind: report.Count, Help: "cycles charged to all of them"},
		report.Column{Name: "most_cycles", Kind: report.Count, Help: "cycles of the handler that took the most"},
		report.Column{Name: "returned", Kind: report.Text, Help: "how many handlers returned what"},
		report.Column{Name: "bytes_sent", Kind: report.Size, Help: "bytes that handlers sent by puts and atomics"},
		report.Column{Name: "bytes_written", Kind: report.Size, Help: "bytes that handlers wrote to host memory"},
		report.Column{Name: "packets_dropped", Kind: report.Count, Help: "packets that a node or the network dropped"},
		report.Column{Name: "messages_refused", Kind: report.Count, Help: "messages that the device refused"},
	)
}

// answer says how many runs failed.
func answer(results []*experiment.Result) []string {
	failed, lines := lab.Happened(results)
	if failed > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("FAILED: %s of %d", lab.Plural(failed, "run", "runs"), len(results)))
	}
	return lines
}

// at prepares the run of a point.
func (b *Bench) at(p *experiment.Point) (*trial, error) {
	c := b.Config
	c.Profile, c.Engine = p.Profile, p.Engine
	c.Nodes, c.Ack = p.Int("nodes"), p.Flag("ack")
	var state []string
	for _, name := range b.Axes {
		switch field, is := strings.CutPrefix(name, StatePrefix); {
		case is:
			state = append(state, field+"="+p.Written(name))
		case name == "size":
			c.From, c.Messages = "--"+name, []Message{{Source: AnySource, Data: make([]byte, p.Int(name))}}
		case name == "header":
			c.Header = p.Text(name)
		case name == "payload":
			c.Payload = p.Text(name)
		case name == "completion":
			c.Completion = p.Text(name)
		case name == "handler-set":
			c.Set = p.Text(name)
		case slices.Contains(Sources, name):
			in, err := b.input(name, p.Text(name))
			if err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
			c.From, c.Messages = "--"+name+": "+p.Text(name), in.messages
		}
	}
	m, err := b.load(&c)
	if err != nil {
		return nil, err
	}
	if c.Format == nil {
		c.Format = FormatOf(m.plan.State)
	}
	text, flag := b.StateText, "state-file"
	if state != nil {
		all := strings.Join(state, ",")
		text = &all
	}
	if text != nil {
		flag = "state"
		c.State, err = ParseState(*text, c.Format, c.Device())
	}
	if n, most := len(c.State.Bytes), int64(c.Profile.Limits.MaxInitialState); err == nil && int64(n) > most {
		err = fmt.Errorf("%d bytes, at most %d in profile %s (limits.max_initial_state)", n, most, c.Profile.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return prepare(&c, m)
}

// load loads the module once for each device.
func (b *Bench) load(c *Config) (*loaded, error) {
	key := device{c.Profile, handlers.Exports{c.Header, c.Payload, c.Completion}, c.Set}
	if m, known := b.modules.Load(key); known {
		return m.(*loaded), nil
	}
	m, err := c.load()
	if err == nil {
		b.modules.Store(key, m)
	}
	return m, err
}

// input reads a file with messages once.
func (b *Bench) input(axis, name string) (*packetsFile, error) {
	if in, known := b.files.Load(name); known {
		return in.(*packetsFile), nil
	}
	read := b.Read
	if read == nil {
		read = file.Read
	}
	data, err := read(name, file.MaxData)
	if err != nil {
		return nil, err
	}
	in := &packetsFile{record: provenance.NewInput(name, data)}
	if in.record.Flag = axis; axis == "packets" {
		in.messages, err = ParsePackets(name, data)
	} else {
		in.messages = []Message{{Source: AnySource, Data: data}}
		if err = CheckMessages(in.messages); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err == nil {
		b.files.Store(name, in)
	}
	return in, err
}

// needs finds the needs of a point: memory for nodes, memories before and behind
// the run, messages, and what the report lists.
func (b *Bench) needs(p *experiment.Point) (*lab.Needs, error) {
	x, err := b.at(p)
	if err != nil {
		return nil, err
	}
	packets := 0
	need := p.Footprint(1+x.nodes()) + int64(x.nodes())*peerMemory + 3*int64(x.HPUMemory+len(x.Host)+len(x.HandlerHost))
	for i := range x.Messages {
		n := len(x.Messages[i].Data)
		need += 2 * int64(n)
		packets += 1 + n/int(p.Profile.Fabric.MTU)
	}
	if need += listedBytes * int64(min(packets, listedHandlers)); x.Race {
		need += cmp.Or(x.history, mostHistory)
	}
	n := &lab.Needs{Memory: need, Modules: []*handlers.Library{b.Module}}
	for _, name := range Sources[1:] {
		if slices.Contains(b.Axes, name) {
			in, err := b.input(name, p.Text(name))
			if err != nil {
				return nil, err
			}
			n.Inputs = append(n.Inputs, in.record)
		}
	}
	return n, nil
}

// listedBytes is about what the report of a packet takes: its handlers, actions
// and events, in the report and as rows.
const listedBytes = 4 << 10

// run is Experiment.Run.
func (b *Bench) run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	p.Reads("fabric.mtu", "hpu.cores", "hpu.contexts", "hpu.clusters") // a state may have them
	r, err := b.report(ctx, p)
	if err != nil {
		return nil, err
	}
	b.last.Store(r)
	return r.values(), r.Err()
}

// report runs a point. Its input is to blame for an error, unless a limit or the
// user has ended the run.
func (b *Bench) report(ctx context.Context, p *experiment.Point) (*Report, error) {
	x, err := b.at(p)
	if err != nil {
		return nil, err
	}
	x.Watched = p.Config(ctx, 0)
	r, err := x.report(ctx)
	if limit := (*sim.LimitError)(nil); err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &limit) {
		return nil, cli.BadInput(err)
	}
	if r != nil {
		r.of = p
	}
	return r, err
}

// values are the values of a point.
func (r *Report) values() experiment.Values {
	values := lab.Values(r.End, cli.CutBy(r.end), r.Errors, r.Notes)
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(r.totals.returned)) {
		codes = append(codes, fmt.Sprintf("%d %s", r.totals.returned[code], code))
	}
	refused := 0
	for i := range r.Messages {
		if r.Messages[i].Refused != "" {
			refused++
		}
	}
	maps.Copy(values, experiment.Values{
		"handler_calls": r.Calls, "handler_cycles": r.Cycles, "most_cycles": r.totals.longest, "returned": strings.Join(codes, ", "),
		"bytes_sent": r.totals.sent, "bytes_written": r.totals.written, "packets_dropped": r.totals.dropped, "messages_refused": refused,
	})
	details, rows := r.tables()
	for i := range details {
		values[details[i].Name] = rows[i]
	}
	return values
}

// Last is the report of the run that has ended last; nil: none has.
func (b *Bench) Last() *Report { return b.last.Load() }

// Report returns the report of a result. If the result was kept, it is run again:
// tables have less than the report.
func (b *Bench) Report(ctx context.Context, r *experiment.Result) (*Report, error) {
	if last := b.last.Load(); last != nil && last.of == r.Point {
		return last, nil
	}
	return b.report(ctx, r.Point)
}
