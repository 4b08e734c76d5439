// Package c holds what handlers in C are compiled with: the headers of this project, those under the names of other toolchains
// (docs/porting.md) and a small C library.
package c

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Header is the text of spin.h.
//
//go:embed spin.h
var Header []byte

//go:embed *.h include compat lib
var files embed.FS

// Library is the C library of handlers in the file system.
type Library struct {
	Include []string // folders of headers, in the order in which they are looked through
	Sources []string // .c files; the linker leaves out what a handler does not use
	Cpp     []string // .cpp files, for handlers in C++
}

// Folder is the name of the folder that Extract makes.
const Folder = "spin"

// Extract writes the library to a new folder in dir.
func Extract(dir string) (*Library, error) {
	root := filepath.Join(dir, Folder)
	l := &Library{Include: []string{root, filepath.Join(root, "include"), filepath.Join(root, "compat")}}
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		to := filepath.Join(root, filepath.FromSlash(name))
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(name, ".c"):
			l.Sources = append(l.Sources, to)
		case strings.HasSuffix(name, ".cpp"):
			l.Cpp = append(l.Cpp, to)
		}
		return os.WriteFile(to, text, 0o644) //lint:files scratch of a build
	})
	return l, err
}
