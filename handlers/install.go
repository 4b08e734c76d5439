package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// Options describe an installation of handlers.
type Options struct {
	// Header, Payload and Completion are exports. If all are empty, each kind
	// gets its only handler, or the export with the kind's name. If any is
	// given, an empty one means no handler.
	Header, Payload, Completion string
	// Set is a set of the manifest, in place of the three names; "": they count.
	Set string
	// State is the initial content of HPU memory: nil for the defaults of the
	// manifest, a value for State.Bytes, or bytes.
	State any
	// Memory is the least HPU memory, bytes; 0: what state and manifest need.
	Memory int64
	// HostMemory is handler host memory, of the process. The zero value: it is
	// allocated, if the manifest needs any.
	HostMemory portals.Region
	// UserHeader is the size of the user header of a message, which only a
	// header handler sees; 0: as in the manifest.
	UserHeader int64
	// Shared: several entries share the state. Install writes it once, and not
	// again with every entry.
	Shared bool
}

// State is the layout of the memory that the handlers of an entry share, from
// the manifest.
type State = manifest.State

// Device is what the sizes in a manifest may depend on: the counts of the
// device, and the node's place among the nodes.
type Device = manifest.Device

// Plan is a checked installation. Any number of processes can carry it out.
type Plan struct {
	Exports    Exports
	State      *State // nil: not described
	UserHeader int64  // bytes
	// EntryOptions and PTOptions are the options that the library needs for the
	// match entry and for its portal table entry.
	EntryOptions portals.EntryOptions
	PTOptions    portals.PTOptions
	module       *hpu.Module
	needs        manifest.Needs
	// of a user's module: its slot, and the plan of the slot's own, whose needs it
	// has, too
	slot *Slot
	ours *Plan
}

// spare is the HPU memory behind the state, in bytes, for the handlers of a slot
// that do not state their need.
const spare = 16 << 10

// PlanOf checks which handlers of a module an entry gets.
func PlanOf(m *hpu.Module, wanted Exports) (*Plan, error) {
	chosen, err := choose(m, wanted)
	if err != nil {
		return nil, err
	}
	p := &Plan{Exports: chosen, module: m}
	if p.State, err = stateOf(m, chosen); err != nil {
		return nil, err
	}
	if m.Manifest() != nil {
		if p.needs, err = m.Manifest().NeedsOf(chosen); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.Name(), err)
		}
		p.UserHeader = p.needs.UserHeader
	}
	if p.EntryOptions, p.PTOptions, err = OptionsOf(p.needs.EntryOptions, p.needs.PTOptions); err != nil {
		return nil, fmt.Errorf("module %s needs %w", m.Name(), err)
	}
	return p, nil
}

// OptionsOf returns the options of match entry and portal table entry that a
// manifest names. Its error names an option that does not exist, or that no
// module may ask for.
func OptionsOf(ofEntry, ofPT []string) (portals.EntryOptions, portals.PTOptions, error) {
	entry, wrong := bits(ofEntry, portals.EntryNames)
	table, also := bits(ofPT, portals.PTNames)
	if own := portals.EntryOptions(entry) & memoryOptions; own != 0 && wrong == nil {
		wrong = fmt.Errorf("entry option %s, which no module can ask for: whoever makes the entry decides whether its memory is in one piece", strings.ToLower(own.String()))
	}
	return portals.EntryOptions(entry), portals.PTOptions(table), errors.Join(wrong, also)
}

// memoryOptions describe the memory of an entry. If a module could ask for
// them, the device would read a piece of memory as a list of vectors.
const memoryOptions = portals.OptMEIOVec | portals.OptMEHandlerIOVec

// DeviceOf returns the device of a node in the form for expressions of a
// manifest.
func DeviceOf(p *profile.Profile, rank, ranks int) *Device {
	return &Device{MTU: int64(p.Fabric.MTU), HPUs: int64(p.HPU.Cores), Contexts: int64(p.HPU.Contexts), Rank: int64(rank), Ranks: int64(ranks), Clusters: int64(max(1, p.HPU.Clusters))}
}

// maxMemory bounds what a manifest may ask for, bytes; the limits of devices are lower.
const maxMemory = 1 << 32

// CheckUserHeader returns why the user header of messages cannot have n bytes.
func (p *Plan) CheckUserHeader(n int64) error {
	switch {
	case n < p.UserHeader:
		return fmt.Errorf("user header of %d bytes, its handlers read %d", n, p.UserHeader)
	case n > 0 && p.Exports[0] == "":
		return fmt.Errorf("user header of %d bytes, but the entry has no header handler, and no other sees them", n)
	}
	return nil
}

