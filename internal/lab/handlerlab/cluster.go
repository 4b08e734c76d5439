package handlerlab

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Config describes a run.
type Config struct {
	Module  *handlers.Library
	Profile *profile.Profile
	Engine  string // "wazero" (also the empty string) or "wasmtime"
	// Header, Payload and Completion name the exports that handle messages. ""
	// is the export with the usual name. If all three are empty and that name
	// is missing, it is the only export of the kind. "-" is none.
	Header, Payload, Completion string
	// Set is a set of the module's manifest, in place of the three; "": they count.
	Set      string
	Messages []Message
	From     string // their file, or the flag that has them, for errors
	// bytes of user header in each message; 0: as many as the module needs
	UserHeader int
	State      State
	// layout of the state, for the report; nil: as the module declares
	Format *Format
	// bytes, at least as many as the module needs; 0: that number, but at least
	// DefaultHPUMemory
	HPUMemory int
	// content of the entry's host memory; its length is the size of the entry
	Host []byte
	// content of the handler host memory; nil: zeros, as many as the module
	// needs
	HandlerHost []byte
	Node        int // of the device, 0 to MaxNode
	// nodes besides the device, at least 1; senders are added if needed
	Nodes int
	Ack   bool // senders ask for acknowledgements
	// results of the handlers' DMA operations by number, from 1; such an
	// operation moves no data
	Faults map[int]int64
	// find unordered accesses to memory that handlers share
	Race bool
	// how much of the history of accesses is kept, bytes; 0: mostHistory
	history int64
	// count cycles and instructions by lines of the source (Report.Lines)
	Lines bool
	// report the bytes that handlers send or write to host memory
	Bytes bool
	// looks at the run and bounds it: Tracer, Limits and others; what is of the
	// device, its nodes and its handlers does not count
	Watched runtime.Config
}

// DefaultHPUMemory is the default size of HPU memory in bytes.
const DefaultHPUMemory = 64 << 10

const (
	// bytes that handlers reach at every other node, through any portal table
	// index
	peerMemory = 64 << 10
	peerPTs    = 256
	eventSlots = 1 << 20 // of the queues; nobody empties them, and no run has more events
)

// trial is a run in progress.
type trial struct {
	*Config
	*lab.Run

	chosen  *handlers.Plan
	in      *handlers.Installed // nil: not yet
	failed  error               // why they could not be installed
	host    runtime.View
	handler runtime.View // handler host memory
	cts     []portals.Handle
	record  *recorder
}

// Run sends the messages and reports what the handlers did. It returns an error
// if the configuration is wrong; then nothing was run. Failures of handlers are
// in the report.
func Run(ctx context.Context, cfg *Config) (*Report, error) {
	m, err := cfg.load()
	if err != nil {
		return nil, err
	}
	x, err := prepare(cfg, m)
	if err != nil {
		return nil, err
	}
	return x.report(ctx)
}

// report runs a prepared configuration. The module has code that observes this run.
func (x *trial) report(ctx context.Context) (report *Report, err error) {
	m, err := x.observed(x.record)
	if err != nil {
		return nil, err
	}
	x.chosen = m.plan
	x.record.look(m.module)
	x.Run = &lab.Run{Keep: x.record.keep, See: x.record.see}
	c := x.Watched
	c.Profile, c.Nodes, c.Engine, c.Watch, c.InjectDMA = x.Profile, 1+x.nodes(), x.Engine, x.record.watch, x.record.inject
	err = x.Do(ctx, c, x.program, x.main, func(err error) error {
		if x.failed != nil {
			return x.failed
		}
		// a limit may end the run before it begins
		if err != nil && !lab.Early(err) || x.in == nil {
			return err
		}
		report = x.collect(err)
		return nil
	})
	return report, err
}

