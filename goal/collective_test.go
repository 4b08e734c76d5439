package goal

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named is a schedule with a collective of both ranks.
const named = `num_ranks 2

rank 0 {
calc 3
//coll c reduce 8b root 1
send 8b to 1
//coll end
}

rank 1 {
//coll c reduce 8b root 1
recv 8b from 0
//coll end
calc 1
}
`

// The binary form keeps collectives behind the last rank, where the table of
// ranks does not lead a reader; without them it has the bytes that it had.
func TestBinaryCollectives(t *testing.T) {
	t.Parallel()
	full := binaryOf(t, read(t, named))
	plain := binaryOf(t, read(t, strings.ReplaceAll(named, "//coll", "// ")))
	require.True(t, bytes.HasPrefix(full, plain))
	require.Equal(t, markWord, string(full[len(plain):][:len(markWord)]))
	s, err := ReadBinary(bytes.NewReader(full), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []Collective{{"c", Reduce, 8, 1}}, s.Collectives())
	require.Equal(t, []int{-1, 0}, []int{s.Rank(0).Collective(0), s.Rank(0).Collective(1)})
	var text bytes.Buffer
	require.NoError(t, WriteText(&text, s))
	require.Equal(t, named, text.String())

	for n := len(plain) + 1; n < len(full); n++ {
		_, err := ReadBinary(bytes.NewReader(full[:n]), ReadOptions{})
		var e *FormatError
		require.ErrorAs(t, err, &e, "%d bytes", n)
	}
	const kind, runs = collHeader + collBytes, collHeader + collBytes + len("reduce") + 1 + len("c")
	for _, c := range []struct {
		at   int
		v    uint32
		want string
	}{
		{7, 2, "expected the end of the file after the last rank"},
		{8, 0, "expected operations of a collective, found the end of the file"},
		{collHeader + 8, 2, "collective c reduce 8b root 2: rank 2 of 2 ranks"},
		{kind, 'r' | 'i'<<8 | 'd'<<16 | 'u'<<24, `collective c: kind "riduce", expected one of`},
		{runs + 4, 2, "1 operations from 2, expected some of 0 to 2 of rank 0"},
		{runs + 8, 2, "2 operations from 1, expected some of 0 to 2 of rank 0"},
		{runs + 8, 0, "0 operations from 1"},
		{runs + 12, 1, "collective 1, expected one below 1"},
	} {
		b := bytes.Clone(full)
		binary.LittleEndian.PutUint32(b[len(plain)+c.at:], c.v)
		_, err := ReadBinary(bytes.NewReader(b), ReadOptions{})
		require.ErrorContains(t, err, c.want)
	}
	_, err = ReadBinary(bytes.NewReader(append(full, 0)), ReadOptions{})
	require.ErrorContains(t, err, "expected the end of the file after the collectives")
}

// Collectives of several jobs keep apart, and their roots move with them.
func TestMergedCollectives(t *testing.T) {
	t.Parallel()
	s := read(t, named)
	all, err := Merge([]*Schedule{s, s}, [][]int{{2, 0}, {1, 3}})
	require.NoError(t, err)
	require.Equal(t, []Collective{{"j1_c", Reduce, 8, 0}, {"j2_c", Reduce, 8, 3}}, all.Collectives())
	one, err := Merge([]*Schedule{s}, [][]int{{0, 1}})
	require.NoError(t, err)
	require.Equal(t, binaryOf(t, s), binaryOf(t, one))
}

// A builder refuses collectives that no text could name.
func TestBuilderCollectives(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Collective{
		`collective "end"`:                              {Name: "end", Kind: Barrier},
		`collective "": expected a name`:                {Kind: Barrier},
		`collective "a-b": expected a name`:             {Name: "a-b", Kind: Barrier},
		`collective a: kind "", expected one of`:        {Name: "a"},
		"collective a: root 1, and barrier has no":      {Name: "a", Kind: Barrier, Root: 1},
		"collective a reduce 0b root 1: rank 1 of 1":    {Name: "a", Kind: Reduce, Root: 1},
		"collective x barrier 8b: before it was x":      {Name: "x", Kind: Barrier, Bytes: 8},
		`collective "` + strings.Repeat("a", 40) + `":`: {Name: strings.Repeat("a", MaxName+1), Kind: Barrier},
	} {
		b := NewBuilder()
		b.Rank(0)
		b.Begin(Collective{Name: "x", Kind: Barrier})
		b.Calc(1)
		b.Begin(c)
		b.Calc(1)
		_, err := b.Schedule()
		require.ErrorContains(t, err, want)
	}
}
