package handlers

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed */guest/*.go
var guests embed.FS

// Source returns the files of a built-in library's module, in Go, by their
// names, without tests. Empty: the module has another source (Library.C).
func (l *Library) Source() map[string][]byte {
	files := make(map[string][]byte)
	names, err := fs.Glob(guests, path.Join(l.Name, "guest", "*.go"))
	if err != nil {
		return nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if b, err := guests.ReadFile(name); err == nil {
			files[path.Base(name)] = b
		}
	}
	return files
}

//go:embed */state.go */plan.go */cursor.go */hash.go */code.go */capability.go */program.go
var shared embed.FS

// Shared returns the files of a built-in library's package that its module is
// compiled from, too, by their names: states, messages and constants. Empty:
// there is no library of that name.
func Shared(library string) map[string][]byte {
	files := make(map[string][]byte)
	names, err := fs.Glob(shared, path.Join(library, "*.go"))
	if err != nil {
		return nil
	}
	for _, name := range names {
		if b, err := shared.ReadFile(name); err == nil {
			files[path.Base(name)] = b
		}
	}
	return files
}
