package build

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spinsim/spinsim/spin"
)

// cLibrary is the C library of handlers in the file system.
type cLibrary struct {
	include []string // folders of headers, in the order of the search
	sources []string // .c files; the linker leaves out unused functions
	cpp     []string // .cpp files, for handlers in C++
}

// cFolder is the folder that extractC makes.
const cFolder = "spin"

// extractC writes the library to a new folder in dir.
func extractC(dir string) (*cLibrary, error) {
	files, err := fs.Sub(spin.CFiles, "c")
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, cFolder)
	l := &cLibrary{include: []string{root, filepath.Join(root, "include"), filepath.Join(root, "compat")}}
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		to := filepath.Join(root, filepath.FromSlash(name))
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(name, ".c"):
			l.sources = append(l.sources, to)
		case strings.HasSuffix(name, ".cpp"):
			l.cpp = append(l.cpp, to)
		}
		return os.WriteFile(to, text, 0o644) //lint:files scratch of a build
	})
	return l, err
}
