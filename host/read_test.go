package host_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// command returns the time of a command of so many pages: 6 us for a major
// fault, then the device with 80 us and 1.5 GB/s, 2 us of its interrupt, and
// the context switch.
func command(pages int) sim.Time {
	bandwidth, _ := sim.ParseRate("1.5GB/s")
	return 6*us + 80*us + bandwidth.Time(int64(pages)*page) + 2*us + us
}

// A read brings in adjacent absent pages with one command, and each hole
// between present pages with one. Present pages cost nothing.
func TestRead(t *testing.T) {
	k := stored(t, func(w *world) {
		f, content, err := w.Kernel.Create("file", 20*page-50)
		require.NoError(t, err)
		for i := range content {
			content[i] = byte(i / 7)
		}
		read := func(at, n int, want sim.Time) {
			t.Helper()
			var got []byte
			require.NoError(t, f.Read(w.th, w.p, at, n, func(from int, b []byte) error {
				require.Equal(t, at+len(got), from)
				got = append(got, b...)
				return nil
			}))
			require.True(t, bytes.Equal(content[at:at+n], got))
			w.took(want)
		}
		read(5*page+100, page, command(2))
		read(5*page, 2*page, 0)
		read(3*page, 6*page-1, command(2)+command(2))
		read(19*page, page-50, command(1))
		read(0, 0, 0)
		require.Equal(t, 7, f.Cached())
		require.EqualValues(t, 4, w.disk.Stats().Reads)
		require.ErrorContains(t, f.Read(w.th, w.p, 19*page, page, nil), "read of 4096 bytes at 77824 of file file, which has 81870")
		require.ErrorIs(t, f.Read(w.th, w.p, 0, page, func(int, []byte) error { return errStop }), errStop)

		a, err := w.p.MapFile(w.th, f, 0, page, true) // a read also returns what was written to a mapping
		require.NoError(t, err)
		w.touch(a, 1, true)
		b, _ := w.p.Space().Cores(a, 1)
		b[0] = 99
		w.p.Space().Settle()
		require.NoError(t, f.Read(w.th, w.p, 0, 1, func(_ int, b []byte) error {
			require.EqualValues(t, 99, b[0])
			return nil
		}))
	}, nil)
	require.EqualValues(t, 8, k.Stats().FileReads)
}

var errStop = errors.New("stop")

// counted is the content of a file: every page holds its number, but every
// third is zeros.
func counted(at int, into []byte) bool {
	if at/page%3 == 2 {
		return true
	}
	clear(into)
	binary.LittleEndian.PutUint64(into, uint64(at))
	return false
}

// A generated file reads as generated, even if memory is too small to keep it,
// and its bytes take no memory: this one has a terabyte.
func TestGenerated(t *testing.T) {
	k := stored(t, func(w *world) {
		f, err := w.Kernel.Generate("disk", 1<<40, counted)
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			at := r.IntN(900) * page
			if r.IntN(20) == 0 {
				at = 1<<40 - 8*page
			}
			pages := 0
			require.NoError(t, f.Read(w.th, w.p, at, 8*page, func(from int, b []byte) error {
				if from/page%3 == 2 {
					require.Nil(t, b)
				} else {
					require.EqualValues(t, from, binary.LittleEndian.Uint64(b))
				}
				pages++
				return nil
			}))
			require.Equal(t, 8, pages)
		}
		require.LessOrEqual(t, f.Cached(), 512)
		_, err = w.p.MapFile(w.th, f, 0, page, true)
		require.ErrorContains(t, err, "can only be read")
	}, nil, "memory=2MiB", "watermark_min=64KiB", "watermark_low=128KiB", "watermark_high=256KiB")
	require.NotZero(t, k.Stats().Reclaimed)
	require.Zero(t, k.Stats().FileWrites)
}

// Several threads that read the same pages at the same time wait for one
// command.
func TestReadTogether(t *testing.T) {
	stored(t, func(w *world) {
		f, err := w.Kernel.Generate("disk", 64*page, counted)
		require.NoError(t, err)
		left := 3
		for i := range 3 {
			w.Go(1+i, "reader", func(th *host.Thread) error {
				defer func() { left--; w.th.Wake() }()
				return f.Read(th, w.p, i*page, 8*page, nil)
			})
		}
		for left > 0 {
			w.th.Wait("readers")
		}
		require.EqualValues(t, 10, w.Kernel.Stats().FileReads)
		require.EqualValues(t, 3, w.disk.Stats().Reads)
	}, nil)
}

// A page that is read again stays longer than pages that are read once (two
// lists, as for mapped pages). Page 0 is still present after as many other
// pages as memory has.
func TestReadAgain(t *testing.T) {
	stored(t, func(w *world) {
		f, err := w.Kernel.Generate("disk", 4096*page, counted)
		require.NoError(t, err)
		for i := range 2000 {
			require.NoError(t, f.Read(w.th, w.p, (1+i)*page, page, nil))
			reads := w.disk.Stats().Reads
			require.NoError(t, f.Read(w.th, w.p, 0, page, nil))
			require.True(t, i == 0 || reads == w.disk.Stats().Reads, "page 0 was read again after %d", i)
		}
	}, nil, "memory=2MiB", "watermark_min=64KiB", "watermark_low=128KiB", "watermark_high=256KiB")
}
