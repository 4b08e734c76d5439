package main

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/provenance"
)

var update = flag.Bool("update", false, "write the outputs in README.md and docs anew")

const outputMark = "<!-- output: spinsim "

// Every block of README.md and of documents in docs below a line "<!-- output:
// spinsim ... -->" is what that command prints.
func TestReadmeShowsWhatCommandsPrint(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // where the files that commands name are
	documents, err := filepath.Glob(filepath.Join("docs", "*.md"))
	require.NoError(t, err)
	for _, name := range append(documents, "README.md") {
		showsWhatCommandsPrint(t, name)
	}
}

func showsWhatCommandsPrint(t *testing.T, name string) {
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	const fence = "```\n"
	parts := strings.Split(string(data), outputMark)
	for i, part := range parts[1:] {
		command, rest, ok := strings.Cut(part, " -->\n"+fence)
		require.True(t, ok)
		shows, after, ok := strings.Cut(rest, fence)
		require.True(t, ok)
		t.Run(command, func(t *testing.T) {
			if short, is := shown[command]; is && !*everything && !*update {
				if short != inDeep {
					showsRowsOf(t, shows, short)
				}
				return
			}
			printed := printedBlock(t, command)
			if *update {
				parts[i+1] = command + " -->\n" + fence + printed + fence + after
				return
			}
			require.Equal(t, printed, shows, "spinsim %s; go test ./cmd/spinsim -update writes it anew", command)
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(parts, outputMark)), 0o644))
	}
}

// printedBlock is what a command prints; the picture that it draws must be the one in docs.
func printedBlock(t *testing.T, command string) string {
	args := strings.Fields(command)
	picture, drawn := pictures[command]
	if drawn {
		args = append(args, picture.flag, filepath.Join(t.TempDir(), picture.file))
	}
	printed := strings.TrimRight(string(output(t, args...)), "\n") + "\n"
	if drawn {
		samePicture(t, args[len(args)-1], filepath.Join("docs", "images", picture.file))
	}
	return printed
}

// inDeep is of commands of which no smaller one is short: they run with
// -everything only, which .ci/run deep has.
const inDeep = ""

