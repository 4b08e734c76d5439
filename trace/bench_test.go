package trace

import (
	"io"
	"testing"

	"github.com/spinsim/spinsim/sim"
)

func BenchmarkSpan(b *testing.B) {
	for _, format := range []Format{Perfetto, ChromeJSON} {
		b.Run([]string{"perfetto", "chrome"}[format], func(b *testing.B) {
			w := New(io.Discard, format, Options{})
			track := w.Track("Rank", 0, "Link")
			b.ReportAllocs()
			for i := range b.N {
				at := sim.Time(i) * sim.Nanosecond
				w.Span(track, "packet", at, at+1500, uint64(i), sim.Arg{Key: "bytes", Num: 4096})
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
