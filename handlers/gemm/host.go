//go:build !tinygo

package gemm

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o gemm.wasm guest

//go:embed gemm.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("gemm", wasm)

// AcceleratorSlot is the accelerator of a process.
var AcceleratorSlot = Library.Slot(handlers.Slot{
	Name: "accelerator", Short: "the accelerator of a process for matrix multiplication",
	Handlers: []string{LoadHandler, MultiplyHandler, StoreHandler},
	Expects: []string{
		"A descriptor comes as the user header of a message; all other messages come from the accelerator.",
		"The result is in memory before the status is, and the status before done_ct counts the call.",
	},
})

// Names of its handlers.
const (
	LoadHandler     = "load"
	MultiplyHandler = "multiply"
	StoreHandler    = "store"
)

// PT is the portal table entry of an accelerator: between those of the groups of
// reduction, from 131 up, and of allreduce, from 255 down.
const PT = 192

// Errors of calls.
var (
	ErrBusy    = errors.New("gemm: the call before is not over")
	ErrDenied  = errors.New("memory that is not there, or not for this access")
	ErrIllegal = errors.New("a descriptor that the accelerator does not take")
)

var statusErrors = map[uint32]error{Denied: ErrDenied, Illegal: ErrIllegal}

// Most is the most rows and columns of a matrix.
const Most = MaxTiles * Side

func tiles(n int) int { return (n + Side - 1) / Side }

// Bytes is the size of a matrix in memory: whole tiles, row by row. Elements
// beyond its rows and columns must be 0.
func Bytes(rows, columns int) int { return tiles(rows) * tiles(columns) * TileBytes }

// Place is where element (i, j) of a matrix with so many columns lies, in bytes
// from its beginning.
func Place(columns, i, j int) int {
	return (i/Side*tiles(columns)+j/Side)*TileBytes + 4*(i%Side*Side+j%Side)
}

// Loaded is the library on the devices of a cluster.
type Loaded struct{ plan *handlers.Plan }

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := AcceleratorSlot.Load(c)
	if err != nil {
		return nil, err
	}
	plan, err := m.Plan(LoadHandler, MultiplyHandler, StoreHandler)
	if err != nil {
		return nil, err
	}
	return &Loaded{plan: plan}, nil
}

// Options are the options of an accelerator.
type Options struct {
	// PDID is its protection domain: it refuses messages of others.
	PDID uint16
	// Times makes calls take their time and move their tiles, but compute nothing:
	// results are wrong.
	Times bool
}

// Accelerator is the accelerator of a process.
type Accelerator struct {
	ni      *runtime.NI
	in      *handlers.Installed
	done    portals.Handle
	md      portals.Handle
	page    runtime.View // the registers: stores go here
	self    portals.ID
	bits    uint64
	call    Descriptor
	pending bool
	broken  error
}

const (
	pdidShift   = 32
	addressBits = 39                  // TR-488 §4.3
	message     = DescriptorBytes + 8 // a register of its own starts a call
)

// Open gives a process an accelerator: HPU memory, and an entry for messages. It
// takes no virtual time, and comes before the process first waits.
func (l *Loaded) Open(p *runtime.Proc, o Options) (*Accelerator, error) {
	if err := p.SettingUp(); err != nil {
		return nil, err
	}
	u := handlers.NewListSetup("gemm", p)
	if u.Err != nil {
		return nil, u.Err
	}
	a := &Accelerator{ni: u.NI, self: u.Self, bits: uint64(o.PDID) << pdidShift, done: u.Counter("results of gemm")}
	if o.Times {
		a.call.Times = 1
	}
	a.page = u.Locked(message)
	a.md = u.Bind(a.page, portals.MD{Options: portals.OptMDVolatile})
	if u.Err != nil {
		return nil, u.Err
	}
	var err error
	a.in, err = l.plan.Install(p, handlers.Options{Shared: true, State: map[string]any{
		"match_bits": a.bits, "nid": a.self.NID, "pid": a.self.PID, "pt": PT, "done_ct": uint32(a.done),
	}})
	if err != nil {
		return nil, err
	}
	a.in.Host.Lock()
	u.List(PT, 1<<addressBits, a.in, a.in.Spin)
	return a, u.Err
}

// Call is a multiplication: C += A B, where A has Rows x Inner elements, B Inner x
// Columns and C Rows x Columns, each in a view of Bytes.
type Call struct {
	A, B, C              runtime.View
	Rows, Inner, Columns int
}

// Check returns what is wrong with a call.
func (c *Call) Check() error {
	if err := CheckSize(c.Rows, c.Inner, c.Columns); err != nil {
		return err
	}
	for _, m := range []struct {
		name    string
		v       runtime.View
		rows, n int
	}{{"A", c.A, c.Rows, c.Inner}, {"B", c.B, c.Inner, c.Columns}, {"C", c.C, c.Rows, c.Columns}} {
		if want := Bytes(m.rows, m.n); m.v.Len() != want {
			return fmt.Errorf("gemm: %d B for %s of %d x %d, expected %d B", m.v.Len(), m.name, m.rows, m.n, want)
		}
	}
	return nil
}

// CheckSize refuses matrices that are empty or larger than an accelerator takes.
func CheckSize(rows, inner, columns int) error {
	for _, n := range []int{rows, inner, columns} {
		if n < 1 || n > Most {
			return fmt.Errorf("gemm: %d x %d by %d x %d, expected 1 to %d rows and columns", rows, inner, inner, columns, Most)
		}
	}
	return nil
}

// Begin programs the accelerator with posted stores of a descriptor, which take
// nic.overhead of the core. It touches the matrices, because the accelerator
// cannot handle absent pages. ErrBusy: the previous call is not over.
func (a *Accelerator) Begin(c Call) error {
	switch {
	case a.broken != nil:
		return a.broken
	case a.pending:
		return ErrBusy
	}
	if err := c.Check(); err != nil {
		return err
	}
	c.A.Read()
	c.B.Read()
	c.C.Write()
	d := &a.call
	d.A, d.B, d.C = c.A.Addr(), c.B.Addr(), c.C.Addr()
	d.Rows, d.Inner, d.Columns = uint32(tiles(c.Rows)), uint32(tiles(c.Inner)), uint32(tiles(c.Columns))
	d.Tag++
	copy(a.page.Write(), spin.EncodeState(d))
	if err := a.ni.Put(portals.Put{MD: a.md, Length: message, Target: a.self, PT: PT, MatchBits: a.bits | KindBegin}); err != nil {
		return err
	}
	a.pending = true
	return nil
}

// Done reports whether the call is over, and the reason if it has failed. It
// takes no time.
func (a *Accelerator) Done() (bool, error) {
	if !a.pending {
		return true, a.broken
	}
	word := binary.LittleEndian.Uint64(a.in.Host.Read())
	if uint32(word>>32) != a.call.Tag {
		return false, nil
	}
	a.pending = false
	if err := statusErrors[uint32(word)]; err != nil {
		a.broken = fmt.Errorf("gemm: call %d: %w", a.call.Tag, err)
	}
	return true, a.broken
}

// Wait waits until the call is over and returns the reason if it has failed.
// The core has then looked at the result for the poll time.
func (a *Accelerator) Wait() error {
	err := service.Await(a.ni, a.done, func() bool { over, _ := a.Done(); return over })
	return errors.Join(a.broken, err)
}

// Counts returns the counts of the accelerator so far.
func (a *Accelerator) Counts() Counts { return handlers.Peek[State](a.in).Counts }
