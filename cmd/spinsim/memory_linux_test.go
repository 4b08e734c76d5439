package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

// taken returns the peak memory of a command in bytes.
func taken(t *testing.T, dir string, args ...string) float64 {
	c := spinsim(t, dir, args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	file := filepath.Join(dir, "peak")
	c.Env = append(os.Environ(), "GOMEMLIMIT=off", "GOGC=100", peakFile+"="+file)
	require.NoError(t, c.Run(), "%q: %s", args, &errs)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(text)
	require.NotNil(t, found, string(text))
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return kib * (1 << 10)
}

// needed returns how many bytes a command says it would need. It is a process
// of its own, because memory of earlier tests counts against the limit.
func needed(t *testing.T, dir string, args ...string) float64 {
	c := spinsim(t, dir, append(slices.Clip(args), "--memory-limit", "64MiB")...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	var status *exec.ExitError
	require.ErrorAs(t, c.Run(), &status, "%q", args)
	require.Equal(t, exitInput, status.ExitCode(), "%q: %s", args, &errs)
	require.Empty(t, out.String())
	found := regexp.MustCompile(`^spinsim: .* needs about (\S+ \S+) of memory, --memory-limit is 64 MiB\n$`).FindStringSubmatch(errs.String())
	require.NotNil(t, found, "%q: %s", args, &errs)
	size, err := sim.ParseSize(strings.ReplaceAll(found[1], " ", ""))
	if err != nil { // not a whole number of bytes
		require.ErrorContains(t, err, "whole number")
		number, unit, _ := strings.Cut(found[1], " ")
		one, err := sim.ParseSize("1" + unit)
		require.NoError(t, err)
		var x float64
		_, err = fmt.Sscan(number, &x)
		require.NoError(t, err)
		return x * float64(one)
	}
	return float64(size)
}

// The estimate of a run's memory is right within a factor of three: for nodes
// in all forms of a broadcast, messages, handlers, schedules and scenarios.
func TestMemoryNeeded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nodes.yaml":    "{profile: spin-int, ranks: 6000, programs: [{ranks: all, steps: [compute: 1us]}]}",
		"handlers.yaml": "{profile: spin-int, ranks: 5000, entries: [{name: e, ranks: all, length: 64, handlers: {module: count}}], programs: [{ranks: 0, steps: [put: {to: 1, entry: e, bytes: 8}]}]}",
		"bytes.yaml": `{profile: spin-int, ranks: 32, entries: [{name: e, ranks: all, length: 4MiB}],
			programs: [{ranks: 1..31, buffers: [{name: b, bytes: 4MiB, fill: pattern}], steps: [put: {to: rank-1, entry: e, from: b}]}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.Equal(t, exitOK, run([]string{"goal", "gen", "bcast-binomial", "--ranks", "500", "--size", "8", "-o", filepath.Join(dir, "tree.goal")}, &bytes.Buffer{}, &bytes.Buffer{}))
	require.Equal(t, exitOK, run([]string{"goal", "gen", "alltoall-linear", "--ranks", "16", "--size", "1MiB", "-o", filepath.Join(dir, "all.goal")}, &bytes.Buffer{}, &bytes.Buffer{}))
	itself := taken(t, dir, "version")
	for _, line := range []string{
		"compare bcast --profile spin-int --mode rdma --ranks 6000 --size 8",
		"compare bcast --profile spin-int --mode p4 --ranks 6000 --size 8 --set hpu.cores=64",
		"compare bcast --profile spin-int --mode spin-stream --ranks 5000 --size 8",
		"compare bcast --profile spin-int --mode spin-store --ranks 16 --size 16MiB",
		"compare bcast --profile spin-int --mode spin-stream --ranks 2400 --size 128KiB",
		"compare bcast --profile spin-int --mode rdma --ranks 600 --size 4MiB",
		"compare ftbcast --profile spin-int --mode spin --failed 0 --ranks 600 --size 64KiB",
		"compare pingpong --profile spin-int --mode rdma --size 16MiB",
		"compare accumulate --profile spin-int --mode rdma --size 16MiB",
		"compare hpus --profile spin-int --size 4KiB --hpus 8 --handler-time 100ns --set nic.packet_buffer=16MiB",
		"goal gen alltoall-linear --ranks 1400 -o x.bin",
		"goal gen milc --ranks 1000 --iterations 16 -o y.bin",
		"goal run tree.goal --on nodes --matching offload",
		"goal run all.goal --on nodes --matching host",
		"run nodes.yaml", "run handlers.yaml", "run bytes.yaml",
	} {
		args := strings.Fields(line)
		is, said := taken(t, dir, args...)-itself, needed(t, dir, args...)
		t.Logf("%.2f: said %v, is %v: %s", said/is, sim.Size(said).Rounded(), sim.Size(is).Rounded(), line)
		assert.Less(t, said, 3*is, line)
		assert.Greater(t, said, is/3, line)
	}
}

// Four key-value servers with 3 GB each, of which they use 1.8, on a host of 8
// GiB (NPF'17 §6), fit in 2 GiB of memory of this machine: pages that are only
// touched take none. Without -everything the servers have a tenth of all sizes.
func TestServersInMemory(t *testing.T) {
	dir := t.TempDir()
	args := strings.Fields("compare npf-instances --mode npf --instances 4 --vm 300MB --working-set 180MB --warm 30ms --time 1ms --set os.memory=820MiB")
	most := taken(t, dir, "version") + (2<<30)/10
	if *everything {
		args, most = strings.Fields("compare npf-instances --mode npf --instances 4"), 2<<30
	}
	is := taken(t, dir, args...)
	t.Log(sim.Size(is).Rounded())
	require.Less(t, is, most)
}

// A search for races takes no more memory than is promised, here where nothing
// ends the messages, so that each keeps its place in the order of all.
func TestMemoryOfRaces(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "many"), []byte(strings.Repeat("00*64\n", 15_000)), 0o600))
	is := taken(t, dir, "handler", "run", "sum", "--packets", "many", "--race", "--until", "1s")
	t.Log(sim.Size(is).Rounded())
	require.Less(t, is, 512.*(1<<20))
}

// A command that ends for lack of memory, while it runs or while it writes,
// leaves its older files and nothing else. What it has written is complete.
func TestFilesWhenMemoryEnds(t *testing.T) { //nolint:tparallel // its subtests are all there is
	for _, line := range []string{
		"run ring.yaml --pcap p.pcapng --links l.json --trace t.json",
		"goal gen alltoall-linear --ranks 1400 -o out.goal",
		"compare pingpong --profile spin-int --mode rdma --size 8MiB --samples s.csv --links l.json --pcap p.pcapng --trace t.pftrace --plot p.svg",
	} {
		for _, bound := range []string{"ulimit -d 420000", "ulimit -v 1950000", "--memory-limit=64MiB", "--memory-limit=100MiB"} {
			t.Run(line+", "+bound, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				text := strings.ReplaceAll(ring, "times: 100", "times: 9000")
				require.NoError(t, os.WriteFile(filepath.Join(dir, "ring.yaml"), []byte(text), 0o600))
				args, shell := strings.Fields(line), bound
				if strings.HasPrefix(bound, "--") {
					args, shell = append(args, bound), "true"
				}
				made := map[string]bool{"ring.yaml": true}
				for _, name := range args {
					if filepath.Ext(name) != "" && !strings.HasPrefix(name, "-") {
						made[name] = true
					}
				}
				for name := range made {
					if name != "ring.yaml" {
						require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))
					}
				}
				c := exec.Command("sh", append([]string{"-c", shell + `; exec spinsim "$@"`, "sh"}, args...)...)
				c.Dir = dir
				out, err := c.CombinedOutput()
				for _, name := range folder(t, dir) {
					require.True(t, made[name], "%s: %s", name, out)
					text, also := os.ReadFile(filepath.Join(dir, name))
					require.NoError(t, also)
					if name != "ring.yaml" && (err == nil || string(text) != "old") {
						require.Equal(t, seal.Whole, checked(t, text).State, "%s: %s", name, out)
					}
				}
				if strings.HasPrefix(line, "run") && bound == "--memory-limit=64MiB" {
					require.Contains(t, string(out), ": ended: ")
				}
			})
		}
	}
}

// The address space that the process may reserve counts as available memory. A
// command ends with one line when the system refuses it more. It must end
// before the Go runtime is refused memory, because that prints a list of all
// goroutines.
func TestLimitsOfTheProcess(t *testing.T) {
	for _, tc := range []struct{ limit, line, want string }{
		{"-v 4000000", "compare npf-instances --mode npf --instances 2 --time 1us", "ended: .* ulimit -v allows"},
		{"-v 2500000", "compare bcast --profile spin-int --mode rdma --ranks 120000 --size 8", "ended: .* ulimit -v"},
		// many nodes reserve a little each, and one of them may be the first to
		// notice
		{"-v 3000000", "compare osu-ranks -q --profile exanest", `(?s)(ended: .* ulimit -v|osu-ranks .*\(ulimit\) leave)`},
		{"-v 1500000", "version", "ulimit -v allows less than 1.75 GiB, expected at least 2 GiB"},
		{"-d 200000", "version", "ulimit -d allows less than 256 MiB, expected at least 512 MiB"},
		{"-d 800000", "compare bcast --profile spin-int --mode rdma --ranks 60000 --size 8", "ended: .* ulimit -d"},
	} {
		c := exec.Command("sh", "-c", "ulimit "+tc.limit+"; exec spinsim "+tc.line)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		var status *exec.ExitError
		require.ErrorAs(t, c.Run(), &status, "%s: %s", tc.line, &out)
		require.Equal(t, exitFailed, status.ExitCode(), "%s: %s", tc.line, &errs)
		require.Regexp(t, `^spinsim: `+tc.want+`.*\n$`, errs.String(), tc.line)
		if !strings.HasPrefix(out.String(), "Ended before all was done: ") {
			require.Empty(t, out.String(), tc.line)
		}
	}
}
