package runtime

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Node is one endpoint: a host with its processes and a programmable NIC. A
// node owns its state; nodes interact only through the fabric.
type Node struct {
	nic nic.NIC  // first: aligned to cache lines of the simulating machine
	bus host.Bus // the NIC's way to memory

	cluster *Cluster
	domain  *domain
	rank    int32
	id      sim.ID
	host    *Node // whose cores, memory controller and system it has; mostly itself
	cpu     host.CPU
	memory  host.Server // the memory controller
	iommu   *host.IOMMU // between bus and memory; nil: there is none
	system  *system     // nil: neither an operating system nor storage
	driver  *host.SMMUDriver
	ids     *portals.Node // process identifiers
	procs   []*Proc
	moved   int64 // bytes that the cores streamed; the next node begins on a cache line
}

// system is what few profiles have.
type system struct {
	kernel  *host.Kernel // nil: there is no operating system
	storage *host.Storage
}

// Bus is the NIC's path to the memory of the node's processes.
func (n *Node) Bus() *host.Bus { return &n.bus }

// CPU returns the node's cores. All nodes of a host (Config.NICs) have the same.
func (n *Node) CPU() *host.CPU { return &n.host.cpu }

// Stats counts the work of a node since the start of the run; Cluster.Stats
// adds up all nodes. PacketsDropped and MessagesLost include packets that the
// network lost or damaged, unless a reliable transport sent them again.
type Stats struct {
	nic.Stats
	// posting, matching, copying and looking at completions, without spinning; at
	// most sim.MaxTime, 106 days
	CPUBusy         sim.Time
	HostMemoryBytes int64 // DMA in both directions and streams of the cores
	// NICFaults counts the NIC's accesses to pages that were absent or not
	// writable. Each retry counts again.
	NICFaults int64
	// PageFaults counts the pages that the operating system brought in or made
	// writable. MajorFaults counts those of them that waited for storage.
	PageFaults, MajorFaults int64
	// Interrupted is the part of CPUBusy in interrupts and tasklets.
	Interrupted sim.Time
}

// Stats returns the node's counts.
func (n *Node) Stats() Stats {
	s := Stats{Stats: n.nic.Stats(), HostMemoryBytes: n.moved + n.bus.Bytes()}
	first := n.host == n // of its host, whose cores and kernel count once
	if first {
		s.CPUBusy = n.cpu.Busy()
	}
	if n.iommu != nil {
		c := n.iommu.SMMU().Counters()
		s.NICFaults = int64(c.Faults + c.PermissionFaults)
	}
	if k := n.Kernel(); k != nil && first {
		k := k.Stats()
		s.PageFaults, s.MajorFaults = k.Minor+k.Major, k.Major
		s.Interrupted = n.cpu.BusyAt(host.Interrupt) + n.cpu.BusyAt(host.Softirq)
	}
	lost, _ := n.cluster.networkLosses()
	for i := range lost {
		if lost[i].Rank == int(n.rank) {
			s.MessagesLost++
			s.PacketsDropped += int64(lost[i].Packets)
		}
	}
	return s
}

// Tenants returns the counts of the owners of handlers at the node's NIC, in the
// order of their names, behind those of the processes that none of them has; nil:
// the profile names none.
func (n *Node) Tenants() []nic.TenantStats { return n.nic.Tenants() }

// Stats returns the counts of all nodes: sums, the earliest end of a first
// handler and the latest end of a last one.
func (c *Cluster) Stats() (all Stats) {
	for i := range c.nodes {
		s := c.nodes[i].Stats()
		all.add(&s)
	}
	return all
}

// add adds the counts of another node to s.
func (s *Stats) add(o *Stats) {
	s.Stats.Add(&o.Stats)
	s.CPUBusy = s.CPUBusy.Plus(o.CPUBusy)
	s.HostMemoryBytes += o.HostMemoryBytes
	s.NICFaults += o.NICFaults
	s.PageFaults += o.PageFaults
	s.MajorFaults += o.MajorFaults
	s.Interrupted = s.Interrupted.Plus(o.Interrupted)
}
