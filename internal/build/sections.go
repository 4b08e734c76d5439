package build

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/manifest"
)

// debugSections are those with debugging information that tell lines and
// functions, of versions 4 and 5 of DWARF.
var debugSections = []string{
	".debug_abbrev", ".debug_addr", ".debug_info", ".debug_line", ".debug_line_str", ".debug_ranges", ".debug_rnglists", ".debug_str", ".debug_str_offsets",
	manifest.LinesSection,
}

// keepSections removes the custom sections of a wasm module except the names,
// which tell functions apart in messages, and if asked the lines of the source.
// The others say which build of which compiler was used, and nothing a loader
// wants to know.
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
