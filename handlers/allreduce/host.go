//go:build !tinygo

package allreduce

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o allreduce.wasm guest

//go:embed allreduce.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("allreduce", wasm)

// AcceleratorSlot is the module of a process for allreduce.
var AcceleratorSlot = Library.Slot(handlers.Slot{
	Name: "accelerator", Short: "the module of a process for allreduce",
	Handlers: []string{Handler},
	Expects: []string{
		"The process stores a descriptor (Call) as a message to itself; all other messages come from modules of the group.",
		"The result is in memory before the status is, and the status before done_ct counts the call.",
	},
})

// Handler is the name of its handler.
const Handler = "module"

// Errors of calls.
var (
	ErrBusy    = errors.New("allreduce: the call before is not over")
	ErrDenied  = errors.New("memory that is not there, or not for this access")
	ErrIllegal = errors.New("a descriptor that the module does not take")
	ErrDiffers = errors.New("another rank means a vector of another length, another operation or another type")
	ErrTable   = errors.New("the table of ranks has another rank in a place")
	ErrNode    = errors.New("the table of ranks has a node that does not exist")
)

var statusErrors = map[uint32]error{
	Denied: ErrDenied, Illegal: ErrIllegal, Differs: ErrDiffers, BadTable: ErrTable, Illegible: ErrNode,
}

// Loaded is the library on the devices of a cluster.
type Loaded struct {
	cluster *runtime.Cluster
	plan    *handlers.Plan
}

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := AcceleratorSlot.Load(c)
	if err != nil {
		return nil, err
	}
	plan, err := m.Plan("", Handler, "")
	if err != nil {
		return nil, err
	}
	return &Loaded{cluster: c, plan: plan}, nil
}

// Options are the options of a module.
type Options struct {
	// Members are the processes of the group, in the order of their ranks; Rank is the process's own.
	Members []portals.ID
	Rank    int
	// Group is the number of the group, the same at all members and below
	// Groups. The process must not have it open already. PDID is the group's
	// protection domain: modules refuse messages of other domains.
	Group, PDID uint16
	// Algorithm is the algorithm of all calls: allreduce.Boards, Doubling or
	// Ring.
	Algorithm uint32
	// Window is how many runs of a call are under way at a time; 0: 1. A handler
	// reads the vectors of up to 8 at once: on a device that lets it read fewer
	// (hpu.dma_handles), no more are under way. Block is the largest size of a run
	// in bytes, a multiple of 8; 0: the payload of a packet.
	Window, Block int
	// Late means that the process has already waited. The module then locks the
	// memory that it uses besides vectors with a system call, which takes time.
	Late bool
	// Beside is another module of the process. Its counter then also counts the
	// calls of this module; nil: this module has its own counter.
	Beside *Module
}

// Groups is how many groups a process may have open. Each has a portal table
// entry, behind the entries of packetizers and mailboxes.
const Groups = firstPT - 1 - lastPT

const (
	firstPT = 255 // of group 0
	lastPT  = 2 + 2*mailbox.Interfaces
)

// atOnce is how many vectors the module reads at once.
const atOnce = 8

// Sizes, bytes, and the place of the protection domain in match bits.
const (
	pdidShift  = 32
	entryBytes = 8
	descriptor = 56
)

// Module is a process's part of a group.
type Module struct {
	proc    *runtime.Proc
	pt      uint32
	ni      *runtime.NI
	in      *handlers.Installed
	entry   portals.Handle
	done    portals.Handle
	md      portals.Handle
	page    runtime.View // the registers: stores go here
	table   runtime.View
	status  runtime.View
	self    portals.ID
	bits    uint64
	call    Descriptor
	block   uint32
	pending bool
	broken  error
}

