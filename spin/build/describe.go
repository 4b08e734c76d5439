package build

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spinsim/spinsim/spin/manifest"
)

// withManifest adds to a compiled module what its source says of it. A module without handlers stays as it is.
func withManifest(module []byte, dir string, lang Lang, tmp string) ([]byte, error) {
	exports, err := handlers(module)
	if err != nil || len(exports) == 0 {
		return module, err
	}
	var m *manifest.Manifest
	if lang == C {
		m, err = describeWithDebug(dir, tmp, exports)
	} else {
		m, err = describeGo(dir, exports)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return manifest.Write(module, m)
}

// describeWithDebug compiles a handler in C once more, with debugging information, and describes it.
func describeWithDebug(dir, tmp string, exports []export) (*manifest.Manifest, error) {
	path := filepath.Join(tmp, "debug.wasm")
	if err := buildC(dir, tmp, path, "-gdwarf-4", "-fdebug-compilation-dir=."); err != nil {
		return nil, err
	}
	debug, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return describeC(dir, debug, exports)
}
