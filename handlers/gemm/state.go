// Package gemm multiplies matrices of float32, C += A B, in tiles: the
// accelerator of ExaNeSt (TR-488 §7; Ploumidis et al., FORTH-ICS, 2023) as a
// library of handlers. A product of two tiles is a message of the accelerator to
// itself: its header handler loads the tiles, its payload handler multiplies,
// and its completion handler stores the tile of C that is finished. Two products
// are under way, so that one is loaded while the other is computed.
//
// Each element of C is the sum of C and its products in the order of their
// index, each product and each sum rounded, as in the report's three loops.
//
//	library, err := gemm.Load(cluster)                  // once for each cluster
//	accelerator, err := library.Open(p, gemm.Options{}) // in a process
//	err = accelerator.Begin(gemm.Call{A: a, B: b, C: c, Rows: 300, Inner: 200, Columns: 100})
//	err = accelerator.Wait()
//
// Matrices lie in memory as tiles one after the other (Bytes, Place). Other
// processes and handlers of the protection domain may put a Descriptor to PT.
package gemm

import "structs"

// Side is the rows and columns of a tile (TR-488 §7: "128 × 128").
const Side = 128

// TileBytes is the size of a tile.
const TileBytes = 4 * Side * Side

// Tile is a tile in the accelerator's own memory.
type Tile [Side][Side]float32

// State is the HPU memory of an accelerator.
type State struct {
	_ structs.HostLayout // the owner sets these fields before the first message

	// of messages to the accelerator: the protection domain from bit 32; the
	// lowest bit is the kind
	MatchBits uint64
	NID       uint32 `spin:"default=rank"` // node of the process
	PID       uint32 // of the process on its node
	// portal table entry of the accelerator
	PT uint32 `spin:"max=255"`
	// counts calls that are over; 0: none
	DoneCT uint32 `spin:"unit=counter"`

	Counts Counts // of the accelerator

	Call    Descriptor // under way, or the last one
	Active  uint32     // 1: it is under way
	Status  uint32     // of the call; after a failure no other begins
	Done    uint32     // products of the call that are computed, modulo 2^32
	Stored  uint32     // tiles of C that are in memory
	Reports uint64     // the word for the host
}

// Tiles are the accelerator's own memory of matrices, behind its State.
type Tiles struct {
	_ structs.HostLayout
	A [2]Tile // of products with even and odd numbers
	B [2]Tile // likewise
	C [2]Tile // of tiles of C with even and odd numbers
}

// TilesBytes is the size of Tiles.
const TilesBytes = 6 * TileBytes

// Counts counts what an accelerator has done.
type Counts struct {
	_        structs.HostLayout
	Calls    uint64 // begun
	Products uint64 // of tiles
	Busy     uint64 // calls refused because another was under way, or had failed
	Foreign  uint64 // messages of other protection domains
	Strange  uint64 // invalid messages
}

// Descriptor is a call: three matrices in the memory of the process. It is the
// user header of a message; at least a byte follows it.
type Descriptor struct {
	_       structs.HostLayout
	A, B, C uint64 // addresses
	Rows    uint32 // of C, in tiles
	Inner   uint32 // columns of A and rows of B, in tiles
	Columns uint32 // of C, in tiles
	Tag     uint32 // the host's number of the call
	Times   uint32 // 1: take the time and move the tiles, but compute nothing
	Padding uint32 // 0
}

// DescriptorBytes is the size of a descriptor.
const DescriptorBytes = 48

// Kinds of messages, in the lowest bit of the match bits.
const (
	KindBegin = 0 // a descriptor
	KindNext  = 1 // the next product, from the accelerator; its number is hdr_data
)

// Status of a call.
const (
	OK      = 0
	Denied  = 1 // memory that is not there, or not for this access
	Illegal = 2 // a descriptor without products, or with too many
)

// MaxTiles is the most rows and columns of a matrix, in tiles.
const MaxTiles = 1 << 13

// Legal reports whether an accelerator takes a descriptor.
func (d *Descriptor) Legal() bool {
	one := func(n uint32) bool { return n >= 1 && n <= MaxTiles }
	return one(d.Rows) && one(d.Inner) && one(d.Columns)
}

// Products is how many products of tiles a call has.
func (d *Descriptor) Products() uint64 {
	return uint64(d.Rows) * uint64(d.Inner) * uint64(d.Columns)
}

// Product is one of a call: A[i,k] B[k,j], the n-th.
type Product struct {
	A, B, C uint64 // addresses of the tiles
	Of      uint32 // number of the tile of C
	First   bool   // the first of that tile
	Last    bool   // the last
}

// Product returns the n-th product. Those of a tile of C follow one another.
func (d *Descriptor) Product(n uint64) Product {
	inner, columns := uint64(d.Inner), uint64(d.Columns)
	k, c := n%inner, n/inner
	i, j := c/columns, c%columns
	return Product{
		A: d.A + (i*inner+k)*TileBytes, B: d.B + (k*columns+j)*TileBytes, C: d.C + c*TileBytes,
		Of: uint32(c), First: k == 0, Last: k == inner-1,
	}
}

// Multiply adds the product of two tiles to a third.
func Multiply(a, b, c *Tile) {
	for i := range c {
		row, sums := &a[i], &c[i]
		for j := 0; j < Side; j += 8 {
			s := (*[8]float32)(sums[j : j+8])
			s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
			for k, x := range row {
				// a conversion rounds: no processor may multiply and add in one
				y := (*[8]float32)(b[k][j : j+8])
				s0 += float32(x * y[0])
				s1 += float32(x * y[1])
				s2 += float32(x * y[2])
				s3 += float32(x * y[3])
				s4 += float32(x * y[4])
				s5 += float32(x * y[5])
				s6 += float32(x * y[6])
				s7 += float32(x * y[7])
			}
			*s = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
		}
	}
}
