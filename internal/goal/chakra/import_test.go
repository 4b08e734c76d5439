package chakra

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/goal"
)

// Every algorithm ends, for every group and number of chunks, and each message
// has the size that its receive expects.
func TestCollectivesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom([]Shape{Ring, Direct, HalvingDoubling, Tree}).Draw(t, "shape")
		kind := rapid.SampledFrom([]uint8{allReduce, allGather, reduceScatter, allToAll}).Draw(t, "kind")
		npus := rapid.IntRange(1, 17).Draw(t, "npus")
		if shape == HalvingDoubling && kind == allToAll || shape == Tree && kind != allReduce {
			shape = Ring
		}
		if shape == HalvingDoubling || shape == Tree {
			npus = 1 << rapid.IntRange(0, 5).Draw(t, "levels")
		}
		k, _ := kindOf(kind)
		system := System{Splits: rapid.IntRange(1, 5).Draw(t, "splits"), Active: rapid.IntRange(1, 4).Draw(t, "active"), Delay: uint64(rapid.IntRange(0, 3).Draw(t, "delay")), Reduction: 1, GroupDelay: 10}
		system.Algorithms[k] = Algorithm{shape, rapid.IntRange(0, 9).Draw(t, "window")}
		size := rapid.IntRange(0, 1<<20).Draw(t, "size")
		// a group in another order beside an NPU that computes
		group := rapid.Permutation(counted(npus)).Draw(t, "group")
		node := with(collNode(1, kind, size, 0), "pg_name", "7")
		files := append(each(npus, traceOf(compNode(0, 1), node, collNode(2, kind, size))), traceOf(collNode(5, kind, size)))
		if shape == HalvingDoubling || shape == Tree {
			files = files[:npus]
		}
		s, _, err := importing(system, map[string][]int{"7": group}, files...)
		require.NoError(t, err)
		res, err := goal.NewSimulator(s).Run(goal.Params{L: 1, Eager: math.MaxUint64})
		require.NoError(t, err)
		require.Zero(t, res.Mismatched)
	})
}

