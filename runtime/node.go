package runtime

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Node is one endpoint: a host with its processes and a programmable NIC. It
// owns its state; nodes meet in the fabric only.
type Node struct {
	nic nic.NIC  // first, in whole lines of the cache of the simulating machine
	bus host.Bus // the NIC's way to memory

	cluster *Cluster
	rank    int32
	id      sim.ID
	cpu     host.CPU
	memory  host.Server  // the memory controller
	iommu   *host.IOMMU  // between bus and memory; nil: there is none
	kernel  *host.Kernel // nil: there is no operating system
	driver  *host.SMMUDriver
	storage *host.Storage
	ids     *portals.Node // process identifiers
	procs   []*Proc
	moved   int64    // bytes of streams of the cores
	_       [40]byte // of the next node begins in a line of its own: 2,112 bytes
}

// Bus is the NIC's way to the memory of the node's processes.
func (n *Node) Bus() *host.Bus { return &n.bus }

// CPU is the node's cores.
func (n *Node) CPU() *host.CPU { return &n.cpu }

// Stats counts what a node, or with Cluster.Stats all nodes, did since the
// start of the run. PacketsDropped and MessagesLost include what the network
// has lost or damaged, unless a reliable transport has sent it again.
type Stats struct {
	nic.Stats
	// at most sim.MaxTime, 106 days; cores posting, matching, copying, and
	// looking at completions that were there; not spinning
	CPUBusy         sim.Time
	HostMemoryBytes int64 // through host memory: DMA in both directions and streams of the cores
	// NICFaults are the looks of the NIC at pages that were not there, or that
	// it might not write: one that is tried again counts again.
	NICFaults int64
	// PageFaults are the pages that the operating system has brought or made
	// writable, for whomever; MajorFaults those of them that waited for
	// storage.
	PageFaults, MajorFaults int64
	// Interrupted is the part of CPUBusy in interrupts and tasklets.
	Interrupted sim.Time
}

// Stats returns the node's counts.
func (n *Node) Stats() Stats {
	s := Stats{Stats: n.nic.Stats(), CPUBusy: n.cpu.Busy(), HostMemoryBytes: n.moved + n.bus.Bytes()}
	if n.iommu != nil {
		c := n.iommu.SMMU().Counters()
		s.NICFaults = int64(c.Faults + c.PermissionFaults)
	}
	if n.kernel != nil {
		k := n.kernel.Stats()
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

// Stats returns the counts of all nodes: sums, the first of the first handlers'
// ends and the last of the last ones'.
func (c *Cluster) Stats() (all Stats) {
	for i := range c.nodes {
		s := c.nodes[i].Stats()
		all.add(&s)
	}
	return all
}

// add joins the counts of another node to s.
func (s *Stats) add(o *Stats) {
	s.Stats.Add(&o.Stats)
	s.CPUBusy = s.CPUBusy.Plus(o.CPUBusy)
	s.HostMemoryBytes += o.HostMemoryBytes
	s.NICFaults += o.NICFaults
	s.PageFaults += o.PageFaults
	s.MajorFaults += o.MajorFaults
	s.Interrupted = s.Interrupted.Plus(o.Interrupted)
}
