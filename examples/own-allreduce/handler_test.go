package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// run runs a scenario of this folder until everything is over.
func run(t *testing.T, text string, o scenario.Options) (*scenario.Result, error) {
	o.Read = func(name string, limit int64) ([]byte, error) {
		if name == "test.yaml" {
			return []byte(text), nil
		}
		return os.ReadFile(name)
	}
	p, err := scenario.Load("test.yaml", o)
	require.NoError(t, err)
	return p.Run(t.Context(), runtime.Config{})
}

// The source, as native Go: rank 1 of two sends its packet to rank 0, and the
// second of both packets leaves the sum in host memory.
func TestPacket(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 64, MTU: 64})
	s := spintest.NewState[State](d, 2*levels*packets*(8+2*64))
	s.Rank, s.Ranks, s.MTU = 1, 2, 64
	deliver := func(from uint32, v ...byte) spin.Code {
		h := spintest.Handlers[State]{Payload: payload}
		return spintest.Deliver(d, h, s, spintest.Message{Data: append(v, make([]byte, 16-len(v))...), SourceNID: from}).Payloads[0]
	}
	require.Equal(t, spin.Drop, deliver(0, 1, 2))
	require.Empty(t, d.Puts())
	require.Equal(t, spin.Success, deliver(1, 10, 20))
	require.Equal(t, uint32(0), d.Puts()[0].Op.TargetNID)
	require.Equal(t, []byte{11, 22}, d.Host[:2])
	require.Equal(t, spin.Drop, deliver(0, 1))
	require.Equal(t, spin.Fail, deliver(0, 1), "the same side again")
}

// The scenario of the tutorial, on any power of two of ranks.
func TestScenario(t *testing.T) {
	text, err := os.ReadFile("scenario.yaml")
	require.NoError(t, err)
	for ranks := 1; ranks <= 1<<levels; ranks *= 2 {
		result, err := run(t, string(text), scenario.Options{Parameters: map[string]string{"n": fmt.Sprint(ranks)}})
		require.NoError(t, err)
		require.Equal(t, 3*ranks, result.Checked)
	}
}

const head = `
profile: spin-int
ranks: %d
entries:
  - {name: sum, ranks: all, pt: 3, match_bits: 9, length: 20KiB, handlers: {module: own-allreduce.wasm, state: {values: {pt: 3}}}}
programs:
`

// Vectors of random numbers, other ones in each round, of several packets, and
// ranks that begin rounds at different times: every byte of the sum is right.
func TestEveryByte(t *testing.T) {
	const ranks, rounds, words = 8, 5, 3*512 + 77
	source := sim.New(1).Rand("vectors")
	var vectors [rounds][ranks][]byte
	var sums [rounds][]byte
	for round := range rounds {
		sum := make([]uint64, words)
		for rank := range ranks {
			for i := range words {
				x := source.Uint64()
				vectors[round][rank] = binary.LittleEndian.AppendUint64(vectors[round][rank], x)
				sum[i] += x
			}
		}
		for _, x := range sum {
			sums[round] = binary.LittleEndian.AppendUint64(sums[round], x)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, head, ranks)
	for rank := range ranks {
		fmt.Fprintf(&b, "  - ranks: %d\n    steps:\n", rank)
		for round := range rounds {
			fmt.Fprintf(&b, "      - sleep: %dns\n", source.Uint64()%5000*uint64(round%2))
			fmt.Fprintf(&b, "      - put: {to: rank, entry: sum, hdr_data: %d << 8, fill: {hex: %q}}\n", round, hex.EncodeToString(vectors[round][rank]))
			fmt.Fprintf(&b, "      - wait: {entry: sum, bytes: %d}\n", words*8)
			fmt.Fprintf(&b, "      - expect: {memory: {of: sum, equals: {hex: %q}}}\n", hex.EncodeToString(sums[round]))
		}
	}
	for _, set := range [][]string{nil, {"hpu.cores=1", "hpu.contexts=1"}, {"hpu.cores=64", "hpu.clock=100MHz", "dma.latency=3us"}, {"hpu.dma_write=landed"}} {
		result, err := run(t, b.String(), scenario.Options{Set: set})
		require.NoError(t, err, set)
		require.Equal(t, ranks*rounds, result.Checked)
	}
}

// What cannot be summed fails. It makes no wrong sum.
func TestMistakes(t *testing.T) {
	const call = "  - ranks: %s\n    steps:\n      - put: {to: rank, entry: sum, hdr_data: %s, bytes: %d, remote_offset: %d, ack: ack}\n      - wait: {entry: sum, bytes: 8}\n"
	for name, text := range map[string]string{
		"six ranks":           fmt.Sprintf(head+call, 6, "all", "0", 64, 0),
		"512 ranks":           fmt.Sprintf(head+call, 512, "all", "0", 64, 0),
		"half a word":         fmt.Sprintf(head+call, 4, "all", "0", 68, 0),
		"five packets":        fmt.Sprintf(head+call, 4, "all", "0", 5*4096, 0),
		"not from the start":  fmt.Sprintf(head+call, 4, "all", "0", 64, 8),
		"behind the vector":   fmt.Sprintf(head+call, 4, "all", "0", 64, 4*4096),
		"other length":        fmt.Sprintf(head+call+call, 4, "0", "0", 64, 0, "1..last", "0", 56, 0),
		"another round":       fmt.Sprintf(head+call+call, 4, "0", "2 << 8", 64, 0, "1..last", "0", 64, 0),
		"the same call twice": fmt.Sprintf(head+strings.Replace(call, "ack: ack", "count: 2, ack: ack", 1), 4, "0", "0", 64, 0),
	} {
		_, err := run(t, text, scenario.Options{})
		require.ErrorContains(t, err, "payload handler of own-allreduce: returned FAIL", name)
	}
}

// The memory that the module needs has the slots.
func TestSlots(t *testing.T) {
	m, err := handlers.Open("own-allreduce.wasm")
	require.NoError(t, err)
	for _, mtu := range []int64{64, 4096} {
		bytes, err := m.Manifest().Needs.Memory.Int(&manifest.Device{MTU: mtu})
		require.NoError(t, err)
		require.Equal(t, 2*levels*packets*(8+2*mtu), bytes.Int64())
	}
}

// The tutorial has the handler in less than 60 lines.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("handler.go")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(source), "\n"), 60)
}

// The README has the latencies that its commands print.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "spinsim")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../../cmd/spinsim").CombinedOutput()
	require.NoError(t, err, "%s", out)
	printed := map[string][]byte{} // by command
	for _, command := range []string{"run", "compare"} {
		at := strings.Index(string(readme), "spinsim "+command)
		require.Positive(t, at, command)
		line, _, _ := strings.Cut(string(readme[at:]), "\n")
		printed[command], err = exec.Command(program, strings.Fields(line)[1:]...).Output()
		require.NoError(t, err, line)
	}
	latency := func(command, where string, column int) string {
		row := regexp.MustCompile(`(?m)^spin-int +` + where + ` .*$`).Find(printed[command])
		require.NotEmpty(t, row, "%s", printed[command])
		return strings.Fields(string(row))[column]
	}
	for _, ranks := range []string{"4", "16", "64"} {
		require.Contains(t, string(readme), fmt.Sprintf("| %s | %s | %s | %s |\n", ranks,
			latency("run", ranks, 2), latency("compare", ranks, 5), latency("compare", ranks, 4)))
	}
}
