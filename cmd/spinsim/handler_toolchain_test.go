//go:build toolchain

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
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
	require.Greater(t, len(commands), 20)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "porting"))))
	clang, err := exec.LookPath("clang-19")
	require.NoError(t, err)
	runDocumented(t, dir, "", clang, commands)
}