func counted(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// Each collective of several NPUs has a name, and all its messages belong to it.
func TestCollectivesHaveNames(t *testing.T) {
	files := each(4, traceOf(collNode(1, allReduce, 4096), collNode(2, allToAll, 64)))
	for npu := range 2 {
		files[npu] = traceOf(collNode(1, allReduce, 4096), with(collNode(3, allGather, 100), "pg_name", "7"), collNode(2, allToAll, 64))
	}
	s, _, err := importing(DefaultSystem(), map[string][]int{"7": {1, 0}}, files...)
	require.NoError(t, err)
	require.Equal(t, []goal.Collective{
		{Name: "g0_1", Kind: goal.AllReduce, Bytes: 4096}, {Name: "g0_2", Kind: goal.AllToAll, Bytes: 64}, {Name: "g1_1", Kind: goal.AllGather, Bytes: 100},
	}, s.Collectives())
	for _, v := range s.All() {
		for i := range v.Len() {
			require.True(t, v.Op(i).Kind == goal.Calc || v.Collective(i) >= 0)
		}
	}
}

// sums returns sends and bytes of a rank.
func sums(s *goal.Schedule, rank int) (sends, bytes int) {
	for i := range s.Rank(rank).Len() {
		if op := s.Rank(rank).Op(i); op.Kind == goal.Send {
			sends++
			bytes += int(op.Size)
		}
	}
	return sends, bytes
}

// An NPU sends the messages and bytes of its algorithm.
func TestAlgorithms(t *testing.T) {
	const n, size = 8, 8192
	for _, x := range []struct {
		kind         uint8
		algorithm    string
		sends, bytes int
	}{
		{allReduce, "allreduce=ring", 14, 14 * 1024},
		{allReduce, "allreduce=direct", 14, 14 * 1024},
		{allReduce, "allreduce=direct3", 14, 14 * 1024},
		{allReduce, "allreduce=halving-doubling", 6, 14 * 1024},
		{allReduce, "allreduce=tree", 1, 8192}, // NPU 0 is a leaf
		{allGather, "allgather=ring", 7, 7 * 8192},
		{allGather, "allgather=direct2", 7, 7 * 8192},
		{allGather, "allgather=halving-doubling", 3, 7 * 8192},
		{reduceScatter, "reducescatter=ring", 7, 7 * 1024},
		{reduceScatter, "reducescatter=direct", 7, 7 * 1024},
		{reduceScatter, "reducescatter=halving-doubling", 3, 7 * 1024},
		{allToAll, "alltoall=ring", 28, 28 * 1024}, // a block moves on by 1 to 7 members
		{allToAll, "alltoall=direct", 7, 7 * 1024},
	} {
		system := DefaultSystem()
		require.NoError(t, system.Set(x.algorithm))
		s, _, err := importing(system, nil, each(n, traceOf(collNode(0, x.kind, size)))...)
		require.NoError(t, err)
		sends, bytes := sums(s, 0)
		require.Equal(t, []int{x.sends, x.bytes}, []int{sends, bytes}, x.algorithm)
	}
}

// The two trees have the roots 7 and 0, in turn from chunk to chunk.
func TestTrees(t *testing.T) {
	system := DefaultSystem()
	system.Splits = 2
	require.NoError(t, system.Set("allreduce=tree"))
	s, _, err := importing(system, nil, each(8, traceOf(collNode(0, allReduce, 8192)))...)
	require.NoError(t, err)
	// tree of 7 with root 7: 0 2 4 6 below 1 and 5, below 3; with root 0 one more
	for npu, parents := range [][2]int{{1, -1}, {3, 2}, {1, 4}, {7, 2}, {5, 0}, {3, 6}, {5, 4}, {-1, 6}} {
		up := [2]int{-1, -1}
		for i := range s.Rank(npu).Len() {
			op := s.Rank(npu).Op(i)
			if chunk := op.Tag & 1; op.Kind == goal.Send && up[chunk] < 0 {
				up[chunk] = int(op.Peer) // the first one goes up
			}
		}
		for chunk, parent := range parents {
			if parent >= 0 {
				require.Equal(t, parent, up[chunk], "NPU %d, chunk %d", npu, chunk)
			}
		}
	}
}

// A collective waits for the one that begins before it, whatever their ids.
func TestOneCollectiveAtATime(t *testing.T) {
	const micros = 1000
	late := compNode(0, 9)
	files := each(2, traceOf(late, collNode(1, allReduce, 2*micros, 0), collNode(2, allGather, micros)))
	s, notes, err := importing(DefaultSystem(), nil, files...)
	require.NoError(t, err)
	require.Contains(t, strings.Join(notes, "\n"), "--model atlahs")
	// the allgather takes 1,999 + 1 ns, the allreduce begins after 9,000 ns
	require.Equal(t, int64(9000+2*(999*2+1)), run(t, s, network{1, 2, 0}))
	s, _, err = importing(DefaultSystem(), nil, each(2, traceOf(collNode(1, allReduce, 2*micros), collNode(2, allGather, micros)))...)
	require.NoError(t, err)
	require.Equal(t, int64(3*(999*2+1)), run(t, s, network{1, 2, 0}))
}

// Computation, operations of the CPU and messages overlap; two computations do
// not.
func TestOverlap(t *testing.T) {
	cpu := with(compNode(1, 5), "is_cpu_op", true)
	s, _, err := importing(DefaultSystem(), nil, traceOf(compNode(0, 3), cpu, sendNode(2, 1001, 1, 0), compNode(3, 4)), traceOf(recvNode(9, 1001, 0, 0)))
	require.NoError(t, err)
	require.Equal(t, int64(7000), run(t, s, network{100, 1, 0}))
	require.Equal(t, int64(20100), run(t, s, network{100, 20, 0}))
}

// In traces of PyTorch's schema ctrl_deps are no order. What is left out is
// told.
func TestPyTorch(t *testing.T) {
	launch := with(number(number(id(4, coll), nodeCtrl, 4), nodeDuration, 3), "is_cpu_op", true)
	broadcasting := number(collNode(5, broadcast, 64, 4), nodeDuration, 2)
	e := new(encoder).message(text(nil, metaAttr, text(text(nil, attrName, "schema"), stringVal, "1.0.1")))
	e.message(with(launch, "rf_id", 1)).message(broadcasting).message(collNode(6, allReduce, 64, 5)).message(with(compNode(7, 0, 6), "num_ops", 9)).message(id(8, memLoad))
	s, notes, err := importing(DefaultSystem(), nil, e.Bytes())
	require.NoError(t, err)
	require.Equal(t, int64(5001), run(t, s, network{0, 0, 0}))
	require.Len(t, notes, 8)
	for i, begins := range []string{
		"1 ctrl_deps ignored", "1 communications on the CPU", "1 broadcasts last", "1 collectives of a group of one", "1 nodes of types INVALID", "1 computations without",
		"operations of a rank overlap", "attributes of nodes ignored: rf_id",
	} {
		require.True(t, strings.HasPrefix(notes[i], begins), notes[i])
	}
}

// METADATA nodes define the process groups of their NPU.
func TestProcessGroups(t *testing.T) {
	const values = `['[{"pg_name": "3", "pg_desc": "x", "ranks": [%d, %d]}, {"pg_name": "0", "ranks": []}]']`
	var files [][]byte
	for npu := range 4 {
		first := npu / 2 * 2
		node := text(id(0, metadata), nodeInputs, text(nil, 1, fmt.Sprintf(values, first, first+1)))
		files = append(files, traceOf(node, with(collNode(1, allGather, 100, 0), "pg_name", "3")))
	}
	s, notes, err := importing(DefaultSystem(), nil, files...)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, uint32(3), s.Rank(2).Op(0).Peer)
	require.Equal(t, int64(109), run(t, s, network{10, 1, 0}))
	// without the METADATA nodes the groups come from a file
	groups, err := ReadGroups("g.json", []byte(`{"3": [3, 1]}`))
	require.NoError(t, err)
	node := traceOf(with(collNode(1, allGather, 100), "pg_name", "3"))
	_, _, err = importing(DefaultSystem(), groups, traceOf(), node, traceOf(), node)
	require.NoError(t, err)
}

