package osu_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// BenchmarkRanks is a point of a sweep over 512 ranks, as spinsim osu measures
// it: the whole prototype is made, runs and is freed.
func BenchmarkRanks(b *testing.B) {
	p, err := profile.Load("exanest")
	require.NoError(b, err)
	const ranks = 512
	for _, point := range []struct {
		name  string
		bytes int
	}{{"bcast", 8}, {"bcast", 65536}, {"allreduce", 8}, {"allreduce", 256}, {"allreduce", 4096}} {
		b.Run(fmt.Sprintf("%s/%d", point.name, point.bytes), func(b *testing.B) {
			one, err := osu.Find(point.name)
			require.NoError(b, err)
			b.ReportAllocs()
			var events, messages float64
			for range b.N {
				o := mpi.DefaultExaNetOptions()
				o.Ranks, o.PerNode = ranks, 4
				c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: o.Nodes(ranks)})
				require.NoError(b, err)
				w, err := mpi.New(c, o)
				require.NoError(b, err)
				_, err = osu.Run(context.Background(), w, one, osu.Options{Bytes: point.bytes, Warmup: osu.DefaultWarmup})
				require.NoError(b, err)
				events += float64(c.Engine().Handled())
				messages += float64(w.Stats().Sent)
				require.NoError(b, c.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events, "ns/event")
			b.ReportMetric(events/messages, "events/message")
		})
	}
}