// prepare makes all checks of a configuration that need no cluster. m is the
// module on the device.
func prepare(cfg *Config, m *loaded) (*trial, error) {
	own := *cfg
	x := &trial{Config: &own}
	x.record = newRecorder(x)
	return x, x.check(m)
}

// loaded is a module on a device with its chosen handlers.
type loaded struct {
	module *hpu.Module
	plan   *handlers.Plan
}

// load loads the module as the device does, and chooses its handlers. It refuses
// a module that cannot be observed.
func (c *Config) load() (*loaded, error) {
	m, err := c.loadOn(c.Profile.Device())
	if err == nil {
		_, err = c.observed(nil)
	}
	return m, err
}

// observed loads the module with code for an observer.
func (c *Config) observed(o hpu.Observer) (*loaded, error) {
	spec := c.Profile.Device()
	spec.Watch = hpu.Watch{Null: true, Accesses: c.Race, Blocks: c.Lines, Observer: o}
	return c.loadOn(spec)
}

func (c *Config) loadOn(spec *hpu.Spec) (*loaded, error) {
	m, err := hpu.Load(c.Module.Name, c.Module.Wasm, spec)
	if err != nil {
		return nil, err
	}
	wanted := handlers.Exports{c.Header, c.Payload, c.Completion}
	switch named := wanted != (handlers.Exports{}); {
	case named && c.Set != "":
		err = fmt.Errorf("--handler-set: set %s, and handlers by their names: expected one of both", c.Set)
	case c.Set != "":
		wanted, err = handlers.OfSet(m, c.Set)
		err = flagged(true, "handler-set", err)
	case named:
		var errs []error
		for i, kind := range manifest.Kinds() {
			if wanted[i] == "" {
				wanted[i] = handlers.Named(m, kind)
			} else if wanted[i] != handlers.None {
				errs = append(errs, flagged(true, string(kind), handlers.Check(m, kind, wanted[i])))
			}
		}
		err = errors.Join(errs...)
	}
	if err != nil {
		return nil, err
	}
	p, err := handlers.PlanOf(m, wanted)
	return &loaded{m, p}, err
}

// Layout returns the layout of the state of the chosen handlers, nil if the
// module declares none.
func (c *Config) Layout() (*Format, error) {
	m, err := c.load()
	if err != nil {
		return nil, err
	}
	return FormatOf(m.plan.State), nil
}

// SetState sets the state from text such as "wanted=7". The names are the
// module's names of the fields.
func (c *Config) SetState(text string) (err error) {
	if c.Format, err = c.Layout(); err == nil {
		c.State, err = ParseState(text, c.Format, c.Device())
	}
	return err
}

// Device returns the device as the module's manifest sees it.
func (c *Config) Device() *manifest.Device { return handlers.DeviceOf(c.Profile, c.Node, 1+c.nodes()) }

// flagged names the flag of an error, if the flag was given.
func flagged(given bool, name string, err error) error {
	if err == nil || !given {
		return err
	}
	return fmt.Errorf("--%s: %w", name, err)
}

// check makes the checks that the cluster does not.
func (x *trial) check(m *loaded) error {
	if x.Format == nil {
		x.Format = FormatOf(m.plan.State)
	}
	if err := flagged(x.UserHeader != 0, "user-header", x.userHeader(m.plan)); err != nil {
		return err
	}
	given := x.HPUMemory != 0
	if err := x.memorySizes(m.plan); err != nil {
		return err
	}
	err := error(nil)
	if len(x.State.Bytes) > x.HPUMemory {
		err = fmt.Errorf("state of %d bytes in HPU memory of %d", len(x.State.Bytes), x.HPUMemory)
	}
	if err == nil {
		err = m.plan.Fits(x.Device(), int64(x.HPUMemory), 0, x.Profile.HPU.MaxHPUMemory)
	}
	if err == nil {
		_, err = m.module.Layout(uint32(min(int64(x.HPUMemory), 1<<32-1)))
	}
	if err != nil {
		return flagged(given, "memory", err)
	}
	if err := m.plan.Fits(x.Device(), int64(x.HPUMemory), int64(len(x.HandlerHost)), x.Profile.HPU.MaxHPUMemory); err != nil {
		return flagged(true, "handler-host-memory", err) // without it there is enough
	}
	if err := x.sources(); err != nil {
		return err
	}
	for i := range x.Messages {
		if n, most := len(x.Messages[i].Data), x.Profile.Limits.MaxMsgSize; n > int(most) {
			return x.wrong(i, fmt.Errorf("has %d bytes, at most %d in profile %s (limits.max_msg_size)", n, most, x.Profile.Name))
		}
	}
	return nil
}

