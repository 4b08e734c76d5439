package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/profile"
)

// attackCase is a command, the files that it reads, and the one that draws
// spoil.
type attackCase struct {
	args    []string
	files   map[string]string
	spoiled string
}

// attackCases returns the commands of the scripts that read a file of theirs,
// and those that read what the program itself writes.
func attackCases(t *testing.T) (list []attackCase) {
	add := func(files map[string]string, spoiled string, lines ...string) {
		for _, line := range lines {
			list = append(list, attackCase{strings.Fields(line), files, spoiled})
		}
	}
	scripts, err := filepath.Glob("testdata/script/*.txt")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^(?:! )?exec spinsim ([^'$\n]*)$`)
	for _, name := range scripts {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		files := make(map[string]string)
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		for _, match := range command.FindAllSubmatch(archive.Comment, -1) {
			line := string(match[1])
			for _, arg := range strings.Fields(line) {
				if _, ok := files[arg]; ok {
					add(files, arg, line)
				}
			}
		}
	}
	all, err := scenarios.All()
	require.NoError(t, err)
	for _, e := range all {
		add(map[string]string{"s.yaml": string(e.Text)}, "s.yaml", "run s.yaml", "run s.yaml --format csv --table stats", "scenario check s.yaml")
	}
	printed := func(line string) string {
		var out, errs bytes.Buffer
		require.Equal(t, exitOK, run(strings.Fields(line), &out, &errs), "%s: %s", line, &errs)
		return out.String()
	}
	for _, name := range profile.Names() {
		add(map[string]string{"p.yaml": printed("profile " + name)}, "p.yaml", "profile p.yaml", "compare pingpong --profile p.yaml --mode rdma --size 8", "explain p.yaml")
	}
	add(map[string]string{"a.goal": printed("goal gen bcast-binomial --ranks 8")}, "a.goal",
		"goal stat a.goal", "goal run a.goal", "goal run a.goal --on nodes --matching host", "goal convert a.goal -o b.bin")
	for _, line := range []string{
		"compare pingpong --profile spin-int --mode rdma --size 8,64KiB --format json",
		"osu bcast --ranks 4 -m 8:8 -i 1 --format json",
		"handler run count --hex 0011 --format json",
	} {
		document := printed(line)
		add(map[string]string{"d.json": document}, "d.json", "rerun d.json", "report d.json -o r.html")
	}
	return list
}

// words are texts that numbers and names of a file are replaced by.
var words = []string{
	"0", "-1", "1", "2", "7", "255", "256", "65536", "2147483647", "4294967296", "9223372036854775807", "18446744073709551616", "1e308", "-1e308", "NaN", "Inf", "0x7fffffffffffffff",
	"1ps", "1000000s", "1TiB", "0.1", "~", "null", "true", "[]", "{}", "''", "*a", "&a", "!!binary", "../../etc/passwd", "/dev/zero", "/dev/stdin", ".", "-",
	"\x1b[31m", "\x1b]0;title\a", "\u202e", "\u2028", "\ufeff", "\x00", "\xff\xfe", "=1+1", "%s%n", "$(id)", "`id`", "<script>", "\r\n",
}

var digit = regexp.MustCompile(`[0-9]`)

var token = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9-]*|-?[0-9][0-9.]*[A-Za-z]*`)

// spoil changes a few places of a text or of other bytes.
func spoil(rng *rand.Rand, text string) string {
	b := []byte(text)
	for range 1 + rng.IntN(1+rng.IntN(3)) {
		b = spoilOnce(rng, b)
	}
	return string(b)
}

func spoilOnce(rng *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte(words[rng.IntN(len(words))])
	}
	at := rng.IntN(len(b))
	end := min(len(b), at+1+rng.IntN(1<<rng.IntN(10)))
	lines := bytes.SplitAfter(b, []byte("\n"))
	line := rng.IntN(len(lines))
	tokens := token.FindAllIndex(b, -1)
	if tokens == nil {
		tokens = [][]int{{at, end}}
	}
	t := tokens[rng.IntN(len(tokens))]
	switch rng.IntN(20) {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		b[at] = byte(rng.Uint32())
	case 2:
		return b[:at]
	case 3:
		return slices.Delete(b, at, end)
	case 4:
		return slices.Insert(b, at, b[at:end]...)
	case 5:
		return slices.Concat(slices.Concat(lines[:line]...), slices.Concat(lines[line+1:]...))
	case 6:
		other := rng.IntN(len(lines))
		lines[line], lines[other] = lines[other], lines[line]
		return slices.Concat(lines...)
	case 7:
		other := tokens[rng.IntN(len(tokens))]
		return slices.Concat(b[:t[0]], b[other[0]:other[1]], b[t[1]:])
	case 8:
		return slices.Insert(b, at, []byte(strings.Repeat(words[rng.IntN(len(words))], 1<<rng.IntN(12)))...)
	case 9:
		return slices.Concat(b[:t[0]], []byte(words[rng.IntN(len(words))]), b[t[1]:])
	default: // another number, which most commands take
		if digits := digit.FindAllIndex(b, -1); digits != nil {
			b[digits[rng.IntN(len(digits))][0]] = '0' + byte(rng.IntN(10))
		}
	}
	return b
}

// attackModules returns the modules that draws spoil.
func attackModules() (list [][]byte, err error) {
	for _, name := range handlers.Names() {
		l, err := handlers.Builtin(name)
		if err != nil {
			return nil, err
		}
		list = append(list, l.Wasm)
	}
	files, err := filepath.Glob("../../internal/lab/handlerlab/testdata/*.wasm")
	if err == nil && files == nil {
		err = fmt.Errorf("no modules")
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, err
}

// Sections of a module that draws spoil.
const (
	custom   = 0  // texts, for example the manifest
	code     = 10 // handlers
	anywhere = -1 // bytes anywhere
)

var attackSections = []int{custom, code, code, anywhere}

// spoilModule changes a module, but for anywhere only what is in the sections
// of a kind.
func spoilModule(rng *rand.Rand, module []byte, kind int) []byte {
	if kind == anywhere {
		return []byte(spoil(rng, string(module)))
	}
	out := bytes.Clone(module[:8])
	for rest := module[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		contents := bytes.Clone(rest[1+n:][:size])
		switch {
		case int(rest[0]) != kind:
		case kind == code:
			for range 1 + rng.IntN(3) {
				contents[rng.IntN(len(contents))] = byte(rng.Uint32())
			}
		case rng.IntN(2) == 0:
			contents = []byte(spoil(rng, string(contents)))
		}
		out = append(binary.AppendUvarint(append(out, rest[0]), uint64(len(contents))), contents...)
		rest = rest[1+n+int(size):]
	}
	return out
}

// sorted returns the names of files.
func sorted(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }
