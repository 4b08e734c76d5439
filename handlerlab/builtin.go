package handlerlab

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/internal/file"
)

// Module is a handler module by its name.
type Module struct {
	Name string // for messages: of the file, or of the built-in library
	Wasm []byte
}

var builtins = []Module{
	{"accumulate", accumulate.Module},
	{"bcast", bcast.Module},
	{"count", count.Module},
	{"count_c", count.ModuleC},
	{"matching", matching.Module},
	{"pingpong", pingpong.Module},
	{"sum", sum.Module},
	{"work", work.Module},
}

// Builtins lists the names of the built-in modules in alphabetical order.
func Builtins() []string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.Name
	}
	return names
}

// Open returns a built-in module by its name, or reads a file.
func Open(name string) (Module, error) {
	for _, b := range builtins {
		if b.Name == name {
			return b, nil
		}
	}
	wasm, err := file.Read(name, file.MaxModule)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(name, filepath.Separator) && filepath.Ext(name) != ".wasm" {
		return Module{}, fmt.Errorf("no module %q: expected a .wasm file or one of %s", name, strings.Join(Builtins(), ", "))
	}
	if err != nil {
		return Module{}, err
	}
	return Module{filepath.Base(name), wasm}, nil
}
