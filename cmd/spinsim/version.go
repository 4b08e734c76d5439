package main

import (
	"fmt"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/provenance"
)

// thisBuild returns the build of this spinsim. Tests replace it, so that their
// outputs do not depend on the commit.
var thisBuild = sync.OnceValue(provenance.ReadBuild)

// versionCommand prints what the Go tool has recorded about this program.
func versionCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the versions of Go and the WebAssembly engines",
		Long: `Version prints the information that the Go tool has written into this program. Every table, document, timeline and plot names the version that made it.
go install and go build record the commit, and whether files were changed, if they run in a git checkout without -buildvcs=false. go run
records neither.`,
		Args: exactArguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			asJSON, err := parseTextOrJSON(format)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), thisBuild())
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, f := range thisBuild().Facts() {
				fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

// parseTextOrJSON checks --format where only text and JSON make sense.
func parseTextOrJSON(format string) (json bool, err error) {
	switch format {
	case "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, badInput(fmt.Errorf("--format: no format %q, expected text or json", format))
}
