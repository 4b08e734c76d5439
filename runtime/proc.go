package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Proc is a process of a host: sequential Go code in virtual time, with a core,
// an address space and network interfaces. Only the code given to Spawn may
// call its methods. Setting up (allocating, appending entries, binding,
// triggered operations) takes no virtual time. Posting an operation takes the
// overhead o and looking at a completion takes the poll time, both on the
// process's core. PTDisable waits for the messages in flight.
type Proc struct {
	thread  host.Thread
	node    *Node
	name    string
	memory  *host.AddressSpace
	process *host.Process // nil: there is no operating system
	portals *portals.Process
	nis     []*NI
	wait    await
	begun   bool // the process has waited: its memory is set up
	lines   map[portals.Handle]*host.IRQ
}

// Spawn starts f as a process of node rank at the present time. If f returns an
// error, the run ends with it. The process has one matching interface with
// physical addressing, Proc.NI. Its identity is (rank, number of the process on
// the node, from 0).
func (c *Cluster) Spawn(rank int, name string, f func(p *Proc) error) error {
	_, err := c.spawn(rank, name, f)
	return err
}

// SpawnService is Spawn for a process that serves others and does not end: the
// run may end while it waits.
func (c *Cluster) SpawnService(rank int, name string, f func(p *Proc) error) error {
	p, err := c.spawn(rank, name, f)
	if err == nil {
		p.Background()
	}
	return err
}

func (c *Cluster) spawn(rank int, name string, f func(p *Proc) error) (*sim.Process, error) {
	if rank < 0 || rank >= len(c.nodes) {
		return nil, fmt.Errorf("runtime: no rank %d, expected 0 to %d", rank, len(c.nodes)-1)
	}
	n := &c.nodes[rank]
	space, process, err := n.newMemory(name)
	if err != nil {
		return nil, err
	}
	p := &Proc{node: n, name: name, memory: space, process: process}
	if n.ids == nil {
		n.ids = portals.NewNode(uint32(rank), maxPID)
	}
	p.portals = n.ids.NewProcess(portals.ProcessConfig{
		Memory: deviceMemory{p.memory}, Device: c.profile.PortalsLimits(), Tracer: c.explain, Spare: &n.domain.spare,
		Hooks: portals.Hooks{
			EventPosted: p.changed, CounterChanged: p.changed, OpQueued: n.nic.Queued,
			PTIdle: func(*portals.NI, uint32) { // the end of the last message of a disabled entry
				if p.wait.handle == idleHandle {
					p.thread.Wake()
				}
			},
			Interrupted: func(*portals.NI, portals.Handle) { p.thread.Wake() },
		},
	})
	if err := p.portals.Init(); err != nil {
		return nil, err
	}
	if _, err := p.NIInit(portals.OptNIMatching|portals.OptNIPhysical, nil); err != nil {
		return nil, fmt.Errorf("runtime: process %s of rank %d: %w", name, rank, err)
	}
	cpu := n.CPU()
	cpu.Use(used.Process)
	if len(n.procs) > 0 {
		cpu.Use(used.Cores)
	}
	core := len(n.procs) % cpu.Cores()
	n.procs = append(n.procs, p)
	who := fmt.Sprintf("rank %d %s", rank, name)
	started := cpu.Spawn(&p.thread, core, who, p.leaves, func(*host.Thread) error { return p.main(f) })
	started.Describe(p.waitingFor)
	p.thread.SetName(name)
	return started, nil
}

// Processes returns the number of processes of node. It is also the process
// identifier of the next one.
func (c *Cluster) Processes(node int) int { return len(c.nodes[node].procs) }

const maxPID = 1<<16 - 1

// String is the name given to Spawn.
func (p *Proc) String() string { return p.name }

// Rank is the node the process runs on.
func (p *Proc) Rank() int { return int(p.node.rank) }

// Node is the node the process runs on.
func (p *Proc) Node() *Node { return p.node }

