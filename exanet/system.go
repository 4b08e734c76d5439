package exanet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/exanet/gvas"
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
	cluster *runtime.Cluster
	module  *handlers.Module
	nodes   []node
}

// node is the state of a node's driver.
type node struct {
	domains []domain
	used    int // interfaces
}

// domain is the protection domain of a process.
type domain struct {
	proc *runtime.Proc
	pdid gvas.PDID
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
	m, err := handlers.Must("mailbox").Load(c)
	if err != nil {
		return nil, err
	}
	return &System{c, m, make([]node, c.Nodes())}, nil
}

// Admit puts a process into a protection domain, 1 to 65535, for good. All its
// messages carry that domain, however it sends them. Admit takes no virtual
// time: the system does it when it starts the process.
func (s *System) Admit(p *runtime.Proc, pdid gvas.PDID) error {
	if pdid == 0 {
		return fmt.Errorf("exanet: process %s of rank %d: protection domain 0 is nobody's, expected 1 to %d", p, p.Rank(), gvas.PDIDs-1)
	}
	if d := s.domain(p); d != nil {
		return fmt.Errorf("exanet: process %s of rank %d is in protection domain %d", p, p.Rank(), d.pdid)
	}
	n := &s.nodes[p.Rank()]
	n.domains = append(n.domains, domain{proc: p, pdid: pdid})
	p.SetUID(uint32(pdid))
	return nil
}

// Domain returns the protection domain of a process. It is false if the process
// was not admitted to any.
func (s *System) Domain(p *runtime.Proc) (gvas.PDID, bool) {
	d := s.domain(p)
	if d == nil {
		return 0, false
	}
	return d.pdid, true
}

func (s *System) domain(p *runtime.Proc) *domain {
	n := &s.nodes[p.Rank()]
	for i := range n.domains {
		if n.domains[i].proc == p {
			return &n.domains[i]
		}
	}
	return nil
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
	d, n := s.domain(p), &s.nodes[p.Rank()]
	if err := p.SettingUp(); err != nil {
		return nil, fmt.Errorf("exanet: %w", err)
	}
	switch {
	case d == nil:
		return nil, fmt.Errorf("exanet: process %s of rank %d is in no protection domain: the system has not admitted it", p, p.Rank())
	case n.used == mailbox.Interfaces:
		return nil, ErrNoInterface
	case o.Depth < 0 || o.Depth > 1<<16 || o.Depth&(o.Depth-1) != 0:
		return nil, fmt.Errorf("exanet: depth of a mailbox: %d, expected a power of two from 1 to 65536", o.Depth)
	case o.Depth == 0:
		o.Depth = defaultDepth
	}
	limits := s.cluster.Profile().PortalsLimits()
	ni, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, &limits)
	if err != nil {
		return nil, err
	}
	i := &Interface{proc: p, ni: ni, pt: firstPT + 2*d.used, depth: uint32(o.Depth)}
	id, err := ni.Objects().PhysID()
	if err != nil {
		return nil, err
	}
	i.self = Address{NID: id.NID, PID: id.PID, PT: i.pt + 1}
	if err := i.prepare(); err != nil {
		return nil, err
	}
	if err := i.install(s, d.pdid, o); err != nil {
		return nil, err
	}
	d.used++
	n.used++
	return i, nil
}

// prepare makes the interface's counters and the page of its channels.
func (i *Interface) prepare() (err error) {
	if i.changed, err = i.ni.Objects().CTAlloc(); err != nil {
		return err
	}
	if i.arrived, err = i.ni.Objects().CTAlloc(); err != nil {
		return err
	}
	i.ni.Objects().Label(i.changed, "answers to messages")
	i.ni.Objects().Label(i.arrived, "messages in the mailbox")
	i.registers = i.proc.Alloc(mailbox.Channels * mailbox.MaxPayload)
	i.md, err = i.ni.Objects().MDBind(&portals.MD{Start: i.registers.Addr(), Length: uint64(i.registers.Len()), Options: portals.OptMDVolatile})
	return err
}

// install makes the queue and the two portal table entries.
func (i *Interface) install(s *System, pdid gvas.PDID, o Options) error {
	i.queue = i.proc.Alloc(max(o.Depth, defaultDepth) * mailbox.EntrySize)
	i.queue.Lock()
	i.registers.Lock()
	state := map[string]any{}
	for name, v := range map[string]uint64{ //lint:maporder they are set by name
		"pdid": uint64(pdid), "nid": uint64(i.self.NID), "pid": uint64(i.self.PID), "pt": uint64(i.pt), "depth": uint64(o.Depth),
		"changed_ct": uint64(i.changed), "arrived_ct": uint64(i.arrived),
	} {
		state[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(o.State)) {
		if _, ours := state[name]; ours {
			return fmt.Errorf("exanet: state %s is set by Open", name)
		}
		state[name] = o.State[name]
	}
	var err error
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
	for k, names := range [2][2]string{{mailbox.Packetizer, ""}, {"", mailbox.Mailbox}} {
		if err := i.entry(i.pt+uint32(k), names[0], names[1]); err != nil {
			return err
		}
	}
	return nil
}

// entry appends a list entry whose messages go to handlers.
func (i *Interface) entry(pt uint32, header, payload string) error {
	if _, err := i.ni.Objects().PTAlloc(0, portals.EQNone, pt); err != nil {
		return fmt.Errorf("exanet: portal table entry %d, of interface %d of the process: %w", pt, (pt-firstPT)/2+1, err)
	}
	le := portals.LE{
		Length: mailbox.MaxPayload, UID: portals.UIDAny,
		Options: i.in.EntryOptions | portals.OptMEOpPut | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable,
	}
	var err error
	if le.Spin, err = i.in.HPU.Spin(header, payload, ""); err != nil {
		return err
	}
	le.Spin.HostMem = i.in.Spin.HostMem
	if payload != "" { // cells from any sender
		le.Spin.Stamp = portals.Stamp{Shift: mailbox.PDIDShift, Bits: gvas.PDIDBits}
	}
	if header != "" {
		le.Spin.UserHdrLen = mailbox.MaxPayload
	}
	_, err = i.ni.LEAppend(pt, &le, portals.PriorityList, 0)
	return err
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
