package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/profile"
)

// A result from before a section or a field of profiles existed is not run. The
// error says so, with the version that can run it again.
func TestRerunOfOlderResults(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run([]string{"compare", "pingpong", "--size", "8", "--mode", "rdma", "--profile", "spin-int", "--format", "json"}, &out, &errs), errs.String())
	for want, change := range map[string]func(content map[string]any){
		"no transport": func(c map[string]any) { delete(c, "transport") },
		"no nic.fault_pause, nic.fault_tries": func(c map[string]any) {
			delete(c["nic"].(map[string]any), "fault_pause")
			delete(c["nic"].(map[string]any), "fault_tries")
		},
	} {
		name := olderResult(t, out.Bytes(), change)
		var said, failed bytes.Buffer
		require.Equal(t, exitInput, run([]string{"rerun", name}, &said, &failed), said.String())
		require.Equal(t, "spinsim: "+name+": its profile spin-int has "+want+": it was written by spinsim v0.3.0, which had no such thing yet; rerun it with that version, this is devel\n",
			failed.String())
		require.Empty(t, said.String())
	}
}

// olderResult writes a document of version v0.3.0, whose profile was another.
func olderResult(t *testing.T, of []byte, change func(content map[string]any)) (name string) {
	t.Helper()
	var document map[string]any
	require.NoError(t, json.Unmarshal(of, &document))
	for _, field := range seal.Fields {
		delete(document, field)
	}
	origin := document["provenance"].(map[string]any)
	origin["spinsim"].(map[string]any)["version"] = "v0.3.0"
	recorded := origin["profiles"].([]any)[0].(map[string]any)
	change(recorded["content"].(map[string]any))
	content, err := json.Marshal(recorded["content"])
	require.NoError(t, err)
	plain, err := profile.Canonical(content)
	require.NoError(t, err)
	recorded["content"], recorded["sha256"] = json.RawMessage(plain), provenance.Hash(plain)
	text, err := json.Marshal(document)
	require.NoError(t, err)
	text, err = seal.Object(text, "")
	require.NoError(t, err)
	name = filepath.Join(t.TempDir(), "r.json")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}

// A profile that has other values now is named with each of them, up to twenty,
// and with the way to either. The run takes the recorded one.
func TestRerunNamesChangedDefaults(t *testing.T) {
	for want, change := range map[string]func(content map[string]any){
		"  dma.latency: 51 ns → 50 ns\n  hpu.cores: 9 → 4\n  this run takes the recorded one; --profile spin-int is the one on the right\n": func(c map[string]any) {
			c["hpu"].(map[string]any)["cores"] = 9
			c["dma"].(map[string]any)["latency"] = "51 ns"
		},
		"  limits.max_triggered_ops: 65481 → 65536\n  and 7 more\n  this run takes the recorded one": func(c map[string]any) {
			for _, section := range []string{"hpu", "limits"} {
				for name, v := range c[section].(map[string]any) {
					if n, is := v.(float64); is && n > 200 {
						c[section].(map[string]any)[name] = n - 55
					}
				}
			}
		},
		"  every value is the same: only name or description differ\n": func(c map[string]any) { c["description"] = "other" },
	} {
		var out, errs bytes.Buffer
		require.Equal(t, exitOK, run([]string{"compare", "pingpong", "--size", "8", "--mode", "rdma", "--profile", "spin-int", "--format", "json"}, &out, &errs), errs.String())
		var said, failed bytes.Buffer
		name := olderResult(t, out.Bytes(), change)
		run([]string{"rerun", name}, &said, &failed) // rows have another hash
		require.Contains(t, said.String(), "profile spin-int is another one in this version: its hash is ", failed.String())
		require.Contains(t, said.String(), want)
	}
}
