package goal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkDissemination(b *testing.B) {
	for _, ranks := range []int{1 << 10, 1 << 13, 1 << 16, 1 << 20} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) { benchmarkRun(b, "dissemination", GenParams{Ranks: ranks, Size: 8}) })
	}
}

func BenchmarkBroadcast(b *testing.B) {
	for _, ranks := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) { benchmarkRun(b, "bcast-binomial", GenParams{Ranks: ranks, Size: 8}) })
	}
}

func BenchmarkHalo(b *testing.B) {
	benchmarkRun(b, "halo3d", GenParams{Ranks: 1 << 15, Size: 70000, CalcNS: 1000, Iterations: 10})
}

func BenchmarkAlltoall(b *testing.B) {
	benchmarkRun(b, "alltoall-linear", GenParams{Ranks: 1 << 10, Size: 8})
}

func BenchmarkATLAHS(b *testing.B) {
	m := NewSimulator(generate(b, "halo3d", GenParams{Ranks: 1 << 12, Size: 70000, CalcNS: 1000, Iterations: 10}))
	_, err := m.Run(atlahsParams())
	require.NoError(b, err)
	var events int64
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		res, err := m.Run(atlahsParams())
		require.NoError(b, err)
		events += res.Events
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}

func BenchmarkGather(b *testing.B) {
	benchmarkRun(b, "gather", GenParams{Ranks: 16384, Size: 8})
}

func benchmarkRun(b *testing.B, pattern string, p GenParams) {
	benchmarkSchedule(b, generate(b, pattern, p))
}

func benchmarkSchedule(b *testing.B, s *Schedule) {
	m := NewSimulator(s)
	_, err := m.Run(DefaultParams())
	require.NoError(b, err)
	var events int64
	b.ResetTimer()
	for range b.N {
		res, err := m.Run(DefaultParams())
		require.NoError(b, err)
		events += res.Events
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

// BenchmarkGatherShuffled gathers messages that come in another order than
// their receives.
func BenchmarkGatherShuffled(b *testing.B) {
	const ranks = 16384
	rng := rand.New(rand.NewPCG(1, 0))
	build := NewBuilder()
	build.Rank(0)
	for _, r := range rng.Perm(ranks - 1) {
		build.Recv(8, r+1, 0)
	}
	for r := 1; r < ranks; r++ {
		build.Rank(r)
		build.Send(8, 0, 0)
	}
	s, err := build.Schedule()
	require.NoError(b, err)
	benchmarkSchedule(b, s)
}

// BenchmarkReadText and BenchmarkReadBinary read the same schedule, in MB of
// their own format per second.
func BenchmarkReadText(b *testing.B) {
	for _, keep := range []bool{true, false} {
		b.Run(map[bool]string{true: "names", false: "dropped"}[keep], func(b *testing.B) {
			var text bytes.Buffer
			require.NoError(b, WriteText(&text, generate(b, "dissemination", GenParams{Ranks: 1 << 14, Size: 1024})))
			benchmarkRead(b, text.Bytes(), ReadOptions{DropNames: !keep})
		})
	}
}

func BenchmarkReadBinary(b *testing.B) {
	s := generate(b, "dissemination", GenParams{Ranks: 1 << 14, Size: 1024})
	benchmarkRead(b, binaryOf(b, s), ReadOptions{})
}

func benchmarkRead(b *testing.B, in []byte, opt ReadOptions) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_, err := Read(bytes.NewReader(in), opt)
		require.NoError(b, err)
	}
}

// BenchmarkLoadAndRun reads a binomial broadcast over a million ranks in text
// form, prepares it and runs it.
func BenchmarkLoadAndRun(b *testing.B) {
	var text bytes.Buffer
	require.NoError(b, WriteText(&text, generate(b, "bcast-binomial", GenParams{Ranks: 1 << 20, Size: 8})))
	in := slices.Clip(text.Bytes())
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s, err := ReadText(bytes.NewReader(in), ReadOptions{})
		require.NoError(b, err)
		_, err = NewSimulator(s).Run(DefaultParams())
		require.NoError(b, err)
	}
}
