package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

var update = flag.Bool("update", false, "write the golden files anew")

// pingMessage is a message from rank 0 to rank 1, times in picoseconds: o is 65
// ns, the wire 20 ns, the header match 30 ns; then a handler that overlaps
// another one, and DMA.
func pingMessage(w *Writer) {
	const ns = sim.Nanosecond
	core := w.Track("Rank", 0, "Core[0]")
	link := w.Track("Rank", 0, "Link")
	match := w.Track("Rank", 1, "NIC.Match")
	hpu := w.Track("Rank", 1, "NIC.HPU[0]")
	dma := w.Track("Rank", 1, "NIC.DMA")
	w.Span(core, "put", 0, 65*ns, 7)
	w.Span(link, "packet", 65*ns, 65*ns+81920, 7, sim.Arg{Key: "bytes", Num: 4096})
	w.Span(match, "header", 166920, 196920, 7)
	w.Span(dma, "write", 300*ns, 550*ns, 7)
	w.Span(hpu, "payload", 196920, 310*ns, 7, sim.Arg{Key: "module", Text: "pingpong"})
	w.Span(hpu, "wait", 210*ns, 250*ns, 0)
	w.Instant(dma, "event", 550*ns, 7)
	w.Counter(hpu, "queue", 196920, 1)
	w.Counter(hpu, "queue", 310*ns, 0)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s differs; -update writes it anew", file)
}

