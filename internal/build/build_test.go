package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/manifest"
)

// If this variable is set, the test binary plays the compiler that it
// describes.
const play = "SPINSIM_TEST_COMPILER"

// copied is the prefix for a compiler that writes the module with that name.
const copied = "copies "

// played is the output of the compiler: a custom section of the names, one of
// the producers.
var played = []byte("\x00asm\x01\x00\x00\x00" + "\x00\x08\x04name\x01\x01\x00" + "\x00\x0a\x09producers" + "\x06\x01\x00")

func TestMain(m *testing.M) {
	how := os.Getenv(play)
	if how == "" {
		os.Exit(m.Run())
	}
	out := os.Args[slices.Index(os.Args, "-o")+1]
	switch {
	case slices.Contains(os.Args, "-Wl,--no-entry") && slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-O") }):
		fmt.Println("clang: a wasm-opt of the PATH changes the module")
		os.Exit(1)
	case how == "builds":
		check(os.WriteFile(out, played, 0o644))
	case strings.HasPrefix(how, copied):
		b, err := os.ReadFile(strings.TrimPrefix(how, copied))
		check(err)
		check(os.WriteFile(out, b, 0o644))
	case how == "writes nothing":
	case slices.Contains(os.Args, `-print-allocs=^main\.`):
		wd, err := os.Getwd()
		check(err)
		fmt.Printf("mode: set\n%s:2.1,2.9 1 0\nwasm-ld: error\n", filepath.Join(wd, "main.go"))
		os.Exit(1)
	case strings.HasPrefix(how, "says "):
		fmt.Println(strings.TrimPrefix(how, "says "))
		os.Exit(1)
	default:
		fmt.Println("wasm-ld: error: lto.tmp: undefined symbol: " + how)
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// handler returns a folder with one source file. how describes the behavior of
// the compiler.
func handler(t *testing.T, file, text, how string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("SPINSIM_TINYGO", self)
	t.Setenv("SPINSIM_CLANG", self)
	t.Setenv(play, how)
	return dir
}

func TestBuildKeepsNamesOnly(t *testing.T) {
	for _, file := range []string{"main.go", "main.c"} {
		dir := handler(t, file, "", "builds")
		out := filepath.Join(t.TempDir(), "out.wasm")
		require.NoError(t, Build(dir, Auto, out))
		b, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, "\x00asm\x01\x00\x00\x00"+"\x00\x08\x04name\x01\x01\x00"+"\x06\x01\x00", string(b))
	}
}

func TestBuildSaysWhereHandlerAllocates(t *testing.T) {
	dir := handler(t, "main.go", "package main\n\tx := make([]byte, n)\n", "runtime.alloc")
	err := Build(dir, TinyGo, filepath.Join(dir, "out.wasm"))
	require.ErrorContains(t, err, "no heap")
	require.ErrorContains(t, err, "\nmain.go:2: x := make([]byte, n)\n")
}

func TestBuildPassesMessagesOn(t *testing.T) {
	dir := handler(t, "main.go", "", "something.else")
	err := Build(dir, TinyGo, filepath.Join(dir, "out.wasm"))
	require.ErrorContains(t, err, "undefined symbol: something.else")
}

// A TinyGo, or its Go, is older than structs.HostLayout.
func TestBuildNamesTheCompilerThatIsTooOld(t *testing.T) {
	for _, says := range []string{"main.go:8:4: undefined: structs.HostLayout", `main.go:3:8: package structs is not in std (/usr/lib/go-1.22/src/structs)`} {
		dir := handler(t, "main.go", "", "says "+says)
		err := Build(dir, TinyGo, filepath.Join(dir, "out.wasm"))
		require.ErrorContains(t, err, "this TinyGo has no structs.HostLayout")
		require.ErrorContains(t, err, "scripts/install-tinygo.sh")
		require.ErrorContains(t, err, says)
	}
}

func TestBuildErrors(t *testing.T) {
	dir := handler(t, "main.go", "", "writes nothing")
	out := filepath.Join(dir, "out.wasm")
	require.ErrorContains(t, Build(dir, TinyGo, out), "module.wasm")
	require.ErrorContains(t, Build(dir, C, out), "no .c files")
	require.ErrorContains(t, Build(dir, "cobol", out), `unknown language "cobol"`)
	require.ErrorContains(t, Build(t.TempDir(), Auto, out), "expected .go, .c, .cpp, .rs or .ts files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.c"), nil, 0o644))
	require.ErrorContains(t, Build(dir, Auto, out), "Go and C sources")
	t.Setenv("SPINSIM_TINYGO", filepath.Join(dir, "absent"))
	require.ErrorContains(t, Build(dir, TinyGo, out), "$SPINSIM_TINYGO")
}

func TestBuildNamesInstallerWhenCompilerIsMissing(t *testing.T) {
	dir := handler(t, "main.go", "", "builds")
	t.Chdir(dir) // not in a clone that has them
	for _, name := range []string{"SPINSIM_TINYGO", "SPINSIM_TOOLS", "SPINSIM_CLANG", "PATH"} {
		t.Setenv(name, "")
	}
	require.ErrorContains(t, Build(dir, TinyGo, "out"), "scripts/install-tinygo.sh")
	require.ErrorContains(t, Build(dir, C, "out"), "scripts/install-tinygo.sh")
}

