package build

import (
	"fmt"

	"github.com/spinsim/spinsim/spin/manifest"
)

// keepNames removes the custom sections of a wasm module except the names, which tell functions
// apart in messages. The others say which build of which compiler was used, and nothing a loader
// wants to know.
func keepNames(module []byte) ([]byte, error) {
	const custom = 0
	out, err := manifest.Keep(module, func(s *manifest.Piece) bool { return s.ID != custom || s.Name == "name" })
	if err != nil {
		return nil, fmt.Errorf("what the compiler wrote: %w", err)
	}
	return out, nil
}
