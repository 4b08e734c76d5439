package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
)

// preparedPages is the number of prepared pages; memory has 512.
const preparedPages = 1000

var preparedIn = []string{"memory=2MiB", "watermark_min=128KiB", "watermark_low=256KiB", "watermark_high=512KiB"}

// prepare prepares them, and returns their address and bytes.
func prepare(w *world) (a uint64, raw []byte, err error) {
	s := w.p.Space()
	a = s.Alloc(preparedPages * page)
	raw, ok := s.Bytes(a, preparedPages*page)
	require.True(w.t, ok)
	require.NoError(w.t, w.Kernel.Audit())
	return a, raw, s.Prepare(a, preparedPages*page)
}

// Prepared memory that exceeds physical memory is on storage when programs
// begin, the pages prepared first being moved first. It takes no time until
// then. The bytes set by the program come back, also if a page was moved
// before, to the program and to a child that shares pages on storage.
func TestPreparedBeyondMemory(t *testing.T) {
	var majors [2]int64
	for i := range majors {
		k := stored(t, func(w *world) {
			a, raw, err := prepare(w)
			require.NoError(t, err)
			w.took(0)
			require.NoError(t, w.Kernel.Audit())
			stats := w.Kernel.Stats()
			require.Equal(t, []int64{0, 0, 0, 0}, []int64{stats.Major, stats.SwappedIn, stats.SwappedOut, stats.Reclaimed}, "nothing has happened yet")
			require.EqualValues(t, stats.SwapUsed, stats.Early)
			require.Equal(t, preparedPages-int(stats.Early), w.p.Resident())
			for i := range preparedPages {
				if i%3 != 0 { // the others are zeros
					raw[i*page], raw[i*page+page-1] = byte(i), byte(i>>8)
				}
			}
			require.NoError(t, w.p.Space().Prepare(a, page), "it comes back")
			raw[0] = 77
			child, err := w.p.Fork(w.th, "child")
			require.NoError(t, err)
			want := func(i int) byte {
				switch {
				case i == 0:
					return 77
				case i%3 == 0:
					return 0
				}
				return byte(i)
			}
			require.NoError(t, w.p.Unmap(w.th, a+100*page, 100*page), "the child has them, which lie where they were prepared")
			for i := range preparedPages {
				if i < 100 || i >= 200 {
					require.Equal(t, want(i), w.first(w.p, a+uint64(i)*page), "page %d", i)
				}
				require.Equal(t, want(i), w.first(child, a+uint64(i)*page), "page %d of the child", i)
			}
			require.NoError(t, w.Kernel.Audit())
			require.NoError(t, child.Exit(w.th))
		}, nil, preparedIn...)
		majors[i] = k.Stats().Major
	}
	require.Equal(t, majors[0], majors[1])
	require.GreaterOrEqual(t, majors[0], int64(preparedPages-512))
}

// Without storage, or with a full one, preparing more than fits is an error.
func TestPreparedWithoutRoom(t *testing.T) {
	program(t, func(w *world) {
		_, _, err := prepare(w)
		require.ErrorIs(t, err, host.ErrNoMemory)
	}, preparedIn...)
	stored(t, func(w *world) {
		_, _, err := prepare(w)
		require.ErrorIs(t, err, host.ErrNoMemory)
		require.ErrorContains(t, err, "1 MiB of 1 MiB swap used")
	}, []string{"swap=1MiB"}, preparedIn...)
}

// An allocation of no bytes makes no mapping, and the kernel's books agree.
func TestNoBytes(t *testing.T) {
	program(t, func(w *world) {
		s := w.p.Space()
		a := s.Alloc(0)
		require.NoError(t, w.Kernel.Audit())
		require.NotEqual(t, a, s.Alloc(1))
		b, ok := s.Bytes(a, 0)
		require.True(t, ok)
		require.Empty(t, b)
		require.NoError(t, w.Kernel.Audit())
	})
}
