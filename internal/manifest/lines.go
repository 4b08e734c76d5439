package manifest

import (
	"encoding/binary"
	"errors"
)

// LinesSection is the name of a custom section with source lines. It is for a
// module whose compiler writes a source map instead of DWARF.
const LinesSection = ".debug_spin_lines"

// Line gives the source line of the code from At up to the next Line. At counts
// from the beginning of the contents of the code section.
type Line struct {
	At   uint64
	File int // index of the file
	Line int // from 1; 0: none
}

// EncodeLines writes the contents of the section: the names of files, and lines
// in the order of their code.
func EncodeLines(files []string, lines []Line) []byte {
	b := binary.AppendUvarint(nil, uint64(len(files)))
	for _, name := range files {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	at := uint64(0)
	for _, l := range lines {
		b = binary.AppendUvarint(b, l.At-at)
		b = binary.AppendUvarint(b, uint64(l.File))
		b = binary.AppendUvarint(b, uint64(l.Line))
		at = l.At
	}
	return b
}

var errLines = errors.New("no lines of a source: " + LinesSection)

// DecodeLines reads the output of EncodeLines.
func DecodeLines(b []byte) (files []string, lines []Line, err error) {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b, err = nil, errLines
			return 0
		}
		b = b[n:]
		return v
	}
	for range min(next(), uint64(len(b))) {
		n := next()
		if n > uint64(len(b)) {
			return nil, nil, errLines
		}
		files, b = append(files, string(b[:n])), b[n:]
	}
	at := uint64(0)
	for len(b) > 0 && err == nil {
		at += next()
		l := Line{At: at, File: int(next() & 0x7fffffff)}
		l.Line = int(next() & 0x7fffffff)
		if l.File >= len(files) {
			err = errLines
		}
		lines = append(lines, l)
	}
	return files, lines, err
}