// userHeader checks the size of the user header of all messages.
func (x *trial) userHeader(plan *handlers.Plan) error {
	n, most := cmp.Or(int64(x.UserHeader), plan.UserHeader), min(int64(x.Profile.Limits.MaxUserHdrSize), int64(x.Profile.Fabric.MTU))
	if n > most {
		return fmt.Errorf("user header of %d bytes, at most %d in profile %s (limits.max_user_hdr_size, fabric.mtu)", n, most, x.Profile.Name)
	}
	if unit := x.Profile.PortalsLimits().MinFragmentationLimit; uint64(n)%unit != 0 {
		return fmt.Errorf("user header of %d bytes, expected a multiple of %d in profile %s (min_fragmentation_limit)", n, unit, x.Profile.Name)
	}
	if err := plan.CheckUserHeader(n); err != nil {
		return fmt.Errorf("module %s: %w", x.Module.Name, err)
	}
	return nil
}

// wrong says which message an error is of, and where it comes from.
func (x *trial) wrong(message int, err error) error {
	err = fmt.Errorf("message %d %w", message+1, err)
	switch line := x.Messages[message].Line; {
	case line > 0:
		return fmt.Errorf("%s:%d: %w", x.From, line, err)
	case x.From != "":
		return fmt.Errorf("%s: %w", x.From, err)
	}
	return err
}

// sources chooses a sender for each message without one. It is never the
// device.
func (x *trial) sources() error {
	if x.Node < 0 || x.Node > MaxNode {
		return fmt.Errorf("the device at node %d, expected 0 to %d", x.Node, MaxNode)
	}
	first := 0
	if x.Node == first {
		first = 1
	}
	x.Messages = slices.Clone(x.Messages)
	for i := range x.Messages {
		switch m := &x.Messages[i]; m.Source {
		case AnySource:
			m.Source = first
		case x.Node:
			return x.wrong(i, fmt.Errorf("comes from node %d, which is the device", m.Source))
		}
	}
	return nil
}

// memorySizes fills in the memory sizes that the configuration leaves open,
// from the needs of the handlers.
func (x *trial) memorySizes(plan *handlers.Plan) error {
	needed, err := plan.Memory(x.Device())
	if err != nil {
		return err
	}
	if x.HPUMemory == 0 {
		x.HPUMemory = min(int(max(DefaultHPUMemory, needed, int64(len(x.State.Bytes)))), int(x.Profile.HPU.MaxHPUMemory))
	}
	host, err := plan.HostMemory(x.Device())
	if err == nil && host > maxHostMemory {
		err = fmt.Errorf("module %s needs %d bytes of handler host memory, expected at most %v", x.Module.Name, host, sim.Size(maxHostMemory))
	}
	if err == nil && len(x.HandlerHost) == 0 {
		x.HandlerHost = memory.Make[byte](host)
	}
	return err
}

// Kinds are the kinds of handlers and the usual names of their exports.
var Kinds = [3]string{"header", "payload", "completion"}

// nodes returns the number of nodes besides the device.
func (c *Config) nodes() int {
	n := max(c.Nodes, 1, c.Node)
	for i := range c.Messages {
		n = max(n, c.Messages[i].Source)
	}
	return n
}

