package build

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/manifest"
)

// withManifest adds a manifest to a compiled module. debug is the same module of a
// handler in C with debugging information, library the folder of this package's
// C library. A module without handlers is unchanged.
func (o *Options) withManifest(module []byte, dir, library string, lang Lang, debug []byte) ([]byte, error) {
	exports, err := handlers(module)
	if err != nil || len(exports) == 0 {
		return module, err
	}
	var m *manifest.Manifest
	switch lang {
	case C, Cpp, Rust:
		m, err = o.describeC(dir, library, lang, debug, exports)
	case AssemblyScript:
		m, err = describeAssemblyScript(dir, exports)
	default:
		m, err = describeGo(dir, exports)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	for i := range o.Sets {
		for _, name := range o.Sets[i].Exports() {
			if h := m.Handler(name); h != nil && name != "" {
				h.Set = o.Sets[i].Name
			}
		}
	}
	return manifest.Write(module, m)
}
