package smmu_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spinsim/spinsim/internal/script"
)

// FuzzRun feeds the script language with anything: whatever a script says, it
// ends, with an *script.Error or without, and never with a panic. Its seeds are the
// scripts of testdata/script.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/script/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no scripts")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\nrun\n") {
			script, _, _ := strings.Cut(part, "----")
			f.Add(script)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		err := runScript(text, io.Discard)
		var mistake *script.Error
		if err != nil && !errors.As(err, &mistake) {
			t.Fatalf("%T is no *script.Error: %v", err, err)
		}
	})
}
