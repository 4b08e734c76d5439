package handlers

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/manifest"
)

// Library is a handler module with its description of itself. It is read-only.
type Library struct {
	// of a built-in library, else the name of the file without its folder: for
	// messages and results
	Name     string
	Path     string // of the file; "": built in, or without a file
	Wasm     []byte
	C        map[string][]byte // the module's source, by names of files, if it is in C and to be had
	slots    []*Slot
	once     sync.Once
	manifest *hpu.Manifest
}

// New makes a library from a module.
func New(name string, wasm []byte) *Library { return &Library{Name: name, Wasm: wasm} }

// Manifest returns the module's description of itself. It is nil if there is
// none, or if it cannot be read; then loading reports the error. It is read on
// first use: reading those of all built-in libraries would take a third of the
// time in which spinsim starts.
func (l *Library) Manifest() *hpu.Manifest {
	l.once.Do(func() {
		if m, err := manifest.Read(l.Wasm); err == nil {
			l.manifest = m
		}
	})
	return l.manifest
}

// Served returns the library's name in the section serve of a profile.
func (l *Library) Served() string {
	if m := l.Manifest(); m != nil && m.Name != "" {
		return m.Name
	}
	return l.Name
}

// builtins are the registered libraries in alphabetical order.
var builtins []*Library

// Register adds a built-in library and returns it. A library calls it when its
// package is initialised. It panics if the name is taken, which is a
// programmer's mistake.
func Register(name string, wasm []byte) *Library {
	i, taken := slices.BinarySearchFunc(builtins, name, func(l *Library, name string) int { return strings.Compare(l.Name, name) })
	if taken {
		panic("handlers: there are two libraries " + name)
	}
	l := New(name, wasm)
	builtins = slices.Insert(builtins, i, l)
	return l
}

// Names lists the built-in libraries in alphabetical order.
func Names() []string {
	names := make([]string, len(builtins))
	for i, l := range builtins {
		names[i] = l.Name
	}
	return names
}

// Builtin returns the built-in library with a name.
func Builtin(name string) (*Library, error) {
	for _, l := range builtins {
		if l.Name == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no built-in library %q, expected one of %s%s", name, strings.Join(Names(), ", "), fields.DidYouMean(name, Names()))
}

// Must returns the built-in library with a name. It panics if there is none:
// the name must be a constant.
func Must(name string) *Library {
	l, err := Builtin(name)
	if err != nil {
		panic("handlers: " + err.Error())
	}
	return l
}

// ReadFunc reads a file of at most limit bytes.
type ReadFunc func(name string, limit int64) ([]byte, error)

// Open returns the built-in library with a name, or reads a module from a file.
func Open(name string) (*Library, error) {
	if l, err := Builtin(name); err == nil {
		return l, nil
	}
	l, err := OpenFile(name, file.ReadRegular)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(name, filepath.Separator) && filepath.Ext(name) != ".wasm" {
		return nil, fmt.Errorf("no module %q: expected a .wasm file or one of %s%s", name, strings.Join(Names(), ", "), fields.DidYouMean(name, Names()))
	}
	return l, err
}

// OpenFile reads a module from a file.
func OpenFile(path string, read ReadFunc) (*Library, error) {
	wasm, err := read(path, file.MaxModule)
	if err != nil {
		return nil, err
	}
	l := New(filepath.Base(path), wasm)
	l.Path = path
	return l, nil
}
