//go:build toolchain

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestToolchain runs scripts that need what scripts/install-tinygo.sh installs.
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