// What is wrong with a trace is one error. It names the file, and the node or
// the offset.
func TestWrongTraces(t *testing.T) {
	node := func(n ...[]byte) [][]byte { return [][]byte{traceOf(n...), traceOf()} }
	whole := traceOf(compNode(0, 1))
	head := len(traceOf())
	for _, x := range []struct {
		want  string
		files [][]byte
	}{
		{"t.0.et: the file is empty", [][]byte{nil}},
		{"t.0.et: offset 9: the file ends in the length of a message", [][]byte{append(traceOf(), 0x80)}},
		{fmt.Sprintf("t.0.et: offset %d: the file ends after %d of the %d bytes of a message", len(whole)-1, len(whole)-2-head, len(whole)-1-head), [][]byte{whole[:len(whole)-1]}},
		{"t.0.et: offset 8: a message of more than 268435456 bytes", [][]byte{append(traceOf(), 0xff, 0xff, 0xff, 0xff, 0xff, 1)}},
		{"t.0.et: offset 8: a message of more than 268435456 bytes", [][]byte{append(traceOf(), 0x80, 0x80, 0x80, 0x80, 0x80, 0)}},
		{"t.0.et: offset 9: field 1 does not end in its message", node([]byte{0x08, 0x80})},
		{"t.0.et: offset 9: field 1 has type 2, expected a number", node(text(nil, nodeID, "x"))},
		{"t.0.et: offset 9: field 10 has type 0, expected bytes", node(number(nil, nodeAttr, 1))},
		{"t.0.et: offset 11: field 30 does not end in its message", node(text(nil, nodeAttr, []byte{0xf2, 1, 9}))},
		{"t.0.et: offset 9: field 4 has type 3, expected a number or bytes", node([]byte{0x23})},
		{"t.0.et: offset 9: field 5: a broken list of numbers", node(text(nil, nodeData, []byte{0x80}))},
		{`t.0.et: version "0.0.3", expected 0.0.4 or 1.0`, [][]byte{newTrace("0.0.3").Bytes()}},
		{"t.0.et: node 7: type 8, expected 0 to 7", node(id(7, 8))},
		{"t.0.et: node 7: two nodes have this id", node(compNode(7, 1), compNode(3, 1), compNode(7, 2))},
		{"t.0.et: node 7: depends on node 9, which the file does not have", node(compNode(7, 1, 9))},
		{"t.0.et: node 7: a circle of dependencies: it waits for 7", node(compNode(7, 1, 7))},
		{"t.0.et: node 3: a circle of dependencies: it waits for 5, which waits for 4, which waits for 3", node(compNode(2, 1), compNode(3, 1, 2, 5), compNode(4, 1, 3), compNode(5, 1, 4))},
		{"t.0.et: node 1: duration_micros: 18446744073709551615, expected at most", node(number(id(1, comp), nodeDuration, math.MaxUint64))},
		{"t.0.et: node 1: comm_size: expected 0 to 1125899906842624", node(sendNode(1, -1, 1, 0))},
		{"t.0.et: node 1: comm_size: expected 0 to 1125899906842624", node(with(id(1, send), "comm_size", math.MaxInt64))},
		{`t.0.et: node 1: comm_size: "1e3", expected a number`, node(with(id(1, send), "comm_size", "1e3"))},
		{"t.0.et: node 1: comm_size: a value of another type", node(with(id(1, send), "comm_size", protowire.AppendFixed64(protowire.AppendTag(nil, doubleVal, protowire.Fixed64Type), 1)))},
		{"t.0.et: node 1: comm_tag: expected 0 to 2147483647", node(sendNode(1, 1, 1, 1<<31))},
		{"t.0.et: node 1: comm_dst: 2, and the trace has files of 2 NPUs", node(sendNode(1, 1, 2, 0))},
		{"t.0.et: node 1: comm_src: 1 in the file of NPU 0", node(with(sendNode(1, 1, 1, 0), "comm_src", 1))},
		{"t.0.et: node 1: comm_dst is missing", node(with(id(1, send), "comm_size", 1))},
		{"t.0.et: node 1: comm_src is missing", node(with(id(1, recv), "comm_size", 1))},
		{"t.0.et: node 1: comm_size is missing", node(with(id(1, recv), "comm_src", 1))},
		{"t.0.et: node 1: comm_size is missing", node(with(id(1, coll), "comm_type", 2))},
		{"t.0.et: node 1: BARRIER is not supported", node(collNode(1, 9, 1))},
		{"t.0.et: node 1: comm_type 10 is not supported", node(collNode(1, 10, 1))},
		{"t.0.et: node 1: involved_dim excludes", node(with(collNode(1, allReduce, 1), "involved_dim", text(nil, boolList, text(nil, 1, []byte{0}))))},
		{`t.0.et: node 1: process group "4" is not defined`, node(with(collNode(1, allReduce, 1), "pg_name", "4"))},
		{"t.0.et: node 1: process group 1: NPU 2, and the trace has files of 2 NPUs", node(with(collNode(1, allReduce, 1), "pg_name", "1"))},
		{"t.0.et: node 1: process group 2: NPU 0 twice", node(with(collNode(1, allReduce, 1), "pg_name", "2"))},
		{"t.0.et: node 1: NPU 0 is not in process group 3", node(with(collNode(1, allReduce, 1), "pg_name", "3"))},
		{"t.1.et: node 4: collective 1 of process group of all NPUs is ALL_GATHER of 1 bytes, on other NPUs it is ALL_REDUCE of 1 bytes", [][]byte{traceOf(collNode(1, allReduce, 1)), traceOf(collNode(4, allGather, 1))}},
		{"t.1.et: node 4: collective 2 of process group of all NPUs, in which other NPUs do 1", [][]byte{traceOf(collNode(1, allReduce, 1)), traceOf(collNode(3, allReduce, 1), collNode(4, allReduce, 1, 3))}},
		{"t.1.et: 1 collectives of process group of all NPUs, in which other NPUs do 2", [][]byte{traceOf(collNode(3, allReduce, 1), collNode(4, allReduce, 1)), traceOf(collNode(3, allReduce, 1))}},
		{"of 2 NPUs, 1 take part in the collectives of all", node(collNode(1, allReduce, 1))},
		{"group 5 has 2 NPUs, and 1 of them take part in its collectives", node(with(collNode(1, allReduce, 1), "pg_name", "5"))},
	} {
		_, _, err := importing(DefaultSystem(), map[string][]int{"1": {0, 2}, "2": {0, 0}, "3": {1}, "5": {0, 1}}, x.files...)
		require.ErrorContains(t, err, x.want)
		require.True(t, strings.HasPrefix(err.Error(), x.want), "%v", err)
	}
}

