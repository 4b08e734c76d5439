package goal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every text that the reader accepts can be written and read again as the same
// schedule. Every error has a position.
func FuzzReadText(f *testing.F) {
	f.Add([]byte(smallText))
	f.Add([]byte("num_ranks 2 rank 1 {\n}\nrank 0 { a: calc 1 /* x\n*/ cpu 7 // y\n a requires a }"))
	f.Add([]byte("num_ranks 1\nrank 0 {\nsend 0b to 0 tag -1 cpu 256 nic 1\nrecv 1b from -1}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := ReadText(bytes.NewReader(in), ReadOptions{})
		if err != nil {
			var e *SyntaxError
			require.ErrorAs(t, err, &e)
			require.Positive(t, e.Line)
			require.Positive(t, e.Column)
			return
		}
		var out bytes.Buffer
		require.NoError(t, WriteText(&out, s))
		requireSameBinary(t, s, out.Bytes())
		fuzzRun(t, s)
	})
}

// A binary schedule that the reader accepts is written with the same bytes,
// except for the index of an empty list.
func FuzzReadBinary(f *testing.F) {
	f.Add(smallBinary)
	f.Add(smallBinary[:100])
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := ReadBinary(bytes.NewReader(in), ReadOptions{})
		if err != nil {
			var e *FormatError
			require.ErrorAs(t, err, &e)
			require.GreaterOrEqual(t, e.Offset, int64(0))
			require.LessOrEqual(t, e.Offset, int64(len(in)))
			return
		}
		out := binaryOf(t, s)
		require.Len(t, out, len(in))
		again, err := ReadBinary(bytes.NewReader(out), ReadOptions{})
		require.NoError(t, err)
		require.Equal(t, out, binaryOf(t, again))
		fuzzRun(t, s)
	})
}

// fuzzRun checks that a run ends normally or with a typed error.
func fuzzRun(t *testing.T, s *Schedule) {
	if s.Len() > 1000 {
		return
	}
	_, err := NewSimulator(s).Run(DefaultParams())
	var e *UnfinishedError
	if err != nil && !errors.As(err, &e) {
		require.ErrorIs(t, err, ErrOverflow)
	} else if err != nil {
		require.NotZero(t, e.Blocked+e.NumReceives+e.NumSends)
		require.NotEmpty(t, e.Error())
	}
}
