package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/report"
)

// enemy is a name that commands a terminal, turns a line around, and forges
// lines of a message and of a table.
const enemy = "a\x1b[2J\x1b]0;x\a\u202eb\u2028\u009b\nspinsim: forged\r\n| forged |\tc"

// hostileModule is a module with the enemy as name of its handler, of a
// function and in a line that it logs. wrong makes the handler trap.
func hostileModule(wrong bool) []byte {
	text := enemy + "\xff"
	sized := func(b ...byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
	name := sized([]byte(enemy)...)
	section := func(id byte, b ...byte) []byte { return append([]byte{id}, sized(b...)...) }
	const i32, fn = 0x7f, 0x60
	body := []byte{0, 0x41, 16, 0x41, byte(len(text)), 0x10, 0, 0x41, 0, 0x0b} // log(16, len); 0
	if len(text) > 63 {
		body = []byte{0, 0x41, 16, 0x41, 0x80 | byte(len(text)), 0, 0x10, 0, 0x41, 0, 0x0b}
	}
	if wrong {
		body = []byte{0, 0x00, 0x0b}
	}
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, section(1, 2, fn, 2, i32, i32, 1, i32, fn, 2, i32, i32, 0)...)
	m = append(m, section(2, append([]byte{1}, "\x04spin\x03log\x00\x01"...)...)...)
	m = append(m, section(3, 1, 0)...)
	m = append(m, section(5, 1, 0, 1)...)
	m = append(m, section(7, append(append([]byte{2}, "\x06memory\x02\x00"...), append(name, 0, 1)...)...)...)
	m = append(m, section(10, append([]byte{1}, sized(body...)...)...)...)
	m = append(m, section(11, append([]byte{1, 0, 0x41, 16, 0x0b}, sized([]byte(text)...)...)...)...)
	// a manifest takes no such names
	return manifest.Append(m, "name", append([]byte{1}, sized(append([]byte{1, 1}, name...)...)...))
}

// hostileFiles makes files of every kind in the current folder, and returns
// their names. The enemy is wherever a file may name something.
func hostileFiles(t *testing.T) (names []string) {
	type object = map[string]any
	type list = []any
	text := func(v any) string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return visible.Text(string(b)) // YAML takes some characters only as escapes
	}
	scenario := func(module string) object {
		return object{
			"title": enemy, "description": enemy, "profile": "p.yaml", "ranks": 2, "parameters": object{"x": enemy, "module": module},
			"entries": list{object{"name": "a", "ranks": 1, "length": 8, "handlers": object{"module": "$module", "payload": enemy}}},
			"programs": list{object{
				"name": enemy, "ranks": 0,
				"steps": list{object{"mark": enemy}, object{"put": object{"to": 1, "entry": "a", "bytes": 8, "ack": "ack"}}, object{"wait": object{"acks": 1}}, object{"measure": object{"since": enemy, "name": enemy}}},
			}},
			"output": object{"events": "all", "stats": "all"},
		}
	}
	with := func(o object, key string, v any) string { o[key] = v; return text(o) }
	good := scenario("m.wasm")
	files := map[string]string{
		"p.yaml":          text(object{"base": "spin-int", "name": "p", "description": enemy}),
		"name.yaml":       text(object{"base": "spin-int", "name": enemy}),
		"base.yaml":       text(object{"base": enemy}),
		"key.yaml":        text(object{"base": "spin-int", enemy: enemy}),
		"s.yaml":          text(good),
		enemy + ".yaml":   text(good),
		"trap.yaml":       text(scenario("trap.wasm")),
		"late.yaml":       with(scenario("m.wasm"), "expect", list{object{"latency": object{"name": enemy, "at_most": "1ns"}}}),
		"field.yaml":      with(scenario("m.wasm"), "expect", list{object{"state": object{"of": "a", "field": enemy, "equals": 1}}}),
		"entry.yaml":      with(scenario("m.wasm"), "entries", list{object{"name": enemy, "ranks": 1}}),
		"waits.yaml":      with(scenario("m.wasm"), "programs", list{object{"name": enemy, "ranks": 0, "steps": list{object{"wait": object{"acks": 1}}}}}),
		"module.yaml":     text(scenario(enemy)),
		"wrong.yaml":      text(object{enemy: enemy, "profile": enemy}),
		"no.yaml":         enemy,
		"m.wasm":          string(hostileModule(false)),
		"trap.wasm":       string(hostileModule(true)),
		enemy + ".wasm":   string(hostileModule(true)),
		"x.goal":          "num_ranks 1\nrank 0 {\n" + enemy + ": calc 1\n}\n",
		"two.goal":        "num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n",
		"x.graph":         "0 1\n" + enemy + " 1\n",
		"x.spc":           "0,0,512,W,0.1\n" + enemy + ",0\n",
		"x.json":          text(object{"provenance": object{"command": enemy, "spinsim": object{"version": enemy}}, enemy: enemy}),
		"run.json":        text(object{"provenance": object{"command": "run", "spinsim": object{"version": enemy}, "seed": 1, "arguments": object{enemy: enemy}}}),
		"handler.json":    text(object{"provenance": object{"command": "compare pingpong", "arguments": object{"axes": object{enemy: list{enemy}}}, "handlers": list{object{"name": enemy, "path": enemy}}}}),
		"profile.json":    text(object{"provenance": object{"command": "compare pingpong", "profiles": list{object{"name": enemy, "from": enemy, "content": object{"name": enemy}}}}}),
		"input.json":      text(object{"provenance": object{"command": goalRunName, "seed": 1, "inputs": list{object{"name": enemy, "bytes": 1 << 20}}, "arguments": object{"on": "model", "schedule": enemy, "model": object{}}}}),
		"x.portals":       enemy,
		"hostile.parquet": enemy,
	}
	for name, content := range files {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		names = append(names, name)
	}
	return names
}

