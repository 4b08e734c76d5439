package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
)

// noCosts are the costs of cores without an operating system.
var noCosts host.CPUSpec

// boot makes the host's cores and, if the profile has them, its operating system
// and storage, and the translator between the node's bus and memory.
func (n *Node) boot(cfg *Config) {
	p, first := n.cluster.profile, n.host == n
	if first {
		cores := &noCosts
		if p.OS.On() {
			cores = &p.OS.CPUSpec
		}
		n.cpu.Init(n.domain.engine, n.id, p.Host.Cores, cores, nic.TraceGroup, int(n.rank))
	}
	n.translate(cfg)
	if first && (p.OS.On() || p.Storage.On()) {
		n.system = n.newSystem()
	}
	if k := n.Kernel(); k != nil && n.iommu != nil {
		n.driver = host.NewSMMUDriver(k, n.iommu)
	}
}

func (n *Node) newSystem() *system {
	p, storage := n.cluster.profile, fmt.Sprintf("storage of rank %d", n.rank)
	if !p.OS.On() {
		return &system{storage: host.NewStorage(n.domain.engine, storage, &n.cpu, 0, &p.Storage)}
	}
	s := &system{kernel: host.NewKernel(n.domain.engine, &n.cpu, &p.OS)}
	if p.Storage.On() {
		s.storage = s.kernel.Attach(storage, &p.Storage)
	}
	return s
}

// newMemory makes the memory of a new process and lets the NIC access it.
// process is nil without an operating system.
func (n *Node) newMemory(name string) (space *host.AddressSpace, process *host.Process, err error) {
	switch {
	case n.cluster.pages != nil:
		space = host.NewAddressSpace(n.cluster.pages(int(n.rank)))
	case n.Kernel() != nil:
		process = n.Kernel().NewProcess(name)
		space = process.Space()
	default:
		space = host.NewAddressSpace(nil)
		if lazy.Shared {
			space.From(&n.domain.slab)
		}
	}
	switch {
	case n.driver != nil && process != nil:
		err = n.driver.Admit(process)
	case n.iommu != nil:
		err = n.iommu.Admit(space, host.Flat{Space: space})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("runtime: process %s of rank %d: %w", name, n.rank, err)
	}
	return space, process, nil
}

// Kernel is the node's operating system. nil: the profile has none (os.kind),
// and all memory is present.
func (n *Node) Kernel() *host.Kernel {
	if n.host.system == nil {
		return nil
	}
	return n.host.system.kernel
}

// Storage is the node's storage device; nil: the profile has none
// (storage.kind). Without an operating system, programs use the device
// directly.
func (n *Node) Storage() *host.Storage {
	if n.host.system == nil {
		return nil
	}
	return n.host.system.storage
}

// Driver is the operating system's SMMU driver; nil: there is none.
func (n *Node) Driver() *host.SMMUDriver { return n.driver }

// Thread is the process's thread, for calls to its operating system.
func (p *Proc) Thread() *host.Thread { return &p.thread }

// OS is the process in its operating system: mappings, pins and other things
// outside Portals. nil: there is no operating system (os.kind).
func (p *Proc) OS() *host.Process { return p.process }

// Interrupt makes every change of a counter, or every event of a queue, raise
// the interrupt line. It is for a kernel that serves a device of the process.
func (ni *NI) Interrupt(h portals.Handle, line *host.IRQ) {
	if ni.proc.lines == nil {
		ni.proc.lines = map[portals.Handle]*host.IRQ{}
	}
	ni.proc.lines[h] = line
}
