package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Section is the name of the custom section.
const Section = "spinsim.manifest"

const (
	preamble  = 8 // magic and version of a module, bytes
	customID  = 0
	moduleTag = "\x00asm"
)

// errNoModule is the error for bytes that are not a WebAssembly module.
var errNoModule = errors.New("not a WebAssembly module: it does not begin with \\0asm")

// Piece is a section of a module.
type Piece struct {
	ID       byte
	Offset   int    // of the section in the module
	Name     string // of a custom section
	Start    int    // of the contents in the module
	Contents []byte // after the length and the name
}

// Sections splits a module. The contents are not copied.
func Sections(module []byte) ([]Piece, error) {
	if len(module) < preamble || !bytes.HasPrefix(module, []byte(moduleTag)) {
		return nil, errNoModule
	}
	var list []Piece
	for at := preamble; at < len(module); {
		s := Piece{ID: module[at], Offset: at}
		body, next, ok := sized(module, at+1)
		if !ok {
			return nil, fmt.Errorf("section at offset %d is cut off", at)
		}
		if s.ID == customID {
			name, rest, ok := sized(module[:next], body)
			if !ok {
				return nil, fmt.Errorf("section at offset %d: its name is cut off", at)
			}
			s.Name, body = string(module[name:rest]), rest
		}
		s.Start, s.Contents = body, module[body:next]
		list = append(list, s)
		at = next
	}
	return list, nil
}

// sized reads a length and returns the beginning and the end of the bytes with
// that length.
func sized(b []byte, at int) (from, to int, ok bool) {
	n, width := binary.Uvarint(b[at:])
	from = at + width
	if width <= 0 || n > uint64(len(b)-from) {
		return 0, 0, false
	}
	return from, from + int(n), true
}

// Read returns the manifest of a module, nil if it has none. The offset of an
// *Error is in the module.
func Read(module []byte) (*Manifest, error) {
	list, err := Sections(module)
	if err != nil {
		return nil, err
	}
	var found *Piece
	for i := range list {
		s := &list[i]
		if s.Name != Section {
			continue
		}
		if found != nil {
			return nil, &Error{Offset: s.Offset, Cause: fmt.Sprintf("a second section %s, the first is at offset %d", Section, found.Offset)}
		}
		found = s
	}
	if found == nil {
		return nil, nil
	}
	m, err := Parse(found.Contents)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Offset += found.Start
	}
	return m, err
}

// Write returns the module with the manifest, in place of an old one. The
// manifest comes after all other sections, so that nothing else moves.
func Write(module []byte, m *Manifest) ([]byte, error) {
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	out, err := Keep(module, func(s *Piece) bool { return s.Name != Section })
	if err != nil {
		return nil, err
	}
	return Append(out, Section, text), nil
}

// Append appends a custom section to a module.
func Append(module []byte, name string, contents []byte) []byte {
	head := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	module = binary.AppendUvarint(append(module, customID), uint64(len(head)+len(contents)))
	return append(append(module, head...), contents...)
}

// Keep returns the module with only the sections that keep chooses.
func Keep(module []byte, keep func(*Piece) bool) ([]byte, error) {
	list, err := Sections(module)
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), module[:preamble]...)
	for i := range list {
		end := len(module)
		if i+1 < len(list) {
			end = list[i+1].Offset
		}
		if keep(&list[i]) {
			out = append(out, module[list[i].Offset:end]...)
		}
	}
	return out, nil
}
