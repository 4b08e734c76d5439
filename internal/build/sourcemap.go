package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// codeSection is the code of a module.
const codeSection = 10

var errNoCode = errors.New("no code")

// errMap is the error for bytes that are not a source map of version 3.
var errMap = errors.New("what the compiler wrote: no source map of version 3")

// withLines adds the lines of a source map to a module. Places in the map are
// offsets in the module (https://tc39.es/ecma426; for wasm they are the columns
// of one line).
func withLines(module, sourceMap []byte) ([]byte, error) {
	var m struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(sourceMap, &m); err != nil || m.Version != 3 {
		return nil, errMap
	}
	sections, err := manifest.Sections(module)
	code := slices.IndexFunc(sections, func(s manifest.Piece) bool { return s.ID == codeSection })
	if err != nil || code < 0 {
		return nil, fmt.Errorf("what the compiler wrote: %w", cmp.Or(err, errNoCode))
	}
	begin := sections[code].Start
	var lines []manifest.Line
	var fields [5]int // column, source, line, column there, name: each relative to the one before
	for segment := range strings.SplitSeq(m.Mappings, ",") {
		n := 0
		for ; segment != ""; n++ {
			var v int
			if v, segment, err = cutVLQ(segment); err != nil || n == len(fields) {
				return nil, errMap
			}
			fields[n] += v
		}
		l := manifest.Line{At: uint64(max(0, fields[0]-begin)), File: fields[1], Line: fields[2] + 1}
		if n < 4 {
			l.Line, l.File = 0, 0
		}
		if fields[0] < begin || l.File < 0 || l.File >= len(m.Sources) || l.Line < 0 || len(lines) > 0 && l.At < lines[len(lines)-1].At {
			return nil, errMap
		}
		lines = append(lines, l)
	}
	return manifest.Append(module, manifest.LinesSection, manifest.EncodeLines(m.Sources, lines)), nil
}

// cutVLQ reads a number in base 64, the lowest bits first. Its lowest bit is
// the sign.
func cutVLQ(text string) (v int, rest string, err error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for shift := 0; shift < 35 && text != ""; shift += 5 {
		d := strings.IndexByte(digits, text[0])
		if d < 0 {
			return 0, "", errMap
		}
		text = text[1:]
		v |= d & 31 << shift
		if d < 32 {
			if v&1 != 0 {
				return -(v >> 1), text, nil
			}
			return v >> 1, text, nil
		}
	}
	return 0, "", errMap
}
