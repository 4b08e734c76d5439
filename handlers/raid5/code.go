package raid5

import (
	"math/bits"
	"structs"
)

// Code is a Reed-Solomon code over GF(256) with polynomial 0x11d. Byte y of
// server i is Scale(i) * f(x(i)). The degree of the polynomial f is below the
// number of data servers, and f has the right values at all data servers. So
// any set of that many servers determines all others. x(i) is i, except
// infinity for the last server, whose value is the highest coefficient. Scales
// are such that the first parity server has the exclusive or of the data (as in
// RAID-5), and that the first data server has coefficient 1 everywhere: this is
// the code of the library Jerasure.
//
// To compute a server's lost bytes, choose the servers that take part, multiply
// the bytes of each by its Coefficient, and add them.
type Code struct {
	_      structs.HostLayout
	Data   uint32 `spin:"max=31"` // servers
	Parity uint32 `spin:"max=31"` // servers, after the data servers
	// by two servers: the logarithm of x(i) - x(j); 0 if one of them is
	// infinity
	Distance [MaxServers * MaxServers]uint8
	Scale    [MaxServers]uint8 // logarithm
	Powers   [256]uint8        // of 2, by logarithm
}

// NewCode makes the code for this many data and parity servers, together at
// least 2 and at most MaxServers.
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

// Double returns a byte times 2.
func Double(x uint8) uint8 { return x<<1 ^ x>>7*0x1d }

// DataServers returns the set of data servers: bit i is server i.
func (c *Code) DataServers() uint32 { return 1<<c.Data - 1 }

// ParityServers returns the set of parity servers, with bit 0 for the first.
func (c *Code) ParityServers() uint32 { return 1<<c.Parity - 1 }

// Coefficient returns the factor for the bytes of server from, a member of set.
// The set has as many servers as there are data servers, and the sum of their
// products is the bytes of the lost server.
func (c *Code) Coefficient(set, lost, from uint32) uint8 {
	lost, from = lost%MaxServers, from%MaxServers
	sum := uint32(c.Scale[lost]) + 255 - uint32(c.Scale[from])
	for set &^= 1 << from; set != 0; set &= set - 1 {
		other := uint32(bits.TrailingZeros32(set))
		sum += uint32(c.Distance[lost*MaxServers+other]) + 255 - uint32(c.Distance[from*MaxServers+other])
	}
	return c.Powers[sum%255]
}