// Every folder below finds the tools that this repository's scripts install,
// before the tools on the PATH.
func TestBuildFindsToolsAbove(t *testing.T) {
	for lang, places := range map[Lang][]string{
		TinyGo:         {".tools/tinygo/bin/tinygo"},
		AssemblyScript: {"node_modules/.bin/asc", ".tools/node_modules/.bin/asc"},
	} {
		for _, place := range places {
			dir := handler(t, "main.go", "", "builds")
			for _, name := range []string{"SPINSIM_TINYGO", "SPINSIM_ASC", "SPINSIM_TOOLS"} {
				t.Setenv(name, "")
			}
			self, err := os.Executable()
			require.NoError(t, err)
			program := filepath.Join(dir, filepath.FromSlash(place))
			require.NoError(t, os.MkdirAll(filepath.Dir(program), 0o755))
			require.NoError(t, os.Symlink(self, program))
			nested := filepath.Join(dir, "a", "b")
			require.NoError(t, os.MkdirAll(nested, 0o755))
			path, err := Compiler(nested, lang)
			require.NoError(t, err)
			require.Equal(t, program, path)

			// the tools in the clone of the working directory, also for a
			// folder elsewhere
			t.Chdir(nested)
			t.Setenv("PATH", "")
			path, err = Compiler(t.TempDir(), lang)
			if strings.HasPrefix(place, ".tools") {
				require.NoError(t, err)
				require.Equal(t, program, path)
			} else {
				require.ErrorContains(t, err, "or run scripts/install-languages.sh of spinsim")
			}
		}
	}
}

func FuzzKeepNames(f *testing.F) {
	f.Add(played)
	f.Add(played[:12])
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, module []byte) {
		once, err := keepSections(module, false)
		if err != nil {
			return
		}
		twice, err := keepSections(once, false)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}

// The error for a missing compiler explains how to get it.
func TestMissingCompilers(t *testing.T) {
	t.Chdir(t.TempDir()) // not in a clone that has them
	t.Setenv("PATH", "")
	for _, name := range []string{"SPINSIM_CLANG", "SPINSIM_RUSTC", "SPINSIM_ASC"} {
		t.Setenv(name, "")
	}
	for lang, want := range map[Lang]string{Cpp: "install clang-19 and lld-19", AssemblyScript: "npm install assemblyscript in the handler's folder or one above it, or run scripts/install-languages.sh of spinsim"} {
		_, err := Compiler(t.TempDir(), lang)
		require.ErrorContains(t, err, want)
	}
	if _, err := Compiler(t.TempDir(), Rust); err != nil { // /usr/bin/rustc is tried in any case
		require.ErrorContains(t, err, "apt-get install rustc libstd-rust-dev-wasm32 lld-19, or rustup target add wasm32-unknown-unknown")
	}
	t.Setenv("SPINSIM_RUSTC", "none/rustc")
	_, err := Compiler(".", Rust)
	require.ErrorContains(t, err, "from $SPINSIM_RUSTC")
}

// The names of files decide the language. C and C++ go together.
func TestDetect(t *testing.T) {
	for files, want := range map[string]Lang{
		"a.go": TinyGo, "a.c b.c": C, "a.c b.cpp": Cpp, "b.cc a.c": Cpp, "lib.rs spin.rs": Rust, "index.ts spin.ts x.d.ts": AssemblyScript,
	} {
		dir := t.TempDir()
		for _, name := range strings.Fields(files) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		got, err := detect(dir)
		require.NoError(t, err)
		require.Equal(t, want, got, files)
	}
}

// The state of a handler in AssemblyScript comes from its source, because the
// compiler writes no types.
func TestAssemblyScriptIsRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.ts"), []byte(`/** Counts. */
//spin:library as 2.0
@unmanaged
class State {
  a: u8; // first spin:"unit=bytes"
  b: u64; // spin:"default=7"
  c: f32;
  d: bool;
}

/** payload counts. */
export function payload(p: spin.Payload, s: State): i32 { return 0; }
`), 0o600))
	m, err := describeAssemblyScript(dir, []export{{name: "payload"}, {name: "other"}})
	require.NoError(t, err)
	require.Equal(t, "as", m.Name)
	require.Equal(t, "Counts.", m.Description)
	require.Equal(t, manifest.Handler{Export: "payload", Kind: manifest.Payload, State: "State", Description: "counts."}, m.Handlers[0])
	require.Equal(t, manifest.Kind(""), m.Handlers[1].Kind)
	s := m.States[0]
	require.EqualValues(t, 24, s.Size)
	var offsets []int64
	for _, f := range s.Fields {
		offsets = append(offsets, f.Offset)
	}
	require.Equal(t, []int64{0, 8, 16, 20}, offsets)
	require.Equal(t, "bytes", s.Fields[0].Unit)
	require.Equal(t, "first", s.Fields[0].Description)
}

// A file is a source, whatever its name: to a compiler @x.c would be a file of
// options, which may load a program.
func TestSourcesAreNoOptions(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"-x.c", "@x.c", "x.c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for _, o := range []Options{{}, {Sources: []string{"-x.c", "@x.c", "x.c"}}} {
		names, err := o.sources(dir, C)
		require.NoError(t, err)
		require.Equal(t, []string{"./-x.c", "./@x.c", "x.c"}, names)
	}
}