// Memory returns the HPU memory that the handlers need on a device, bytes: for
// the state, for what follows it, and for the memories of clusters and
// messages.
func (p *Plan) Memory(d *Device) (int64, error) {
	own, err := p.own(d)
	if err != nil {
		return 0, err
	}
	m, err := p.memories(d, own)
	return m.End, err
}

// memories lays out the memories of clusters and messages, beginning at behind.
func (p *Plan) memories(d *Device, behind int64) (manifest.Memories, error) {
	m, err := p.needs.Memories(d, behind)
	if err != nil {
		err = fmt.Errorf("module %s: %w", p.module.Name(), err)
	}
	return m, err
}

// own returns the size of the state and of what follows it, bytes.
func (p *Plan) own(d *Device) (int64, error) {
	behind, err := p.needs.Memory.Between(d, 0, maxMemory)
	if err != nil {
		return 0, fmt.Errorf("module %s: HPU memory behind the state: %w", p.module.Name(), err)
	}
	if p.State != nil {
		behind += p.State.Size
	}
	if p.ours == nil {
		return behind, nil
	}
	if p.module.Manifest() == nil {
		behind += spare
	}
	least, err := p.ours.own(d)
	return max(behind, least), err
}

// HostMemory returns the handler host memory that the handlers need on a device, bytes.
func (p *Plan) HostMemory(d *Device) (int64, error) {
	n, err := p.needs.HostMemory.Between(d, 0, maxMemory)
	if err != nil {
		return 0, fmt.Errorf("module %s: handler host memory: %w", p.module.Name(), err)
	}
	if p.ours == nil {
		return n, nil
	}
	least, err := p.ours.HostMemory(d)
	return max(n, least), err
}

// Initial returns the first bytes of HPU memory. If v is bytes they are copied;
// else v changes the default state.
func (p *Plan) Initial(v any, d *Device) ([]byte, error) {
	if b, are := v.([]byte); are {
		return bytes.Clone(b), nil
	}
	if p.State == nil {
		if v == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("module %s does not describe the state of its handlers: give it as bytes", p.module.Name())
	}
	b, err := p.State.Bytes(v, d)
	if err != nil {
		err = fmt.Errorf("module %s: state: %w", p.module.Name(), err)
	}
	return b, err
}

// bits joins options; names must be in the order of their bits.
func bits(names, all []string) (options uint32, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(n string) bool { return strings.EqualFold(n, name) })
		if i < 0 {
			return 0, fmt.Errorf("option %s, expected one of %s", name, strings.ToLower(strings.Join(all, ", ")))
		}
		options |= 1 << i
	}
	return options, nil
}

// Installed is an instance of a library in HPU memory of a process.
type Installed struct {
	Plan
	HPU    *nic.Memory   // HPU memory
	Host   runtime.View  // handler host memory, if Install has allocated it
	Spin   *portals.Spin // the handler part of an entry
	device *Device
}

// Install gives a process HPU memory with the library. It takes no virtual
// time. Errors name the module, and the field of the profile or of the state
// that does not allow it.
func (m *Module) Install(p *runtime.Proc, o Options) (*Installed, error) {
	names := Exports{o.Header, o.Payload, o.Completion}
	if o.Set != "" {
		if names != (Exports{}) {
			return nil, fmt.Errorf("module %s: set %s, and handlers by their names: expected one of both", m.Name(), o.Set)
		}
		var err error
		if names, err = OfSet(m.Module, o.Set); err != nil {
			return nil, err
		}
	}
	plan, err := m.Plan(names[0], names[1], names[2])
	if err != nil {
		return nil, err
	}
	return plan.Install(p, o)
}