// shown are commands that take many seconds, and a smaller one of which every
// row and every explanation must be shown as well; -everything runs them as
// they are written.
var shown = map[string]string{
	"compare kv --workload A,B,C,D,F":                                     "compare kv --profile spin-int --workload D,F",
	"compare kv --experiment clients":                                     "compare kv --experiment clients --profile spin-int --clients 1,2",
	"compare kv --experiment values":                                      "compare kv --experiment values --profile spin-int --size 16,256",
	"compare bcast --size 64KiB --ranks 1024 --set nic.egress_packets=64": "compare bcast --size 64KiB --ranks 1024 --set nic.egress_packets=64 --profile spin-int",
	"compare allreduce":                                                   "compare allreduce --ranks 16 --size 4,256",
	"compare allreduce --experiment pools":                                "compare allreduce --experiment pools --ranks 16 --size 256",
	"compare allreduce --experiment offload --profile spin-int":           "compare allreduce --experiment offload --profile spin-int --ranks 16 --size 8",
	"compare allreduce --experiment scale --topology 8x8x4":               "compare allreduce --experiment scale --topology 8x8x4 --ranks 4,16",
	"compare graph --scale 12 --ranks 64":                                 "compare graph --scale 12 --ranks 64 --profile spin-int --kernel bfs --mode spin,host",
	"compare graph --experiment nodes --kernel bfs":                       "compare graph --experiment nodes --kernel bfs --profile spin-int --ranks 1,2",
	"compare npf-cold-ring":                                               "compare npf-cold-ring --at 5s,80s",
	"compare npf-cold-ring --experiment choices":                          inDeep,
	"compare npf-cold-ring --experiment gives-up":                         "compare npf-cold-ring --experiment gives-up --timeout 100ms --descriptor skips --ring 32,128",
	"compare npf-synthetic":                                               "compare npf-synthetic --fault minor --every 0,50",
	"compare npf-line-rate":                                               "compare npf-line-rate --rate 400 --rings 1 --hpus 4,28,32",
	"compare npf-working-set":                                             inDeep,
	"compare npf-imb --experiment bound":                                  "compare npf-imb --experiment bound --size 256KiB",
	"compare npf-instances --experiment waterfall":                        "compare npf-instances --experiment waterfall --instances 1",
	"compare npf-latency --experiment waterfall":                          inDeep,
	"compare npf-storage --experiment waterfall":                          inDeep,
	"compare npf-working-set --experiment swap":                           inDeep,
	"compare npf-ring-size":                                               "compare npf-ring-size --ring 16",
	"compare npf-imb --benchmark sendrecv":                                "compare npf-imb --benchmark sendrecv --size 4KiB,64KiB",
	"compare npf-beff":                                                    inDeep,
	"compare npf-storage":                                                 inDeep,
	"compare npf-storage --experiment initiators":                         inDeep,

	"compare apps":                         "compare apps --ranks 1",
	"compare exanet":                       "compare exanet --size 0,32,33,4KiB,64KiB",
	"compare ip":                           "compare ip --over ethernet --mtu 1500",
	"compare bcast":                        "compare bcast --ranks 4,64",
	"compare exanet --experiment firmware": "compare exanet --experiment firmware --size 64,1KiB,16KiB",
	"compare pagefault":                    "compare pagefault --size 16,4KiB,64KiB",
	"compare pagefault --experiment breakdown --size 4KiB,64KiB,4MiB":      "compare pagefault --experiment breakdown --size 4KiB,64KiB",
	"compare osu --experiment latency --size 0,32,64,4KiB,64KiB,4MiB":      "compare osu --experiment latency --size 0,32,64,4KiB",
	"compare gsas --path intra-fpga,intra-qfdb,d --size 8,48,49,4KiB,1MiB": "compare gsas --path intra-fpga,intra-qfdb,d --size 8,48,49,4KiB",
	"compare npf-instances": "compare npf-instances --mode pinned --instances 3,4",
	"compare osu --benchmark bw,bibw --path intra-qfdb,intra-mezz:1 --size 64,4KiB,64KiB,4MiB --window 4":           "compare osu --benchmark bw,bibw --path intra-qfdb,intra-mezz:1 --size 64,4KiB,64KiB --window 4",
	"compare datatype-apps --profile spin-int":                                                                      "compare datatype-apps --profile spin-int --app WRF_y_vec,NAS_LU_x,LAMMPS_atomic,SPECFEM3D_oc",
	"compare datatype --profile spin-int":                                                                           "compare datatype --profile spin-int --block 2KiB,64KiB",
	"compare datatype --profile spin-int --side source,both --block 4,64,256,512,1KiB,4KiB,64KiB":                   "compare datatype --profile spin-int --side source,both --block 1KiB,64KiB",
	"compare datatype --profile spin-int --mode spin,spin-general,spin-read-only,spin-progress --block 4,16,64,256": "compare datatype --profile spin-int --mode spin,spin-general,spin-read-only,spin-progress --block 4,256",
	"compare txlog --op transaction":                                                                                "compare txlog --op transaction --profile spin-dis --ranks 2 --size 8,64KiB",
	"compare raid5 --experiment cost":                                                                               "compare raid5 --experiment cost --size 4KiB",
	"compare raid5 --experiment codes":                                                                              "compare raid5 --experiment codes --size 64KiB --profile spin-int",
	"compare raid5 --experiment failed --parity 2 --size 64KiB,1MiB":                                                "compare raid5 --experiment failed --parity 2 --size 64KiB --profile spin-int",
	"compare raid5 --experiment failed":                                                                             "compare raid5 --experiment failed --size 64,64KiB",
	"compare raid5 --mode spin --size 4MiB --set hpu.cores=8 --set hpu.contexts=4":                                  "compare raid5 --mode spin --size 4MiB --set hpu.cores=8 --set hpu.contexts=4 --profile spin-int",

	"compare npf-synthetic --experiment udp":        "compare npf-synthetic --experiment udp --every 1000",
	"compare npf-pinning":                           "compare npf-pinning --size 4KiB,64KiB",
	"compare ftbcast --profile spin-int":            "compare ftbcast --profile spin-int --ranks 8",
	"compare osu-ranks --ranks 4,16,64 --size 1,64": "compare osu-ranks --ranks 4,16 --size 1,64",
	"compare datatype --experiment cost":            "compare datatype --experiment cost --profile spin-int",
	"storage run examples/storage/oltp.spc --profile spin-int --clients 1,2,4,8 --mode rdma,spin": "storage run examples/storage/oltp.spc --profile spin-int --clients 1,8 --mode rdma,spin",
	"compare npf-latency":      "compare npf-latency --runs 500 --size 4KiB",
	"compare npf-synthetic-ib": inDeep,

	"compare bcast --waterfall spin-int-sc17,spin-int --mode rdma,p4,spin-stream": "compare bcast --waterfall spin-int-sc17,spin-int --mode rdma,p4,spin-stream --size 8",
}

