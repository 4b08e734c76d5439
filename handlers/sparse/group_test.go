package sparse

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// What lies behind the state has the sizes that the handler reckons with.
func TestSizes(t *testing.T) {
	require.EqualValues(t, ChildBytes, unsafe.Sizeof(Child{}))
	require.EqualValues(t, PairBytes, unsafe.Sizeof(Pair{}))
	require.EqualValues(t, PairBytes, unsafe.Sizeof(Entry{}))
	require.EqualValues(t, SlotHead, unsafe.Sizeof(Slot{}))
	require.EqualValues(t, KeptHead, unsafe.Sizeof(Kept{}))
}

var pairOfLeaves = []string{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=2", "fabric.spines=1", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}"}

// newGroup starts a group in the switches of a cluster, and returns its tree.
func newGroup(t *testing.T, nodes int, o Options, set ...string) (*runtime.Cluster, *Group, error) {
	p, err := profile.Load("spin-dis", slices.Concat(pairOfLeaves, set)...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for i := range nodes {
		o.Members = append(o.Members, portals.PhysID(uint32(i), 0))
	}
	if o.Tree == nil {
		o.Tree, err = reduction.Switches(c, o.Members, 0)
		require.NoError(t, err)
	}
	library, err := Load(c)
	require.NoError(t, err)
	g, err := library.Group(o)
	return c, g, err
}

// Options that cannot be are one error with the reason, a unit that is too small
// for a block among them.
func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"sparse: blocks of 0 indices, expected a power of two up to 16777216":                                                                          {},
		"sparse: blocks of 12 indices, expected a power of two up to 16777216":                                                                         {Span: 12},
		"sparse: a table of 16, expected a power of two up to the span of 8":                                                                           {Span: 8, Table: 16},
		"sparse: a table of 3, expected a power of two up to the span of 8":                                                                            {Span: 8, Table: 3},
		"sparse: 9 pairs of a block, expected 1 to the span of 8":                                                                                      {Span: 8, Most: 9},
		"sparse: a window of 1025 blocks, expected 1 to 1024":                                                                                          {Span: 8, Window: 1025},
		"sparse: -1 blocks, expected none or more":                                                                                                     {Span: 8, Blocks: -1},
		"sparse: group 500, expected one below 125":                                                                                                    {Span: 8, Number: 500},
		"sparse: rank 0 is a child of 0 aggregators, expected one":                                                                                     {Span: 8, Tree: reduction.Tree{{Parent: -1, Children: []reduction.Ref{{Number: 1}}}}},
		"sparse: an aggregator with 1025 children, expected at most 1024":                                                                              {Span: 8, Tree: reduction.Tree{{Children: make([]reduction.Ref, 1025)}}},
		"sparse: aggregator 1: 16777216 pairs of a block from a child, expected at most 2097152, and 1 GiB from all: a smaller Span or Most has fewer": {Span: MaxSpan},
		"sparse: aggregator 0 has no room for a block: 32 B of packets of 2 children, nic.packet_buffer has 4194304 B; two slots of 2101384 B, hpu.max_hpu_memory has 4194152 B; a smaller Span or Most needs less": {
			Span: 1 << 18, Most: 1,
		},
		// a slot of 102,952 B: a table of 32 KiB, a packet, and 16 that are kept
		"sparse: a window of 99 blocks, expected at most 20: nic.packet_buffer or hpu.max_hpu_memory has no room for more": {Span: 1 << 12, Window: 99},
	} {
		_, _, err := newGroup(t, 4, o, "hpu.max_hpu_memory=4MiB")
		require.EqualError(t, err, want)
	}
	_, _, err := newGroup(t, 2, Options{Span: 8}, "fabric.mtu=100")
	require.EqualError(t, err, "sparse: packets of 100 B (fabric.mtu), expected a multiple of 8")
	_, g, err := newGroup(t, 2, Options{Span: 8, Blocks: 3})
	require.NoError(t, err)
	require.Equal(t, 3, g.Window())
}

