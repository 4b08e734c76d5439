package chakra

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
)

var originals = flag.String("chakra", "", "folder of ASTRA-sim's example traces (its examples/workload/microbenchmarks, one folder a trace); the traces of these tests are compared with them")

// importing makes the schedule of the traces of NPUs 0, 1, and so on.
func importing(system System, groups map[string][]int, files ...[]byte) (*goal.Schedule, []string, error) {
	im := New(len(files), system, groups)
	for npu, f := range files {
		if err := im.Rank(npu, fmt.Sprintf("t.%d.et", npu), bytes.NewReader(f)); err != nil {
			return nil, nil, err
		}
	}
	s, err := im.Schedule()
	return s, im.Notes(), err
}

// each returns the same trace for every NPU.
func each(npus int, trace []byte) (files [][]byte) {
	for range npus {
		files = append(files, trace)
	}
	return files
}

// gigabyte is ASTRA-sim's, in bytes.
const gigabyte = 1 << 30

// The networks of ASTRA-sim's examples. A message passes two links of a switch,
// each of which takes it whole.
var (
	ring8 = network{500, 1e9 / (50 * gigabyte), 0}
	hgx   = network{1872, 0, 1e9 / (400 * gigabyte)}
)

// The systems of ASTRA-sim's examples (examples/system/native_collectives).
func systemOf(active int, memory float64) System {
	s := System{Splits: 4, Active: active, Delay: 10, Reduction: memory, GroupDelay: 10}
	return s
}

// Collectives of 1 MiB on 8 NPUs take as long as in ASTRA-sim 518bd51
// (congestion-aware analytical network), to the nanosecond.
func TestAstraSim(t *testing.T) {
	hgxSystem, fourChunks := systemOf(2, 3350), systemOf(1, 1600) // HGX-H100-validated, Ring_4chunks
	for i, x := range []struct {
		kind      uint8
		system    System
		network   network
		published int64
	}{
		{allReduce, hgxSystem, hgx, 57426},
		{allReduce, hgxSystem, ring8, 34680},
		{allReduce, fourChunks, hgx, 115624},
		{allReduce, fourChunks, ring8, 64440},
		{allGather, hgxSystem, hgx, 44058},
		{allGather, hgxSystem, ring8, 137216},
		{allGather, fourChunks, hgx, 86896},
		{allGather, fourChunks, ring8, 151016},
	} {
		s, _, err := importing(x.system, nil, each(8, traceOf(collNode(0, x.kind, 1<<20)))...)
		require.NoError(t, err)
		require.Equal(t, x.published, run(t, s, x.network), i)
	}
}

// ringTraces describe a ring in sends, receives and computations of 7 µs
// (ASTRA-sim's custom_ring_allreduce_8npus_1MB).
func ringTraces() (files [][]byte) {
	const npus, size = 8, 1 << 17
	for npu := range npus {
		e := new(encoder).message(text(nil, metaAttr, text(text(nil, attrName, "schema"), stringVal, "1.0.2-chakra.0.0.4")))
		var before []int // the node that the next one waits for
		for step := range 2 * (npus - 1) {
			at := 3*step - max(0, step-(npus-1)) // there are no computations in the second half
			e.message(sendNode(at, size, (npu+1)%npus, 0, before...))
			e.message(recvNode(at+1, size, (npu+npus-1)%npus, 0, at))
			before = []int{at + 1}
			if step < npus-1 {
				e.message(compNode(at+2, 7, at+1))
				before = []int{at + 2}
			}
		}
		files = append(files, e.Bytes())
	}
	return files
}

// The ring takes what ASTRA-sim prints: 14 x 2,941 + 7 x 7,000 ns. All its
// operations are on one processor, so that every model gives that.
func TestRing(t *testing.T) {
	s, notes, err := importing(DefaultSystem(), nil, ringTraces()...)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, int64(90174), run(t, s, ring8))
	require.Zero(t, s.MaxCPU())
	res, err := goal.NewSimulator(s).Run(goal.Params{L: 2941, Eager: math.MaxUint64})
	require.NoError(t, err)
	require.Equal(t, int64(90174), res.MaxNS)
}

// Files of ASTRA-sim give the schedules of the traces of these tests.
func TestOriginals(t *testing.T) {
	if *originals == "" {
		return // the other tests have traces of the same content
	}
	for folder, own := range map[string][][]byte{
		"all_reduce": each(8, traceOf(collNode(0, allReduce, 1<<20))), "all_gather": each(8, traceOf(collNode(0, allGather, 1<<20))),
		"all_to_all": each(8, traceOf(collNode(0, allToAll, 1<<20))), "reduce_scatter": each(8, traceOf(collNode(0, reduceScatter, 1<<20))),
		"custom_ring_allreduce": ringTraces(),
	} {
		names, err := filepath.Glob(filepath.Join(*originals, folder+"_8npus_1MB", "*.et"))
		require.NoError(t, err)
		require.Len(t, names, 8, folder)
		var files [][]byte
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			files = append(files, text)
		}
		require.Equal(t, binary(t, own...), binary(t, files...), folder)
	}
}

func binary(t *testing.T, files ...[]byte) []byte {
	s, _, err := importing(systemOf(2, 3350), nil, files...)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, goal.WriteBinary(&out, s))
	return out.Bytes()
}