// Open gives a process a module: HPU memory, an entry for messages, and the
// table of the members. It takes no virtual time.
func (l *Loaded) Open(p *runtime.Proc, o Options) (*Module, error) {
	if err := l.check(&o); err != nil {
		return nil, err
	}
	u := handlers.NewListSetup("allreduce", p)
	if u.Err != nil {
		return nil, u.Err
	}
	if u.Self != o.Members[o.Rank] {
		return nil, fmt.Errorf("allreduce: process %s is %v, not rank %d, %v", p, u.Self, o.Rank, o.Members[o.Rank])
	}
	m := &Module{
		proc: p, ni: u.NI, self: u.Self, pt: firstPT - uint32(o.Group), block: uint32(o.Block), bits: uint64(o.PDID) << pdidShift,
		call: Descriptor{Rank: uint32(o.Rank), Ranks: uint32(len(o.Members)), Algorithm: o.Algorithm},
	}
	if o.Beside != nil {
		m.done = o.Beside.done
	} else {
		m.done = u.Counter("results of allreduce")
	}
	m.page, m.table = p.Alloc(descriptor), p.Alloc(entryBytes*len(o.Members))
	if err := errors.Join(m.lock(m.page, o.Late), m.lock(m.table, o.Late)); err != nil {
		return nil, err
	}
	m.md = u.Bind(m.page, portals.MD{Options: portals.OptMDVolatile})
	for i, b := 0, m.table.Write(); i < len(o.Members); i++ {
		binary.LittleEndian.PutUint32(b[entryBytes*i:], uint32(i))
		binary.LittleEndian.PutUint32(b[entryBytes*i+4:], o.Members[i].NID|o.Members[i].PID<<NodeBits)
	}
	m.call.Table = m.table.Addr()
	return m, m.install(u, l, &o)
}

// lock keeps memory that the device uses from being moved or paged out.
func (m *Module) lock(v runtime.View, late bool) error {
	if !late {
		v.Lock()
		return nil
	}
	if m.proc.OS() == nil {
		return nil
	}
	if err := m.proc.OS().Lock(m.proc.Thread(), v.Addr(), uint64(v.Len())); err != nil {
		return fmt.Errorf("allreduce: memory of the module: %w", err)
	}
	return nil
}

// check fills in defaults and refuses invalid options.
func (l *Loaded) check(o *Options) error {
	mtu := int(l.cluster.Profile().Fabric.MTU)
	if o.Window == 0 {
		o.Window = 1
	}
	handles := l.cluster.Profile().HPU.DMAHandles
	if handles < atOnce {
		o.Window = min(o.Window, handles)
	}
	if o.Block == 0 {
		o.Block = min(mtu&^7, 1<<16)
	}
	switch ranks := len(o.Members); {
	case o.Rank < 0 || o.Rank >= ranks:
		return fmt.Errorf("allreduce: rank %d of %d", o.Rank, ranks)
	case o.Algorithm < Boards || o.Algorithm > Ring:
		return fmt.Errorf("allreduce: algorithm %d, expected %d to %d", o.Algorithm, Boards, Ring)
	case o.Algorithm == Boards && ranks%Board != 0:
		return fmt.Errorf("allreduce: %d ranks, expected whole boards: a multiple of %d", ranks, Board)
	case o.Block < 8 || o.Block%8 != 0 || o.Block > mtu:
		return fmt.Errorf("allreduce: %d B in a run, expected a multiple of 8 of at most %d, the payload of a packet", o.Block, mtu)
	case o.Group >= Groups:
		return fmt.Errorf("allreduce: group %d, expected one below %d", o.Group, Groups)
	case o.Window < 1 || o.Window > 4096:
		return fmt.Errorf("allreduce: a window of %d runs, expected 1 to 4096", o.Window)
	}
	for i, id := range o.Members {
		if id.NID >= 1<<NodeBits || id.PID >= 1<<(32-NodeBits) {
			return fmt.Errorf("allreduce: rank %d is %v, expected nodes below %d and processes below %d", i, id, 1<<NodeBits, 1<<(32-NodeBits))
		}
	}
	plan := State{Call: Descriptor{Rank: uint32(o.Rank), Ranks: uint32(len(o.Members)), Algorithm: o.Algorithm}}
	if plan.Plan(); handles < min(atOnce, int(plan.Links)) {
		return fmt.Errorf("allreduce: rank %d of %d looks up %d ranks at once, and its device reads %d places (hpu.dma_handles)", o.Rank, len(o.Members), min(atOnce, plan.Links), handles)
	}
	return nil
}

// install makes the entry for descriptors and vectors.
func (m *Module) install(u *handlers.Setup, l *Loaded, o *Options) error {
	if u.Err != nil {
		return u.Err
	}
	levels := LevelsOf(o.Algorithm, m.call.Ranks)
	s := State{Levels: levels, Block: uint32(o.Block)}
	m.block = s.Block
	var err error
	m.in, err = l.plan.Install(m.proc, handlers.Options{
		Memory: l.plan.State.Size + 2*int64(o.Window)*int64(s.SlotBytes()), Shared: true,
		State: map[string]any{
			"match_bits": m.bits, "nid": m.self.NID, "pid": m.self.PID, "pt": m.pt, "done_ct": uint32(m.done),
			"window": o.Window, "block": o.Block, "levels": levels,
		},
	})
	if err != nil {
		return err
	}
	m.status = m.in.Host
	if err = m.lock(m.status, o.Late); err != nil {
		return err
	}
	u.Of = fmt.Sprintf(" of group %d", o.Group)
	m.entry = u.List(m.pt, 1<<addressBits, m.in, m.in.Spin)
	return u.Err
}

