package build

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/manifest"
)

// Sections of a module that describe its exported handlers.
const (
	typeSection     = 1
	importSection   = 2
	functionSection = 3
	exportSection   = 7
	functionKind    = 0 // of imports and exports
	functionNames   = 1 // in the name section
)

// handlerType is the signature of a handler, (i32, i32) -> i32, in a type section.
const handlerType = "\x60\x02\x7f\x7f\x01\x7f"

// export is an exported function with the signature of a handler.
type export struct {
	name   string
	symbol string // of the function in the source, "" if the module does not contain it
}

// handlers lists the handlers that a module exports, in its order. An error
// reading the module is the compiler's fault.
func handlers(module []byte) ([]export, error) {
	list, err := manifest.Sections(module)
	if err != nil {
		return nil, err
	}
	var t table
	for i := range list {
		s := &list[i]
		r := &bytesReader{b: s.Contents}
		switch {
		case s.ID == typeSection:
			r.each(func() { t.types = append(t.types, r.signature()) })
		case s.ID == importSection:
			r.each(func() { t.imported(r) })
		case s.ID == functionSection:
			r.each(func() { t.functions = append(t.functions, r.number()) })
		case s.ID == exportSection:
			r.each(func() { t.exported(r) })
		case s.Name == "name":
			t.named(r) // names are for people: the module is valid without them
			r.failed = false
		}
		if r.failed {
			return nil, fmt.Errorf("section at offset %d of the compiled module cannot be read", s.Offset)
		}
	}
	return t.handlers()
}

// table is the contents of the sections.
type table struct {
	types     []bool   // has the signature of a handler
	functions []uint64 // types, imports first
	exports   []struct {
		name  string
		index uint64
	}
	symbols map[uint64]string
}

func (t *table) handlers() (out []export, err error) {
	for _, e := range t.exports {
		if e.index >= uint64(len(t.functions)) || t.functions[e.index] >= uint64(len(t.types)) {
			return nil, errors.New("the compiled module exports a function that it does not have")
		}
		if t.types[t.functions[e.index]] {
			out = append(out, export{e.name, t.symbols[e.index]})
		}
	}
	return out, nil
}

func (t *table) imported(r *bytesReader) {
	r.text()
	r.text()
	switch kind := r.byte(); kind {
	case functionKind:
		t.functions = append(t.functions, r.number())
	case 1: // a table: type and limits
		r.byte()
		r.limits()
	case 2: // a memory
		r.limits()
	default: // a global: type and mutability
		r.byte()
		r.byte()
	}
}

func (t *table) exported(r *bytesReader) {
	name, kind, index := r.text(), r.byte(), r.number()
	if kind == functionKind {
		t.exports = append(t.exports, struct {
			name  string
			index uint64
		}{name, index})
	}
}

// named reads the names of functions.
func (t *table) named(r *bytesReader) {
	t.symbols = make(map[uint64]string)
	for len(r.b) > 0 && !r.failed {
		id := r.byte()
		sub := &bytesReader{b: r.take(r.number())}
		if id == functionNames {
			sub.each(func() {
				index := sub.number()
				t.symbols[index] = sub.text()
			})
		}
		r.failed = r.failed || sub.failed
	}
}

// bytesReader reads the contents of a section. After the first error all values
// are zero.
type bytesReader struct {
	b      []byte
	failed bool
}

func (r *bytesReader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *bytesReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.failed, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *bytesReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *bytesReader) text() string { return string(r.take(r.number())) }

func (r *bytesReader) limits() {
	flags := r.byte()
	r.number()
	if flags&1 != 0 {
		r.number()
	}
}

// each reads a number n and calls one n times.
func (r *bytesReader) each(one func()) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		one()
	}
}

// signature reads a function type and reports whether it is the signature of a
// handler.
func (r *bytesReader) signature() bool {
	before := r.b
	r.byte()
	r.take(r.number())
	r.take(r.number())
	return string(before[:len(before)-len(r.b)]) == handlerType
}
