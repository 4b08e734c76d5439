//go:build !tinygo

package rnr

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

//go:generate go run ../../internal/build/cmd -o rnr.wasm guest

//go:embed rnr.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("rnr", wasm)

// EngineSlot is a queue pair of a reliable connection whose memory may be absent.
var EngineSlot = Library.Slot(handlers.Slot{
	Name: "engine", Short: "a queue pair of a reliable connection whose memory may be absent",
	Handlers: []string{Hardware, Firmware},
	Expects: []string{
		"Messages fill receives in order, once, whatever pages are absent.",
		"A receiver whose memory is absent answers receiver-not-ready, and the sender tries again.",
	},
})

// Names of its handlers.
const (
	Hardware = "hardware" // payload: packets, work requests, timers
	Firmware = "firmware" // header: page faults
)

// pauses maps the 5-bit code of an RNR NACK to its pause t, us (InfiniBand
// Architecture Specification, volume 1, "Encoding for RNR NAK Timer Field").
// enum ib_rnr_timeout of Linux, include/rdma/ib_verbs.h, has the same values.
// rxe_comp.c of Linux has 61,410 us for code 25, which is a slip: by its name
// there it is 61.44 ms.
var pauses = [32]sim.Time{
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
}

// Pause returns t of an RNR NACK by its code, 0 to 31.
func Pause(code int) sim.Time { return pauses[code&31] * sim.Microsecond }

// DefaultPause is the code of the shortest pause that is not over before a
// fault of 220 us is resolved: 240 us (our choice; NPF'17 gives no t).
const DefaultPause = 9

// NoPause lets receivers drop packets for absent pages, as if there were no RNR
// NACK.
const NoPause = -1

// Options are the options of connections.
type Options struct {
	// OnePage reports one page at a time, as ATS and PRI do. Otherwise the
	// kernel brings in everything that the work request needs from the page on,
	// at once.
	OnePage bool
	// Pause is the code of t, 1 to 31, or 0: DefaultPause. With NoPause there
	// is no RNR NACK: the packet is dropped, and comes again after the
	// requester's time-out.
	Pause int
	// Timeout is how long a requester waits for an answer; 0: 67.1 ms (code 14
	// of InfiniBand: 4.096 us * 2^14).
	Timeout sim.Time
	// Delay returns how much longer than in the profile a part of a fault takes
	// for a number of pages, at least 0; nil: no longer.
	Delay func(part Part, pages int) sim.Time
	// Served is called for each fault that the kernel of a node has served, for
	// an observer.
	Served func(node int, s *Served)
}

// Part is a part of the time of a fault.
type Part int

// Parts of a fault that may take longer.
const (
	PartFirmware  Part = iota // until it interrupts
	PartHandler               // until the kernel, which is busy, begins with the fault
	PartAddresses             // until it has the pages
)

// Loaded is the connections of a cluster.
type Loaded struct {
	cluster *runtime.Cluster
	module  *handlers.Module
	o       Options
	nodes   []*kernel             // by node
	ends    map[*runtime.Proc]int // connections
	open    map[string]*Conn      // that have one end
	pairs   map[string]bool
}

// Load makes the library ready for the processes of a cluster. Handlers must
// know when their writes have landed, and whether a page was absent: the profile
// must have hpu.dma_write landed.
func Load(c *runtime.Cluster, o Options) (*Loaded, error) {
	if p := c.Profile(); p.HPU.DMAWrite != nic.Landed {
		return nil, fmt.Errorf("rnr: profile %s has hpu.dma_write %s, expected landed: a handler must know that a write has landed, or that a page was absent", p.Name, p.HPU.DMAWrite)
	}
	if o.Pause < NoPause || o.Pause >= len(pauses) {
		return nil, fmt.Errorf("rnr: code %d of a pause, expected 1 to 31", o.Pause)
	}
	if o.Timeout < 0 || o.Timeout > sim.Second {
		return nil, fmt.Errorf("rnr: time-out of %v, expected up to 1 s", o.Timeout)
	}
	m, err := EngineSlot.Load(c)
	if err != nil {
		return nil, err
	}
	return &Loaded{c, m, o, make([]*kernel, c.Nodes()), map[*runtime.Proc]int{}, map[string]*Conn{}, map[string]bool{}}, nil
}

// Connect makes one end of a connection. The process that calls it with the
// same name makes the other. It takes no virtual time. Call it before the
// process first waits: the messages of connection managers are not simulated.
func (l *Loaded) Connect(p *runtime.Proc, name string) (*Conn, error) {
	if l.pairs[name] {
		return nil, fmt.Errorf("rnr: connection %q has two ends", name)
	}
	if err := p.SettingUp(); err != nil {
		return nil, fmt.Errorf("rnr: %w", err)
	}
	u := handlers.NewListSetup(fmt.Sprintf("rnr: connection %q", name), p)
	c := &Conn{library: l, name: name, proc: p, ni: u.NI, self: u.Self, pt: uint32(2 * l.ends[p])}
	if err := c.install(u); err != nil {
		return nil, err
	}
	l.ends[p]++
	c.attach()
	other := l.open[name]
	if other == nil {
		l.open[name] = c
		return c, nil
	}
	delete(l.open, name)
	l.pairs[name] = true
	c.join(other)
	other.join(c)
	other.proc.Thread().Wake()
	return c, nil
}

// install makes the two entries of an end.
func (c *Conn) install(u *handlers.Setup) (err error) {
	c.done, c.faults = u.Counter("work requests that have ended"), u.Counter("page faults")
	if u.Err != nil {
		return u.Err
	}
	o := &c.library.o
	state := map[string]any{
		"nid": uint64(c.self.NID), "pid": uint64(c.self.PID), "pt": uint64(c.pt), "done_ct": uint64(c.done), "fault_ct": uint64(c.faults), "pause": uint64(0),
	}
	if o.Pause != NoPause {
		state["pause"] = uint64(Pause(cmp.Or(o.Pause, DefaultPause)) / sim.Nanosecond)
	}
	if o.Timeout != 0 {
		state["timeout"] = uint64(max(1, o.Timeout/sim.Nanosecond))
	}
	if o.OnePage {
		state["single"] = uint64(1)
	}
	if c.in, err = c.library.module.Install(c.proc, handlers.Options{Header: Firmware, Payload: Hardware, State: state, Shared: true}); err != nil {
		return fmt.Errorf("rnr: connection %q: %w", c.name, err)
	}
	u.List(c.pt, Addresses, c.in, u.Spin(c.in, "", Hardware))
	u.List(c.pt+1, Addresses, c.in, u.Spin(c.in, Firmware, ""))
	c.host = c.in.Host
	c.host.Lock()
	c.work = u.Locked(2 * MaxWork * WorkSize)
	c.md = u.Bind(c.work, portals.MD{})
	return u.Err
}

// join gives the device the address of the other end.
func (c *Conn) join(other *Conn) {
	c.peer = other
	s := c.in.HPU.Bytes()
	set := func(offset uintptr, v uint32) { binary.LittleEndian.PutUint32(s[offset:], v) }
	var x State
	set(unsafe.Offsetof(x.PeerNID), other.self.NID)
	set(unsafe.Offsetof(x.PeerPID), other.self.PID)
	set(unsafe.Offsetof(x.PeerPT), other.pt)
	set(unsafe.Offsetof(x.Ready), 1)
}

// State returns the present state of the end's device, for an observer.
func (c *Conn) State() State { return handlers.Peek[State](c.in) }
