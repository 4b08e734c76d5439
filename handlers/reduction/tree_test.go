package reduction

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// What lies behind the state has the sizes that the handler reckons with.
func TestSizes(t *testing.T) {
	require.EqualValues(t, SlotHead, unsafe.Sizeof(Slot{}))
	require.EqualValues(t, ChildBytes, unsafe.Sizeof(Child{}))
	require.EqualValues(t, BlockHead, unsafe.Sizeof(Block{}))
	s := State{Children: 3, Block: 64, Window: 2}
	require.EqualValues(t, SlotHead+64+3*(BlockHead+64), s.SlotBytes())
	require.EqualValues(t, 3*ChildBytes+4*s.SlotBytes(), s.Bytes())
}

func newCluster(t *testing.T, nodes int, set ...string) *runtime.Cluster {
	p, err := profile.Load("spin-dis", set...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func onNodes(nodes ...uint32) (members []portals.ID) {
	for _, n := range nodes {
		members = append(members, portals.PhysID(n, 0))
	}
	return members
}

// Members below one leaf need one aggregator. Others meet at a spine, of which
// groups take different ones, or at a leaf if spines have no units. Children are
// in the order of their first member; aggregators with one child are left out.
func TestSwitches(t *testing.T) {
	leafSpine := []string{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=2", "fabric.spines=2"}
	all := newCluster(t, 6, append(leafSpine, "fabric.units={at: all, rate: 1ps/B, wire: 1ns}")...)
	// units 6, 7 and 8 belong to leaves, 9 and 10 to spines
	tree, err := Switches(all, onNodes(2, 3), 0)
	require.NoError(t, err)
	require.Equal(t, Tree{{Node: 7, Parent: -1, Children: []Ref{{Number: 0}, {Number: 1}}}}, tree)
	for number, spine := range []int{9, 10, 9} {
		tree, err = Switches(all, onNodes(4, 0, 5, 1), number)
		require.NoError(t, err)
		require.Equal(t, Tree{
			{Node: spine, Parent: -1, Children: []Ref{{true, 1}, {true, 2}}},
			{Node: 8, Parent: 0, Place: 0, Children: []Ref{{Number: 0}, {Number: 2}}},
			{Node: 6, Parent: 0, Place: 1, Children: []Ref{{Number: 1}, {Number: 3}}},
		}, tree)
		require.Equal(t, 2, tree.Height())
	}
	leaves := newCluster(t, 6, append(leafSpine, "fabric.units={at: leaves, rate: 1ps/B, wire: 1ns}")...)
	tree, err = Switches(leaves, onNodes(0, 1, 2, 4), 0)
	require.NoError(t, err)
	require.Equal(t, Tree{
		{Node: 6, Parent: -1, Children: []Ref{{Number: 0}, {Number: 1}, {true, 1}, {true, 2}}},
		{Node: 7, Parent: 0, Place: 2, Children: []Ref{{Number: 2}}},
		{Node: 8, Parent: 0, Place: 3, Children: []Ref{{Number: 3}}},
	}, tree)
	_, err = Switches(leaves, onNodes(0, 6), 0)
	require.EqualError(t, err, "reduction: rank 1 is on node 6 of 6")
	_, err = Switches(newCluster(t, 2), onNodes(0, 1), 0)
	require.EqualError(t, err, "reduction: no switch of the network has a unit (fabric.units)")
}

// In a fat tree of three levels, a group of all nodes passes at most three
// aggregators, and each unit takes part at most once.
func TestSwitchesOfFatTrees(t *testing.T) {
	c := newCluster(t, 16, "fabric.radix=4", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}")
	var nodes []uint32
	for i := range uint32(16) {
		nodes = append(nodes, i)
	}
	for number := range 4 {
		tree, err := Switches(c, onNodes(nodes...), number)
		require.NoError(t, err)
		require.Equal(t, 3, tree.Height())
		seen, members := map[int]bool{}, 0
		for _, a := range tree {
			require.False(t, seen[a.Node])
			seen[a.Node] = true
			for _, r := range a.Children {
				if !r.Inner {
					members++
				}
			}
		}
		require.Equal(t, 16, members)
	}
}

// A tree that is none is an error, whatever is wrong with it.
func TestTreesThatAreNone(t *testing.T) {
	ok := func() Tree {
		return Tree{{Node: 0, Parent: -1, Children: []Ref{{Number: 0}, {true, 1}}}, {Node: 1, Place: 1, Children: []Ref{{Number: 1}}}}
	}
	require.NoError(t, ok().Check(2, 2))
	for want, spoil := range map[string]func(t Tree){
		"aggregator 1 is on node 2 of 2":                                              func(t Tree) { t[1].Node = 2 },
		"child 0 of aggregator 1 has number 2: there are 2 members and 2 aggregators": func(t Tree) { t[1].Children[0].Number = 2 },
		"child 1 of aggregator 0 has number 2: there are 2 members and 2 aggregators": func(t Tree) { t[0].Children[1].Number = 2 },
		"rank 0 is a child of 2 aggregators, expected one":                            func(t Tree) { t[1].Children = append(t[1].Children, Ref{}) },
		"aggregator 1 is not child 1 of aggregator 0 alone":                           func(t Tree) { t[1].Place = 0 },
		"aggregator 0 is not child 0 of aggregator 1 alone":                           func(t Tree) { t[1].Children = []Ref{{true, 0}, {Number: 1}} },
		"rank 1 is a child of 0 aggregators, expected one":                            func(t Tree) { t[1].Children = nil },
		"aggregator 1: expected children, and a parent but for aggregator 0":          func(t Tree) { t[0].Children = []Ref{{Number: 0}, {Number: 1}}; t[1].Children = []Ref{} },
	} {
		tree := ok()
		spoil(tree)
		require.EqualError(t, tree.Check(2, 2), want)
	}
	ring := Tree{{Parent: -1, Children: []Ref{{Number: 0}}}, {Parent: 2, Children: []Ref{{true, 2}}}, {Parent: 1, Children: []Ref{{true, 1}}}}
	require.EqualError(t, ring.Check(1, 1), "aggregator 1 is below itself")
}

func TestNICs(t *testing.T) {
	tree, err := NICs(onNodes(5, 6, 7, 8, 9), 2)
	require.NoError(t, err)
	require.Equal(t, Tree{
		{Node: 5, Parent: -1, Children: []Ref{{Number: 0}, {true, 1}, {true, 2}}},
		{Node: 6, Parent: 0, Place: 1, Children: []Ref{{Number: 1}, {true, 3}, {true, 4}}},
		{Node: 7, Parent: 0, Place: 2, Children: []Ref{{Number: 2}}},
		{Node: 8, Parent: 1, Place: 1, Children: []Ref{{Number: 3}}},
		{Node: 9, Parent: 1, Place: 2, Children: []Ref{{Number: 4}}},
	}, tree)
	_, err = NICs(nil, 0)
	require.EqualError(t, err, "reduction: 0 children, expected 1 to 1023")
}

// Options that cannot be are errors with the reason.
func TestOptions(t *testing.T) {
	c := newCluster(t, 4, "hpu.max_hpu_memory=100KiB")
	library, err := Load(c)
	require.NoError(t, err)
	members := onNodes(0, 1, 2, 3)
	tree, err := NICs(members, 3)
	require.NoError(t, err)
	for want, o := range map[string]Options{
		"reduction: 0 members and 4 aggregators, expected at least one of each":                                                                                {Tree: tree},
		"reduction: group 125, expected one below 125":                                                                                                         {Members: members, Tree: tree, Number: Groups},
		"reduction: a window of -1 blocks, expected 1 to 1024":                                                                                                 {Members: members, Tree: tree, Window: -1},
		"reduction: a window of 3 blocks of 4 children, expected at most 2: nic.packet_buffer or hpu.max_hpu_memory has no room for more":                      {Members: members, Tree: tree, Window: 3},
		"reduction: an aggregator with 1025 children, expected at most 1024":                                                                                   {Members: members, Tree: Tree{{Children: make([]Ref, 1025)}}},
		"reduction: no room for a block of 4096 B of each of 100 children, with 0 groups beside: nic.packet_buffer has 4194304 B, hpu.max_hpu_memory 102400 B": {Members: members, Tree: Tree{{Children: make([]Ref, 100)}}},
	} {
		_, err := library.Group(o)
		require.EqualError(t, err, want)
	}
	pair, err := NICs(onNodes(0, 1), 1)
	require.NoError(t, err)
	g, err := library.Group(Options{Members: onNodes(0, 1), Tree: pair})
	require.NoError(t, err)
	require.Equal(t, 4, g.Window())
	require.NoError(t, c.Spawn(0, "p", func(p *runtime.Proc) error {
		_, err := g.Open(p, 0, nil)
		require.ErrorContains(t, err, "process p is 0/1, not rank 0 of the group's 2")
		return nil
	}))
	require.NoError(t, c.Run(t.Context()))
	_, err = Load(newCluster(t, 1, "hpu.max_code_bytes=100"))
	require.Error(t, err)
	odd, err := Load(newCluster(t, 1, "fabric.mtu=100"))
	require.NoError(t, err)
	_, err = odd.Group(Options{})
	require.EqualError(t, err, "reduction: packets of 100 B (fabric.mtu), expected a multiple of 8")
}

// A member that gives another length, operation or type breaks the group, and
// all members learn it. So do calls that cannot be, at once.
func TestRefused(t *testing.T) {
	for _, other := range []allreduce.Call{{Op: allreduce.Max, Type: allreduce.Int32}, {Op: allreduce.Sum, Type: allreduce.Float32}, {Op: allreduce.Sum, Type: allreduce.Int32}} {
		c := newCluster(t, 5, "fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=2", "fabric.spines=1", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}")
		members := onNodes(0, 1, 2, 3, 4)
		tree, err := Switches(c, members, 0)
		require.NoError(t, err)
		library, err := Load(c)
		require.NoError(t, err)
		g, err := library.Group(Options{Members: members, Tree: tree})
		require.NoError(t, err)
		failed := 0
		for rank := range members {
			require.NoError(t, c.Spawn(rank, "p", func(p *runtime.Proc) error {
				m, err := g.Open(p, rank, nil)
				require.NoError(t, err)
				v := p.Alloc(64)
				for want, call := range map[string]allreduce.Call{
					"reduction: 32 B for the result, expected 64 B":                 {Source: v, Result: v.Slice(0, 32), Op: allreduce.Sum, Type: allreduce.Int32},
					"reduction: 64 B, operation 4, type 1: expected whole elements": {Source: v, Result: v, Op: 4, Type: allreduce.Int32},
					"reduction: 12 B, operation 1, type 4: expected whole elements": {Source: v.Slice(0, 12), Result: v.Slice(0, 12), Op: allreduce.Sum, Type: allreduce.Float64},
				} {
					require.ErrorContains(t, m.Begin(call), want)
				}
				call := allreduce.Call{Source: v, Result: v, Op: allreduce.Sum, Type: allreduce.Int32}
				if rank == 3 {
					call.Op, call.Type = other.Op, other.Type
					if other.Op == allreduce.Sum && other.Type == allreduce.Int32 {
						call.Source, call.Result = v.Slice(0, 32), v.Slice(0, 32)
					}
				}
				require.NoError(t, m.Begin(call))
				require.ErrorIs(t, m.Begin(call), ErrBusy)
				require.ErrorIs(t, m.Wait(), ErrDiffers)
				require.ErrorIs(t, m.Begin(call), ErrDiffers)
				require.ErrorIs(t, m.Wait(), ErrDiffers)
				failed++
				return nil
			}))
		}
		require.NoError(t, c.Run(t.Context()))
		require.Equal(t, len(members), failed)
	}
}
