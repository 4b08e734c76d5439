package gvas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Widths of the fields, bits (TR-488 §4.3).
const (
	PDIDBits   = 16
	NodeBits   = 22
	RankBits   = 3
	VABits     = 39
	NodeVABits = RankBits + VABits
)

// Numbers of what an address can tell apart. Node and rank are below theirs.
const (
	PDIDs = 1 << PDIDBits // protection domains
	Nodes = 1 << NodeBits // endpoints of the interconnect
	Ranks = 1 << RankBits // ports of a node
	VAs   = 1 << VABits   // bytes of a port: 512 GiB
)

// Size is the bytes of an address in a cell.
const Size = (PDIDBits + NodeBits + NodeVABits) / 8

// PDID is a protection domain. 0 is nobody's: a process that the system has put into none is in it.
type PDID uint16

// DefaultPDID is the domain of options that name none.
const DefaultPDID PDID = 1

// Target is what a program may say of an address: node, rank and virtual
// address. Its value is the lower 64 bits of the address.
type Target uint64

// Address is a whole address. It is comparable, and every value is legal: what
// is out of range has been refused when it was made.
type Address struct {
	Target Target
	PDID   PDID
}

// At returns the target of a virtual address of a port. Node, rank and virtual
// address must be below Nodes, Ranks and VAs; the error says all that are not.
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

// AtNodeVA is At of a node-level virtual address of 42 bits, whose upper three are the rank.
func AtNodeVA(node int, va uint64) (Target, error) {
	if va >= 1<<NodeVABits {
		return 0, fmt.Errorf("gvas: node-level virtual address %#x, expected 0 to %#x (%d bits)", va, uint64(1<<NodeVABits-1), NodeVABits)
	}
	return At(node, int(va>>VABits), va&(VAs-1))
}

// Node returns the number of the endpoint, below Nodes.
func (t Target) Node() int { return int(t >> NodeVABits) }

// Rank returns the port of the node, below Ranks.
func (t Target) Rank() int { return int(t >> VABits & (Ranks - 1)) }

// VA returns the virtual address within the port, below VAs.
func (t Target) VA() uint64 { return uint64(t & (VAs - 1)) }

// NodeVA returns rank and virtual address as one number of 42 bits.
func (t Target) NodeVA() uint64 { return uint64(t & (1<<NodeVABits - 1)) }

// Add returns the target n bytes further on, of the same port. It is an error
// if that has no such address.
func (t Target) Add(n int64) (Target, error) {
	if va := int64(t.VA()) + n; va < 0 || va >= VAs {
		return 0, fmt.Errorf("gvas: %d bytes from virtual address %#x of rank %d of node %d is no address of that rank", n, t.VA(), t.Rank(), t.Node())
	}
	return t + Target(n), nil
}

// Holds reports whether n bytes from t on, n at least 0, are addresses of the same port.
func (t Target) Holds(n int64) bool { return n >= 0 && n <= VAs-int64(t.VA()) }

// In returns the address of t in a protection domain: what the hardware makes
// of a target and of the register that the system has set.
func (t Target) In(domain PDID) Address { return Address{t, domain} }

// String writes a target as "17.3:0x7f001000": node, rank, virtual address.
func (t Target) String() string { return fmt.Sprintf("%d.%d:%#x", t.Node(), t.Rank(), t.VA()) }

// String writes an address as "0012/17.3:0x7f001000": the protection domain, in
// four hexadecimal digits, before the target.
func (a Address) String() string { return fmt.Sprintf("%04x/%v", uint16(a.PDID), a.Target) }

// ParseTarget reads what Target.String writes; the virtual address may be decimal, too.
func ParseTarget(text string) (Target, error) {
	port, va, ok := strings.Cut(text, ":")
	node, rank, has := strings.Cut(port, ".")
	n, errNode := strconv.ParseUint(node, 10, 32)
	r, errRank := strconv.ParseUint(rank, 10, 16)
	v, errVA := strconv.ParseUint(va, 0, 64)
	if !ok || !has || errNode != nil || errRank != nil || errVA != nil {
		return 0, fmt.Errorf("gvas: %q, expected NODE.RANK:ADDRESS, such as 17.3:0x7f001000", text)
	}
	return At(int(n), int(r), v)
}

// Parse reads what Address.String writes.
func Parse(text string) (Address, error) {
	domain, target, ok := strings.Cut(text, "/")
	d, err := strconv.ParseUint(domain, 16, PDIDBits)
	if !ok || err != nil {
		return Address{}, fmt.Errorf("gvas: %q, expected PDID/NODE.RANK:ADDRESS with a PDID of up to four hexadecimal digits, such as 0012/17.3:0x7f001000", text)
	}
	t, err := ParseTarget(target)
	return t.In(PDID(d)), err
}

// Bytes returns the 80 bits, the protection domain first, each field with its
// most significant bit first. The report draws the fields in that order and
// says nothing of bytes.
func (a Address) Bytes() (b [Size]byte) {
	binary.BigEndian.PutUint16(b[:], uint16(a.PDID))
	binary.BigEndian.PutUint64(b[2:], uint64(a.Target))
	return b
}

// FromBytes is the inverse of Bytes. Every 80 bits are an address.
func FromBytes(b [Size]byte) Address {
	return Address{Target(binary.BigEndian.Uint64(b[2:])), PDID(binary.BigEndian.Uint16(b[:]))}
}
