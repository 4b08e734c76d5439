package exanet

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Errors of the interface.
var (
	ErrNoInterface = fmt.Errorf("exanet: the node has no more than %d interfaces of packetizer and mailbox", mailbox.Interfaces)
	ErrBusy        = errors.New("exanet: the channel has a message under way")
	ErrTimedOut    = errors.New("nobody has answered")
	ErrFull        = errors.New("the mailbox has no room")
	ErrLeft        = errors.New("the mailbox has no room, and its program has ended")
	ErrForeign     = errors.New("the mailbox belongs to another protection domain")
	ErrNoSpace     = errors.New("a limit of the device is reached")
	ErrIllegal     = errors.New("no such node")
	ErrQueue       = errors.New("exanet: the memory of the mailbox is not there any more")
)

// System is the system software of a cluster's nodes, for interfaces only. It
// alone sets the protection domain of a process.
type System struct {
	module  *handlers.Module
	domains []map[*runtime.Proc]*domain // by node
	used    []int                       // interfaces, by node
}

// domain is the protection domain of a process.
type domain struct {
	pdid PDID
	used uint32 // interfaces of the process
}

// landed is the value of hpu.dma_write that tells a handler when its write has
// reached memory.
const landed = "landed"

// Load prepares the processes of a cluster to open interfaces.
func Load(c *runtime.Cluster) (*System, error) {
	if p := c.Profile(); p.HPU.DMAWrite != landed {
		return nil, fmt.Errorf("exanet: profile %s: hpu.dma_write: %s, expected %s: what is acknowledged must be in the mailbox", p.Origin.Name, p.HPU.DMAWrite, landed)
	}
	m, err := mailbox.EngineSlot.Load(c)
	if err != nil {
		return nil, err
	}
	return &System{m, make([]map[*runtime.Proc]*domain, c.Nodes()), make([]int, c.Nodes())}, nil
}

// Admit puts a process into a protection domain, 1 to 65535, for good. All its
// messages carry that domain, however it sends them. Admit takes no virtual
// time: the system does it when it starts the process.
func (s *System) Admit(p *runtime.Proc, pdid PDID) error {
	if pdid == 0 {
		return fmt.Errorf("exanet: process %s of rank %d: protection domain 0 is nobody's, expected 1 to %d", p, p.Rank(), PDIDs-1)
	}
	if d := s.domains[p.Rank()][p]; d != nil {
		return fmt.Errorf("exanet: process %s of rank %d is in protection domain %d", p, p.Rank(), d.pdid)
	}
	of := &s.domains[p.Rank()]
	if *of == nil {
		*of = map[*runtime.Proc]*domain{}
	}
	(*of)[p] = &domain{pdid: pdid}
	p.SetUID(uint32(pdid))
	return nil
}

// Domain returns the protection domain of a process. It is false if the process
// was not admitted to any.
func (s *System) Domain(p *runtime.Proc) (PDID, bool) {
	if d := s.domains[p.Rank()][p]; d != nil {
		return d.pdid, true
	}
	return 0, false
}

// Options configure an interface. The zero value selects the library's
// defaults.
type Options struct {
	// Depth is the capacity of the mailbox in messages, a power of two up
	// to 65,536; 0: 256.
	Depth int
	// State overrides fields of the library's state by name, for example
	// timeout (ns), retries and pause (spinsim handler inspect mailbox).
	State map[string]any
	// Memory is the minimum HPU memory in bytes; 0: enough for the
	// defaults. Each further peer needs mailbox.PeerSize.
	Memory int64
}

// defaultDepth is the depth in the library's default state.
const defaultDepth = 256

// First returns the mailbox of the first interface that a process opens.
func First(nid, pid uint32) Address { return Address{NID: nid, PID: pid, PT: firstPT + 1} }

// Portal table entries from firstPT on: packetizer and mailbox of the first
// interface of a process, then of the second, and so on. The entries before
// firstPT are for RDMA.
const firstPT = 2

