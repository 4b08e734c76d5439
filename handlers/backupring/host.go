//go:build !tinygo

package backupring

import (
	_ "embed"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o backupring.wasm guest

//go:embed backupring.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("backupring", wasm)

// ProviderSlot is the provider's side of receive rings whose memory may be absent.
var ProviderSlot = Library.Slot(handlers.Slot{
	Name: "provider", Short: "the provider's side of receive rings whose memory may be absent",
	Handlers: []string{Receive, Control},
	Expects: []string{
		"Frames come to Receive, and messages of IOusers and of the IOprovider to Control.",
		"Frames reach an IOuser once, in order; those that wait for pages are in the backup ring, which backup_ct counts.",
	},
})

// Names of its handlers.
const (
	Receive = "receive" // payload: frames
	Control = "control" // header
)

// Portal table entries of IOproviders and IOusers.
const (
	ptFrames  = 0
	ptControl = 1
	ptHead    = 2 // of IOusers
)

// Loaded is the interface on the nodes of a cluster.
type Loaded struct {
	cluster   *runtime.Cluster
	module    *handlers.Module
	providers []*Provider // by node
}

// Load makes the library ready for the processes of a cluster. Handlers must
// know when their writes have landed, so the profile must have hpu.dma_write
// landed.
func Load(c *runtime.Cluster) (*Loaded, error) {
	if p := c.Profile(); p.OS.On() && p.HPU.DMAWrite != nic.Landed {
		return nil, fmt.Errorf("backupring: profile %s has hpu.dma_write %s, expected landed: a handler must know that a page was absent", p.Name, p.HPU.DMAWrite)
	}
	m, err := ProviderSlot.Load(c)
	if err != nil {
		return nil, err
	}
	return &Loaded{c, m, make([]*Provider, c.Nodes())}, nil
}

// Port sends frames.
type Port struct {
	library *Loaded
	proc    *runtime.Proc
	ni      *runtime.NI
	md      portals.Handle
	left    portals.Handle // counts frames that have left the memory
	sent    uint64
	closed  bool
}

// Connect lets a process send frames that lie in memory, at most all of it at a
// time. It takes no virtual time.
func (l *Loaded) Connect(p *runtime.Proc, memory runtime.View) (*Port, error) {
	u := handlers.NewSetup("backupring", p)
	o := &Port{library: l, proc: p, ni: u.NI, left: u.Counter("frames that have left")}
	o.md = u.Bind(memory, portals.MD{CT: o.left, Options: portals.OptMDEventCTSend})
	return o, u.Err
}

// Sent returns how many frames Send has taken.
func (o *Port) Sent() uint64 { return o.sent }

// Left returns how many sent frames have left the memory, which may then be
// written again. They leave in the order of Send. A look takes no time; the
// counter is for programs that wait.
func (o *Port) Left() (frames uint64, counter portals.Handle, err error) {
	v, err := o.ni.Objects().CTGet(o.left)
	return v.Success + v.Failure, o.left, err
}

// Send sends a frame of n bytes at an offset of the port's memory to a ring of
// a node. It takes nic.overhead. Nobody reports what becomes of the frame.
// Errors: the frame is longer than a packet or not in the port's memory, or the
// node has no IOprovider. Then nothing was sent.
func (o *Port) Send(offset, n, node, ring int) error {
	if o.closed {
		return ErrPortClosed
	}
	if mtu := int(o.library.cluster.Profile().Fabric.MTU); n < 1 || n > mtu {
		return fmt.Errorf("backupring: frame of %d bytes, expected 1 to %d (fabric.mtu)", n, mtu)
	}
	if node < 0 || node >= len(o.library.providers) || o.library.providers[node] == nil {
		return fmt.Errorf("backupring: node %d has no IOprovider", node)
	}
	err := o.ni.Put(portals.Put{MD: o.md, Offset: uint64(offset), Length: uint64(n), Target: o.library.providers[node].id, PT: ptFrames, MatchBits: uint64(ring)})
	if err == nil {
		o.sent++
	}
	return err
}

// maxSlots bounds the backup ring, because it should be small.
const maxSlots = 1 << 16

// Options are the options of an IOprovider.
type Options struct {
	Slots int // in the backup ring; 0: 64 (our choice: NPF'17 says small). Any number
}

// RingOptions are the options of a ring.
type RingOptions struct {
	Size int // descriptors, 1 to backupring.MaxSize
	// frames that the IOprovider may hold for the ring, at most
	// backupring.MaxSize; 0: frames for absent memory are dropped
	BitmapSize int
	Buffer     int // bytes of a buffer; 0: fabric.mtu
	// if BitmapSize is 0: a frame that is dropped for an absent buffer uses up
	// its descriptor (ErrAbsent); else the next frame gets it
	Skip   bool
	Pinned bool // descriptors and buffers stay in memory
}
