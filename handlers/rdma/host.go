//go:build !tinygo

package rdma

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o rdma.wasm guest

//go:embed rdma.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest and engine.
var Library = handlers.Register("rdma", wasm)

// EngineSlot is the RDMA engine: firmware and cells.
var EngineSlot = Library.Slot(handlers.Slot{
	Name: "engine", Short: "the RDMA engine: firmware and cells",
	Handlers: []string{Control, Cells},
	Expects: []string{
		"Descriptors of the own process, answers and time-outs come to Control, cells to Cells; both share the state, contexts and peers.",
		"A transfer's bytes and then its notification are in memory before its status says so, once; completed_ct counts statuses.",
		"Transfers to memory that is not there, of another domain or of a process without the right fail with the status that state.go names.",
	},
})

// Names of its handlers.
const (
	Control = "control" // header handler of PTControl
	Cells   = "cells"   // payload handler of PTCells
)

// Errors of transfers. An error of Wait wraps one of the last five, with
// details.
var (
	ErrNoChannel = errors.New("rdma: all channels of the page are in use")
	ErrNoPage    = fmt.Errorf("rdma: the node has no more than %d pages of channels", Pages)
	ErrTimedOut  = errors.New("nobody has answered")
	ErrDenied    = errors.New("memory that is not there, or not for this access")
	ErrForeign   = errors.New("the other process has another protection domain")
	ErrNoSpace   = errors.New("a limit of the device is reached")
	ErrIllegal   = errors.New("no such node, a range beyond the address space, or a notification that is not at a multiple of 8")
)

var statusErrors = map[uint32]error{
	TimedOut: ErrTimedOut, Denied: ErrDenied, Foreign: ErrForeign, NoSpace: ErrNoSpace, Illegal: ErrIllegal,
}

// Engine is the library on the devices of a cluster.
type Engine struct {
	cluster *runtime.Cluster
	module  *handlers.Module
	prefix  string  // of the engine's fields in the library's state
	pages   []uint8 // pages in use, by node
}

// Load makes the engine ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Engine, error) { return LoadSlot(c, EngineSlot) }

// LoadSlot is Load for the slot of another library with the same handlers, whose
// state begins with the same fields.
func LoadSlot(c *runtime.Cluster, s *handlers.Slot) (*Engine, error) {
	m, err := s.Load(c)
	if err != nil {
		return nil, err
	}
	e := &Engine{cluster: c, module: m, pages: make([]uint8, c.Nodes())}
	if _, err := s.Library.Manifest().States[0].Lookup("pdid"); err != nil {
		e.prefix = "rdma."
	}
	return e, nil
}

// Options are the options of a page.
type Options struct {
	PDID uint16 // protection domain: transfers stay within one
	// State are fields of the library's state by their names, for example
	// timeout (ns), retries and in_flight (docs/rdma.md).
	State map[string]any
	// Memory is the least HPU memory, bytes; 0: enough for the defaults. More
	// contexts and peers need ContextSize and PeerSize each.
	Memory int64
}

// Page is the channels of a process.
type Page struct {
	proc        *runtime.Proc
	ni          *runtime.NI
	self        portals.ID
	in          *handlers.Installed
	md          portals.Handle
	completed   portals.Handle
	notified    portals.Handle
	prefix      string // of the engine's fields in the state
	descriptors runtime.View
	commands    uint64 // number of commands
	status      runtime.View
	pdid        uint32
	tag         uint32
	busy        [Writes + Reads]bool // writes, then requests to read
}

const (
	descriptorBytes = 64
	// posting this many commands takes longer than reading one takes the
	// interface
	commandSlots = 64
)

// Open gives a process its page: HPU memory with the library, and the entries
// for descriptors and cells. It takes no virtual time before the process first
// waits. A process has one page.
func (e *Engine) Open(p *runtime.Proc, o Options) (*Page, error) {
	if err := p.SettingUp(); err != nil {
		return nil, fmt.Errorf("rdma: %w", err)
	}
	if e.pages[p.Rank()] == Pages {
		return nil, ErrNoPage
	}
	u := handlers.NewListSetup("rdma", p)
	if u.Err != nil {
		return nil, u.Err
	}
	g := &Page{proc: p, ni: u.NI, self: u.Self, pdid: uint32(o.PDID)}
	if uid, err := u.NI.Objects().UID(); err != nil {
		return nil, err
	} else if uid != 0 && uid != g.pdid { // 0: in no domain yet
		return nil, fmt.Errorf("rdma: process %s of rank %d is in protection domain %d, not %d", p, p.Rank(), uid, g.pdid)
	}
	g.completed, g.notified = u.Counter("transfers that have ended"), u.Counter("notifications of transfers")
	if err := errors.Join(u.Err, g.install(u, e, o)); err != nil {
		return nil, err
	}
	g.descriptors = u.Locked((len(g.busy) + commandSlots) * descriptorBytes)
	g.status.Lock()
	if g.md = u.Bind(g.descriptors, portals.MD{}); u.Err != nil {
		return nil, u.Err
	}
	p.SetUID(g.pdid)
	e.pages[p.Rank()]++
	if os := p.OS(); os != nil {
		os.AtExit(g.abandon)
	}
	return g, nil
}

