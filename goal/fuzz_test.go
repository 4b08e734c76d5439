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
	f.Add([]byte("num_ranks 1\nrank 0 {\n//coll c reduce 8b root 0\ncalc 1\n//coll end\ncalc 2\n}"))
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

// Plain lines have a path of their own. It gives the same schedule, or the same
// error, as the parser for all lines, which alone reads a block of one line.
func FuzzPlainLines(f *testing.F) {
	f.Add([]byte("l1: send 8b to 1 tag 3\nl2: calc 7\nrecv 8b from 0\nl2 requires l1\nl1 irequires l2"))
	f.Add([]byte("l01: calc 1\nl1: calc 2\nl01 requires l1\nl262144: calc 3\nl262144 irequires l262143"))
	f.Add([]byte("l1: calc 999999999999999999\ncalc 9999999999999999999\nl1: calc 0 cpu 3\nl1 requires l0"))
	f.Add([]byte("recv 1b from -1 tag -1\nl0: send 1b to 2\nl9: send 1b to 1 tag 4294967295\nl9:calc 1"))
	f.Add([]byte("l1: send 1b to 1 tag 4294967295"))
	f.Add([]byte("l1: send 1b to 1 tag 9999999999\nrecv 1b from 0 tag -1\nsend 1b to 1 tag 18446744073709551614"))
	f.Add([]byte("l1: calc 1\nl1: calc 2"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		text := append([]byte("num_ranks 2\nrank 0 {\n"), lines...)
		text = append(text, "\n}\nrank 1 {\nl1: calc 1\nl1 requires l1\n}\n"...)
		text = append(text, bytes.Repeat([]byte{'\n'}, plainLine)...)
		parsed := func(blocks ...[]byte) *parser {
			p := &parser{most: MaxText, named: true, b: NewBuilder()}
			p.b.s.names = true
			for _, b := range blocks {
				p.parse(b)
			}
			return p
		}
		all, each := parsed(text), parsed(bytes.SplitAfter(text, []byte{'\n'})...)
		require.Equal(t, each.err, all.err)
		if all.err != nil {
			return
		}
		require.Equal(t, []int{each.line, each.all, each.idle, each.pos}, []int{all.line, all.all, all.idle, all.pos})
		require.Equal(t, each.heads, all.heads)
		want, err := each.b.Schedule()
		got, gotErr := all.b.Schedule()
		require.Equal(t, err, gotErr)
		if err != nil {
			return
		}
		if _, wide := want.WideTag(); !wide {
			require.Equal(t, binaryOf(t, want), binaryOf(t, got))
		}
		for r, v := range want.All() {
			for i := range v.Len() {
				require.Equal(t, want.Ref(r, i), got.Ref(r, i))
			}
		}
	})
}

// A binary schedule that the reader accepts is written with the same bytes,
// except for the index of an empty list.
func FuzzReadBinary(f *testing.F) {
	f.Add(smallBinary)
	f.Add(smallBinary[:100])
	f.Add(binaryOf(f, read(f, named)))
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
