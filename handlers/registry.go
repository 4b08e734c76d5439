package handlers

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/handlers/txlog"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/manifest"
)

// Library is a handler module with what it says of itself. It is read-only.
type Library struct {
	Name     string // of a built-in library, else of the file without its folder: for messages and results
	Path     string // of the file; "": built in, or of no file
	Wasm     []byte
	once     sync.Once
	manifest *manifest.Manifest
}

// New makes a library of a module.
func New(name string, wasm []byte) *Library { return &Library{Name: name, Wasm: wasm} }

// Manifest is what the module says of itself, nil if that is nothing, or nothing that can be read: loading it tells. It is read when it is asked for the
// first time: those of all built-in libraries would take a third of the time in which spinsim starts.
func (l *Library) Manifest() *manifest.Manifest {
	l.once.Do(func() {
		if m, err := manifest.Read(l.Wasm); err == nil {
			l.manifest = m
		}
	})
	return l.manifest
}

// Served is what the section serve of a profile calls the library.
func (l *Library) Served() string {
	if m := l.Manifest(); m != nil && m.Name != "" {
		return m.Name
	}
	return l.Name
}

// builtins are the built-in libraries in alphabetical order.
var builtins = []*Library{
	New("accumulate", accumulate.Module),
	New("allreduce", allreduce.Module),
	New("backupring", backupring.Module),
	New("bcast", bcast.Module),
	New("count", count.Module),
	New("count_c", count.ModuleC),
	New("datatype", datatype.Module),
	New("ftbcast", ftbcast.Module),
	New("graph", graph.Module),
	New("kv", kv.Module),
	New("mailbox", mailbox.Module),
	New("matching", matching.Module),
	New("part", part.Module),
	New("pingpong", pingpong.Module),
	New("raid5", raid5.Module),
	New("rdma", rdma.Module),
	New("replicate", replicate.Module),
	New("rnr", rnr.Module),
	New("scan", scan.Module),
	New("sum", sum.Module),
	New("txlog", txlog.Module),
	New("work", work.Module),
}

// Names lists the built-in libraries in alphabetical order.
func Names() []string {
	names := make([]string, len(builtins))
	for i, l := range builtins {
		names[i] = l.Name
	}
	return names
}

// Builtin returns the built-in library of that name.
func Builtin(name string) (*Library, error) {
	for _, l := range builtins {
		if l.Name == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no built-in library %q, expected one of %s%s", name, strings.Join(Names(), ", "), fields.DidYouMean(name, Names()))
}

// Must returns the built-in library of that name. It panics if there is none: the name is a constant.
func Must(name string) *Library {
	l, err := Builtin(name)
	if err != nil {
		panic("handlers: " + err.Error())
	}
	return l
}

// ReadFunc reads a file of at most limit bytes.
type ReadFunc func(name string, limit int64) ([]byte, error)

// Open returns the built-in library of that name, or reads a module from a file.
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
