package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/nic"
)

// HPUAllocMem gives the process n bytes of zeroed HPU memory with an instance
// of the handler module (PtlHPUAllocMem). Errors: the module does not fit the
// device or fails in its own initialisation; ErrNoSpace if the programs of the
// node already use all of hpu.node_memory.
func (p *Proc) HPUAllocMem(m *hpu.Module, n int) (memory *nic.Memory, err error) {
	Deep(p, func() { memory, err = hpuMemory(p, m, n) })
	return memory, err
}

func hpuMemory(p *Proc, m *hpu.Module, n int) (*nic.Memory, error) {
	p.Reads(used.Module)
	code, err := p.node.compile(m, n)
	if err != nil {
		return nil, err
	}
	memory, err := p.node.nic.Allocate(p, p.portals.UID(), m, code)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	return memory, nil
}

// compile returns the code of a module with a number of bytes of HPU memory. The nodes of
// a domain share it.
func (n *Node) compile(m *hpu.Module, bytes int) (hpu.Image, error) {
	d := n.domain
	if limit := n.cluster.profile.HPU.MaxHPUMemory; bytes < 0 || int64(bytes) > limit {
		return nil, fmt.Errorf("runtime: %d bytes of HPU memory, expected 0 to %d (hpu.max_hpu_memory)", bytes, limit)
	}
	key := codeKey{m, uint32(bytes)}
	if code := d.codes[key]; code != nil {
		return code, nil
	}
	code, err := d.executor.Compile(m, uint32(bytes))
	if err == nil {
		d.codes[key] = code
	}
	return code, err
}

// Grant lets handlers access v, memory of the process, by DMA. The handlers run
// on HPU memory m of another process of the same node. For example, a device of
// the IOprovider serves rings in the memory of IOusers (NPF'17 §1). Grant
// returns the number of the space for those operations (docs/abi.md). It takes
// no virtual time.
func (p *Proc) Grant(m *nic.Memory, v View) (space uint32, err error) {
	if m.NIC() != &p.node.nic || v.proc != p {
		return 0, fmt.Errorf("runtime: process %s of rank %d can grant memory of its own, to handlers of its own node", p.name, p.Rank())
	}
	return m.Grant(p.memory, v.addr, uint64(v.n))
}

// Revoke ends a Grant of the process's own memory. It takes no virtual time.
// Errors as nic.Memory.Revoke; ErrInUse while a DMA operation of a handler to
// that memory is in flight.
func (p *Proc) Revoke(m *nic.Memory, space uint32) error { return m.Revoke(p.memory, space) }
