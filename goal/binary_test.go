package goal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// smallText and smallBinary are the same schedule. The format's own converter
// wrote the bytes. The lines are the header, the table, and per rank: counts
// and roots, operations, appendix.
const smallText = `num_ranks 2

rank 0 {
l1: send 8b to 1 tag 3 cpu 2 nic 1
l2: calc 100 cpu 44
l3: recv 8b from -1 tag -1
l2 requires l1
l3 irequires l1
l3 requires l2
}

rank 1 {
l1: recv 8b from 0 tag 3
l2: send 8b to 0
calc 5
l2 requires l1
}
`

var smallBinary = unhex(`
	7f10000000000000 02000000 2c 01
	2600000000000000 b300000000000000  b300000000000000 3c01000000000000
	03000000 01000000  00000000
	00000000 01 01000000 0800000000000000 03000000 02 01  01000000 00000000 01000000 01000000
	01000000 03 00000000 6400000000000000 00000000 2c 00  01000000 02000000 00000000 03000000
	02000000 02 ffffffff 0800000000000000 ffffffff 00 00  00000000 03000000 00000000 03000000
	01000000 02000000 02000000
	03000000 02000000  00000000 02000000
	00000000 02 00000000 0800000000000000 03000000 00 00  01000000 00000000 00000000 01000000
	01000000 01 00000000 0800000000000000 00000000 00 00  00000000 01000000 00000000 01000000
	00000000 03 00000000 0500000000000000 00000000 00 00  00000000 01000000 00000000 01000000
	01000000`)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

func TestBinaryLayout(t *testing.T) {
	t.Parallel()
	fromText, err := ReadText(strings.NewReader(smallText), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, smallBinary, binaryOf(t, fromText))
	fromBinary, err := ReadBinary(iotest.OneByteReader(bytes.NewReader(smallBinary)), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, smallBinary, binaryOf(t, fromBinary))
	require.False(t, fromBinary.Named())
	var text bytes.Buffer
	require.NoError(t, WriteText(&text, fromBinary))
	require.Equal(t, smallText, text.String(), "labels are made up as they were")
}

func TestRoundTripsOfRandomSchedules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		s := randomSchedule(t, rand.New(rand.NewPCG(seed, 2)), false)
		want := binaryOf(t, s)
		again, err := ReadBinary(bytes.NewReader(want), ReadOptions{})
		require.NoError(t, err)
		require.Equal(t, want, binaryOf(t, again))
		var text bytes.Buffer
		require.NoError(t, WriteText(&text, again))
		requireSameBinary(t, s, text.Bytes())
	}
}

// A header may announce more processors than are used. Its numbers must come
// back unchanged.
func TestBinaryKeepsHeader(t *testing.T) {
	t.Parallel()
	b := bytes.Clone(smallBinary)
	b[12], b[13] = 200, 9
	s, err := ReadBinary(bytes.NewReader(b), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, b, binaryOf(t, s))
}

func TestBinaryTruncated(t *testing.T) {
	t.Parallel()
	for n := range smallBinary {
		_, err := ReadBinary(bytes.NewReader(smallBinary[:n]), ReadOptions{File: "x"})
		var e *FormatError
		require.ErrorAs(t, err, &e, "%d bytes", n)
		require.Equal(t, int64(n), e.Offset)
		require.ErrorContains(t, err, "x:offset ")
	}
	broken := errors.New("broken disk")
	_, err := ReadBinary(io.MultiReader(bytes.NewReader(smallBinary[:60]), iotest.ErrReader(broken)), ReadOptions{})
	require.ErrorIs(t, err, broken)
}

// Every field that contradicts the rest gives an error at its place.
func TestBinaryErrors(t *testing.T) {
	t.Parallel()
	const ops, appendix = 46 + 12, 46 + 12 + 3*39
	for _, c := range []struct {
		at   int64
		size int
		v    uint64
		want string
	}{
		{0, 8, 4224, "magic number 4224, expected 4223"},
		{8, 4, 0, "0 ranks, expected 1 to 2147483647"},
		{8, 4, 3, "rank 0 starts at 38, expected 54"},
		{14, 8, 39, "rank 0 starts at 39, expected 38"},
		{22, 8, 40, "rank 0 ends at 40, expected at least 46"},
		{46, 4, 2, "rank 0 has"},
		{46, 4, 1 << 31, "2147483648 operations, expected at most"},
		{50, 4, 4, "rank 0 has 4 roots among 3 operations"},
		{54, 4, 1, "root 0, expected operation 0"},
		{ops + 4, 1, 4, "kind 4, expected 1 (send), 2 (recv) or 3 (calc)"},
		{ops + 5, 4, 2, "peer 2, expected a rank below 2"},
		{ops + 21, 1, 45, "cpu 45, expected at most 44"},
		{ops + 22, 1, 2, "nic 2, expected at most 1"},
		{ops + 23, 4, 9, "list of 9 entries exceeds the appendix of 3"},
		{ops + 27, 4, 1, "list starts at entry 1 of the appendix, expected 0"},
		{ops + 39, 4, 2, "operation 1 waits for a wrong number of releases"},
		{appendix, 4, 3, "operation 3, expected one below 3"},
	} {
		b := bytes.Clone(smallBinary)
		var le [8]byte
		binary.LittleEndian.PutUint64(le[:], c.v)
		copy(b[c.at:], le[:c.size])
		_, err := ReadBinary(bytes.NewReader(b), ReadOptions{})
		var e *FormatError
		require.ErrorAs(t, err, &e, "%+v", c)
		require.ErrorContains(t, err, c.want)
	}
	_, err := ReadBinary(bytes.NewReader(append(bytes.Clone(smallBinary), 0)), ReadOptions{})
	require.EqualError(t, err, "offset 324: expected the end of the file after the last rank")
}

// A header that announces billions must not make the reader allocate for them.
func TestAnnouncedSizesCostNothing(t *testing.T) {
	announced := bytes.Clone(smallBinary[:14])
	binary.LittleEndian.PutUint32(announced[8:], 1<<31-1)
	table := binary.LittleEndian.AppendUint64(nil, headerBytes-magicBytes+tableBytes)
	table = binary.LittleEndian.AppendUint64(table, 1<<40)
	one := bytes.Clone(smallBinary[:14])
	binary.LittleEndian.PutUint32(one[8:], 1)
	ops := append(append(one, table...), 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0xff, 0x3f)
	for name, in := range map[string][]byte{"ranks": announced, "operations": ops, "text": []byte("num_ranks 2000000000\n")} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(in), ReadOptions{})
		runtime.ReadMemStats(&after)
		require.Error(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), name)
	}
}