// An algorithm that cannot do a collective, or needs more operations than a
// schedule can have, is refused before it begins.
func TestRefusedCollectives(t *testing.T) {
	system := DefaultSystem()
	require.NoError(t, system.Set("allreduce=halving-doubling,alltoall=ring"))
	_, _, err := importing(system, nil, each(6, traceOf(collNode(3, allReduce, 1)))...)
	require.ErrorContains(t, err, "t.0.et: node 3: ALL_REDUCE of 6 NPUs: this algorithm needs a power of two")
	system.Splits = maxChunks
	_, _, err = importing(system, nil, each(300, traceOf(collNode(3, allToAll, 1<<40)))...)
	require.ErrorContains(t, err, "t.0.et: node 3: ALL_TO_ALL of 300 NPUs: "+errTooLarge.Error())
}

// Errors of the reader stay what they are.
func TestReadErrors(t *testing.T) {
	broken := errors.New("broken disk")
	err := New(1, DefaultSystem(), nil).Rank(0, "t.0.et", &failing{traceOf(compNode(0, 1))[:9], broken})
	require.ErrorIs(t, err, broken)
}

type failing struct {
	bytes []byte
	err   error
}

func (f *failing) Read(b []byte) (int, error) {
	n := copy(b, f.bytes)
	f.bytes = f.bytes[n:]
	if n == 0 {
		return 0, f.err
	}
	return n, nil
}

