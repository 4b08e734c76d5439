package exanet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Widths of the fields of an address, in bits (TR-488 §4.3).
const (
	pdidBits   = 16
	nodeBits   = 22
	rankBits   = 3
	vaBits     = 39
	nodeVABits = rankBits + vaBits
)

// How many of each an address can distinguish. Node and rank numbers are below
// Nodes and Ranks.
const (
	PDIDs = 1 << pdidBits // protection domains
	Nodes = 1 << nodeBits // endpoints of the interconnect
	Ranks = 1 << rankBits // ports of a node
	VAs   = 1 << vaBits   // bytes of a port: 512 GiB
)

// PDID is a protection domain. 0 belongs to nobody: it is the domain of a
// process that the system has not admitted to one.
type PDID uint16

// DefaultPDID is the domain for options that name none.
const DefaultPDID PDID = 1

// Target is an address of ExaNeSt's global virtual address space, without the
// protection domain. A whole address has 80 bits. It is the target of the first
// payload byte of a cell:
//
//	PDID 16 | node 22 | rank 3 | VA 39
//
// The node is an MPSoC. The rank is a local port of it: a peripheral, an
// accelerator or a process. The virtual address is a byte of that port. Rank
// and virtual address together are the node-level virtual address of 42 bits
// (TR-488 §4.3, Figure 7).
//
// A program names a Target. The hardware adds the domain from registers that
// only the system sets ([Target.In]). So no program can name the domain of
// another.
type Target uint64

// GlobalAddress is a whole address. It is comparable. Every value is legal,
// because the constructors refuse fields out of range.
type GlobalAddress struct {
	Target Target
	PDID   PDID
}

// TargetAt returns the target of a virtual address of a port. Node, rank and
// virtual address must be below Nodes, Ranks and VAs. The error names every
// field that is not.
func TargetAt(node, rank int, va uint64) (Target, error) {
	var errs []error
	if node < 0 || node >= Nodes {
		errs = append(errs, fmt.Errorf("exanet: node %d, expected 0 to %d (%d bits)", node, Nodes-1, nodeBits))
	}
	if rank < 0 || rank >= Ranks {
		errs = append(errs, fmt.Errorf("exanet: rank %d, expected 0 to %d (%d bits)", rank, Ranks-1, rankBits))
	}
	if va >= VAs {
		errs = append(errs, fmt.Errorf("exanet: virtual address %#x, expected 0 to %#x (%d bits)", va, uint64(VAs-1), vaBits))
	}
	if errs != nil {
		return 0, errors.Join(errs...)
	}
	return Target(node)<<nodeVABits | Target(rank)<<vaBits | Target(va), nil
}

// Node returns the number of the endpoint, below Nodes.
func (t Target) Node() int { return int(t >> nodeVABits) }

// Rank returns the port of the node, below Ranks.
func (t Target) Rank() int { return int(t >> vaBits & (Ranks - 1)) }

// VA returns the virtual address within the port, below VAs.
func (t Target) VA() uint64 { return uint64(t & (VAs - 1)) }

// Add returns the target n bytes further on. The error means that this leaves
// the port.
func (t Target) Add(n int64) (Target, error) {
	if va := int64(t.VA()) + n; va < 0 || va >= VAs {
		return 0, fmt.Errorf("exanet: %d bytes from virtual address %#x of rank %d of node %d is no address of that rank", n, t.VA(), t.Rank(), t.Node())
	}
	return t + Target(n), nil
}

// In returns the address of t in a protection domain. The hardware does this
// with the domain register that the system has set.
func (t Target) In(domain PDID) GlobalAddress { return GlobalAddress{t, domain} }

// String writes a target as "17.3:0x7f001000": node, rank, virtual address.
func (t Target) String() string { return fmt.Sprintf("%d.%d:%#x", t.Node(), t.Rank(), t.VA()) }

// String writes an address as "0012/17.3:0x7f001000": the protection domain in
// four hexadecimal digits, then the target.
func (a GlobalAddress) String() string { return fmt.Sprintf("%04x/%v", uint16(a.PDID), a.Target) }

// Bytes returns the 80 bits: the protection domain first, each field with its
// most significant bit first. TR-488 draws the fields in that order and does
// not define a byte order.
func (a GlobalAddress) Bytes() (b [10]byte) {
	binary.BigEndian.PutUint16(b[:], uint16(a.PDID))
	binary.BigEndian.PutUint64(b[2:], uint64(a.Target))
	return b
}

// GlobalAddressOf is the inverse of Bytes. Every 80 bits are an address.
func GlobalAddressOf(b [10]byte) GlobalAddress {
	return GlobalAddress{Target(binary.BigEndian.Uint64(b[2:])), PDID(binary.BigEndian.Uint16(b[:]))}
}