// Pairs that are none of a vector are refused at once, and the group goes on.
// Vectors of other lengths end it, and all members learn it.
func TestRefused(t *testing.T) {
	c, g, err := newGroup(t, 4, Options{Span: 8, Most: 2})
	require.NoError(t, err)
	failed := 0
	for rank := range 4 {
		require.NoError(t, c.Spawn(rank, "p", func(p *runtime.Proc) error {
			_, err := g.Open(p, rank+4)
			require.ErrorContains(t, err, "not rank")
			m, err := g.Open(p, rank)
			require.NoError(t, err)
			view := func(v vector) runtime.View {
				b := v.pairs()
				w := p.Alloc(len(b))
				w.CopyFrom(b)
				return w
			}
			good, sum := view(vector{3: 1}), vector{}
			down := view(vector{3: 1, 5: 1})
			down.Write()[0] = 9
			require.EqualError(t, m.Allreduce(16, down, nil), "sparse: pair 1 has index 5, expected more than 9 and less than 16")
			require.EqualError(t, m.Allreduce(16, view(vector{16: 1}), nil), "sparse: pair 0 has index 16, expected more than -1 and less than 16")
			require.EqualError(t, m.Allreduce(16, view(vector{9: 1, 10: 1, 11: 1}), nil), "sparse: block 1 has 3 pairs, expected at most 2 (Options.Most)")
			require.ErrorContains(t, m.Allreduce(16, good.Slice(0, 7), nil), "sparse: 16 elements and 7 B of pairs, expected")
			require.ErrorContains(t, m.Allreduce(0, good, nil), "0 elements and 8 B of pairs, expected 1 to 4294967294 elements")
			require.NoError(t, m.Allreduce(16, good, sum.take(t)))
			require.Equal(t, vector{3: 4}, sum)
			elements := 16
			if rank == 2 {
				elements = 8
			}
			require.ErrorIs(t, m.Allreduce(elements, good, nil), ErrDiffers)
			require.ErrorIs(t, m.Allreduce(elements, good, nil), ErrDiffers)
			failed++
			return nil
		}))
	}
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, 4, failed)
}

// All members have the same elements: a result has as many packets as a vector.
// All have different ones: it grows with every child, in a leaf and at the root,
// where a hash table sends on what it has no place for.
func TestDensification(t *testing.T) {
	const elements = 64
	for _, table := range []int{elements, 4} {
		for different, packets := range map[bool][3]uint64{false: {4, 2, 2}, true: {4, 4, 8}} {
			c, g, err := newGroup(t, 4, Options{Span: elements, Table: table}, "fabric.mtu=64")
			require.NoError(t, err)
			for rank := range 4 {
				require.NoError(t, c.Spawn(rank, "p", func(p *runtime.Proc) error {
					m, err := g.Open(p, rank)
					require.NoError(t, err)
					v := vector{}
					for i := range uint32(8) {
						v[4*i] = 1
						if different {
							delete(v, 4*i)
							v[4*i+uint32(rank)] = 1
						}
					}
					source, sum := p.Alloc(64), vector{}
					source.CopyFrom(v.pairs())
					require.NoError(t, m.Allreduce(elements, source, sum.take(t)))
					require.Len(t, sum, map[bool]int{false: 8, true: 32}[different])
					return nil
				}))
			}
			require.NoError(t, c.Run(t.Context()))
			n := g.Counts() // leaves get 4 packets, and send on; results come to two leaves
			if table < elements && !different {
				packets[1] = 4 // half of the pairs are sent on before they are added
			}
			require.Equal(t, []uint64{packets[0] + packets[1], packets[2]}, []uint64{n.Packets, n.Results}, "%v %d", different, table)
			require.Equal(t, table < elements, n.Spilled > 0)
		}
	}
}
