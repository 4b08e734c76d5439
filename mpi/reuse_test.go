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

// A hundred times more messages than fit pass through the buffers, all
// unexpected, while the receiver keeps up.
func TestBuffersAreUsedAgain(t *testing.T) {
	const rounds, inRound = 200, 5
	for _, form := range mpi.Forms() {
		w := newWorld(t, 2, options(form), runtime.Config{})
		require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error { return bursts(r, rounds, inRound) }))
		require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error { return collect(r, rounds, inRound) }))
		require.NoError(t, w.Run(context.Background()), form)
		require.EqualValues(t, rounds*inRound, w.Stats().Unexpected, form)
		require.EqualValues(t, rounds*(inRound-1), w.Stats().Large, form)
	}
}

// bursts sends a small message and some large ones, and waits until the
// receiver confirms them.
func bursts(r *mpi.Rank, rounds, inRound int) error {
	data, err := r.Alloc(1500 * inRound)
	if err != nil {
		return err
	}
	for round := range rounds {
		var sends []*mpi.Request
		for i := range inRound {
			n := 1500 - 1000*(i/(inRound-1))
			part := data.Slice(1500*i, 1500*i+n)
			fill(part.Write(), mpi.Status{Tag: uint32(i), Sequence: uint32(round*inRound + i)})
			q, err := r.Isend(part, 1, uint32(i))
			if err != nil {
				return err
			}
			sends = append(sends, q)
		}
		done, err := r.Irecv(data.Slice(0, 0), 1, 0)
		if err != nil {
			return err
		}
		for _, q := range append(sends, done) {
			if _, err := r.Wait(q); err != nil {
				return err
			}
		}
	}
	return nil
}

func collect(r *mpi.Rank, rounds, inRound int) error {
	data, err := r.Alloc(1500)
	if err != nil {
		return err
	}
	for range rounds {
		r.Compute(20 * sim.Microsecond)
		if _, err := r.Test(); err != nil {
			return err
		}
		for i := inRound - 1; i >= 0; i-- { // not in the order of arrival
			q, err := r.Irecv(data, mpi.AnySource, uint32(i))
			if err != nil {
				return err
			}
			got, err := r.Wait(q)
			if err != nil {
				return err
			}
			want := make([]byte, got.Bytes)
			fill(want, got)
			if !bytes.Equal(want, data.Slice(0, got.Bytes).Read()) {
				return fmt.Errorf("payload of %+v differs", got)
			}
		}
		done, err := r.Isend(data.Slice(0, 0), 0, 0)
		if err != nil {
			return err
		}
		if _, err := r.Wait(done); err != nil {
			return err
		}
	}
	return nil
}