// program names the program of a node.
func (x *trial) program(node int) string {
	if node == x.Node {
		return "device"
	}
	return "peer"
}

func (x *trial) main(n *lab.Node) error {
	if n.Rank() != x.Node {
		return x.peer(n)
	}
	x.failed = x.device(n)
	return x.failed
}

// every entry takes all messages.
var every = portals.ME{
	UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: ^uint64(0), Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
}

// device creates the entry with the handlers.
func (x *trial) device(n *lab.Node) error {
	state, err := x.initialState(n)
	if err != nil {
		return err
	}
	x.handler = prepared(n, x.HandlerHost)
	x.in, err = n.Install(x.chosen, handlers.Options{State: state, Memory: int64(x.HPUMemory), UserHeader: int64(x.UserHeader)}, x.handler)
	if err != nil {
		return err
	}
	x.host = prepared(n, x.Host)
	if err := n.MakeQueue(eventSlots); err != nil {
		return err
	}
	// flow control: a killed handler disables the portal table entry
	_, err = n.Offer([]lab.Entry{{ME: every, PTs: portals.OptPTFlowCtrl | x.in.PTOptions, Memory: x.host, Handlers: x.in}})
	return err
}

// prepared allocates memory of a process with the given content.
func prepared(n *lab.Node, content []byte) runtime.View {
	v := n.Alloc(len(content))
	copy(v.Raw(), content)
	return v
}

// initialState returns the state with the handles of the counters that it
// names.
func (x *trial) initialState(n *lab.Node) (state []byte, err error) {
	if x.State.Bytes != nil {
		state = append([]byte(nil), x.State.Bytes...)
	} else if state, err = x.chosen.Initial(nil, x.Device()); err != nil {
		return nil, err
	}
	for _, c := range x.State.Counters {
		for len(x.cts) <= c.Counter {
			ct, err := n.NI().Objects().CTAlloc()
			if err != nil {
				return nil, err
			}
			n.NI().Objects().Label(ct, fmt.Sprintf("state counter %d", len(x.cts)))
			x.cts = append(x.cts, ct)
		}
		binary.LittleEndian.PutUint32(state[c.Offset:], uint32(x.cts[c.Counter]))
	}
	x.record.before = make([]byte, x.HPUMemory)
	copy(x.record.before, state)
	return state, nil
}

// peer is the program of every other node. It offers memory to the operations
// of handlers and sends the messages of its node.
func (x *trial) peer(n *lab.Node) error {
	memory := n.Alloc(peerMemory)
	for i, b := 0, memory.Raw(); i < len(b); i++ {
		b[i] = byte(i)
	}
	if err := n.MakeQueue(eventSlots); err != nil {
		return err
	}
	entries := make([]lab.Entry, min(peerPTs, x.Profile.Limits.MaxPTIndex+1))
	for pt := range entries {
		entries[pt] = lab.Entry{ME: every, PT: uint32(pt), Memory: memory}
	}
	if _, err := n.Offer(entries); err != nil {
		return err
	}
	ack := portals.NoAck
	if x.Ack {
		ack = portals.Ack
	}
	type message struct {
		*Message
		md portals.Handle
	}
	var own []message
	for i := range x.Messages {
		m := &x.Messages[i]
		if m.Source != n.Rank() {
			continue
		}
		data := prepared(n, m.Data)
		md, err := n.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(data.Len()), EQ: n.Queue})
		if err != nil {
			return err
		}
		own = append(own, message{m, md})
	}
	for _, m := range own {
		n.SleepUntil(max(m.At, n.Now()))
		if err := n.NI().Put(portals.Put{MD: m.md, Length: uint64(len(m.Data)), Ack: ack, Target: portals.PhysID(uint32(x.Node), 0), MatchBits: m.MatchBits, RemoteOffset: m.Offset, HdrData: m.HdrData}); err != nil {
			return err
		}
	}
	return nil
}
