package build

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/manifest"
)

var update = flag.Bool("update", false, "write the golden manifest anew")

// layout is a library in two versions, Go and C. layout/debug.wasm is the C
// version compiled by clang 19, with debugging information. The compilers
// themselves run only in the toolchain tests of cmd/spinsim.
const layout = "testdata/layout"

// copies makes the compilers of this test write a module.
func copies(t *testing.T, module string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	abs, err := filepath.Abs(module)
	require.NoError(t, err)
	t.Setenv("SPINSIM_TINYGO", self)
	t.Setenv("SPINSIM_CLANG", self)
	t.Setenv(play, copied+abs)
}

// The two sources have the same manifest, with the same offsets. This package
// computes the offsets of Go, clang those of C.
func TestManifestOfLayout(t *testing.T) {
	golden := filepath.Join(layout, "manifest.json")
	for _, lang := range []Lang{TinyGo, C} {
		copies(t, filepath.Join(layout, "debug.wasm"))
		out := filepath.Join(t.TempDir(), "out.wasm")
		require.NoError(t, Build(filepath.Join(layout, map[Lang]string{TinyGo: "go", C: "c"}[lang]), lang, out))
		module, err := os.ReadFile(out)
		require.NoError(t, err)
		m, err := manifest.Read(module)
		require.NoError(t, err)
		got, err := json.MarshalIndent(m, "", "\t")
		require.NoError(t, err)
		got = append(got, '\n')
		if *update {
			require.NoError(t, os.WriteFile(golden, got, 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), lang)

		plain, err := manifest.Keep(module, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
		require.NoError(t, err)
		require.Equal(t, string(plain), string(module[:len(plain)]), "nothing has moved")
	}
}

// goHandler returns a folder with a handler in Go in its own module.
func goHandler(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	module := "module x\n\ngo 1.26.0\n\nrequire github.com/spinsim/spinsim v0.0.0\n\nreplace github.com/spinsim/spinsim => " + root + "\n"
	for name, text := range map[string]string{"go.mod": module, "main.go": source} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOWORK", "off")
	return dir
}

func TestManifestErrors(t *testing.T) {
	const (
		head = "// About.\npackage main\n\nimport \"github.com/spinsim/spinsim/spin\"\n\n"
		tail = "\n\n//go:wasmexport header\nfunc header(_ *spin.Header, s *State) spin.Code { return spin.Success }\n\nfunc main() {}\n"
	)
	for source, want := range map[string]string{
		head + "type State struct{ Name string }" + tail:                              "main.go:6: field Name: a state cannot hold a string, expected numbers of fixed size, arrays and structs of them",
		head + "type State struct{ N int }" + tail:                                    "main.go:6: field N: a state cannot hold a int, expected",
		head + "type State struct{ N uint32 `spin:\"bytes\"` }" + tail:                "main.go:6: field N: tag spin: \"bytes\", expected words KEY=VALUE",
		head + "type State struct{ N uint32 `spin:\"colour=red\"` }" + tail:           "main.go:6: field N: tag spin: colour: unknown, expected name, unit, default, min or max",
		head + "type State struct{ N uint32 `spin:\"default=many\"` }" + tail:         "main.go:6: field N: tag spin: default: \"many\": there is no variable many",
		head + "type State struct{ N uint8 `spin:\"default=300\"` }" + tail:           "manifest: states[0].fields[0].default: 300, expected 0 to 255 for u8",
		head + "//spin:libary x\ntype State struct{}" + tail:                          "main.go:6: //spin:libary: unknown directive, expected library, needs or set",
		head + "//spin:library a b c\ntype State struct{}" + tail:                     "main.go:6: //spin:library: expected a name and perhaps a version",
		head + "//spin:library a\n//spin:library b\ntype State struct{}" + tail:       "main.go:7: //spin:library: the library is called a already",
		head + "//spin:set a\ntype State struct{}" + tail:                             "main.go:6: //spin:set: expected a name and the handlers of an entry",
		head + "//spin:set a nix\ntype State struct{}" + tail:                         "main.go:6: //spin:set a: there is no handler \"nix\", expected one of late, take_packet, header, completion, raw",
		head + "//spin:set a header\n//spin:set b header\ntype State struct{}" + tail: "main.go:7: //spin:set b: header belongs to set a already",
		head + "//spin:set a header raw\ntype State struct{}" + tail:                  "manifest: handlers[4].kind: expected one of header, payload, completion, for a handler of a set",
		head + "//spin:set a/b header\ntype State struct{}" + tail:                    "manifest: handlers[2].set: \"a/b\", expected 1 to 64 letters, digits and any of _-",
		head + "//spin:needs memory\ntype State struct{}" + tail:                      "main.go:6: //spin:needs: \"memory\", expected KEY=VALUE, each key once",
		head + "//spin:needs memory=1 memory=2\ntype State struct{}" + tail:           "main.go:6: //spin:needs: \"memory=2\", expected KEY=VALUE, each key once",
		head + "//spin:needs memory=x\ntype State struct{}" + tail:                    "main.go:6: //spin:needs memory: \"x\": there is no variable x",
		head + "//spin:needs user_header=x\ntype State struct{}" + tail:               "main.go:6: //spin:needs user_header: ",
		head + "//spin:needs speed=1\ntype State struct{}" + tail:                     "main.go:6: //spin:needs speed: unknown, expected handler in the first place, memory, user_header",
		head + "//spin:needs memory=1 handler=header\ntype State struct{}" + tail:     "main.go:6: //spin:needs handler: unknown, expected handler in the first place, memory, user_header",
		head + "//spin:needs handler=head memory=1\ntype State struct{}" + tail:       "main.go:6: //spin:needs: there is no handler \"head\", expected one of late, take_packet, header, completion, raw",
		head + "//spin:needs handler=header packets=last\ntype State struct{}" + tail: "manifest: handlers[2].needs.packets[0]: the whole last packet, which only a completion handler sees, this is a header handler",
		head + "//spin:needs pool=gpu\ntype State struct{}" + tail:                    "manifest: needs.pool: \"gpu\", expected hpu, firmware or hardware",
		head + "type State struct{ A struct{ B []uint8 } }" + tail:                    "main.go:6: field B: a state cannot hold a []uint8",
		head + "type State struct{ A [2]unknown }" + tail:                             "main.go:6: field A: a state cannot hold a invalid type",
		head + "type State struct{ A uint8; B uint8 `spin:\"name=a\"` }" + tail:       "manifest: states[0].fields[1].name: a is the name of another field",
		head + "type State struct{ A struct{ B uint8 } `spin:\"unit=x\"` }" + tail:    "manifest: states[0].fields[0]: only a number has a unit",
	} {
		dir := goHandler(t, source)
		copies(t, filepath.Join(layout, "debug.wasm"))
		err := Build(dir, TinyGo, filepath.Join(dir, "out.wasm"))
		require.ErrorContains(t, err, want, source)
		require.NoFileExists(t, filepath.Join(dir, "out.wasm"))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.c"), []byte("int x;\n\n//spin:neds x\n"), 0o644))
	err := Build(dir, C, filepath.Join(dir, "out.wasm"))
	require.ErrorContains(t, err, "manifest: x.c:3: //spin:neds: unknown directive, expected library, needs or set")
}

// Parts without a description in the source are not described and cause no
// error.
func TestManifestOfPlainSource(t *testing.T) {
	dir := goHandler(t, `package main

import "github.com/spinsim/spinsim/spin"

//go:wasmexport header
func header(_ *spin.Header, _ *uint64) spin.Code { return spin.Success }

type state struct{ _ [4]uint32; Gap struct{ _ uint8 } }

//go:wasmexport completion
func completion(_, _ *state) spin.Code { return spin.Success }

//go:wasmexport late
func late(int32) int32 { return 0 }

func main() {}
`)
	copies(t, filepath.Join(layout, "debug.wasm"))
	out := filepath.Join(dir, "out.wasm")
	require.NoError(t, Build(dir, TinyGo, out))
	module, err := os.ReadFile(out)
	require.NoError(t, err)
	m, err := manifest.Read(module)
	require.NoError(t, err)
	require.Equal(t, &manifest.Manifest{
		Handlers: []manifest.Handler{
			{Export: "late"}, {Export: "take_packet"}, {Export: "header", Kind: manifest.Header}, {Export: "completion", State: "state"}, {Export: "raw"},
		},
		States: []*manifest.State{{Name: "state", Size: 20}},
	}, m)
}

// The copy of the contract beside a source does not describe the library.
func TestDescriptionsAreOfTheSource(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"index.ts": "//spin:library mine 1.0\n", "spin.ts": "// Records and codes.\n", "z.ts": "// Mine.\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for sources, want := range map[string]string{"index.ts spin.ts": "", "index.ts spin.ts z.ts": "Mine."} {
		m := &described{}
		require.NoError(t, (&cSource{dir: dir}).directives(m, strings.Fields(sources)))
		require.Equal(t, want, m.Description)
	}
}

func TestComments(t *testing.T) {
	c := readComments(`/* Head
 * of the file. */
// more of it

//spin:library x
#include "a.h" // not code of a field
char *s = "/* no comment */ \" // none"; /* beside */
char q = '"'; int x; // both
	/* above */
int y;
/* far above */

int z;
int w; /* two
lines */ int v;
// a
// b
int u;
/* open`)
	require.Equal(t, "Head of the file. more of it", oneLine(c.first))
	for line, want := range map[int]string{7: "beside", 8: "both", 10: "above", 13: "", 14: "two lines", 15: "", 18: "a b", 5: ""} {
		require.Equal(t, want, c.of(line), line)
	}
	require.Empty(t, (*comments)(nil).of(1))
	long := make([]byte, 0, 3000)
	for range 500 {
		long = append(long, "words "...)
	}
	require.LessOrEqual(t, len(oneLine(string(long))), 1000)
	require.Contains(t, oneLine(string(long)), "words …")
}

// FuzzHandlers reads compiler output and the comments of a source without a
// panic.
func FuzzHandlers(f *testing.F) {
	module, err := os.ReadFile(filepath.Join(layout, "debug.wasm"))
	require.NoError(f, err)
	plain, err := keepSections(module, false)
	require.NoError(f, err)
	f.Add(plain)
	f.Add(played)
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x02\x07\x01\x01a\x01b\x02\x00\x01"))
	f.Add([]byte("/* a */ // b\n\"\\"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := handlers(b); err == nil {
			for _, e := range list {
				require.Contains(t, string(b), e.name)
			}
		}
		c := readComments(string(b))
		for _, one := range c.all {
			require.LessOrEqual(t, one.line, 1+len(b))
		}
	})
}
