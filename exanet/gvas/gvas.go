package gvas

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Widths of the fields, in bits (TR-488 §4.3).
const (
	PDIDBits   = 16
	NodeBits   = 22
	RankBits   = 3
	VABits     = 39
	NodeVABits = RankBits + VABits
)

// How many of each an address can distinguish. Node and rank numbers are below
// Nodes and Ranks.
const (
	PDIDs = 1 << PDIDBits // protection domains
	Nodes = 1 << NodeBits // endpoints of the interconnect
	Ranks = 1 << RankBits // ports of a node
	VAs   = 1 << VABits   // bytes of a port: 512 GiB
)

// Size is the size of an address in a cell, in bytes.
const Size = (PDIDBits + NodeBits + NodeVABits) / 8

// PDID is a protection domain. 0 belongs to nobody: it is the domain of a
// process that the system has not admitted to one.
type PDID uint16

// DefaultPDID is the domain for options that name none.
const DefaultPDID PDID = 1

// Target is the part of an address that a program may choose: node, rank and
// virtual address. Its value is the lower 64 bits of the address.
type Target uint64

// Address is a whole address. It is comparable. Every value is legal, because
// the constructors refuse fields out of range.
type Address struct {
	Target Target
	PDID   PDID
}

// At returns the target of a virtual address of a port. Node, rank and virtual
// address must be below Nodes, Ranks and VAs. The error names every field that
// is not.
func At(node, rank int, va uint64) (Target, error) {
	var errs []error
	if node < 0 || node >= Nodes {
		errs = append(errs, fmt.Errorf("gvas: node %d, expected 0 to %d (%d bits)", node, Nodes-1, NodeBits))
	}
	if rank < 0 || rank >= Ranks {
		errs = append(errs, fmt.Errorf("gvas: rank %d, expected 0 to %d (%d bits)", rank, Ranks-1, RankBits))
	}
	if va >= VAs {
		errs = append(errs, fmt.Errorf("gvas: virtual address %#x, expected 0 to %#x (%d bits)", va, uint64(VAs-1), VABits))
	}
	if errs != nil {
		return 0, errors.Join(errs...)
	}
	return Target(node)<<NodeVABits | Target(rank)<<VABits | Target(va), nil
}

// Node returns the number of the endpoint, below Nodes.
func (t Target) Node() int { return int(t >> NodeVABits) }

// Rank returns the port of the node, below Ranks.
func (t Target) Rank() int { return int(t >> VABits & (Ranks - 1)) }

// VA returns the virtual address within the port, below VAs.
func (t Target) VA() uint64 { return uint64(t & (VAs - 1)) }

// Add returns the target n bytes further on. The error means that this leaves
// the port.
func (t Target) Add(n int64) (Target, error) {
	if va := int64(t.VA()) + n; va < 0 || va >= VAs {
		return 0, fmt.Errorf("gvas: %d bytes from virtual address %#x of rank %d of node %d is no address of that rank", n, t.VA(), t.Rank(), t.Node())
	}
	return t + Target(n), nil
}

// In returns the address of t in a protection domain. The hardware does this
// with the domain register that the system has set.
func (t Target) In(domain PDID) Address { return Address{t, domain} }

// String writes a target as "17.3:0x7f001000": node, rank, virtual address.
func (t Target) String() string { return fmt.Sprintf("%d.%d:%#x", t.Node(), t.Rank(), t.VA()) }

// String writes an address as "0012/17.3:0x7f001000": the protection domain in
// four hexadecimal digits, then the target.
func (a Address) String() string { return fmt.Sprintf("%04x/%v", uint16(a.PDID), a.Target) }

// Bytes returns the 80 bits: the protection domain first, each field with its
// most significant bit first. TR-488 draws the fields in that order and does
// not define a byte order.
func (a Address) Bytes() (b [Size]byte) {
	binary.BigEndian.PutUint16(b[:], uint16(a.PDID))
	binary.BigEndian.PutUint64(b[2:], uint64(a.Target))
	return b
}

// FromBytes is the inverse of Bytes. Every 80 bits are an address.
func FromBytes(b [Size]byte) Address {
	return Address{Target(binary.BigEndian.Uint64(b[2:])), PDID(binary.BigEndian.Uint16(b[:]))}
}