// listing prints a decoded trace. The golden file is readable, and shows what a
// viewer would show.
func listing(d *decoded) []byte {
	var b bytes.Buffer
	for _, s := range d.slices {
		fmt.Fprintf(&b, "%6d %5d %s %*s%s", s.ts, s.dur, d.path(s.line), 2*s.depth, "", s.name)
		if s.kind == 4 {
			fmt.Fprintf(&b, "%g", s.value)
		}
		if s.flow != 0 {
			fmt.Fprintf(&b, " flow %d", s.flow)
		}
		keys := make([]string, 0, len(s.args))
		for k := range s.args {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			fmt.Fprintf(&b, " %s=%v", k, s.args[k])
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func TestPerfettoGolden(t *testing.T) {
	raw := encode(t, Perfetto, Options{}, pingMessage)
	golden(t, "ping.txt", listing(decode(t, raw)))
	golden(t, "ping.pftrace", raw)
	require.Equal(t, raw, encode(t, Perfetto, Options{}, pingMessage), "same calls, same bytes")
}

func TestChromeGolden(t *testing.T) {
	raw := encode(t, ChromeJSON, Options{}, pingMessage)
	require.True(t, json.Valid(raw))
	golden(t, "ping.json", raw)
}

// A handler that waits is one slice inside another. Arrows need the same flow
// on every slice of the message, in order of time.
func TestNestingAndFlow(t *testing.T) {
	d := decode(t, encode(t, Perfetto, Options{}, pingMessage))
	require.Equal(t, "payload", find(t, d, "wait").parent.name)
	var steps []string
	for _, s := range d.slices {
		if s.flow == 7 {
			steps = append(steps, s.name)
		}
	}
	require.Equal(t, []string{"put", "packet", "header", "payload", "write", "event"}, steps)
	hpu := find(t, d, "payload").line
	require.Equal(t, "Rank 1/NIC/HPU[0]", d.path(hpu))
	require.EqualValues(t, 1, hpu.rank, "second line made in NIC")
	require.True(t, d.lines[hpu.parent].childrenRanked)
}

// Spans that cross are on different lanes with the same name and parent, so
// Perfetto draws them as one line.
func TestCrossingSpansTakeLanes(t *testing.T) {
	d := decode(t, encode(t, Perfetto, Options{}, func(w *Writer) {
		track := w.Track("Rank", 0, "DMA")
		w.Span(track, "a", 0, 100*sim.Nanosecond, 0)
		w.Span(track, "b", 50*sim.Nanosecond, 150*sim.Nanosecond, 0)
		w.Span(track, "c", 100*sim.Nanosecond, 200*sim.Nanosecond, 0)
	}))
	a, b, c := find(t, d, "a"), find(t, d, "b"), find(t, d, "c")
	require.NotSame(t, a.line, b.line)
	require.Same(t, a.line, c.line, "a is over when c begins")
	require.Equal(t, a.line.name, b.line.name)
	require.Equal(t, a.line.parent, b.line.parent)
	require.EqualValues(t, 100, b.dur)
}

func TestRanksOrderProcesses(t *testing.T) {
	d := decode(t, encode(t, Perfetto, Options{}, func(w *Writer) {
		for _, id := range []int{10, 2} {
			w.Instant(w.Track("Rank", id, "Core"), "x", 0, 0)
		}
		w.Instant(w.Track("Switch", 0, "Port"), "y", 0, 0)
	}))
	ranks := map[string]uint64{}
	for _, l := range d.lines {
		if l.process {
			ranks[l.name] = l.rank
		}
	}
	require.Less(t, ranks["Rank 2"], ranks["Rank 10"])
	require.Less(t, ranks["Rank 10"], ranks["Switch 0"])
}

func TestPicosecondScale(t *testing.T) {
	record := func(w *Writer) { w.Span(w.Track("Rank", 0, "HPU"), "cycle", 400, 800, 0) }
	d := decode(t, encode(t, Perfetto, Options{Scale: Picoseconds}, record))
	s := find(t, d, "cycle")
	require.EqualValues(t, 400, s.ts)
	require.EqualValues(t, 400, s.dur)
	require.Equal(t, "Rank 0 (1 ns is 1 ps)/HPU", d.path(s.line))
	require.Contains(t, string(encode(t, ChromeJSON, Options{Scale: Picoseconds}, record)), `"ts":0.4,"dur":0.4,`)
}

// recorded is the input of the property test, in picoseconds.
type recorded struct {
	track    int
	from, to sim.Time
}

// Any spans in any order, with any window, come out once each with their
// lengths, on lanes that nest. The decoder fails on an end that does not close
// the right slice.
func TestEverySpanSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) recorded {
			from := rapid.Int64Range(0, 9000).Draw(t, "from")
			return recorded{
				track: rapid.IntRange(0, 1).Draw(t, "track"),
				from:  sim.Time(from),
				to:    sim.Time(from + rapid.Int64Range(0, 4000).Draw(t, "length")),
			}
		}), 0, 60).Draw(t, "spans")
		window := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "window")
		scale := rapid.SampledFrom([]Scale{Nanoseconds, Picoseconds}).Draw(t, "scale")
		d := decode(t, encode(t, Perfetto, Options{Window: window, Scale: scale}, func(w *Writer) {
			for i, s := range spans {
				w.Span(w.Track("Rank", s.track, "L"), fmt.Sprint(i), s.from, s.to, 0)
			}
		}))
		require.Len(t, d.slices, len(spans))
		tick := sim.Nanosecond
		if scale == Picoseconds {
			tick = sim.Picosecond
		}
		for _, s := range d.slices {
			var i int
			_, err := fmt.Sscan(s.name, &i)
			require.NoError(t, err)
			in := spans[i]
			require.EqualValues(t, in.from/tick, s.ts)
			require.EqualValues(t, in.to/tick-in.from/tick, s.dur, "length of %v", in)
			require.EqualValues(t, in.from, s.args["start_ps"])
			require.EqualValues(t, in.to-in.from, s.args["dur_ps"])
			require.Contains(t, d.path(s.line), fmt.Sprintf("Rank %d", in.track))
			if s.parent != nil {
				require.GreaterOrEqual(t, in.from, sim.Time(s.parent.args["start_ps"].(int64)))
			}
		}
	})
}

// chromeEvent is the part of an event that the tests check.
type chromeEvent struct {
	Phase   string `json:"ph"`
	PID     int    `json:"pid"`
	TID     int    `json:"tid"`
	TS, Dur float64
	Name    string
	ID      string
	Args    map[string]any
}

