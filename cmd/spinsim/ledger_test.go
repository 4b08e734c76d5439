package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
)

// A row that sets a parameter names what it sets: values of a profile, the
// experiments whose conditions it gives, or the package with what it describes.
// Each of these exists.
func TestWhatRowsSet(t *testing.T) {
	fields := map[string]bool{}
	add := func(path string) {
		for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
			fields[path] = true
		}
	}
	for _, path := range profile.Fields() {
		add(path)
	}
	for _, name := range profile.Names() {
		text, err := profile.Source(name)
		require.NoError(t, err)
		p, err := profile.Load(name)
		require.NoError(t, err)
		values, err := profile.Values(text, p.Origin)
		require.NoError(t, err)
		for _, v := range values { // the names of pools differ
			add(v.Path)
		}
	}
	for _, p := range ledger.Publications() {
		for _, r := range p.Rows {
			if r.Class != ledger.Sets {
				continue
			}
			if names, ok := strings.CutPrefix(r.Why, "conditions of "); ok {
				names, _, _ = strings.Cut(names, ":")
				for _, name := range strings.Fields(strings.ReplaceAll(names, " and ", " ")) {
					_, err := experiment.Find(name)
					c, _, _ := rootCommand().Find([]string{name})
					require.True(t, err == nil || c.Name() == name, "%s gives conditions of %s: no experiment, and no command", r.ID, name)
				}
				continue
			}
			for _, name := range strings.Fields(r.Why) {
				if !fields[name] {
					_, err := os.Stat(filepath.Join("..", "..", name))
					require.NoError(t, err, "%s sets %s: no value of a profile, and no package", r.ID, name)
				}
			}
		}
	}
}
