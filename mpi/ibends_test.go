package mpi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A receiver is busy for two seconds, many times the time-out of a connection,
// with buffers for one message or a few. Then all messages around the eager
// limit arrive, in order.
func TestInfiniBandLateReceiver(t *testing.T) {
	sizes := []int{0, 12 << 10, 12<<10 + 1, 1}
	for _, buffers := range []int{1, 32} {
		o := mpi.DefaultInfiniBandOptions()
		o.Buffers = buffers
		w := infiniBandWorld(t, t.Cleanup, 2, o, runtime.Config{})
		const messages = 100
		require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
			for i := range messages {
				v, err := r.Alloc(sizes[i%len(sizes)])
				if err != nil {
					return err
				}
				fill(v.Write(), mpi.Status{Tag: uint32(i)})
				if _, err := r.Isend(v, 1, uint32(i)); err != nil {
					return err
				}
			}
			for range messages {
				q, err := r.Next()
				if err != nil {
					return err
				}
				r.Free(q)
			}
			return nil
		}))
		require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error {
			r.Compute(2 * sim.Second)
			v, err := r.Alloc(1 << 14)
			for i := 0; i < messages && err == nil; i++ {
				var s mpi.Status
				if s, err = r.World().Recv(v, mpi.AnySource, mpi.AnyTag); err == nil {
					want := make([]byte, sizes[i%len(sizes)])
					fill(want, mpi.Status{Tag: uint32(i)})
					require.Equal(t, uint32(i), s.Tag)
					require.Equal(t, want, v.Read()[:s.Bytes])
				}
			}
			return err
		}))
		require.NoError(t, w.Run(context.Background()))
	}
}

// One program has ended while its large message has no receive; another waits
// for any of its requests. The error names the message.
func TestInfiniBandStuck(t *testing.T) {
	const large = 12<<10 + 1
	send := func(r *mpi.Rank) error {
		v, err := r.Alloc(large)
		if err != nil {
			return err
		}
		_, err = r.Isend(v, 1, 5)
		return err
	}
	receive := func(r *mpi.Rank) error {
		v, err := r.Alloc(8)
		if err != nil {
			return err
		}
		if _, err = r.Irecv(v, mpi.AnySource, 6); err != nil {
			return err
		}
		_, err = r.Next()
		return err
	}
	for want, program := range map[string]func(r *mpi.Rank) error{
		fmt.Sprintf("mpi: rank 0 waits in send to rank 1, %d B, tag 5", large): send,
		"mpi: rank 0 waits in receive from any rank, 8 B, tag 6":               receive,
	} {
		w := infiniBandWorld(t, t.Cleanup, 2, mpi.DefaultInfiniBandOptions(), runtime.Config{})
		require.NoError(t, w.Spawn(0, program))
		require.NoError(t, w.Spawn(1, func(*mpi.Rank) error { return nil }))
		require.ErrorContains(t, w.Run(context.Background()), want)
	}
}