// addressBits is the width of virtual addresses (TR-488 §4.3). Vectors may lie
// anywhere in the memory of the process.
const addressBits = 39

// Call is a vector to combine with the vectors of the other members. All
// members give the same length, operation and type.
type Call struct {
	Source, Result runtime.View // of the same length; they may be the same
	Op, Type       uint16       // allreduce.Sum, Min, Max; allreduce.Int32, Int64, Float32, Float64
}

// Begin programs the module with posted stores of a descriptor, which take
// nic.overhead of the core. It touches both vectors, because the module cannot
// handle absent pages. ErrBusy: the previous call is not over.
func (m *Module) Begin(c Call) error {
	n := c.Source.Len()
	switch size := int(Size(c.Type)); {
	case m.broken != nil:
		return m.broken
	case m.pending:
		return ErrBusy
	case c.Result.Len() != n:
		return fmt.Errorf("allreduce: %d B for the result, expected %d B", c.Result.Len(), n)
	case size == 0 || n%size != 0 || n == 0 || n >= 1<<31 || c.Op < Sum || c.Op > Max:
		return fmt.Errorf("allreduce: %d B, operation %d, type %d: expected whole elements, at least one, and an operation and a type of the library", n, c.Op, c.Type)
	}
	c.Source.Read()
	c.Result.Write()
	d := &m.call
	d.Source, d.Result, d.Bytes, d.Op, d.Type = c.Source.Addr(), c.Result.Addr(), uint32(n), c.Op, c.Type
	d.Tag++
	encode(m.page.Write(), d)
	if err := m.ni.Put(portals.Put{MD: m.md, Length: descriptor, Target: m.self, PT: m.pt, MatchBits: m.bits | KindBegin}); err != nil {
		return err
	}
	d.First += (d.Bytes + m.block - 1) / m.block
	m.pending = true
	return nil
}

// encode writes a descriptor in the module's layout, without an allocation.
func encode(b []byte, d *Descriptor) {
	le := binary.LittleEndian
	le.PutUint64(b, d.Source)
	le.PutUint64(b[8:], d.Result)
	le.PutUint64(b[16:], d.Table)
	for i, v := range [...]uint32{d.Bytes, d.First, d.Rank, d.Ranks, d.Algorithm, uint32(d.Op) | uint32(d.Type)<<16, d.Tag, 0} {
		le.PutUint32(b[24+4*i:], v)
	}
}

// Done reports whether the call is over, and the reason if it has failed. It
// takes no time.
func (m *Module) Done() (bool, error) {
	if !m.pending {
		return true, m.broken
	}
	word := binary.LittleEndian.Uint64(m.status.Read())
	if uint32(word>>32) != m.call.Tag {
		return false, nil
	}
	m.pending = false
	if err := statusErrors[uint32(word)]; err != nil {
		m.broken = fmt.Errorf("allreduce: rank %d of %d, call %d: %w", m.call.Rank, m.call.Ranks, m.call.Tag, err)
	}
	return true, m.broken
}

// Wait waits until the call is over and returns the reason if it has failed.
// The core has then looked at the result for the poll time.
func (m *Module) Wait() error {
	err := service.Await(m.ni, m.done, func() bool { over, _ := m.Done(); return over })
	return errors.Join(m.broken, err)
}

// Close frees a module whose calls are over: its entry, its number and its HPU
// memory. It waits for handlers that have not ended. The counter stays.
func (m *Module) Close() error {
	if m.pending {
		return ErrBusy
	}
	if err := m.ni.PTDisable(m.pt); err != nil {
		return err
	}
	return errors.Join(m.ni.Objects().LEUnlink(m.entry), m.ni.Objects().PTFree(m.pt), m.ni.Objects().MDRelease(m.md), m.in.HPU.Free())
}

// NI returns the interface of the module, for programs that wait for several
// things.
func (m *Module) NI() *runtime.NI { return m.ni }

// Signal returns the counter of calls that are over, for programs that wait for
// several things.
func (m *Module) Signal() portals.Handle { return m.done }

// Counts returns the counts of the module so far.
func (m *Module) Counts() Counts { return handlers.Peek[State](m.in).Counts }
