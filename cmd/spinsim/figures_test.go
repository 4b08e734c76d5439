package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// column runs a command and returns a column of its output.
func column(t *testing.T, name, command string) (values []float64) {
	r := csv.NewReader(bytes.NewReader(output(t, append(strings.Fields(command), "--format", "csv")...)))
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	at := slices.Index(rows[0], name)
	require.GreaterOrEqual(t, at, 0)
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[at], 64)
		require.NoError(t, err)
		values = append(values, v)
	}
	return values
}

// Figures within sentences agree with the output of commands, too.
func TestDocumentsSayWhatCommandsPrint(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // where the files that commands name are
	text := map[string]string{}
	for _, name := range []string{"RATIONALE.md", "docs/model.md", "docs/memory.md", "docs/networks.md"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		text[name] = strings.Join(strings.Fields(string(data)), " ")
	}
	says := func(name, format string, figures ...any) {
		sentence := fmt.Sprintf(format, figures...)
		require.True(t, strings.Contains(text[name], sentence), "%s does not say %q", name, sentence) //nolint:testifylint // the whole text need not be shown
	}
	// longer returns by how many percent a setting lengthens each measurement.
	longer := func(command, setting string) (percent []any) {
		without, with := column(t, "latency_ns", command), column(t, "latency_ns", command+" --set "+setting)
		for i := range with {
			percent = append(percent, 100*(with[i]/without[i]-1))
		}
		return percent
	}

	large := "compare accumulate --profile spin-int --mode rdma,spin-stream --size 256KiB"
	says("RATIONALE.md", "with 256 KiB on spin-int sPIN is %.2f times as fast as RDMA, with `scalar` %.2f times.",
		column(t, "speedup", large)[1], column(t, "speedup", large+" --set hpu.costs=scalar")[1])
	cycles := "compare accumulate --profile spin-int --mode spin-stream --size 2KiB,4KiB"
	element := func(values []float64) float64 { return (values[1] - values[0]) / 128 }
	says("RATIONALE.md", "costs %.0f cycles an element by the one and %.0f by the other",
		element(column(t, "handler_cycles", cycles)), element(column(t, "handler_cycles", cycles+" --set hpu.costs=scalar")))
	contexts := "compare accumulate --profile spin-int --mode spin-stream --size 32KiB"
	says("RATIONALE.md", "prints %.2f µs, and with `--set hpu.contexts=1` %.2f µs.",
		column(t, "latency_ns", contexts)[0]/1000, column(t, "latency_ns", contexts+" --set hpu.contexts=1")[0]/1000)

	both := "compare accumulate --profile spin-dis,spin-int --size 64KiB --mode "
	one := longer(both+"spin-stream", "hpu.contexts=1")
	says("docs/model.md", "accumulate of 64 KiB with 1: %.0f%% longer on spin-dis, %.0f%% shorter on spin-int", one[0], -one[1].(float64))
	landed := longer(both+"spin-stream", "hpu.dma_write=landed")
	landed = append(landed, longer("compare bcast --ranks 64 --size 64KiB --mode spin-store", "hpu.dma_write=landed")...)
	says("docs/model.md", "accumulate of 64 KiB takes %.1f%% longer on spin-dis and %.1f%% on spin-int, a broadcast of that by store and forward to 64 ranks %.1f%% and %.1f%%",
		landed...)
	slower := longer(both+"rdma", "host.core_bandwidth=18.7GiB/s")
	says("docs/model.md", "with the 18.7 GiB/s of gem5's 16 misses accumulate of 64 KiB by RDMA takes %.0f to %.0f%% longer", slower...)

	fault := "compare pagefault --policy pio --size 4KiB"
	us := func(name, command string) float64 { return column(t, name, command)[0] }
	within, between := us("latency_us", fault), us("latency_us", fault+" --profile docs/profiles/part22-boards.yaml")
	says("docs/memory.md", "| P's sum | 31 | | ours, within a board | %.2f | | ours, between boards | %.2f | | P, measured | 38 | "+
		"| unexplained, if P measured between boards | %.2f | | unexplained, if P measured within one | %.2f |", within, between, 38-between, 38-within)
	says("docs/memory.md", "The sum by itself is %.2f µs here", us("latency_us", fault+" --profile docs/profiles/part22-sum.yaml"))
	says("docs/memory.md", "(%.2f and %.2f; between boards %.2f and %.2f)", us("retransmission_us", fault), us("wire_us", fault),
		us("retransmission_us", fault+" --profile docs/profiles/part22-boards.yaml"), us("wire_us", fault+" --profile docs/profiles/part22-boards.yaml"))
	touch := "compare pagefault --policy touch --profile docs/profiles/psistakis19.yaml --size "
	says("docs/memory.md", "touching takes %.1f µs of the %.2f, and a single page %.1f where T has 3", us("touch_us", touch+"64KiB"), us("latency_us", touch+"64KiB"), us("touch_us", touch+"4KiB"))
	beside := func(profile string) float64 {
		return us("slowdown", "compare traffic --nodes 64 --senders 8 --pattern victim --law dcqcn --profile "+profile)
	}
	says("docs/networks.md", "the victim here takes %.2f times its bound, with `uec`'s queues %.2f times.",
		beside("docs/profiles/uec-pause.yaml"), beside("uec --set fabric.leaf_nodes=8 --set fabric.spines=8"))
	faulted := func(set string) float64 {
		latency := column(t, "latency_us", "compare congestion --victim pingpong --partner target --law none --beside none,pio"+set)
		return latency[1] / latency[0]
	}
	says("docs/networks.md", "takes %.2f times as long, with `--set os.interrupt_core=3` %.2f times.", faulted(""), faulted(" --set os.interrupt_core=3"))
}

