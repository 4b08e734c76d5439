package profile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/used"
)

// Every field has facts behind it, every fact a field and a sentence, and every
// prefix a field that it is the longest for.
func TestEveryFieldHasFacts(t *testing.T) {
	var all used.Set
	longest := map[string]bool{}
	for _, field := range Fields() {
		if field == "name" || field == "description" {
			continue
		}
		facts, known := Facts(field)
		require.True(t, known && facts != used.Set{}, field)
		all.Join(facts)
		best := ""
		for i := range behind {
			for prefix := range strings.FieldsSeq(behind[i].prefixes) {
				if strings.HasPrefix(field, prefix) && len(prefix) > len(best) {
					best = prefix
				}
			}
		}
		longest[best] = true
	}
	for i := range behind {
		for prefix := range strings.FieldsSeq(behind[i].prefixes) {
			require.True(t, longest[prefix], "%s is the longest prefix of no field", prefix)
		}
	}
	names := map[string]bool{}
	for _, f := range used.All() {
		require.True(t, all.Has(f), "%v: no field", f)
		require.NotEmpty(t, f.Missing())
		require.False(t, names[f.String()] || f.String() == "", f.String())
		names[f.String()] = true
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	var back used.Set
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, all, back)
	require.Error(t, json.Unmarshal([]byte(`["nothing"]`), &back))
}

func TestUnused(t *testing.T) {
	for _, of := range []struct{ set, note string }{
		{"os.fault_ask=page", "os.fault_ask (no fault of PART was handled)"},
		{"nic.overhead=1us", ""},
		{" hpu.costs.int_div = 7", "hpu.costs.int_div (no handler ran, and no kernel ran a handler)"},
		{"host={jitter: 0.1, cores_penalty: 0.1}", "host (no application computed, and no cores computed for an application side by side)"},
		{"nic={overhead: 1us, loopback: 1us}", ""},
		{"name=x", ""},
		{"pools={r5: {kind: hardware}}", "pools (no handler ran on another pool than the HPUs)"},
	} {
		notes := Unused([]string{of.set}, used.Of(used.Post))
		if of.note == "" {
			require.Empty(t, notes, of.set)
		} else {
			require.Equal(t, []string{of.note}, notes)
		}
	}
}