// abandon lets the firmware give up the process's work after its end: each
// block and request at its next time-out. Otherwise it would retry, for a
// minute if the other program is not there.
func (g *Page) abandon() {
	s := handlers.Peek[State](g.in)
	s.Retries = 0
	for i := range s.Blocks {
		s.Blocks[i].Attempt = 0
	}
	copy(g.in.HPU.Bytes(), spin.EncodeState(&s))
}

// install makes the two entries.
func (g *Page) install(u *handlers.Setup, e *Engine, o Options) error {
	g.prefix = e.prefix
	state, err := handlers.Fields("rdma", g.prefix, o.State, map[string]any{
		"pdid": uint64(o.PDID), "nid": uint64(g.self.NID), "pid": uint64(g.self.PID), "completed_ct": uint64(g.completed), "notified_ct": uint64(g.notified),
	})
	if err != nil {
		return err
	}
	g.in, err = e.module.Install(g.proc, handlers.Options{Header: Control, Payload: Cells, State: state, Memory: o.Memory, Shared: true})
	if err != nil {
		return err
	}
	if err := g.fits(); err != nil {
		return err
	}
	g.status = g.in.Host
	u.Of = ", of the page of channels that a process has"
	for pt, names := range [][2]string{PTControl: {Control, ""}, PTCells: {"", Cells}} {
		on := u.Spin(g.in, names[0], names[1])
		on.Stamp = portals.Stamp{Shift: PDIDShift, Bits: 16} // the user id of the process that put it
		if pt == PTControl {
			on.UserHdrLen = descriptorBytes
		}
		u.List(uint32(pt), 1<<AddressBits, g.in, on)
	}
	return u.Err
}

// fits checks that contexts and peers lie in the HPU memory.
func (g *Page) fits() error {
	var contexts, peers, b, mtu uint64
	for name, v := range map[string]*uint64{"contexts": &contexts, "peers": &peers, "block": &b, "mtu": &mtu} { //lint:maporder each is set by itself
		n, err := g.in.Number(g.prefix + name)
		if err != nil {
			return err
		}
		*v = n.(uint64)
	}
	needed := uint64(g.in.State.Size) + contexts*ContextSize + peers*PeerSize
	if have := uint64(len(g.in.HPU.Bytes())); needed > have {
		return fmt.Errorf("rdma: contexts and peers need %d bytes of HPU memory, there are %d: give more (Options.Memory)", needed, have)
	}
	if b&(b-1) != 0 || b > MaxCells*mtu {
		return fmt.Errorf("rdma: block: %d, expected a power of two of at most %d cells of %d bytes", b, MaxCells, mtu)
	}
	return nil
}

// ID returns the process in the form that others use in their transfers.
func (g *Page) ID() portals.ID { return g.self }

// Transfer describes a transfer.
type Transfer struct {
	NID, PID    uint32 // the other process
	Source      uint64 // address of the first byte, at the process with the data
	Destination uint64 // at the process that gets the data
	Length      uint64 // bytes
	// Notify is the address, a multiple of 8, of 8 bytes of the process that
	// gets the data. They become Value once, when all of the data is there; 0:
	// none.
	Notify uint64
	Value  uint64
}

// Pending is a transfer that has begun.
type Pending struct {
	page  *Page
	t     Transfer
	read  bool
	place int
	tag   uint32
	err   error
	ended bool
}

// Write begins to write memory of this process to another one. It takes
// nic.overhead on the core. ErrNoChannel: all channels have transfers whose end
// the program has not seen yet.
func (g *Page) Write(t Transfer) (*Pending, error) {
	return g.begin(0, Writes, PTControl, KindWrite, t)
}

// Read begins to read memory of another process into this one.
func (g *Page) Read(t Transfer) (*Pending, error) {
	return g.begin(Writes, Reads, PTCells, KindAsk, t)
}

