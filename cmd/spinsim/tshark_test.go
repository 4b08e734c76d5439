//go:build tshark

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/internal/capture"
)

// dissected returns fields of a capture as tshark reads them with our
// dissector.
func dissected(t *testing.T, folder, file string, filter string, fields ...string) (rows []string) {
	lua := filepath.Join(folder, "spinsim.lua")
	require.NoError(t, os.WriteFile(lua, []byte(capture.Dissector), 0o600))
	args := []string{"-X", "lua_script:" + lua, "-r", file, "-Y", filter, "-T", "fields", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.TrimSuffix(line, "\n"))
	}
	return rows
}

// tshark and the timeline of the same run agree on every packet, to the
// picosecond.
func TestTsharkReadsWhatTheTimelineSays(t *testing.T) {
	folder := t.TempDir()
	example, err := scenarios.Find("count")
	require.NoError(t, err)
	file, pcap, timeline := filepath.Join(folder, "count.yaml"), filepath.Join(folder, "a.pcapng"), filepath.Join(folder, "a.json")
	require.NoError(t, os.WriteFile(file, example.Text, 0o600))
	output(t, "run", file, "--pcap", pcap, "--trace", timeline)
	text, err := os.ReadFile(timeline)
	require.NoError(t, err)
	var events struct {
		TraceEvents []struct {
			Name string
			Args map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(text, &events))
	var want []string
	for _, e := range events.TraceEvents {
		if _, wire := e.Args["bytes"]; wire && e.Args["to"] != nil && e.Args["packet"] != nil {
			number := func(key string) int64 { return int64(e.Args[key].(float64)) }
			want = append(want, fmt.Sprintf("%d\t%d\t%d\t%d\t%s\t0x%016x", number("start_ps"), number("to"), number("packet"), number("bytes"), e.Name, number("match bits")))
		}
	}
	require.Greater(t, len(want), 20)
	rows := dissected(t, folder, pcap, "spinsim", "spinsim.time_ps", "spinsim.dst", "spinsim.packet", "spinsim.bytes", "spinsim.portals.op", "spinsim.portals.match_bits")
	operations := strings.NewReplacer("\t0\t0x", "\tput\t0x", "\t5\t0x", "\tack\t0x")
	for i := range rows {
		rows[i] = operations.Replace(rows[i])
	}
	slices.Sort(want)
	slices.Sort(rows)
	require.Equal(t, want, rows)
}

// tshark recognises IP over the network: real headers, with correct checksums.
func TestTsharkReadsIP(t *testing.T) {
	folder := t.TempDir()
	pcap := filepath.Join(folder, "a.pcapng")
	output(t, "compare", "npf-ring-size", "--mode", "pinned", "--connections", "1", "--ring", "4", "--operations", "5", "--pcap", pcap)
	rows := dissected(t, folder, pcap, "tcp.flags.syn == 1", "ip.src", "ip.dst", "ip.checksum.status", "tcp.dstport")
	require.Contains(t, strings.Join(rows, "\n"), "10.0.0.2\t10.0.0.1")
	require.NotEmpty(t, dissected(t, folder, pcap, "tcp.len > 1000", "tcp.len"))
	require.Empty(t, dissected(t, folder, pcap, "tcp.analysis.flags && frame.time_relative < 0.5", "frame.number"), "no retransmission while both programs run")
}

// Cells carry packets of IP over ExaNet, also of transfers that overtake each
// other. tshark finds every byte of every stream, and correct checksums.
func TestTsharkReadsIPOverExaNet(t *testing.T) {
	for _, x := range []struct {
		streams, mtu string
		bytes        int
	}{{"1", "1500", 16 << 10}, {"4", "9000", 4 * 256 << 10}} {
		folder := t.TempDir()
		pcap := filepath.Join(folder, "a.pcapng")
		size := fmt.Sprint(x.bytes)
		if x.streams != "1" {
			size = fmt.Sprint(x.bytes / 4)
		}
		output(t, "compare", "ip", "--over", "polling", "--traffic", "tcp", "--streams", x.streams, "--mtu", x.mtu, "--size", size, "--pcap", pcap)
		sum := 0
		for _, row := range dissected(t, folder, pcap, "ip.src == 10.0.0.1", "tcp.len") {
			for length := range strings.SplitSeq(row, ",") { // a cell may end several packets
				n, err := strconv.Atoi(length)
				require.NoError(t, err)
				sum += n
			}
		}
		require.Equal(t, x.bytes, sum)
		require.NotEmpty(t, dissected(t, folder, pcap, "spinsim.ip.bytes == "+x.mtu, "frame.number"))
		require.Empty(t, dissected(t, folder, pcap, "ip.checksum.status == 0 || tcp.checksum.status == 0 || _ws.lua.error", "frame.number"))
	}
}
