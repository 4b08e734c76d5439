package raid5

import (
	"math/bits"
	"structs"
)

// Code is a Reed-Solomon code over GF(256) of polynomial 0x11d: byte y of
// server i is Scale(i) * f(x(i)), where f is the polynomial of a degree below
// the number of data servers that has the right values at all data servers. So
// any so many servers say what each other one has: x(i) is i, but infinity for
// the last one, whose value is the highest coefficient. Scales are such that
// the first parity server has the exclusive or of the data (that of RAID-5),
// and that the first data server counts once everywhere: it is the code of the
// library Jerasure.
//
// Whoever computes what a server has lost needs to know which servers take
// part, and adds their bytes, each times its Coefficient.
type Code struct {
	_      structs.HostLayout
	Data   uint32 `spin:"max=31"` // servers
	Parity uint32 `spin:"max=31"` // servers, behind those of data
	// by two servers: the logarithm of x(i) - x(j); 0 if one of them is
	// infinity
	Distance [MaxServers * MaxServers]uint8
	Scale    [MaxServers]uint8 // logarithm
	Powers   [256]uint8        // of 2, by logarithm
}

// NewCode is that of so many data and parity servers, together at least 2 and at most MaxServers.
func NewCode(data, parity int) Code {
	c := Code{Data: uint32(data), Parity: uint32(parity)}
	var log [256]uint8
	x := uint8(1)
	for i := range 255 {
		c.Powers[i], log[x] = x, uint8(i)
		x = Double(x)
	}
	last := data + parity - 1
	for i := range last {
		for j := range last {
			c.Distance[i*MaxServers+j] = log[i^j]
		}
	}
	all := c.DataServers()
	for i := range uint32(data) {
		c.Scale[i] = log[c.Coefficient(all, c.Data, i)]
	}
	for i := c.Data + 1; i < c.Data+c.Parity; i++ {
		c.Scale[i] = uint8((255 - uint32(log[c.Coefficient(all, i, 0)])) % 255)
	}
	return c
}

// Double is a byte times 2.
func Double(x uint8) uint8 { return x<<1 ^ x>>7*0x1d }

// DataServers is the set of them: bit i is server i.
func (c *Code) DataServers() uint32 { return 1<<c.Data - 1 }

// ParityServers is the set of them, bit 0 the first.
func (c *Code) ParityServers() uint32 { return 1<<c.Parity - 1 }

// Coefficient is what the bytes of a server are multiplied by where those of a
// set of as many as there are data servers, it among them, add up to those of
// another one.
func (c *Code) Coefficient(set, lost, from uint32) uint8 {
	lost, from = lost%MaxServers, from%MaxServers
	sum := uint32(c.Scale[lost]) + 255 - uint32(c.Scale[from])
	for set &^= 1 << from; set != 0; set &= set - 1 {
		other := uint32(bits.TrailingZeros32(set))
		sum += uint32(c.Distance[lost*MaxServers+other]) + 255 - uint32(c.Distance[from*MaxServers+other])
	}
	return c.Powers[sum%255]
}