// What vectors gain is as the command in the sentence prints.
func TestDocumentSaysWhatVectorsGain(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // where the files that commands name are
	text, err := os.ReadFile("docs/handlers.md")
	require.NoError(t, err)
	command := "compare pspin-loops --profile docs/profiles/spin-int-simd.yaml --loop floats,lanes"
	cycles := column(t, "cycles", command)
	require.Contains(t, strings.Join(strings.Fields(string(text)), " "),
		fmt.Sprintf("`%s` adds four floats in %.0f cycles, with vectors in %.0f.", command, cycles[0], cycles[1]))
}

// The table of calibrated and predicted numbers has the figures that commands
// print.
func TestDocumentSaysWhatIsCalibrated(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "exanest.md"))
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	says := func(row string, published, ours float64, format string) {
		t.Helper()
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| "+row+" |") })
		require.GreaterOrEqual(t, at, 0, row)
		require.Contains(t, lines[at], "| "+strings.ReplaceAll(fmt.Sprintf(format, ours), "2365.6", "2,365.6"))
		if change := 100 * (ours/published - 1); !strings.Contains(lines[at], "| sets `") {
			require.Contains(t, lines[at], fmt.Sprintf("| predicted, %+.1f%% |", change))
		} else {
			require.InDelta(t, 0, change, 0.1, row)
		}
	}
	one := func(name, command string) float64 { return column(t, name, command)[0] }
	latency := func(path, size string) float64 { return one("latency_us", "compare osu --path "+path+" --size "+size) }
	says("packetizer to mailbox, neighbours on a board", 470, 1000*one("latency_us", "compare exanet --mode mailbox --size 64"), "%.1f ns for 64 B |")
	says("MPI, 0 B, neighbours on a board", 1.293, latency("intra-qfdb", "0"), "%.3f µs |")
	says("`osu_bw`, 4 MB, one link of 10 Gb/s", 64.3, 100*one("of_link", "compare osu --benchmark bw --path intra-mezz:1 --size 4MiB --window 4"), "%.1f%% |")
	says("accelerated allreduce, 16 ranks, 256 B", 6.79, one("latency_us", "compare allreduce --mode accelerator --ranks 16 --size 256"), "%.2f µs |")
	says("MPI, 0 B, within an MPSoC", 1.17, latency("intra-fpga", "0"), "%.3f µs |")
	says("MPI, 0 B, over (3,1,2): 1.17 µs + 6 links + 5 routers", 1.17+6*0.12+5*0.145, latency("inter-mezz:3,1,2", "0"), "%.3f µs |")
	says("MPI, 64 B, neighbours on a board", 5.157, latency("intra-qfdb", "64"), "%.3f µs |")
	says("MPI, 4 MiB, neighbours on a board", 2689.4, latency("intra-qfdb", "4MiB"), "%.1f µs |")
	says("broadcast, 1 B, 4 ranks on an MPSoC", 1.93, one("latency_us", "compare osu-ranks --ranks 4 --size 1"), "%.2f µs |")
	says("allreduce by processes, 4 ranks on a board", 5.34, one("latency_us", "compare osu-ranks --benchmark allreduce --ranks 4 --ranks-per-node 1 --size 4"), "%.2f µs for 4 B |")
}
