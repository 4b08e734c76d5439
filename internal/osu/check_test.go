package osu

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// The checks of the benchmarks find a wrong byte and a wrong element of a sum.
func TestChecksFind(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	w, err := mpi.New(c, mpi.DefaultOptions(mpi.Host))
	require.NoError(t, err)
	for rank := range 2 {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			x := &test{Options: Options{Bytes: 1000, Seed: 3}, c: r.World(), r: r}
			if err := x.buffers(1000, 1000); err != nil {
				return err
			}
			x.fill(x.recv, 1, 0)
			require.NoError(t, x.check(x.recv, 1, 0))
			require.Error(t, x.check(x.recv, 0, 1))
			x.recv.Write()[777]++
			require.ErrorContains(t, x.check(x.recv, 1, 0), "byte 777 of 1000 from rank 1")
			x.fillFloats()
			if err := x.c.Allreduce(x.send, x.recv, mpi.Float32, mpi.Sum); err != nil {
				return err
			}
			require.NoError(t, x.checkSums(0))
			x.recv.Write()[3] ^= 0x40
			require.ErrorContains(t, x.checkSums(0), "element 0 of the sum")
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
}

// With more ranks or bytes there are fewer iterations, so each point of a sweep
// takes about as long.
func TestDefaultIterations(t *testing.T) {
	for _, c := range []struct{ bytes, ranks, want int }{
		{0, 2, 30}, {8192, 2, 30}, {8193, 2, 1}, {8, 34, 30}, {8, 35, 29}, {8, 128, 8}, {8, 256, 4}, {8, 257, 1}, {8, 512, 1}, {8, 4096, 1},
	} {
		require.Equal(t, c.want, DefaultIterations(c.bytes, c.ranks), c)
	}
}

// Only a broadcast of large messages on many ranks has no warm-up by default.
func TestDefaultWarmup(t *testing.T) {
	for _, c := range []struct {
		name               string
		bytes, ranks, want int
	}{
		{"bcast", 32 << 10, 512, 1}, {"bcast", 64 << 10, 256, 1}, {"bcast", 64 << 10, 257, 0}, {"bcast", 1 << 20, 512, 0}, {"allreduce", 1 << 20, 512, 1}, {"scatter", 1 << 20, 512, 1},
	} {
		b, err := Find(c.name)
		require.NoError(t, err)
		require.Equal(t, c.want, b.DefaultWarmup(c.bytes, c.ranks), c)
	}
}

// Messages are written and compared by lines of 256 bytes; the last line may be
// shorter.
func TestLines(t *testing.T) {
	x := &test{Options: Options{Seed: 250}}
	for _, at := range []int{0, 256, 1 << 16, 5<<16 + 256} {
		for i, got := range line(x.value(3, 9, at), 199) {
			require.Equal(t, x.value(3, 9, at+i), got, "%d", at+i)
		}
	}
}
