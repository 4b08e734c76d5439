//go:build toolchain

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// TestToolchain runs scripts that need the toolchain of
// scripts/install-tinygo.sh.
func TestToolchain(t *testing.T) {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	require.NoError(t, err)
	folders := strings.Fields(string(out))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/toolchain", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
				env.Setenv(name, folders[i])
			}
			env.Setenv("HOME", env.WorkDir) // TinyGo keeps what it has built there
			return setRepository(env)
		},
	})
}

// TestToolchainPorting types the commands of docs/porting.md, one after the
// other. Its folder has our handlers under the names and in the places that the
// document mentions.
func TestToolchainPorting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", porting))
	require.NoError(t, err)
	commands := documentedCommands(string(text))
	require.Greater(t, len(commands), 15)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "porting"))))
	clang, err := exec.LookPath("clang-19")
	require.NoError(t, err)
	runDocumented(t, dir, "", clang, commands)
}

// What handler new makes for a slot, in Go, builds and keeps the slot's contract;
// in C it builds.
func TestToolchainSlots(t *testing.T) {
	spinsim := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		status := run(args, &out, &errs)
		return status, out.String() + errs.String()
	}
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	for _, slot := range experiment.Slots() {
		if len(slot.Library.Source()) == 0 && slot.Library.C == nil { // count_c
			continue
		}
		t.Run(slot.Name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			own := "go"
			if slot.Library.C != nil {
				own = "c"
				status, out := spinsim("handler", "new", "mine", "--for", slot.Name)
				require.Equal(t, exitInput, status, out)
				require.Contains(t, out, "expected --lang c")
			}
			status, out := spinsim("handler", "new", "mine", "--for", slot.Name, "--lang", own, "--spinsim", repository)
			require.Equal(t, exitOK, status, out)
			status, out = spinsim("handler", "build", "mine", "-o", "mine.wasm")
			require.Equal(t, exitOK, status, out)
			status, out = spinsim("handler", "check", "mine.wasm", "--for", slot.Name)
			tried := !strings.Contains(out, "no experiment of this program has a smoke point with it")
			require.Equal(t, tried, status == exitOK, out)
			if own == "c" {
				return
			}
			status, out = spinsim("handler", "new", "inc", "--for", slot.Name, "--lang", "c")
			require.Equal(t, exitOK, status, out)
			status, out = spinsim("handler", "build", "inc")
			require.Equal(t, exitOK, status, out)
			status, out = spinsim("handler", "check", "inc/inc.wasm", "--for", slot.Name)
			require.Equal(t, tried, status != exitInput, out) // the header has the state of the contract
		})
	}
}