// hostileResults makes documents of a run with these files, and returns their
// names.
func hostileResults(t *testing.T) []string {
	document, errs, status := obeyed(t, "run", "s.yaml", "--format", "json")
	require.Equal(t, exitOK, status, errs)
	var exact struct {
		Provenance struct{ Inputs []struct{ Text string } }
	}
	require.NoError(t, json.Unmarshal([]byte(document), &exact))
	written, err := os.ReadFile("s.yaml")
	require.NoError(t, err)
	require.Equal(t, string(written), exact.Provenance.Inputs[0].Text, "JSON keeps the text")
	require.NoError(t, os.WriteFile("s.json", []byte(document), 0o600))
	require.NoError(t, os.WriteFile("differs.json", []byte(strings.Replace(document, `"end_ns": `, `"end_ns": 1`, 1)), 0o600))
	return []string{"s.json", "differs.json", "none", enemy}
}

// obeyed runs a command and checks that a terminal would show all that it
// prints, and nothing that the enemy has forged.
func obeyed(t *testing.T, args ...string) (out, errs string, status int) {
	var o, e bytes.Buffer
	status = run(args, &o, &e)
	for what, text := range map[string]string{"output": o.String(), "error": e.String()} {
		for line := range strings.SplitSeq(text, "\n") {
			require.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\t' }), "%q: %s: %q", args, what, line)
			for _, forged := range []string{"spinsim: forged", "| forged"} {
				require.False(t, strings.HasPrefix(line, forged), "%q: %s:\n%s", args, what, text)
			}
		}
	}
	return o.String(), e.String(), status
}

// Whatever a file or a module names, no command obeys it: every command that
// there is gets every file, in every format; and where it accepts a file, the
// enemy as value of every flag.
func TestHostileNames(t *testing.T) {
	t.Chdir(t.TempDir())
	files := append(hostileFiles(t), hostileResults(t)...)
	out, _, _ := obeyed(t, "run", "s.yaml", "--table", "log")
	require.Contains(t, out, visible.Line(enemy+"\xff"), "what a handler logs is there, visibly")
	var each func(c *cobra.Command, path []string)
	each = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			each(sub, append(path[:len(path):len(path)], sub.Name()))
		}
		if c.HasSubCommands() || !c.Runnable() {
			return
		}
		if c.Args != nil && c.Args(c, []string{"none"}) != nil { // it takes no file
			obeyed(t, append(path, enemy)...)
			return
		}
		for _, file := range files {
			args := append(path[:len(path):len(path)], file)
			if strings.HasSuffix(file, ".wasm") && c.Flags().Lookup("hex") != nil {
				args = append(args, "--hex", "00")
			}
			if _, _, status := obeyed(t, args...); status == exitInput {
				continue
			}
			if c.Flags().Lookup("format") != nil {
				for _, f := range report.Formats {
					if f != report.ParquetFormat {
						obeyed(t, append(args, "--format", string(f))...)
						obeyed(t, append(args, "--format", string(f), "--table", "log")...)
					}
				}
			}
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Value.Type() != "bool" {
					obeyed(t, append(args, "--"+f.Name, enemy)...)
				}
			})
		}
	}
	each(rootCommand(), nil)
	_, errs, status := obeyed(t, "report", "s.json", "-o", "page.html", "--title", enemy)
	require.Equal(t, exitOK, status, errs)
	page, err := os.ReadFile("page.html")
	require.NoError(t, err)
	require.Contains(t, string(page), `\u202e`)
	require.Equal(t, string(page), visible.Text(string(page)))
}
