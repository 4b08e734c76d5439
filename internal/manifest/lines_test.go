package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Encoded lines are decoded unchanged. Any bytes give lines or an error.
func TestLinesComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		files := rapid.SliceOfN(rapid.String(), 1, 5).Draw(r, "files")
		var lines []Line
		at := uint64(0)
		for range rapid.IntRange(0, 20).Draw(r, "lines") {
			at += rapid.Uint64Range(0, 1<<30).Draw(r, "step")
			lines = append(lines, Line{at, rapid.IntRange(0, len(files)-1).Draw(r, "file"), rapid.IntRange(0, 1<<30).Draw(r, "line")})
		}
		b := EncodeLines(files, lines)
		gotFiles, got, err := DecodeLines(b)
		require.NoError(t, err)
		require.Equal(t, files, gotFiles)
		require.Equal(t, lines, got)

		b = append(b[:rapid.IntRange(0, len(b)).Draw(r, "cut")], rapid.SliceOf(rapid.Byte()).Draw(r, "other")...)
		files, lines, err = DecodeLines(b)
		for _, l := range lines {
			require.True(t, err != nil || l.File < len(files))
		}
	})
}