func TestFiles(t *testing.T) {
	sorted, err := Files([]string{"a/t.1.et", "a/t.0.et"})
	require.NoError(t, err)
	require.Equal(t, []string{"a/t.0.et", "a/t.1.et"}, sorted)
	for _, x := range []struct{ names, want string }{
		{"t.0.et t.2.et", "a file is missing"},
		{"t.et", "expected a name like"},
		{"t.0", "expected a name like"},
		{"t.-1.et", "expected a name like"},
		{"t.0.et u.1.et", "files of two traces"},
		{"t.0.et t.00.et", "both of NPU 0"},
	} {
		_, err := Files(strings.Fields(x.names))
		require.ErrorContains(t, err, x.want)
	}
}

// Every file gives a schedule that can be written, or an error that names it.
func FuzzImport(f *testing.F) {
	f.Add(traceOf(collNode(0, allReduce, 1<<20)))
	f.Add(traceOf(compNode(0, 3), sendNode(1, 8, 1, 2, 0), recvNode(2, 8, 1, 2), collNode(3, allToAll, 100, 0)))
	f.Add(ringTraces()[0])
	f.Add(traceOf(text(id(0, metadata), nodeInputs, text(nil, 1, `['[{"pg_name": "3", "ranks": [0]}]']`)), with(collNode(1, allGather, 9, 0), "pg_name", "3")))
	f.Add(append(traceOf(compNode(1, 1, 2), compNode(2, 1, 1)), 0xff, 0xff))
	f.Fuzz(func(t *testing.T, trace []byte) {
		s, notes, err := importing(systemOf(2, 1), map[string][]int{"1": {0, 1}}, trace, trace)
		if err != nil {
			if wrong, ok := errors.AsType[*Error](err); ok {
				require.Contains(t, []string{"t.0.et", "t.1.et"}, wrong.File)
			}
			return
		}
		require.Less(t, len(notes), 12)
		var out bytes.Buffer
		require.NoError(t, goal.WriteBinary(&out, s))
		_, err = goal.NewSimulator(s).Run(goal.DefaultParams())
		_, unfinished := errors.AsType[*goal.UnfinishedError](err)
		require.True(t, err == nil || unfinished || errors.Is(err, goal.ErrOverflow), err)
	})
}
