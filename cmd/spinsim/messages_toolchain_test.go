//go:build toolchain

package main

import (
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/scaffold"
)

// The headers of all slots, in C and C++, have the sizes, offsets and numbers
// that the Go compiler gives the libraries' declarations.
func TestToolchainMessages(t *testing.T) {
	facts := messageFacts(t)
	for _, slot := range handlers.Slots() {
		if len(slot.Library.Source()) == 0 {
			continue // a library of this test program
		}
		for _, lang := range []build.Lang{build.C, build.Cpp} {
			dir := filepath.Join(t.TempDir(), "module")
			_, err := scaffold.New(scaffold.Options{Dir: dir, Lang: lang, Slot: slot})
			require.NoError(t, err)
			state := strings.ReplaceAll(strings.Join(facts[slot.Library.Name], "\n"), slot.Library.Name+"_state_t", "state_t")
			name := filepath.Join(dir, "module."+string(lang))
			source, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(name, append(source, "\n#include <stddef.h>\n"+state+"\n"...), 0o666))
			output(t, "handler", "build", dir, "-o", filepath.Join(dir, "module.wasm"))
		}
	}
}

// askGo prints sizes, offsets and numbers.
const askGo = `package main

import (
	"fmt"
	"reflect"

%s)

func layout(library string, t reflect.Type) {
	fmt.Println(library, "size", t.Name(), t.Size())
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "_" {
			fmt.Println(library, "field", t.Name(), f.Name, f.Offset, f.Type.Size())
		}
	}
}

func main() {
%s}
`

// messageFacts asks the Go compiler about the declarations of the slots'
// libraries, and returns what must hold in C.
func messageFacts(t *testing.T) map[string][]string {
	var imports, asks strings.Builder
	facts := make(map[string][]string)
	structs := 0
	for _, slot := range handlers.Slots() {
		library := slot.Library.Name
		if _, known := facts[library]; known || len(slot.Library.Source()) == 0 {
			continue
		}
		facts[library] = nil
		list, err := scaffold.Declarations(slot)
		require.NoError(t, err)
		used := false
		for _, item := range list[len(list)-1].Items {
			switch {
			case item.Struct != nil:
				structs++
				fmt.Fprintf(&asks, "\tlayout(%q, reflect.TypeOf(%s.%s{}))\n", library, library, item.Struct.Name)
			case ast.IsExported(item.Constant):
				fmt.Fprintf(&asks, "\tfmt.Println(%q, \"number\", %q, uint64(%s.%s))\n", library, item.Constant, library, item.Constant)
			default:
				continue
			}
			used = true
		}
		if used {
			fmt.Fprintf(&imports, "\t\"github.com/spinsim/spinsim/handlers/%s\"\n", library)
		}
	}
	require.Greater(t, structs, 80)
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, askGo, imports.String(), asks.String()), 0o666))
	run := exec.Command("go", "run", program)
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		w := strings.Fields(line)
		name := w[0] + "_" + manifest.FieldName(w[2])
		fact := ""
		switch w[1] {
		case "number":
			fact = fmt.Sprintf("_Static_assert((unsigned long long)%s == %sull, \"%s\");", strings.ToUpper(name), w[3], name)
		case "size":
			fact = fmt.Sprintf("_Static_assert(sizeof(%s_t) == %s, \"%s\");", name, w[3], name)
		case "field":
			field := manifest.FieldName(w[3])
			fact = fmt.Sprintf("_Static_assert(offsetof(%s_t, %s) == %s && sizeof(((%s_t *)0)->%s) == %s, \"%s.%s\");", name, field, w[4], name, field, w[5], name, field)
		}
		facts[w[0]] = append(facts[w[0]], fact)
	}
	return facts
}