// Install carries out the plan for a process. The plan decides the handlers;
// o's names do not count.
func (p *Plan) Install(proc *runtime.Proc, o Options) (*Installed, error) {
	c := proc.Cluster()
	in := &Installed{Plan: *p, device: DeviceOf(c.Profile(), proc.Rank(), c.Nodes())}
	if o.UserHeader != 0 {
		if err := p.CheckUserHeader(o.UserHeader); err != nil {
			return nil, fmt.Errorf("module %s: %w", p.module.Name(), err)
		}
	}
	size, err := in.size(o.Memory, c.Profile().HPU.MaxHPUMemory)
	if err != nil {
		return nil, err
	}
	given, err := in.firmware(c.Profile(), in.known(o.State))
	if err != nil {
		return nil, err
	}
	state, err := in.Initial(given, in.device)
	if err != nil {
		return nil, err
	}
	if err := in.allocate(proc, size, int64(len(state))); err != nil {
		return nil, err
	}
	if o.UserHeader != 0 {
		in.UserHeader = o.UserHeader
	}
	in.Spin.UserHdrLen = uint64(in.UserHeader)
	in.showPackets()
	if in.Spin.HostMem, err = in.hostMemory(proc, o.HostMemory); err != nil {
		return nil, err
	}
	if o.Shared {
		copy(in.HPU.Present(), state)
	} else {
		in.Spin.InitialState = state
	}
	return in, nil
}

// Share makes another set of handlers of the module for a second entry. It uses
// the HPU memory, the state and the handler host memory of an earlier
// installation, which must be large enough.
func (p *Plan) Share(with *Installed) (*Installed, error) {
	if with.module != p.module {
		return nil, fmt.Errorf("module %s cannot share HPU memory of module %s", p.module.Name(), with.module.Name())
	}
	in := &Installed{Plan: *p, HPU: with.HPU, Host: with.Host, device: with.device}
	spin, err := in.HPU.Spin(in.Exports[0], in.Exports[1], in.Exports[2])
	if err != nil {
		return nil, err
	}
	shared := *with.Spin
	shared.Handlers, shared.InitialState, shared.UserHdrLen = spin.Handlers, nil, uint64(in.UserHeader)
	in.Spin = &shared
	in.showPackets()
	return in, in.fits()
}

// fits checks that the shared memories are large enough.
func (in *Installed) fits() error {
	own, err := in.own(in.device)
	if err != nil {
		return err
	}
	needed, err := in.memories(in.device, 0)
	if err != nil {
		return err
	}
	host, err := in.HostMemory(in.device)
	if err != nil {
		return err
	}
	s := in.Spin
	room := uint64(len(in.HPU.Present()))
	if s.PerMessage.Bytes > 0 {
		room = s.PerMessage.Offset
	}
	if s.Scratchpads.Bytes > 0 {
		room = s.Scratchpads.Offset
	}
	if needed.Message == 0 {
		s.PerMessage = portals.MessageMemory{} // it belongs to the other entry
	}
	for _, x := range []struct {
		what         string
		needed, have uint64
	}{
		{"bytes of HPU memory", uint64(own), room},
		{"bytes of scratchpad", uint64(needed.Cluster), s.Scratchpads.Bytes},
		{"bytes of memory of a message", uint64(needed.Message), s.PerMessage.Bytes},
		{"memories of messages", uint64(needed.Messages), uint64(s.PerMessage.Messages)},
		{"bytes of handler host memory", uint64(host), s.HostMem.Length},
	} {
		if x.needed > x.have {
			return fmt.Errorf("module %s: its handlers, %s, need %d %s; the entry that they share with has %d", in.module.Name(), in.Exports, x.needed, x.what, x.have)
		}
	}
	return nil
}

// showPackets asks for the packets that the handlers see as a whole.
func (in *Installed) showPackets() {
	in.Spin.FirstPacket = slices.Contains(in.needs.Packets, manifest.FirstPacket)
	in.Spin.LastPacket = slices.Contains(in.needs.Packets, manifest.LastPacket)
}

// Store writes a number of the state while handlers work on it. The process
// that has installed them writes it (runtime.Proc.HPUWrite).
func (in *Installed) Store(p *runtime.Proc, name string, v any) error {
	n, err := in.lookup(name)
	if err != nil {
		return err
	}
	state := make([]byte, n.Offset+n.Field.Type.Size())
	if err := n.Put(state, v, in.device); err != nil {
		return err
	}
	return p.HPUWrite(in.HPU, in.Spin.HPUMemOffset+uint64(n.Offset), state[n.Offset:])
}

// Await reads a number of the state, a uint64, an int64 or a float64, until the
// condition holds, and returns it (runtime.Proc.HPUWait).
func (in *Installed) Await(p *runtime.Proc, name string, until func(v any) bool) (any, error) {
	n, err := in.lookup(name)
	if err != nil {
		return nil, err
	}
	state := make([]byte, n.Offset+n.Field.Type.Size())
	get := func(b []byte) any {
		copy(state[n.Offset:], b)
		return n.Get(state)
	}
	b, err := p.HPUWait(in.HPU, in.Spin.HPUMemOffset+uint64(n.Offset), int(n.Field.Type.Size()), func(b []byte) bool { return until(get(b)) })
	if err != nil {
		return nil, err
	}
	return get(b), nil
}

