// Package gvas has the addresses of ExaNeSt's global virtual address space: 80
// bits, the target of the first payload byte of a cell.
//
//	PDID 16 | node 22 | rank 3 | VA 39
//
// The protection domain (PDID) says whose memory it is, the node which MPSoC,
// the rank which local port of it (a peripheral, an accelerator or a process),
// and the virtual address which byte of that. Rank and virtual address together
// are the node-level virtual address of 42 bits (TR-488 §4.3, Figure 7).
//
// A program names a [Target]: everything but the protection domain. The
// hardware adds that from registers which only the system sets ([Target.In]),
// so that a program has no way to say another's.
package gvas
