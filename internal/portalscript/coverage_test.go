package portalscript

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
)

// conformance is a script of the suite.
type conformance struct {
	clause, name, text, output string
}

func readConformance(t *testing.T) []conformance {
	t.Helper()
	files, err := filepath.Glob("testdata/conformance/*")
	require.NoError(t, err)
	head := regexp.MustCompile(`^run clause=(\S+) name=(\S+)$`)
	var all []conformance
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		inOutput := false
		for _, line := range strings.Split(string(b), "\n") {
			if m := head.FindStringSubmatch(line); m != nil {
				all = append(all, conformance{clause: m[1], name: m[2]})
				inOutput = false
				continue
			}
			if len(all) == 0 {
				continue
			}
			c := &all[len(all)-1]
			switch {
			case line == "----":
				inOutput = true
			case inOutput && !strings.HasPrefix(line, "# "):
				c.output += line + "\n"
			case !inOutput:
				c.text += line + "\n"
			}
		}
	}
	return all
}

// inventory lists the clauses, the commands with their options and arguments,
// and the words printed, of all scripts.
func inventory(t *testing.T, suite []conformance) (clauses, used, words map[string]bool) {
	t.Helper()
	clauses, used, words = map[string]bool{}, map[string]bool{}, map[string]bool{}
	names := map[string]bool{}
	for _, c := range suite {
		require.False(t, names[c.name], "two scripts are called %s", c.name)
		require.NotContains(t, c.output, "mistake:", c.name)
		require.NotEmpty(t, strings.TrimSpace(c.text), c.name)
		names[c.name], clauses[c.clause] = true, true
		cmds, err := parse(c.text)
		require.NoError(t, err, c.name)
		for _, cmd := range cmds {
			for _, f := range cmd.flags {
				used[cmd.Verb+" "+f] = true
			}
			for _, a := range cmd.Args {
				used[a.Key+"="+a.Value] = true
			}
			used[cmd.Verb] = true
		}
		for _, w := range strings.FieldsFunc(c.output, func(r rune) bool { return r == ' ' || r == ':' || r == '\n' }) {
			words[w] = true
		}
	}
	return clauses, used, words
}

// TestCoverage fails when an option, event type, fail type, return code,
// acknowledgement request, operation, type or clause appears in no script.
func TestCoverage(t *testing.T) {
	suite := readConformance(t)
	require.GreaterOrEqual(t, len(suite), 300)

	clauses, used, words := inventory(t, suite)
	for _, clause := range strings.Fields("1 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15 2.16 2.17 2.18 3 4") {
		require.True(t, clauses[clause], "no script for clause %s", clause)
	}
	for verb := range specs {
		require.True(t, used[verb], "no script uses %s", verb)
	}
	option := func(verbs []string, options []string) {
		for _, o := range options {
			require.True(t, slices.ContainsFunc(verbs, func(v string) bool { return used[v+" "+o] }), "no script uses %v %s", verbs, o)
		}
	}
	option([]string{"procs", "ni"}, portals.NINames)
	option([]string{"pt"}, portals.PTNames)
	option([]string{"md"}, portals.MDNames)
	option([]string{"me"}, portals.EntryNames)
	option([]string{"device"}, portals.FeatureNames)
	for _, v := range portals.AckNames[1:] {
		require.True(t, used["ack="+v], "no script asks for %s", v)
	}
	for _, v := range portals.AtomicOpNames {
		require.True(t, used["op="+v], "no script uses operation %s", v)
	}
	for _, v := range portals.DatatypeNames {
		require.True(t, used["type="+v], "no script uses type %s", v)
	}
	for _, v := range portals.EventNames {
		require.True(t, words[v], "no script produces event %s", v)
	}
	for _, v := range portals.FailNames[1:] {
		require.True(t, words[v], "no script produces fail type %s", v)
	}
	for code := portals.ErrArgInvalid; code <= portals.ErrAborted; code++ {
		if code == portals.ErrFail { // no call of this package fails without a reason
			continue
		}
		require.True(t, words[code.String()], "no script produces return code %v", code)
	}
}

// TestMistakes checks that a mistake in a script is one error with its line and
// what was expected.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"procs 1\n0: nonsense":                           `line 2: unknown command "nonsense"`,
		"procs 0":                                        `line 1: procs: "0" processes, want 1 to 256 in all`,
		"x: ct c":                                        `line 1: "x" is no process, want a number before the colon`,
		"procs 1\n1: ct c":                               "line 2: ct: process 1 does not exist, there are 1",
		"procs 1\nct c":                                  `line 2: ct: which process? want e.g. "0: ct"`,
		"procs 1\n0:":                                    "line 2: no command after the process",
		"procs 1\n0: ct":                                 "line 2: ct: 0 positional arguments, want 1 to 1",
		"procs 1\n0: pt 0 FLOW":                          "line 2: pt: unknown option FLOW, want some of ONLY_USE_ONCE FLOWCTRL ONLY_TRUNCATE ALLOC_DISABLED MATCH_UNORDERED",
		"procs 1\n0: md m len=x":                         `line 2: md: len: "x" is no number`,
		"procs 1\n0: md m size=1":                        `line 2: md: unknown argument "size", want one of start len iov eq ct options`,
		"procs 1\n0: md m eq=q":                          `line 2: md: no object is called "q"`,
		"procs 1\n0: md m len=1 len=2":                   "line 2: md: argument len given twice",
		"procs 1\n0: fill 0 \"x":                         `line 2: unterminated string "x`,
		"procs 1\n0: fill 0xffff 0102":                   "line 2: fill: 2 bytes at 0xffff, memory is 0x10000",
		"procs 1\n0.x: ct c":                             `line 2: ct: process 0 has no interface "x"`,
		"procs 1\n0: ct c FLAG":                          "line 2: ct: takes no option FLAG",
		"procs 1\n0: store 0 type=FLOAT a":               `line 2: store: "a" is no number`,
		"procs 1\n0: store 0 type=FLOAT 1e300":           `line 2: store: "1e300" does not fit FLOAT, and is not Inf`,
		"procs 1\n0: store 0 type=FLOAT_COMPLEX 0,1e300": `line 2: store: "1e300" does not fit FLOAT, and is not Inf`,
		"procs 1\n0: store 0 type=DOUBLE 1e400":          `line 2: store: "1e400" does not fit DOUBLE, and is not Inf`,
		"procs 1\n0: store 0 type=UINT8_T 256":           `line 2: store: "256" does not fit UINT8_T`,
		"procs 1\n0: store 0 type=INT8_T -129":           `line 2: store: "-129" does not fit INT8_T`,
		"procs 1\n0: store 0 type=INT32_T 4294967296":    `line 2: store: "4294967296" does not fit INT32_T`,
		"explain maybe":                                  `line 1: explain: "maybe", want on or off`,
	} {
		var out strings.Builder
		require.EqualError(t, Run(text, &out), want, text)
	}
}
