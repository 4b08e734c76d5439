package build

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/manifest"
)

// The module has a code section whose contents begin at 12. Its map has offsets
// 14, 16 and 20, lines 1, 3 and 2 of two files, and nothing from 18 on.
func TestLinesOfASourceMap(t *testing.T) {
	module := append([]byte("\x00asm\x01\x00\x00\x00"), 1, 0, 10, 10)
	module = append(module, "0123456789"...)
	// cAAA: +14, file 0, line 1; EAEA: +2, line +2; E: +2, nothing; ECDC: +2, next file, line -1
	out, err := withLines(module, []byte(`{"version":3,"sources":["index.ts","lib.ts"],"names":[],"mappings":"cAAA,EAEA,E,ECDC"}`))
	require.NoError(t, err)
	require.Equal(t, string(module), string(out[:len(module)]))
	name := manifest.LinesSection
	require.Equal(t, byte(0), out[len(module)])
	require.Equal(t, byte(len(out)-len(module)-2), out[len(module)+1])
	require.Equal(t, name, string(out[len(module)+3:len(module)+3+len(name)]))
	files, lines, err := manifest.DecodeLines(out[len(module)+3+len(name):])
	require.NoError(t, err)
	require.Equal(t, []string{"index.ts", "lib.ts"}, files)
	require.Equal(t, []manifest.Line{{At: 2, Line: 1}, {At: 4, Line: 3}, {At: 6}, {At: 8, File: 1, Line: 2}}, lines)
}

func TestWrongSourceMaps(t *testing.T) {
	module := append([]byte("\x00asm\x01\x00\x00\x00"), 10, 1, 0)
	for _, text := range []string{
		"", "{}", `{"version":2}`, `{"version":3,"sources":["a"],"mappings":"!AAA"}`, `{"version":3,"sources":["a"],"mappings":"cCAA"}`, `{"version":3,"sources":["a"],"mappings":"AAAA"}`,
		`{"version":3,"sources":["a"],"mappings":"cAAA,DAAA"}`, `{"version":3,"sources":["a"],"mappings":"cAAAAA"}`, `{"version":3,"sources":["a"],"mappings":"gggggggggg"}`, `{"version":3,"sources":["a"],"mappings":"cAFA"}`,
	} {
		_, err := withLines(module, []byte(text))
		require.ErrorIs(t, err, errMap, text)
	}
	_, err := withLines([]byte("\x00asm\x01\x00\x00\x00"), []byte(`{"version":3,"sources":[],"mappings":""}`))
	require.ErrorIs(t, err, errNoCode)
}
