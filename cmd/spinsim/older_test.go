package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/provenance"
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
		var document map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &document))
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
		name := filepath.Join(t.TempDir(), "r.json")
		require.NoError(t, os.WriteFile(name, text, 0o600))
		var said, failed bytes.Buffer
		require.Equal(t, exitInput, run([]string{"rerun", name}, &said, &failed), said.String())
		require.Equal(t, "spinsim: "+name+": its profile spin-int has "+want+": it was written by spinsim v0.3.0, which had no such thing yet; rerun it with that version, this is devel\n",
			failed.String())
		require.Empty(t, said.String())
	}
}
