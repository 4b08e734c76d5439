package mpi_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A storm on a rank whose only buffer holds one message. The rank computes
// first, then receives in the worst order for keeping messages: the last rank
// first, its last tag first. Everything arrives whole, and the work is bounded:
// buffers double, so the number of times that a message is refused does not
// grow with the storm.
func TestStormOnOneBuffer(t *testing.T) {
	const senders, each = 24, 20
	for _, form := range mpi.Forms() {
		for _, n := range []int{0, 600, 3000} { // nothing, eager, large
			t.Run(fmt.Sprintf("%s/%d", form, n), func(t *testing.T) {
				o := options(form)
				o.Buffers, o.BufferBytes = 1, o.Eager+16
				w := newWorld(t, senders+1, o, runtime.Config{})
				for rank := 1; rank <= senders; rank++ {
					require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error { return storm(r, each, n) }))
				}
				require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error { return shelter(r, senders, each, n) }))
				require.NoError(t, w.Run(context.Background()))
				s := w.Stats()
				require.EqualValues(t, senders*each, s.Received)
				if n > 0 {
					require.Positive(t, s.Resent)
				}
				require.Less(t, s.Resent, int64(20*senders*each))
				require.Less(t, s.Grown, int64(2*senders*each))
			})
		}
	}
}

func storm(r *mpi.Rank, each, n int) error {
	data, err := r.Alloc(each * n)
	if err != nil {
		return err
	}
	for i := range each {
		part := data.Slice(i*n, (i+1)*n)
		fill(part.Write(), mpi.Status{Source: r.Rank(), Tag: uint32(i), Sequence: uint32(i)})
		if _, err := r.Isend(part, 0, uint32(i)); err != nil {
			return err
		}
	}
	for r.Active() > 0 {
		if _, err := r.Next(); err != nil {
			return err
		}
	}
	return nil
}

func shelter(r *mpi.Rank, senders, each, n int) error {
	data, err := r.Alloc(n)
	if err != nil {
		return err
	}
	r.Compute(100 * sim.Microsecond)
	for rank := senders; rank > 0; rank-- {
		for i := each - 1; i >= 0; i-- {
			q, err := r.Irecv(data, rank, uint32(i))
			if err != nil {
				return err
			}
			got, err := r.Wait(q)
			if err != nil {
				return err
			}
			want := make([]byte, n)
			fill(want, mpi.Status{Source: rank, Tag: uint32(i), Sequence: uint32(i)})
			if got.Source != rank || got.Tag != uint32(i) || got.Bytes != n || !bytes.Equal(want, data.Read()) {
				return fmt.Errorf("%+v came in place of tag %d of rank %d, or its bytes differ", got, i, rank)
			}
		}
	}
	return nil
}

// If every message finds a buffer, nothing is sent twice and there are no
// control messages.
func TestNoFlowControlWithoutNeed(t *testing.T) {
	for _, form := range mpi.Forms() {
		w := newWorld(t, 2, options(form), runtime.Config{})
		exchange(t, w, 700, true, 0, 7)
		s := w.Stats()
		require.Zero(t, s.Resent+s.Grown)
		require.EqualValues(t, 3, w.Cluster().Stats().PacketsSent, "two packets of the message, its acknowledgement, and nothing else")
	}
}

// A program that receives one message after the other finishes, in any order,
// even if the device has room for only one unexpected header: the process then
// keeps messages itself.
func TestReceiveBehindUnexpectedHeaders(t *testing.T) {
	const each = 5
	for _, form := range mpi.Forms() {
		for _, n := range []int{0, 600, 3000} {
			w := newWorld(t, 3, options(form), runtime.Config{}, "limits.max_unexpected_headers=1")
			for rank := 1; rank < 3; rank++ {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error { return storm(r, each, n) }))
			}
			require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
				if err := shelter(r, 2, each, n); err != nil {
					return err
				}
				_, found, err := r.World().Iprobe(mpi.AnySource, mpi.AnyTag)
				require.False(t, found)
				return err
			}))
			require.NoError(t, w.Run(context.Background()), "%s, %d B", form, n)
		}
	}
}
