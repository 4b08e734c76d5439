package build

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/manifest"
)

// debugSections are the sections with debugging information about lines and
// functions, of versions 4 and 5 of DWARF.
var debugSections = []string{
	".debug_abbrev", ".debug_addr", ".debug_info", ".debug_line", ".debug_line_str", ".debug_ranges", ".debug_rnglists", ".debug_str", ".debug_str_offsets",
	manifest.LinesSection,
}

// keepSections removes most custom sections of a wasm module. It keeps the
// names, which messages use for functions, and with debug the lines of the
// source. The other sections identify the build of the compiler and are useless
// to a loader.
func keepSections(module []byte, debug bool) ([]byte, error) {
	const custom = 0
	out, err := manifest.Keep(module, func(s *manifest.Piece) bool {
		return s.ID != custom || s.Name == "name" || debug && slices.Contains(debugSections, s.Name)
	})
	if err != nil {
		return nil, fmt.Errorf("what the compiler wrote: %w", err)
	}
	return out, nil
}
