// Package gvas has the addresses of ExaNeSt's global virtual address space. An
// address has 80 bits. It is the target of the first payload byte of a cell.
//
//	PDID 16 | node 22 | rank 3 | VA 39
//
// The protection domain (PDID) identifies the owner of the memory, and the node
// the MPSoC. The rank is a local port of the MPSoC: a peripheral, an
// accelerator or a process. The virtual address is a byte of that port. Rank
// and virtual address together are the node-level virtual address of 42 bits
// (TR-488 §4.3, Figure 7).
//
// A program names a [Target]: the address without the protection domain. The
// hardware adds the domain from registers that only the system sets
// ([Target.In]). So no program can name the domain of another.
package gvas
