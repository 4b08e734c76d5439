package scaffold

import (
	"bytes"
	"fmt"
	"math/big"
	"path"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/manifest"
)

// libraries is the folder of the libraries' packages, which guests and hosts
// share.
const libraries = module + "/handlers/"

// Declarations reads what the library of a slot, and the libraries that it builds
// on, declare for modules and hosts: messages, constants, functions.
func Declarations(s *handlers.Slot) ([]*build.Declared, error) {
	return build.Declarations(libraries+s.Library.Name, func(importPath string) map[string][]byte {
		if name, is := strings.CutPrefix(importPath, libraries); is {
			return handlers.Shared(name)
		}
		return nil
	})
}

// cMessages declares them in C: structs and numbers as such, functions and types
// without a layout as Go source in comments. The state of the slot is not among
// them.
func cMessages(b *bytes.Buffer, s *handlers.Slot) error {
	list, err := Declarations(s)
	if err != nil {
		return err
	}
	for _, d := range list {
		for i := range d.Items {
			switch item := &d.Items[i]; {
			case item.Struct != nil:
				if s.State() == nil || d.Name != s.Library.Name || item.Struct.Name != s.State().Name {
					cStruct(b, cName(d.Name, item.Struct.Name)+"_t", item.Comment, item.Struct)
				}
			case item.Source != "":
				fmt.Fprintf(b, "\n/* Go: %s */\n", cText(item.Source))
			default:
				if item.Group != "" {
					fmt.Fprintf(b, "\n/* %s */\n", cText(item.Group))
				}
				fmt.Fprintf(b, "#define %s %s%s\n", strings.ToUpper(cName(d.Name, item.Constant)), cNumber(item.Value), cComment(item.Comment))
			}
		}
	}
	return nil
}

// cName is the name of a library's declaration in C, such as rdma_descriptor.
func cName(library, name string) string {
	return path.Base(library) + "_" + manifest.FieldName(name)
}

// cNumber writes a constant in C, with the suffix of a type that has room for it.
func cNumber(value string) string {
	n, ok := new(big.Int).SetString(value, 10)
	switch {
	case ok && n.Sign() < 0:
		return "(" + value + ")"
	case ok && n.BitLen() > 63:
		return fmt.Sprintf("%#xull", n)
	}
	return value
}

// cStruct declares a type with the layout of a struct in Go.
func cStruct(b *bytes.Buffer, name, comment string, s *manifest.State) {
	fmt.Fprintf(b, "\n/* %s */\ntypedef struct {\n", cText(comment))
	cFields(b, s.Fields, s.Size, "\t")
	fmt.Fprintf(b, "} %s;\n_Static_assert(sizeof(%s) == %d, %q);\n", name, name, s.Size, name)
}

func cText(text string) string { return strings.ReplaceAll(text, "*/", "* /") }