// Reads notes that a fact about the process's node holds, and returns the
// profile, of which a field counts for the first time with it.
func (p *Proc) Reads(f used.Fact) *profile.Profile {
	p.node.host.cpu.Use(f)
	return p.node.cluster.profile
}

// Cluster is the simulation.
func (p *Proc) Cluster() *Cluster { return p.node.cluster }

// Name is the name given to Spawn.
func (p *Proc) Name() string { return p.name }

// Now is the present time.
func (p *Proc) Now() sim.Time { return p.thread.Now() }

// Sleep gives the core away for d.
func (p *Proc) Sleep(d sim.Time) { p.SleepUntil(p.Now().Later(d)) }

// SleepUntil gives the core away until t. t must not be in the past.
func (p *Proc) SleepUntil(t sim.Time) { p.thread.Sleep(t) }

// NI is the first interface of every process: matching, physical addressing.
func (p *Proc) NI() *NI { return p.nis[0] }

// NIInit opens a further interface of the process (PtlNIInit). With desired nil
// it has every feature of the device except TARGET_BIND_INACCESSIBLE. Without
// that feature, appending an entry fails if its memory does not exist; with it,
// each message to the entry fails instead. To allow such entries, desire the
// feature.
func (p *Proc) NIInit(options portals.NIOptions, desired *portals.Limits) (*NI, error) {
	if desired == nil {
		all := p.node.cluster.profile.PortalsLimits()
		all.Features &^= portals.FeatureTargetBindInaccessible
		desired = &all
	}
	core, _, err := p.portals.NIInit(portals.IfaceDefault, options, portals.PIDAny, desired)
	if err != nil {
		return nil, err
	}
	for _, ni := range p.nis {
		if ni.core == core {
			return ni, nil
		}
	}
	id, err := core.PhysID()
	if err != nil {
		return nil, err
	}
	ni := &NI{core: core, proc: p}
	p.nis = append(p.nis, ni)
	p.node.nic.Attach(core, p.memory, id)
	return ni, nil
}

// SetUID sets the user id of the process, as system software does. The device
// writes it into later messages of the process (PtlGetUid returns it). The
// first value is 0.
func (p *Proc) SetUID(uid uint32) { p.portals.SetUID(uid) }

// Abort (PtlAbort, Portals 4.x §3.4.3) makes every blocked and every later
// blocking call of the process return ErrAborted.
func (p *Proc) Abort() { p.portals.Abort() }

// changed handles an event or a count: it wakes a process that waits for it.
func (p *Proc) changed(_ *portals.NI, h portals.Handle) {
	if p.lines != nil && p.lines[h] != nil {
		p.lines[h].Raise()
	}
	if p.wait.handle == h || p.wait.handle == anyHandle {
		p.thread.Wake()
	}
}

// Deep runs f, which takes no time, on a stack that it shares with other
// processes: see sim.Process.Deep. If the memory of the process is watched, it
// runs f on the process's own, where a fault of the processor is explained.
func Deep(p *Proc, f func()) {
	if p.memory.Watched() {
		f()
		return
	}
	p.thread.Process().Deep(f)
}

// deviceMemory is a process's memory for its interfaces. It does no permission
// checks: the bus has already done them, page by page.
type deviceMemory struct{ *host.AddressSpace }

// Bytes implements portals.Memory.
func (m deviceMemory) Bytes(addr, n uint64, write bool) ([]byte, bool) {
	if write {
		return m.AddressSpace.Bytes(addr, n)
	}
	return m.Part(addr, n)
}

// Store implements portals.Memory.
func (m deviceMemory) Store(addr uint64, b []byte) int {
	if !m.Deposit(addr, b) {
		return 0
	}
	return len(b)
}

// Accessible implements portals.Memory.
func (m deviceMemory) Accessible(addr, n uint64, _ bool) uint64 {
	if !m.Has(addr, n) {
		return 0
	}
	return n
}
