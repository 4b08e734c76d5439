package scaffold

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/spin"
)

// forSlot returns the files of a module for a slot. In Go they are the library's
// own: the module keeps the contract from the beginning. In C and C++ they are
// state and messages in a header, and handlers that do nothing yet. A library in
// C has its own source in C only.
func forSlot(o Options, v values) (map[string][]byte, error) {
	l := o.Slot.Library
	source := l.Source()
	if len(source) == 0 && l.C == nil {
		return nil, fmt.Errorf("slot %s: the source of its library is not in this program", o.Slot.Name)
	}
	files := map[string][]byte{}
	note := "It is the source of library " + l.Name + ": change what you like."
	switch {
	case l.C != nil && o.Lang == build.C:
		maps.Copy(files, l.C)
	case l.C != nil:
		return nil, fmt.Errorf("slot %s: its module is in C, expected --lang c", o.Slot.Name)
	case o.Lang == build.TinyGo:
		note += " Editors and `go vet` need `go mod tidy` once."
		all, err := render(o.Lang, v)
		if err != nil {
			return nil, err
		}
		files["go.mod"] = all["go.mod"]
		maps.Copy(files, source)
	case o.Lang == build.C || o.Lang == build.Cpp:
		note = "Its handlers do nothing yet. `" + v.Name + ".h` has the state and the messages."
		files["spin.h"] = spin.CHeader
		header, err := cHeader(o.Slot)
		if err != nil {
			return nil, err
		}
		files[v.Name+".h"] = header
		files[v.Name+"."+string(o.Lang)] = cHandlers(o.Slot, v.Name, source)
	default:
		return nil, fmt.Errorf("slot %s: no module in %s, expected go, c or cpp", o.Slot.Name, o.Lang)
	}
	files["README.md"] = fmt.Appendf(nil, "# %s\n\nA module for slot `%s`. %s\n\n```sh\nspinsim handler build\nspinsim handler check %s.wasm --for %s\n```\n\nThe contract:\n\n```\n%s```\n",
		v.Name, o.Slot.Name, note, v.Name, o.Slot.Name, o.Slot.Text())
	return files, nil
}

// directive is a line of a source that the manifest is made from.
var directive = regexp.MustCompile(`(?m)^//spin:(library|needs) .*$`)

// cHandlers are handlers that do nothing.
func cHandlers(s *handlers.Slot, name string, source map[string][]byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "/* For slot %s: %s. */\n//spin:library %s 1.0\n", s.Name, s.Short, filepath.Base(name))
	for _, file := range slices.Sorted(maps.Keys(source)) {
		for _, line := range directive.FindAll(source[file], -1) {
			if !bytes.HasPrefix(line, []byte("//spin:library")) {
				fmt.Fprintf(&b, "%s\n", line)
			}
		}
	}
	fmt.Fprintf(&b, "#include \"spin.h\"\n#include \"%s.h\"\n", filepath.Base(name))
	records := map[manifest.Kind]string{manifest.Header: "ptl_header_t", manifest.Payload: "ptl_payload_t", manifest.Completion: "ptl_completion_t"}
	for _, h := range s.Handlers {
		code := "PTL_SUCCESS"
		switch {
		case s.Kernel:
			code = "PTL_PROCEED"
		case s.Kind(h) == manifest.Header:
			code = "PTL_PROCESS_DATA"
		}
		b.WriteString("\n")
		if d := s.Library.Manifest().Handler(h); d != nil && d.Description != "" {
			b.WriteString(strings.TrimPrefix(cComment(d.Description), " ") + "\n")
		}
		fmt.Fprintf(&b, "SPIN_HANDLER(%s)(const %s *r, state_t *s)\n{\n\t(void)r;\n\t(void)s;\n\treturn %s;\n}\n", h, records[s.Kind(h)], code)
	}
	return b.Bytes()
}

// cHeader declares the state of a slot, and its messages.
func cHeader(s *handlers.Slot) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "/* The state of slot %s, as its host has it, and its messages. Numbers are little-endian. */\n#pragma once\n#include \"spin.h\"\n", s.Name)
	if state := s.State(); state != nil {
		cStruct(&b, "state_t", state.Description, state)
	}
	err := cMessages(&b, s)
	return b.Bytes(), err
}

// cFields declares fields of a struct of size bytes, with the room between them.
func cFields(b *bytes.Buffer, fields []manifest.Field, size int64, indent string) {
	at := int64(0)
	room := func(until int64) {
		if until > at {
			fmt.Fprintf(b, "%suint8_t room_%d[%d];\n", indent, at, until-at)
		}
	}
	for i := range fields {
		f := &fields[i]
		room(f.Offset)
		elements := int64(1)
		var dims strings.Builder
		for _, d := range f.Dims {
			elements *= d
			fmt.Fprintf(&dims, "[%d]", d)
		}
		if f.Type == "" {
			fmt.Fprintf(b, "%sstruct {\n", indent)
			cFields(b, f.Fields, f.Size, indent+"\t")
			fmt.Fprintf(b, "%s} %s%s;\n", indent, f.Name, dims.String())
			at = f.Offset + elements*f.Size
			continue
		}
		fmt.Fprintf(b, "%s%s %s%s%s;%s\n", indent, cType(f.Type), f.Name, dims.String(), cField(f), cComment(f.Description))
		at = f.Offset + elements*f.Type.Size()
	}
	room(size)
}

func cType(t manifest.Type) string {
	switch t {
	case manifest.F32:
		return "float"
	case manifest.F64:
		return "double"
	}
	if t[0] == 'i' {
		return "int" + string(t[1:]) + "_t"
	}
	return "uint" + string(t[1:]) + "_t"
}

// cField is the words about a number that the manifest keeps.
func cField(f *manifest.Field) string {
	var words []string
	if f.Unit != "" {
		words = append(words, "unit="+f.Unit)
	}
	for _, x := range []struct {
		word string
		e    manifest.Expr
	}{{"default", f.Default}, {"min", f.Min}, {"max", f.Max}} {
		if x.e.IsSet() {
			words = append(words, x.word+"="+x.e.String())
		}
	}
	if words == nil {
		return ""
	}
	return fmt.Sprintf(" SPIN_FIELD(%q)", strings.Join(words, " "))
}

func cComment(text string) string {
	if text == "" {
		return ""
	}
	return " /* " + cText(text) + " */"
}
