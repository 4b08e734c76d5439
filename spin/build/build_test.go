package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test binary plays the compiler when this variable says how.
const play = "SPINSIM_TEST_COMPILER"

// copied begins how a compiler is played that writes the module of that name.
const copied = "copies "

// played is what the compiler writes: a custom section of the names, one of the producers.
var played = []byte("\x00asm\x01\x00\x00\x00" + "\x00\x06\x04nameX" + "\x00\x0a\x09producers" + "\x06\x01\x00")

func TestMain(m *testing.M) {
	how := os.Getenv(play)
	if how == "" {
		os.Exit(m.Run())
	}
	out := os.Args[slices.Index(os.Args, "-o")+1]
	switch {
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

// handler returns a folder with one source file and, in how, what the compiler is to do with it.
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
		require.Equal(t, "\x00asm\x01\x00\x00\x00"+"\x00\x06\x04nameX"+"\x06\x01\x00", string(b))
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

func TestBuildErrors(t *testing.T) {
	dir := handler(t, "main.go", "", "writes nothing")
	out := filepath.Join(dir, "out.wasm")
	require.ErrorContains(t, Build(dir, TinyGo, out), "module.wasm")
	require.ErrorContains(t, Build(dir, C, out), "no .c files")
	require.ErrorContains(t, Build(dir, "rust", out), `unknown language "rust"`)
	require.ErrorContains(t, Build(t.TempDir(), Auto, out), "expected .go or .c files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.c"), nil, 0o644))
	require.ErrorContains(t, Build(dir, Auto, out), "Go and C sources")
	t.Setenv("SPINSIM_TINYGO", filepath.Join(dir, "absent"))
	require.ErrorContains(t, Build(dir, TinyGo, out), "$SPINSIM_TINYGO")
}

func TestBuildNamesInstallerWhenCompilerIsMissing(t *testing.T) {
	dir := handler(t, "main.go", "", "builds")
	for _, name := range []string{"SPINSIM_TINYGO", "SPINSIM_TOOLS", "SPINSIM_CLANG", "PATH"} {
		t.Setenv(name, "")
	}
	require.ErrorContains(t, Build(dir, TinyGo, "out"), "scripts/install-tinygo.sh")
	require.ErrorContains(t, Build(dir, C, "out"), "scripts/install-tinygo.sh")
}

// A compiler of the folder's own project comes before one on the PATH.
func TestBuildFindsToolsAbove(t *testing.T) {
	dir := handler(t, "main.go", "", "builds")
	t.Setenv("SPINSIM_TINYGO", "")
	t.Setenv("SPINSIM_TOOLS", "")
	self, err := os.Executable()
	require.NoError(t, err)
	bin := filepath.Join(dir, ".tools", "tinygo", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "tinygo")))
	nested := filepath.Join(dir, "a", "b")
	require.NoError(t, os.MkdirAll(nested, 0o755))
	path, err := findTinyGo(nested)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(bin, "tinygo"), path)
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