// allocate gives the process at least size bytes of HPU memory, which begins
// with the state, and makes the handler part of an entry.
func (in *Installed) allocate(proc *runtime.Proc, size, state int64) error {
	own, err := in.own(in.device)
	if err != nil {
		return err
	}
	m, err := in.memories(in.device, max(own, state))
	if err != nil {
		return err
	}
	if in.HPU, err = proc.HPUAllocMem(in.module, int(max(size, m.End))); err != nil {
		return err
	}
	if in.Spin, err = in.HPU.Spin(in.Exports[0], in.Exports[1], in.Exports[2]); err != nil {
		return err
	}
	in.Spin.Scratchpads = portals.Scratchpads{Offset: uint64(m.ClusterAt), Bytes: uint64(m.Cluster)}
	in.Spin.PerMessage = portals.MessageMemory{Offset: uint64(m.MessageAt), Bytes: uint64(m.Message), Messages: uint32(m.Messages)}
	return nil
}

// size returns how much HPU memory to allocate, bytes. The device has at most
// limit.
func (in *Installed) size(wanted, limit int64) (int64, error) {
	needed, err := in.Memory(in.device)
	switch {
	case err != nil:
		return 0, err
	case wanted != 0 && wanted < needed && in.ours == nil: // a host only knows the library's need
		return 0, fmt.Errorf("module %s: HPU memory of %d bytes, its handlers need %d", in.module.Name(), wanted, needed)
	case max(wanted, needed) > limit:
		return 0, fmt.Errorf("module %s: HPU memory of %d bytes, at most %d on this device (hpu.max_hpu_memory)", in.module.Name(), max(wanted, needed), limit)
	}
	return max(wanted, needed), nil
}

// Fits returns the error of Install for sizes of HPU memory and of handler host
// memory, bytes. memory 0: as much as is needed. most: what the device has.
func (p *Plan) Fits(d *manifest.Device, memory, host, most int64) error {
	in := &Installed{Plan: *p, device: d}
	_, err := in.size(memory, most)
	if err == nil && host > 0 {
		_, err = in.hostMemory(nil, portals.Region{Length: uint64(host)})
	}
	return err
}

// hostMemory returns the handler host memory: the given one, if it is large
// enough, else a new one of the size in the manifest.
func (in *Installed) hostMemory(p *runtime.Proc, given portals.Region) (portals.Region, error) {
	needed, err := in.HostMemory(in.device)
	have := given.Length
	if given.IOVec != nil {
		have = 0
		for _, piece := range given.IOVec {
			have += piece.Length
		}
	}
	switch {
	case err != nil:
		return given, err
	case have == 0 && given.IOVec == nil && needed > 0:
		in.Host = p.Alloc(int(needed))
		given.Start, given.Length = in.Host.Addr(), uint64(needed)
	case have < uint64(needed):
		return given, fmt.Errorf("module %s: handler host memory of %d bytes, its handlers need %d", in.module.Name(), have, needed)
	}
	return given, nil
}

// Attach gives an entry the handlers, and the options that they need.
func (in *Installed) Attach(me *portals.ME) {
	me.Spin = in.Spin
	me.Options |= in.EntryOptions
	if in.Spin.HostMem.IOVec != nil {
		me.Options |= portals.OptMEHandlerIOVec
	}
}

// Read sets a struct from the present state, by the names of its fields.
func (in *Installed) Read(v any) error {
	if in.State == nil {
		return fmt.Errorf("module %s does not describe the state of its handlers", in.module.Name())
	}
	return in.State.Read(in.HPU.Present(), v)
}

// Number returns a number of the present state: a uint64, an int64 or a
// float64.
func (in *Installed) Number(name string) (any, error) {
	n, err := in.lookup(name)
	if err != nil {
		return nil, err
	}
	return n.Get(in.HPU.Present()), nil
}

// Set changes a number of the state.
func (in *Installed) Set(name string, v any) error {
	n, err := in.lookup(name)
	if err != nil {
		return err
	}
	return n.Put(in.HPU.Present(), v, in.device)
}

func (in *Installed) lookup(name string) (manifest.Number, error) {
	if in.State == nil {
		return manifest.Number{}, fmt.Errorf("module %s does not describe the state of its handlers", in.module.Name())
	}
	return in.State.Lookup(name)
}
