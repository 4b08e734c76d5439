package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// One error reports everything wrong with the text of a profile and overrides.
// If both could be read, one error reports all values out of their ranges.
func TestAllErrorsOfAProfile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(name, []byte(`base: spin-int
hpu:
  coers: 4
  contexts: many
  cores: 0
fabric:
  wire: 3000000s
  rate: [1]
host: 5
nic:
  overhead: 1ns
  overhead: 2ns
`), 0o666))
	_, err := Load(name, "hpu.clock=fast", "limits.max_mds=0", "limit.max_mds=5", "dma.latency=-1ns")
	require.Error(t, err)
	got := strings.Split(strings.ReplaceAll(err.Error(), name, "p.yaml"), "\n")
	for i, prefix := range []string{
		"profile p.yaml:3: hpu.coers: unknown field, expected one of clock, ",
		`profile p.yaml:4: hpu.contexts: "many", expected a whole number`,
		"profile p.yaml:8: fabric.rate: ",
		`profile p.yaml:9: host: "5", expected fields with values`,
		"profile p.yaml:12: nic.overhead: given twice",
		`profile p.yaml: override "hpu.clock=fast": hpu.clock: frequency "fast": expected`,
		`profile p.yaml: override "limit.max_mds=5": limit.max_mds: no field "limit", expected one of`,
	} {
		require.Greater(t, len(got), i, got)
		require.True(t, strings.HasPrefix(got[i], prefix), "%s\nexpected\n%s", got[i], prefix)
	}
	require.Len(t, got, 7, strings.Join(got, "\n"))

	require.NoError(t, os.WriteFile(name, []byte("base: spin-int\nhpu: {cores: 0}\nfabric: {wire: 3000000s}\n"), 0o666))
	_, err = Load(name, "limits.max_mds=0", "dma.latency=-1ns")
	require.Error(t, err)
	got = strings.Split(strings.ReplaceAll(err.Error(), name, "p.yaml"), "\n")
	for i, prefix := range []string{
		"profile p.yaml: fabric.wire: want 1 ps to 1 s, got 3000000 s",
		"profile p.yaml: dma.latency: -1 ns, expected 0 s to 1 s",
		"profile p.yaml: hpu.cores: 0, expected 1 to 4096",
		"profile p.yaml: limits.max_mds: 0, expected 1 to",
	} {
		require.Greater(t, len(got), i, got)
		require.True(t, strings.HasPrefix(got[i], prefix), "%s\nexpected\n%s", got[i], prefix)
	}
	require.Len(t, got, 4, strings.Join(got, "\n"))
}

// Every number of bytes in a profile may have a unit, whatever its type, in a
// file and in an override, and gives the same profile.
func TestBytesHaveUnits(t *testing.T) {
	for path, size := range map[string]string{
		"fabric.mtu": "2KiB", "fabric.header": "1KiB", "fabric.buffer": "64KiB", "fabric.inject_buffer": "64KiB",
		"nic.packet_buffer": "1MiB", "dma.event_bytes": "1KiB", "smmu.walk_bytes": "1KiB",
		"hpu.stack_bytes": "8KiB", "hpu.dma_bytes": "1MiB", "hpu.max_code_bytes": "64KiB", "hpu.max_memory_bytes": "1MiB",
		"hpu.max_hpu_memory": "1MiB", "hpu.node_memory": "1GiB",
		"host.line_bytes": "1kB", "host.copy_chunk": "4KiB", "limits.max_msg_size": "1GiB",
	} {
		n, err := sim.ParseSize(size)
		require.NoError(t, err)
		section, field, _ := strings.Cut(path, ".")
		name := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(name, fmt.Appendf(nil, "base: spin-int\nname: spin-int\n%s: {%s: %s}\n", section, field, size), 0o666))
		filed, err := Load(name)
		require.NoError(t, err, path)
		set, err := Load("spin-int", path+"="+size)
		require.NoError(t, err, path)
		plain, err := Load("spin-int", fmt.Sprintf("%s=%d", path, int64(n)))
		require.NoError(t, err, path)
		for _, p := range []*Profile{filed, set} {
			differ, err := Diff(plain, p)
			require.NoError(t, err)
			require.Empty(t, differ, path)
		}
		_, err = Load("spin-int", path+"=1XiB")
		require.ErrorContains(t, err, `profile spin-int: override "`+path+`=1XiB": `+path+`: size "1XiB": expected a number of bytes`)
		require.NotContains(t, err.Error(), "\n", "one mistake, one error")
	}
}

