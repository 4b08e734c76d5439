package exanet_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/fabric"
)

// The fields have the widths of TR-488.
func TestWidths(t *testing.T) {
	require.Equal(t, 80, 8*len(exanet.GlobalAddress{}.Bytes()))
	require.Equal(t, 1<<42, exanet.Ranks*exanet.VAs, "the node-level virtual address")
	require.Equal(t, 4<<20, exanet.Nodes, "4 M nodes")
	require.Equal(t, 64<<10, exanet.PDIDs, "64 K process groups")
}

// An address survives the round trip by fields and by bytes. The bytes
// equal the sum of the fields times their weights.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node, rank := rapid.IntRange(0, exanet.Nodes-1).Draw(t, "node"), rapid.IntRange(0, exanet.Ranks-1).Draw(t, "rank")
		va, domain := rapid.Uint64Range(0, exanet.VAs-1).Draw(t, "va"), exanet.PDID(rapid.Uint16().Draw(t, "pdid"))
		target, err := exanet.TargetAt(node, rank, va)
		require.NoError(t, err)
		require.Equal(t, node, target.Node())
		require.Equal(t, rank, target.Rank())
		require.Equal(t, va, target.VA())

		a := target.In(domain)
		sum := new(big.Int)
		for _, field := range []struct {
			value uint64
			bits  uint
		}{{uint64(domain), 16}, {uint64(node), 22}, {uint64(rank), 3}, {va, 39}} {
			sum.Lsh(sum, field.bits)
			sum.Add(sum, new(big.Int).SetUint64(field.value))
		}
		bytes := a.Bytes()
		require.Zero(t, sum.Cmp(new(big.Int).SetBytes(bytes[:])))
		require.Equal(t, a, exanet.GlobalAddressOf(bytes))
	})
}

// Any 80 bits are an address. Two addresses are equal exactly if their bits
// are.
func TestBytesAreAllAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "one"))
		two := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "two"))
		require.Equal(t, one, exanet.GlobalAddressOf(one).Bytes())
		require.Equal(t, one == two, exanet.GlobalAddressOf(one) == exanet.GlobalAddressOf(two))
	})
}

// Add stays within the port or fails: it never reaches another rank or node.
func TestAddStaysInThePort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, err := exanet.TargetAt(rapid.IntRange(0, exanet.Nodes-1).Draw(t, "node"), rapid.IntRange(0, exanet.Ranks-1).Draw(t, "rank"), rapid.Uint64Range(0, exanet.VAs-1).Draw(t, "va"))
		require.NoError(t, err)
		n := rapid.OneOf(rapid.Int64Range(-exanet.VAs, exanet.VAs), rapid.Int64Range(-3, 3)).Draw(t, "n")
		to, err := from.Add(n)
		va := int64(from.VA()) + n
		if va < 0 || va >= exanet.VAs {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, []int{from.Node(), from.Rank()}, []int{to.Node(), to.Rank()})
		require.Equal(t, uint64(va), to.VA())
	})
}

// The error names each field out of range, with its bounds.
func TestOutOfRange(t *testing.T) {
	_, err := exanet.TargetAt(exanet.Nodes, -1, exanet.VAs)
	require.EqualError(t, err, "exanet: node 4194304, expected 0 to 4194303 (22 bits)\n"+
		"exanet: rank -1, expected 0 to 7 (3 bits)\n"+
		"exanet: virtual address 0x8000000000, expected 0 to 0x7fffffffff (39 bits)")
	last, err := exanet.TargetAt(exanet.Nodes-1, exanet.Ranks-1, exanet.VAs-1)
	require.NoError(t, err)
	require.Equal(t, "ffff/4194303.7:0x7fffffffff", last.In(0xffff).String())
	_, err = last.Add(1)
	require.EqualError(t, err, "exanet: 1 bytes from virtual address 0x7fffffffff of rank 7 of node 4194303 is no address of that rank")
}

// Every MPSoC that a network can have has an address. Its name, its place and
// its number lead to the same MPSoC.
func TestEveryMPSoCHasAnAddress(t *testing.T) {
	require.Equal(t, exanet.Nodes, fabric.MaxNodes)
	rapid.Check(t, func(t *rapid.T) {
		q := fabric.QFDBs{X: rapid.IntRange(1, 1024).Draw(t, "x"), Y: rapid.IntRange(1, 512).Draw(t, "y"), Z: rapid.IntRange(1, 2).Draw(t, "z")}
		require.NoError(t, q.Validate())
		p := fabric.Place{X: rapid.IntRange(0, q.X-1).Draw(t, "at x"), Y: rapid.IntRange(0, q.Y-1).Draw(t, "at y"), Z: rapid.IntRange(0, q.Z-1).Draw(t, "at z"), F: rapid.IntRange(0, 3).Draw(t, "F")}
		target, err := exanet.TargetAt(q.Node(p), 0, 0)
		require.NoError(t, err)
		require.Equal(t, p, q.Place(target.Node()))
		node, err := q.Find(q.Name(target.Node()))
		require.NoError(t, err)
		require.Equal(t, target.Node(), node)
	})
}