func TestChromeContent(t *testing.T) {
	var file struct{ TraceEvents []chromeEvent }
	require.NoError(t, json.Unmarshal(encode(t, ChromeJSON, Options{}, pingMessage), &file))
	threads := map[int]string{}
	var flow string
	for _, e := range file.TraceEvents {
		switch {
		case e.Name == "thread_name":
			threads[e.TID] = e.Args["name"].(string)
		case e.Name == "packet":
			require.Equal(t, "Link", threads[e.TID])
			require.InDelta(t, 0.065, e.TS, 1e-12)
			require.InDelta(t, 0.08192, e.Dur, 1e-12, "exact to the picosecond")
		case e.ID != "":
			require.Equal(t, "0x7", e.ID)
			flow += e.Phase
		}
	}
	require.Equal(t, "sttttt", flow, "one start, then steps")
}

func TestFlowMemoryIsBounded(t *testing.T) {
	c := newChrome(Nanoseconds)
	for flow := range uint64(maxFlows + 10) {
		c.remember(flow)
	}
	require.Len(t, c.begun, maxFlows)
	require.NotContains(t, c.begun, uint64(9), "the oldest are forgotten")
	require.Contains(t, c.begun, uint64(10))
}

func TestNamesBeyondTheIndexAreWrittenOut(t *testing.T) {
	p := newPerfetto(Nanoseconds)
	for i := range maxInterned {
		p.named(nil, &p.names, eventNameID, eventName, fmt.Sprint(i))
	}
	m := parse(t, p.named(nil, &p.names, eventNameID, eventName, "one too many"))
	require.Equal(t, "one too many", m.text(23))
}

func TestCreateByExtension(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.pftrace", "a.perfetto-trace", "a.json", "a.pftrace.gz", "a.json.gz"} {
		file := filepath.Join(dir, name)
		w, err := Create(file, Options{})
		require.NoError(t, err)
		pingMessage(w)
		require.NoError(t, w.Close())
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		if filepath.Ext(name) == ".gz" {
			zip, err := gzip.NewReader(bytes.NewReader(got))
			require.NoError(t, err)
			require.Zero(t, zip.ModTime, "the bytes must not tell the time")
			got, err = io.ReadAll(zip)
			require.NoError(t, err)
		}
		format := Perfetto
		if bytes.HasPrefix(got, []byte("{")) {
			format = ChromeJSON
		}
		require.Equal(t, encode(t, format, Options{}, pingMessage), got, name)
	}
	_, err := Create(filepath.Join(dir, "a.txt"), Options{})
	require.ErrorContains(t, err, ".pftrace, .perfetto-trace, .json")
	require.NoFileExists(t, filepath.Join(dir, "a.txt"))
}

func TestErrorsReachClose(t *testing.T) {
	w := New(io.Discard, Perfetto, Options{})
	track := w.Track("Rank", 4, "NIC.DMA")
	w.Span(track, "write", 20, 10, 0)
	w.Span(track, "fine", 20, 30, 0)
	require.EqualError(t, w.Close(), `timeline: span "write" of NIC.DMA: from 20 ps to 10 ps is not a stretch of time`)

	full := errors.New("disk full")
	w = New(failing{full}, ChromeJSON, Options{})
	pingMessage(w)
	require.ErrorIs(t, w.Close(), full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The window limits the held events, and ends wait only while slices are open.
func TestMemoryIsBounded(t *testing.T) {
	w := New(io.Discard, Perfetto, Options{Window: 100})
	track := w.Track("Rank", 0, "Link")
	for i := range sim.Time(10_000) {
		w.Span(track, "packet", i*1000, i*1000+1500, 0)
		require.LessOrEqual(t, len(w.held), 100)
		require.LessOrEqual(t, len(w.open), 2)
	}
	require.NoError(t, w.Close())
	require.Len(t, w.tracks, 1)
	require.LessOrEqual(t, len(w.byID[track].lanes), 2)
}