// A refused override has no effect that could cause a second error. Errors of
// overrides have no line.
func TestErrorsOfOverrides(t *testing.T) {
	for override, want := range map[string]string{
		"=1":                          `override "=1": no field before =, expected one of name, `,
		"fabric.inject_buffer=":       `override "fabric.inject_buffer=": fabric.inject_buffer: no value, expected one behind =`,
		"fabric.inject_buffer.x=1":    `override "fabric.inject_buffer.x=1": fabric.inject_buffer.x: x is below a single value`,
		"hpu.costs=fast":              `override "hpu.costs=fast": hpu.costs: no cost table "fast", expected one of ` + CostNames()[0] + ", ",
		"hpu.costs={int: 1, ints: 2}": `override "hpu.costs={int: 1, ints: 2}": hpu.costs.ints: unknown field, expected one of move, `,
		"hpu.cores=1.5":               `override "hpu.cores=1.5": hpu.cores: "1.5", expected a whole number`,
	} {
		_, err := Load("spin-int", override)
		require.Error(t, err)
		require.True(t, strings.HasPrefix(err.Error(), "profile spin-int: "+want), err.Error())
		require.NotContains(t, err.Error(), "\n", "one mistake, one error")
	}
	_, err := Load("spin-in")
	require.EqualError(t, err, `no profile "spin-in", expected a file or one of `+strings.Join(Names(), ", ")+" (did you mean spin-int?)")
}

// A wrong name of a base, a cost table or a network is an error at its own
// line. Errors in a network's file have that file's lines. Without its base the
// values of a profile are not checked.
func TestErrorsOfNames(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "p.yaml")
	for text, want := range map[string]string{
		"base: spin-intt\nhpu: {costs: a16, coers: 1}\nfabric:\n  topology: net.yaml\n": `profile p.yaml:1: base: no profile "spin-intt", expected one of NAMES (did you mean spin-int?)
profile p.yaml:2: hpu.costs: no cost table "a16", expected one of TABLES or a mapping (did you mean a15?)
profile p.yaml:2: hpu.coers: unknown field, expected one of FIELDS (did you mean cores?)
profile p.yaml:4: fabric.topology: net.yaml:2: nodes[0].att: unknown field, expected one of at, count (did you mean at?)
profile p.yaml:4: fabric.topology: net.yaml:3: links[0].wire: time "3": want a number and a unit of s, ms, µs, ns, ps
profile p.yaml: override "hpu.cores=x": hpu.cores: "x", expected a whole number`,
		"base: [spin-int]\n":                     "profile p.yaml:1: base: a list, expected a single value\nprofile p.yaml: override \"hpu.cores=x\": hpu.cores: \"x\", expected a whole number",
		"base: spin-int\nhpu:\nfabric: {rate: }": "profile p.yaml:2: hpu: no value\nprofile p.yaml:3: fabric.rate: no value\nprofile p.yaml: override \"hpu.cores=x\": hpu.cores: \"x\", expected a whole number",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "net.yaml"), []byte("switches: [{name: a}]\nnodes: [{att: a}]\nlinks: [{wire: 3}]\n"), 0o666))
		_, err := Load(name, "hpu.cores=x")
		got := strings.NewReplacer(dir+"/", "", strings.Join(Names(), ", "), "NAMES", strings.Join(CostNames(), ", "), "TABLES").Replace(err.Error())
		got = regexp.MustCompile(`clock, cores.*costs\b`).ReplaceAllString(got, "FIELDS")
		require.Equal(t, want, got)
	}
}

// Each section or field missing from a whole profile is reported once, without
// consequences.
func TestWholeProfiles(t *testing.T) {
	text, err := Source("spin-int")
	require.NoError(t, err)
	const write = ": missing in a whole profile; spinsim profile NAME prints one with every value, and a file with base: NAME takes what it does not say from there"
	for _, x := range []struct {
		gone string // regular expression of the removed text
		want []string
	}{
		{`(?m)^transport:\n(  .*\n)+`, []string{"profile p.yaml:1: transport" + write}},
		{`(?m)^(transport|host|limits):.*\n(  .*\n?)+`, []string{"profile p.yaml:1: transport, host, limits" + write}},
		{`(?m)^  (overhead|fault_pause|latency):.*\n`, []string{"profile p.yaml:1: nic.overhead, nic.fault_pause" + write, "profile p.yaml:1: dma.latency" + write}},
		{`(?m)^  (gap|header|store_and_forward):.*\n`, nil}, // optional in a network
	} {
		name := filepath.Join(t.TempDir(), "p.yaml")
		changed := regexp.MustCompile(x.gone).ReplaceAllString(string(text), "")
		require.NotEqual(t, string(text), changed)
		require.NoError(t, os.WriteFile(name, []byte(changed), 0o666))
		_, err := Load(name)
		if x.want == nil {
			require.NoError(t, err)
			continue
		}
		require.Error(t, err)
		got := regexp.MustCompile(`p\.yaml:\d+`).ReplaceAllString(strings.ReplaceAll(err.Error(), name, "p.yaml"), "p.yaml")
		want := regexp.MustCompile(`p\.yaml:\d+`).ReplaceAllString(strings.Join(x.want, "\n"), "p.yaml")
		require.Equal(t, want, got)
		var missing *MissingError
		require.ErrorAs(t, err, &missing)
	}
	_, err = Load("spin-int") // an embedded profile is whole
	require.NoError(t, err)
}
