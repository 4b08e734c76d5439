package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	_ "github.com/spinsim/spinsim/internal/libraries"
	"github.com/spinsim/spinsim/spin"
)

// A user's first step must work: the new module compiles, is clean and passes
// its test, without the network.
func TestNewHandlerPassesItsTest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my filters", "drop-all")
	require.NoError(t, os.Mkdir(filepath.Dir(dir), 0o777))
	files, err := New(Options{Dir: dir})
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		require.FileExists(t, f)
		names = append(names, filepath.Base(f))
	}
	require.Equal(t, []string{"README.md", "expected.txt", "go.mod", "handler.go", "handler_test.go", "packets.txt", "scenario.yaml"}, names)
	for _, args := range [][]string{{"vet", "."}, {"test", "."}} {
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
	}
	out, err := exec.Command("gofmt", "-l", dir).CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(out))
}

func TestNewHandlerInC(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "filter")
	files, err := New(Options{Dir: dir, Lang: build.C})
	require.NoError(t, err)
	require.Len(t, files, 6)
	require.FileExists(t, filepath.Join(dir, "filter.c"))
	header, err := os.ReadFile(filepath.Join(dir, "spin.h"))
	require.NoError(t, err)
	require.Equal(t, spin.CHeader, header)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NotContains(t, string(b), "{{", f)
		require.NotContains(t, string(b), "<no value>", f)
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"":             "", // the folder itself, which exists
		"1st":          `"1st" is no name for a handler: expected a letter, then`,
		"naïve":        "is no name for a handler",
		"a b":          "is no name for a handler",
		".hidden":      "is no name for a handler",
		"sort":         `"sort" is no name for a handler: Go's standard library has a package of that name`,
		"there/is/not": "no such file or directory",
	} {
		_, err := New(Options{Dir: filepath.Join(dir, name)})
		require.ErrorContains(t, err, want, name)
	}
	full := filepath.Join(dir, "full")
	require.NoError(t, os.Mkdir(full, 0o777))
	_, err := New(Options{Dir: full})
	require.ErrorContains(t, err, "full exists already")
	_, err = New(Options{})
	require.EqualError(t, err, `"" is no name for a handler: expected a letter, then letters, digits, - or _`)
	_, err = New(Options{Dir: filepath.Join(dir, "x"), Lang: "cobol"})
	require.EqualError(t, err, `unknown language "cobol", expected tinygo, c, cpp, rust or assemblyscript`)
	_, err = New(Options{Dir: filepath.Join(dir, "x"), Replace: dir})
	require.ErrorContains(t, err, "is no clone of spinsim")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left behind")
}

// A folder within a clone uses that clone, wherever both are moved.
func TestRequired(t *testing.T) {
	clone := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(clone, "go.mod"), []byte("module "+module+"\n\ngo 1.26\n"), 0o666))
	require.NoError(t, os.Mkdir(filepath.Join(clone, "mine"), 0o777))
	version, replace, err := required(filepath.Join(clone, "mine", "filter"), "")
	require.NoError(t, err)
	require.Equal(t, []string{release, "../.."}, []string{version, replace})

	version, replace, err = required(filepath.Join(t.TempDir(), "filter"), clone)
	require.NoError(t, err)
	require.Equal(t, []string{release, quote(clone)}, []string{version, replace})

	_, replace, err = required(filepath.Join(t.TempDir(), "filter"), "")
	require.NoError(t, err)
	require.True(t, isClone(replace), "this test was built from a clone: %s", replace)
}

func TestVersionOf(t *testing.T) {
	of := func(version string) string {
		return versionOf(&debug.BuildInfo{Main: debug.Module{Path: module, Version: version}})
	}
	require.Equal(t, "v1.2.3", of("v1.2.3"))
	require.Empty(t, of("(devel)"))
	require.Empty(t, of("v0.0.0-20260101000000-0123456789ab+dirty"), "nobody can fetch it")
	require.Equal(t, "v1.0.0", versionOf(&debug.BuildInfo{
		Main: debug.Module{Path: "example.com/x", Version: "v9.9.9"}, Deps: []*debug.Module{{Path: module, Version: "v1.0.0"}},
	}))
}

// A new package of the standard library would make its name unusable, with an
// error that nobody understands.
func TestStandardIsComplete(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join(strings.TrimSpace(string(out)), "src"))
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() {
			require.Contains(t, standard, e.Name())
		}
	}
}

// The header of a slot has the library's messages and numbers, those of the
// libraries that it builds on, and how match bits are made. A library without
// any adds nothing to the state.
func TestSlotMessages(t *testing.T) {
	header := func(slot string) string {
		s, err := handlers.SlotNamed(handlers.Slots(), slot)
		require.NoError(t, err)
		b, err := cHeader(s)
		require.NoError(t, err)
		return string(b)
	}
	rdma := header("rdma.engine")
	for _, want := range []string{
		"#define RDMA_PT_CELLS 1\n", "#define RDMA_KIND_ACK 5 /* of a block */\n", "#define RDMA_NACK_FOREIGN 3\n",
		"\tuint64_t notify; /* address of 8 bytes at the destination, of the same process; 0: none */\n",
		"} rdma_descriptor_t;\n_Static_assert(sizeof(rdma_descriptor_t) == 64, ",
		"func (h *Header) Bits() uint64 {\n\tb := uint64(h.Kind)",
	} {
		require.Contains(t, rdma, want)
	}
	require.NotContains(t, rdma, "rdma_state_t")
	require.Contains(t, header("part.engine"), "} rdma_descriptor_t;")
	require.Contains(t, header("part.engine"), "word 3: 31:12 page [19:0]")
	require.Contains(t, header("matching.receiver"), "#define MATCHING_LARGE 0x8000000000000000ull\n")
	require.Equal(t, 1, strings.Count(header("count.target"), "typedef"))
	require.NotContains(t, header("count.target"), "Go:")
}

// What begins as nothing ends as its slot allows: a kernel's handler has nothing
// to process.
func TestSlotHandlersInC(t *testing.T) {
	for _, slot := range handlers.Slots() {
		text := string(cHandlers(slot, "mine", nil))
		require.Equal(t, len(slot.Handlers), strings.Count(text, "return PTL_"), slot.Name)
		require.Equal(t, slot.Kernel, strings.Contains(text, "PTL_PROCEED"), slot.Name)
	}
}

// A module in Go imports its library, whose own imports only go mod tidy finds.
func TestSlotInGo(t *testing.T) {
	s, err := handlers.SlotNamed(handlers.Slots(), "pagein.policy")
	require.NoError(t, err)
	files, err := forSlot(Options{Slot: s, Lang: build.TinyGo}, values{Name: "mine"})
	require.NoError(t, err)
	require.Contains(t, string(files["main.go"]), "spinsim/handlers/pagein\"")
	require.Contains(t, string(files["README.md"]), "`go mod tidy`")
}

// Modules that were written from a contract have its header as it is.
func TestHeadersOfModules(t *testing.T) {
	headers, err := filepath.Glob("../../experiment/testdata/slots/*/*.h")
	require.NoError(t, err)
	require.NotEmpty(t, headers)
	for _, name := range headers {
		slot, err := handlers.SlotNamed(handlers.Slots(), filepath.Base(filepath.Dir(name)))
		require.NoError(t, err)
		want, err := cHeader(slot)
		require.NoError(t, err)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(text), "%s: handler new --for %s --lang c writes it", name, slot.Name)
	}
}
