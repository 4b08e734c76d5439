package runtime

import "github.com/spinsim/spinsim/nic"

// NIC is the node's.
func (n *Node) NIC() *nic.NIC { return &n.nic }

// Core is what the NICs share.
func (c *Cluster) Core() *nic.Core { return &c.domains[0].core }

// Observed allocates memory and returns it as an observer sees it, who is no
// part of the simulation.
func (p *Proc) Observed(n int) (addr uint64, b []byte) {
	addr = p.Alloc(n).Addr()
	b, _ = p.memory.Bytes(addr, uint64(n))
	return addr, b
}
