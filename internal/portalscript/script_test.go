package portalscript

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the conformance scripts. Each is a directive
//
//	run clause=2.1 name=...
//	script
//	----
//	what it prints
//
// The clause is the point of Portals 4.x, as numbered in the documentation of
// package portals, that the script proves. "go test -rewrite" writes the present output.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/conformance", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown directive %q, want run", d.Cmd)
			}
			if !d.HasArg("clause") {
				d.Fatalf(t, "no clause: which point does the script prove?")
			}
			return runText(d.Input)
		})
	})
}

func runText(text string) string {
	var out strings.Builder
	if err := Run(text, &out); err != nil {
		out.WriteString("mistake: " + err.Error() + "\n")
	}
	return out.String()
}
