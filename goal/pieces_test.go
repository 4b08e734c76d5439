package goal

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A text gives the same schedule, or the same error, in pieces of any length as
// in one: texts of random schedules, whole and with random changes.
func TestPiecesOfText(t *testing.T) {
	t.Parallel()
	wrong, failed := 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var text bytes.Buffer
		require.NoError(t, WriteText(&text, randomSchedule(t, rng, true)))
		in := spoiled(rng, text.Bytes())
		whole, err := readText(bytes.NewReader(in), ReadOptions{File: "x"}, MaxText, 1<<20)
		length := 8 << rng.IntN(7)
		got, gotErr := readText(iotest.HalfReader(bytes.NewReader(in)), ReadOptions{File: "x"}, MaxText, length)
		if err != nil {
			wrong++
			require.EqualError(t, gotErr, err.Error(), "seed %d, pieces of %d bytes:\n%s", seed, length, in)
			continue
		}
		require.NoError(t, gotErr, "seed %d, pieces of %d bytes:\n%s", seed, length, in)
		var want, is bytes.Buffer
		require.NoError(t, WriteText(&want, whole))
		require.NoError(t, WriteText(&is, got))
		require.Equal(t, want.String(), is.String())
		require.Equal(t, binaryOf(t, whole), binaryOf(t, got))
		for r, v := range whole.All() {
			for i := range v.Len() {
				require.Equal(t, whole.Ref(r, i), got.Ref(r, i))
			}
		}
		_, err = readText(iotest.TimeoutReader(bytes.NewReader(in)), ReadOptions{}, MaxText, length)
		_, wholeErr := readText(iotest.TimeoutReader(bytes.NewReader(in)), ReadOptions{}, MaxText, 1<<20)
		if wholeErr != nil && err != nil {
			failed++
			require.Contains(t, err.Error(), "timeout")
		}
	}
	require.Greater(t, wrong, 300)
	require.Positive(t, failed)
}

// spoiled makes up to two random changes to a text.
func spoiled(rng *rand.Rand, text []byte) []byte {
	text = bytes.Clone(text)
	lines := strings.Count(string(text), "\n")
	parts := []string{
		"/* ", "*/", "\nrank 0 {\n", "rank 1 {", "}", "\n", " ", "// ", "rank: calc 1\n", "\nrank requires rank\n", "\nrank 7\n{\n", "\x00", "99999999999", "-1", "/*\nrank 1 {\n*/", "\n//coll c1 barrier 7b\n", "\n//coll c1 allreduce 9b\n", "//coll end\n",
	}
	for range rng.IntN(3) {
		at := rng.IntN(len(text))
		if rng.IntN(2) == 0 && lines > 0 {
			at = bytes.LastIndexByte(text[:at], '\n') + 1
		}
		switch rng.IntN(3) {
		case 0:
			text = append(text[:at:at], text[min(len(text), at+1+rng.IntN(20)):]...)
		case 1:
			text = append(text[:at:at], append([]byte(parts[rng.IntN(len(parts))]), text[at:]...)...)
		default:
			text[at] = " x0{}\n:/*1"[rng.IntN(10)]
		}
		if len(text) == 0 {
			return text
		}
	}
	return text
}
