package smmu_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/smmu"
)

// TestScripts runs the scripts of testdata/script. Each file derives its figures
// from the parameters, in comments. "go test -rewrite" writes what is printed
// now: read the difference against the derivation.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown directive %q, want run", d.Cmd)
			}
			var out strings.Builder
			if err := runScript(d.Input, &out); err != nil {
				out.WriteString("mistake: " + err.Error() + "\n")
			}
			return out.String()
		})
	})
}

// The script of docs/memory.md prints what stands below it.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/memory.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```script\n")
	require.True(t, found)
	script, rest, _ := strings.Cut(rest, "```\n\n```output\n")
	want, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	var out strings.Builder
	require.NoError(t, runScript(script, &out))
	require.Equal(t, want, out.String())
}

// A mistake in a script is one error with its line and what was expected.
func TestMistakes(t *testing.T) {
	const set = "bank 0 7\n"
	for text, want := range map[string]string{
		"nonsense":                     `line 1: unknown command "nonsense"`,
		set + "smmu walks=2":           "line 2: smmu: expected before the first command that uses the SMMU",
		"smmu walks=0":                 "line 1: smmu: walks: 0, expected 1 to 256",
		"smmu l1_entries=100":          "line 1: smmu: l1_entries: 100, expected a power of two from 1 to 4096",
		"smmu l1=100":                  `line 1: smmu: l1: no field "l1", expected one of kind, banks, address_bits, l1_entries, l1_latency, l2_entries, l2_ways, l2_latency, walk_cache, walk_cache_ways, prefetch, walks, walks_full, walk_bytes, walk_step, channels, outstanding, on_fault, hit_under_fault, stall_limit, stale`,
		"smmu kind=none":               "line 1: smmu: kind: expected mmu-500",
		"smmu walks=":                  `line 1: smmu: [{walks }], expected key=value with a value`,
		"memory latency=2s":            "line 1: memory: latency 2 s, expected 0 s to 1 s",
		"memory rate=fast":             `line 1: memory: rate "fast": want a number and a unit of ps/B, ns/B, Mb/s, Gb/s, Tb/s, MB/s, GB/s, TB/s, MiB/s, GiB/s`,
		"memory size=1":                `line 1: memory: unknown key "size", expected latency or rate`,
		"bank 16 7":                    "line 1: bank: bank 16, expected 0 to 15",
		"bank 0 65536":                 `line 1: bank: PDID "65536", expected a number below 2^16`,
		"bank 0":                       "line 1: bank: 1 words, expected bank BANK PDID",
		set + "bank 1 7":               "line 2: bank: smmu: PDID 7 has bank 0",
		"map 7 0x1001 0":               "line 1: map: 0x1001 to 0x0, expected multiples of 4 KiB",
		"map 7 0x1000 0 rw":            `line 1: map: "rw", expected ro`,
		"map 7 0x1000 0 size=8KiB":     "line 1: map: size 8KiB, expected 4KiB, 2MiB or 1GiB",
		"map 7 0x1000 0 pages=0":       "line 1: map: pages 0, expected 1 to 16384",
		"map 7 0x1000 0 page=1":        `line 1: map: unknown key "page", expected map PDID VA FRAME [ro] [size=...] [pages=...]`,
		"map 7 0x8000000000 0":         "line 1: map: 4096 bytes at 0x8000000000, expected an address below 2^39",
		"map 7 0 0xfffffffff000":       "",
		"map 7 0 0x1000000000000":      `line 1: map: frame "0x1000000000000", expected a number below 2^48`,
		"map 7 0 0 pages=2 size=1GiB":  "",
		"unmap 7 0x1000":               "line 1: unmap: process 7 has no page at 0x1000",
		"protect 7 0 ro":               "line 1: protect: process 7 has no page at 0x0",
		"map 7 0 0\nprotect 7 0 x":     `line 2: protect: "x", expected ro or rw`,
		"read a 7 x":                   `line 1: read: address "x", expected a number below 2^64`,
		"read a 7 0 len=17MiB":         `line 1: read: len "17MiB", expected a size up to 16 MiB`,
		set + "read a 7 0\nread a 7 0": "line 3: read: access a has not ended",
		set + "done a":                 `line 2: done: access "a" is not in flight`,
		set + "get 0 ABC":              `line 2: get: register "ABC", expected one of FAR, FAR_HIGH, FSR, FSYNR, SCTLR, TLBSTATUS`,
		set + "set 0 FAR=1":            `line 2: set: register "FAR", expected one of FSR, RESUME, SCTLR, TLBIASID, TLBIVA, TLBIVAL, TLBSYNC`,
		set + "set 0 FSR=XY":           `line 2: set: FSR: bit "XY", expected one of TF, PF, SS, MULTI`,
		set + "set 0 SCTLR=M":          `line 2: set: SCTLR: "M", expected + or - and a bit`,
		set + "set 0 RESUME=x":         `line 2: set: RESUME: "x", expected a number`,
		"wait 2s":                      `line 1: wait: "2s", expected a time up to 1 s`,
		"count Nothing":                `line 1: count: no counter "Nothing", expected one of smmu.Counters`,
	} {
		var out strings.Builder
		err := runScript(text, &out)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

// Every command, register, bit of a register, result and counter stands in a
// script, so that none can change unseen.
func TestCoverage(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*")
	require.NoError(t, err)
	all := strings.Builder{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(text), "mistake:", name)
		all.Write(text)
	}
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(all.String(), func(r rune) bool { return strings.ContainsRune(" \n=|,+-", r) }) {
		words[w] = true
	}
	for verb := range verbs {
		require.True(t, words[verb], "no script uses %s", verb)
	}
	for name := range readable {
		require.True(t, words[name], "no script reads %s", name)
	}
	for name := range writable {
		require.True(t, words[name], "no script writes %s", name)
	}
	for _, b := range append(sctlrBits, fsrBits...) {
		require.True(t, words[b.name], "no script shows %s", b.name)
	}
	for res := smmu.OK; res <= smmu.Stale; res++ {
		require.True(t, words[res.String()], "no script ends an access with %v", res)
	}
	counters := reflect.TypeFor[smmu.Counters]()
	for i := range counters.NumField() {
		require.True(t, words[counters.Field(i).Name], "no script counts %s", counters.Field(i).Name)
	}
}