// showsRowsOf requires that each line which a command prints is in the text,
// however wide its columns are there. The last line says what has produced it,
// which is less. What stands above the title is the answer of these rows.
func showsRowsOf(t *testing.T, text, command string) {
	words := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		known[words(line)] = true
	}
	args := strings.Fields(command)
	lines := strings.Split(strings.TrimRight(string(output(t, args...)), "\n"), "\n")
	title := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, args[1]+": ") })
	lines = lines[max(title, 0):]
	require.Greater(t, len(lines), 5)
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(line, "──") {
			require.True(t, known[words(line)], "spinsim %s prints %q, which is not shown; go test ./cmd/spinsim -update writes it anew", command, line)
		}
	}
}

// pictures are what documents show of commands: the flag with which they draw
// it, and its file in docs/images.
var pictures = map[string]struct{ flag, file string }{
	"compare bcast":                                                   {"--plot", "bcast.svg"},
	"compare scan --experiment rows":                                  {"--plot", "scan.svg"},
	"topology exanest":                                                {"--svg", "exanest.svg"},
	"compare kv --experiment clients":                                 {"--plot", "kv.svg"},
	"compare allreduce":                                               {"--plot", "allreduce.svg"},
	"compare allreduce --experiment pools":                            {"--plot", "allreduce-pools.svg"},
	"compare raid5":                                                   {"--plot", "raid5.svg"},
	"compare raid5 --experiment codes":                                {"--plot", "raid5-codes.svg"},
	"compare datatype --profile spin-int":                             {"--plot", "datatype.svg"},
	"compare txlog --op transaction":                                  {"--plot", "txlog.svg"},
	"compare allreduce --experiment offload --profile spin-int":       {"--plot", "allreduce-offload.svg"},
	"compare osu --experiment latency --size 0,32,64,4KiB,64KiB,4MiB": {"--plot", "osu-latency.svg"},
	"compare ip":                                                      {"--plot", "ip.svg"},
	"compare npf-cold-ring":                                           {"--plot", "npf-cold-ring.svg"},
	"compare npf-working-set":                                         {"--plot", "npf-working-set.svg"},
	"compare npf-ring-size":                                           {"--plot", "npf-ring-size.svg"},
	"compare npf-imb --benchmark sendrecv":                            {"--plot", "npf-imb.svg"},
	"compare exanet --experiment firmware":                            {"--plot", "exanet-firmware.svg"},
	"compare graph --experiment nodes --kernel bfs":                   {"--plot", "graph.svg"},
}

// The picture of a run in docs/exanest.md is what the two commands above it draw.
func TestReadmeShowsTheLoadsOfARun(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile(filepath.Join("docs", "exanest.md"))
	require.NoError(t, err)
	const picture = "images/exanest-load.svg"
	before, _, shown := strings.Cut(string(text), "("+picture+")")
	require.True(t, shown)
	commands := documentedCommands(before)
	folder := t.TempDir()
	for _, command := range commands[len(commands)-2:] {
		args := strings.Fields(command)[1:]
		for i := 1; i < len(args); i++ {
			switch args[i-1] {
			case "--links", "--load", "--svg":
				args[i] = filepath.Join(folder, args[i])
			}
		}
		output(t, args...)
	}
	samePicture(t, filepath.Join(folder, "loads.svg"), filepath.Join("docs", picture))
}

// samePicture compares a plot with the one in the repository.
func samePicture(t *testing.T, drawn, shown string) {
	picture, err := os.ReadFile(drawn)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(shown, picture, 0o644))
	}
	old, err := os.ReadFile(shown)
	require.NoError(t, err)
	require.Equal(t, provenance.Hash(old), provenance.Hash(picture), "%s differs; go test ./cmd/spinsim -update draws it anew", shown)
}

// The table of docs/goal.md has what goal proxies prints; of the applications
// whose runs are short, with -everything of all.
func TestGoalDocumentShowsTheProxies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "goal.md"))
	require.NoError(t, err)
	args := []string{"goal", "proxies", "--format", "csv"}
	if !*everything {
		args = append(args, "--app", "milc,pop")
	}
	rows, err := csv.NewReader(bytes.NewReader(output(t, args...))).ReadAll()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(rows), 3)
	for _, row := range rows[1:] {
		share := func(column string) string {
			x, err := strconv.ParseFloat(row[slices.Index(rows[0], column)], 64)
			require.NoError(t, err)
			return fmt.Sprintf("%.1f", 100*x)
		}
		want := fmt.Sprintf("| %s | %s | %s%% | %s%% | %s%% | ", row[slices.Index(rows[0], "application")], row[slices.Index(rows[0], "ranks")],
			share("p2p_share"), share("gain"), share("gain_published"))
		// applications write their names in their own ways
		if !strings.Contains(strings.ToLower(string(text)), want) {
			t.Errorf("docs/goal.md has no row %q", want)
		}
	}
}
