package inetscript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
)

// An error names the mistake in a script and its line.
func TestMistakes(t *testing.T) {
	sets := strings.Join(inet.Sets(), ", ")
	const begin = "set rfc\n+0 dial\n+1ms < S. 0:0(0) ack 1 win 9\n"
	for text, want := range map[string]string{
		"dial":                                   `line 1: "dial", expected a time such as +0`,
		"+x dial":                                `line 1: time "+x", expected such as +0 or +1.5ms`,
		"+1s":                                    `line 1: nothing behind the time`,
		"+0 dial":                                `line 1: "dial" before set`,
		"set":                                    `line 1: set, expected once, with one of ` + sets,
		"set rfc\nset rfc":                       `line 2: set, expected once, with one of ` + sets,
		"set bsd":                                `line 1: inet: set of parameters "bsd", expected one of ` + sets,
		"set rfc mss=0":                          `line 1: mss "0"`,
		"set rfc\n+0 write 1":                    `line 2: write without a connection`,
		begin + "+0 dial":                        `line 4: dial: there is a connection`,
		begin + "+0 jump":                        `line 4: "jump", expected <, dial, listen, write, read, close, release, abort, wait or ?`,
		begin + "+0 write x":                     `line 4: write "x", expected a number up to 1048576`,
		begin + "+0 ? weather":                   `line 4: no fact "weather"`,
		begin + "+0 < S":                         `line 4: segment "S", expected flags and numbers`,
		begin + "+0 < X 0:0(0)":                  `line 4: flag 'X', expected S, F, R, P or .`,
		begin + "+0 < . 1:3(1)":                  `line 4: numbers "1:3(1)", expected from:to(bytes)`,
		begin + "+0 < . 1:1(0) ack":              `line 4: "ack" without a number`,
		begin + "+0 < . 1:1(0) win 65536":        `line 4: "win 65536", expected ack or win with a number`,
		begin + "+0 < . 1:1(0) ack 1 <ttl 3>":    `line 4: option "ttl 3", expected mss, wscale, sackOK or sack`,
		begin + "+0 < . 1:1(0) ack 1 <sack 1-3>": `line 4: block "1-3", expected from:to`,
		begin + "+5000000s wait":                 `line 4: the time is beyond 4611686.018427387903 s`,
	} {
		_, err := Run(text)
		require.EqualError(t, err, want, text)
	}
}

// Any script ends, and its output is a script with the same outcomes.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.txt")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "\n") > 50 || strings.Contains(text, "00000") {
			return // it would only take long
		}
		got, err := Run(text)
		if err != nil {
			require.Contains(t, err.Error(), "line ")
			return
		}
		again, err := Run(got)
		require.NoError(t, err)
		require.Equal(t, happenings(got), happenings(again))
	})
}

// happenings returns the outcomes of a script, without comments.
func happenings(text string) (all []string) {
	for _, l := range strings.Split(text, "\n") {
		if words := strings.Fields(l); len(words) > 0 && words[0][0] != '#' {
			all = append(all, l)
		}
	}
	return all
}