// Open gives a process a packetizer and a mailbox, as their driver does (TR-488
// §4.4). The mailbox is tied to the protection domain of the process, and its
// queue is locked in memory. Call Open before the process first waits; it takes
// no virtual time. ErrNoInterface: all interfaces of the node are in use.
func (s *System) Open(p *runtime.Proc, o Options) (*Interface, error) {
	d, used := s.domains[p.Rank()][p], &s.used[p.Rank()]
	if err := p.SettingUp(); err != nil {
		return nil, fmt.Errorf("exanet: %w", err)
	}
	switch {
	case d == nil:
		return nil, fmt.Errorf("exanet: process %s of rank %d is in no protection domain: the system has not admitted it", p, p.Rank())
	case *used == mailbox.Interfaces:
		return nil, ErrNoInterface
	case o.Depth < 0 || o.Depth > 1<<16 || o.Depth&(o.Depth-1) != 0:
		return nil, fmt.Errorf("exanet: depth of a mailbox: %d, expected a power of two from 1 to 65536", o.Depth)
	case o.Depth == 0:
		o.Depth = defaultDepth
	}
	u := handlers.NewListSetup("exanet", p)
	i := &Interface{proc: p, ni: u.NI, pt: firstPT + 2*d.used, depth: uint32(o.Depth)}
	i.self = Address{NID: u.Self.NID, PID: u.Self.PID, PT: i.pt + 1}
	i.changed, i.arrived = u.Counter("answers to messages"), u.Counter("messages in the mailbox")
	i.registers = p.Alloc(mailbox.Channels * mailbox.MaxPayload)
	if i.md = u.Bind(i.registers, portals.MD{Options: portals.OptMDVolatile}); u.Err != nil {
		return nil, u.Err
	}
	if err := i.install(u, s, d.pdid, o); err != nil {
		return nil, err
	}
	d.used++
	*used++
	return i, nil
}

// install makes the queue and the two portal table entries.
func (i *Interface) install(u *handlers.Setup, s *System, pdid PDID, o Options) error {
	i.queue = u.Locked(max(o.Depth, defaultDepth) * mailbox.EntrySize)
	i.registers.Lock()
	state, err := handlers.Fields("exanet", "", o.State, map[string]any{
		"pdid": uint64(pdid), "nid": uint64(i.self.NID), "pid": uint64(i.self.PID), "pt": uint64(i.pt), "depth": uint64(o.Depth),
		"changed_ct": uint64(i.changed), "arrived_ct": uint64(i.arrived),
	})
	if err != nil {
		return err
	}
	i.in, err = s.module.Install(i.proc, handlers.Options{
		Header: mailbox.Packetizer, Payload: mailbox.Mailbox, State: state, Memory: o.Memory, Shared: true,
		HostMemory: portals.Region{Start: i.queue.Addr(), Length: uint64(i.queue.Len())},
	})
	if err != nil {
		return err
	}
	if err := i.fits(); err != nil {
		return err
	}
	u.Of = fmt.Sprintf(", of interface %d of the process", (i.pt-firstPT)/2+1)
	on := u.Spin(i.in, mailbox.Packetizer, "")
	on.UserHdrLen = mailbox.MaxPayload
	u.List(i.pt, mailbox.MaxPayload, i.in, on)
	on = u.Spin(i.in, "", mailbox.Mailbox)
	on.Stamp = portals.Stamp{Shift: mailbox.PDIDShift, Bits: pdidBits} // cells from any sender
	u.List(i.pt+1, mailbox.MaxPayload, i.in, on)
	return u.Err
}

// fits checks that the HPU memory holds all peers.
func (i *Interface) fits() error {
	peers, err := i.in.Number("peers")
	if err != nil {
		return err
	}
	pause, err := i.in.Number("pause")
	if err != nil {
		return err
	}
	i.pause = sim.Time(pause.(uint64)) * sim.Nanosecond
	needed := uint64(i.in.State.Size) + peers.(uint64)*mailbox.PeerSize
	if have := uint64(len(i.in.HPU.Bytes())); needed > have {
		return fmt.Errorf("exanet: %d peers need %d bytes of HPU memory, there are %d: give more (Options.Memory)", peers, needed, have)
	}
	return nil
}
