package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// full is a disk with room for left bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	n := min(f.left, len(b))
	f.left -= n
	if n < len(b) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// A command that cannot write reports that once and fails, wherever in the
// output it happens.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"two.goal":   "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n",
		"a.spc":      "0,0,512,W,0.1\n",
		"two.graph":  "0 1\n",
		"count.yaml": "{profile: spin-dis, ranks: 2, entries: [{name: e, ranks: 1, length: 64}], programs: [{ranks: 0, steps: [put: {to: 1, entry: e, bytes: 8}]}]}",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	for _, line := range []string{
		"", "help", "help columns", "version", "--version", "profile", "profile spin-int", "profile costs", "scenario schema", "scenario example", "scenario example count",
		"scenario check count.yaml", "explain count.yaml", "run count.yaml", "run count.yaml --format csv", "run count.yaml --format json",
		"compare pingpong --size 8 --profile spin-int", "compare pingpong --size 8 --profile spin-int --format csv", "compare pingpong --size 8 --profile spin-int --format ndjson",
		"compare pingpong --size 8 --mode rdma --waterfall spin-int,spin-dis", "handler inspect count", "handler inspect count --format json",
		"handler run count --hex 00", "handler run count --hex 00 --plain", "handler run count --hex 00 --format json",
		"goal gen gather", "goal gen gather --to binary", "goal stat two.goal", "goal stat two.goal --format json", "goal convert two.goal", "goal merge two.goal two.goal", "goal run two.goal", "goal run two.goal --model atlahs",
		"goal run two.goal --critical-path", "goal run two.goal --format json", "goal run two.goal --on nodes", "goal run two.goal --on nodes --format json", "goal proxies --source",
		"storage generate oltp --requests 100", "storage run a.spc --profile spin-int --mode spin",
		"graph run two.graph --profile spin-int --mode spin",
	} {
		args := strings.Fields(line)
		var all, errs bytes.Buffer
		require.Equal(t, exitOK, run(args, &all, &errs), "%q: %s", args, errs.String())
		require.NotZero(t, all.Len(), args)
		for _, room := range []int{0, 1, all.Len() / 2, all.Len() - 1} {
			errs.Reset()
			require.Equal(t, exitFailed, run(args, &full{room}, &errs), "%q, %d of %d bytes", args, room, all.Len())
			require.Equal(t, "spinsim: no space left\n", errs.String(), "%q, %d of %d bytes", args, room, all.Len())
		}
	}
}
