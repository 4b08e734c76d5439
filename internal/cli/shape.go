package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// ShapeFlag is the flag --topology: the size of a profile's network, shorter than with
// --set.
type ShapeFlag struct{ text string }

// Register adds the flag.
func (f *ShapeFlag) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.text, "topology", "", "size of a torus: `NUMBERS` of QFDBs of exanest, or lengths of rings, such as 4x4x2; the same as --set fabric.dims=[4,4,2]")
}

// Overrides are the overrides of the profile for the flag.
func (f *ShapeFlag) Overrides() ([]string, error) {
	if f.text == "" {
		return nil, nil
	}
	parts := strings.Split(f.text, "x")
	for _, part := range parts {
		if n, err := strconv.ParseInt(part, 10, 32); err != nil || n < 0 {
			return nil, fmt.Errorf("--topology: %q, expected whole numbers joined by x, such as 4x4x2, none above 2147483647", f.text)
		}
	}
	return []string{"fabric.dims=[" + strings.Join(parts, ", ") + "]"}, nil
}