func (g *Page) begin(first, count int, pt uint32, kind uint32, t Transfer) (*Pending, error) {
	free := slices.Index(g.busy[first:first+count], false)
	if free < 0 {
		return nil, ErrNoChannel
	}
	place := first + free
	g.tag++
	d := Descriptor{
		Source: t.Source, Destination: t.Destination, Length: t.Length, Notify: t.Notify, Value: t.Value,
		NID: t.NID, PID: t.PID, Channel: uint32(place - first), Tag: g.tag,
	}
	g.descriptors.Slice(place*descriptorBytes, (place+1)*descriptorBytes).CopyFrom(spin.EncodeState(&d))
	h := Header{Kind: kind, PDID: g.pdid}
	if err := g.ni.Put(portals.Put{MD: g.md, Offset: uint64(place * descriptorBytes), Length: descriptorBytes, Target: g.self, PT: pt, MatchBits: h.Bits()}); err != nil {
		return nil, err
	}
	g.busy[place] = true
	at := place
	if kind == KindAsk {
		at = Channels + place - first
	}
	return &Pending{page: g, t: t, read: kind == KindAsk, place: at, tag: g.tag}, nil
}

// Done reports whether the transfer has ended: all of a write is acknowledged,
// all of a read is here, or it has failed. It takes no time.
func (t *Pending) Done() bool {
	if t.ended {
		return true
	}
	word := binary.LittleEndian.Uint64(t.page.status.Slice(8*t.place, 8*t.place+8).Read())
	if uint32(word>>32) != t.tag {
		return false
	}
	t.ended = true
	if err := statusErrors[uint32(word)]; err != nil {
		t.err = t.failed(err)
	}
	place := t.place
	if place >= Channels {
		place += Writes - Channels
	}
	t.page.busy[place] = false
	return true
}

// failed returns the error of a failed transfer. An engine that cannot read the
// data sends nothing, as in hardware, so that the transfer times out.
func (t *Pending) failed(err error) error {
	what, there := "write of %d bytes at %#x to %#x of %d:%d", ""
	if t.read {
		what = "read of %d bytes at %#x into %#x from %d:%d"
	}
	if errors.Is(err, ErrTimedOut) {
		if t.read {
			there = fmt.Sprintf("; so it is also if that process has no memory at %#x", t.t.Source)
		} else if _, err := t.page.proc.View(t.t.Source, int(t.t.Length)); err != nil {
			there = fmt.Sprintf(": this process has no memory at %#x to send", t.t.Source)
		}
	}
	return fmt.Errorf("rdma: "+what+": %w%s", t.t.Length, t.t.Source, t.t.Destination, t.t.NID, t.t.PID, err, there)
}

// Err returns the reason why a transfer has failed; it is valid when Done.
func (t *Pending) Err() error { return t.err }

// Wait waits until the transfer has ended and returns the reason if it has
// failed. The core has then looked at the result for the poll time.
func (t *Pending) Wait() error {
	if err := service.Await(t.page.ni, t.page.completed, t.Done); err != nil {
		return err
	}
	return t.err
}

// AwaitNotification waits until a view of 8 bytes, which transfers notify, has
// a value.
func (g *Page) AwaitNotification(flag runtime.View, value uint64) error {
	return service.Await(g.ni, g.notified, func() bool { return binary.LittleEndian.Uint64(flag.Read()) == value })
}

// Counts counts the work of a process's engine.
type Counts struct {
	Sent     Sent
	Received Received
}

// Counts returns the counts of the process's engine so far.
func (g *Page) Counts() Counts {
	s := handlers.Peek[State](g.in)
	return Counts{s.Sent, s.Received}
}

// Signals returns two counters of NI, for programs that wait for several
// things: transfers of the process that have ended, and notifications that were
// written here.
func (g *Page) Signals() (completed, notified portals.Handle) { return g.completed, g.notified }

// NI returns the interface of the page.
func (g *Page) NI() *runtime.NI { return g.ni }

// Installed returns the library in the HPU memory of the process.
func (g *Page) Installed() *handlers.Installed { return g.in }

// Command sends the process's own hardware a message of a kind with up to 64
// bytes, for features that a library adds to the engine. It takes nic.overhead
// of the calling thread, which may be one of the kernel. It fails if the
// process cannot post the message, for example because it has ended.
func (g *Page) Command(t *host.Thread, kind uint32, data []byte) error {
	at := len(g.busy)*descriptorBytes + int(g.commands%commandSlots)*descriptorBytes
	g.commands++
	if err := g.descriptors.Slice(at, at+len(data)).Store(t, data); err != nil {
		return err
	}
	h := Header{Kind: kind, PDID: g.pdid}
	return g.ni.By(t).Put(portals.Put{MD: g.md, Offset: uint64(at), Length: uint64(len(data)), Target: g.self, PT: PTCells, MatchBits: h.Bits()})
}

// Number returns a number of the present state of the process's engine, by its
// name (handlers.Installed.Number).
func (g *Page) Number(name string) (any, error) { return g.in.Number(name) }
