package spc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/sim"
)

// A trace in the form of the repository of the University of Massachusetts:
// opcodes of both cases, white space, fields behind the fifth, empty lines,
// requests of no bytes.
func TestRead(t *testing.T) {
	trace, err := spc.Read(strings.NewReader("0,20941264,8192,W,0.551706,17\r\n\n0,20939840,8192,w,0.554041\n 1 , 7, 0 ,r,1000000\n"), "a.spc")
	require.NoError(t, err)
	require.Equal(t, &spc.Trace{Requests: []spc.Request{
		{Unit: 0, LBA: 20941264, Size: 8192, Write: true, At: 551706 * sim.Microsecond},
		{Unit: 0, LBA: 20939840, Size: 8192, Write: true, At: 554041 * sim.Microsecond},
		{Unit: 1, LBA: 7, Size: 0, At: 1_000_000 * sim.Second},
	}}, trace)
}

// The error for an invalid trace names the number of the line and the expected
// form. Read returns nothing of the trace.
func TestBrokenLines(t *testing.T) {
	const good = "0,1,512,R,0.1\n"
	for text, expected := range map[string]string{
		"":                                "a.spc: no request, expected lines of unit, block address, size, opcode, time stamp",
		"\n\n":                            "a.spc: no request",
		good + "0,1,512,R":                "a.spc:2: 4 of the 5 fields unit, block address, size, opcode, time stamp",
		good + "\nx,1,512,R,1":            `a.spc:3: unit "x", expected a whole number from 0 to 65535`,
		"-1,1,512,R,1":                    `a.spc:1: unit "-1"`,
		"0,1.5,512,R,1":                   `a.spc:1: block address "1.5"`,
		"0,99999999999999999,8,R,1":       "a.spc:1: block address",
		"0,1,-1,R,1":                      `a.spc:1: size "-1", expected a whole number from 0 to 67108864`,
		"0,1,67108865,R,1":                `a.spc:1: size "67108865"`,
		"0,1,512,X,1":                     `a.spc:1: opcode "X", expected R or W`,
		"0,1,512,RW,1":                    `a.spc:1: opcode "RW", expected R or W`,
		"0,1,512,R,NaN":                   `a.spc:1: time stamp "NaN", expected seconds such as 12.345678, from 0 to 1000000, of at most nine decimals`,
		"0,1,512,R,-1":                    "a.spc:1: time stamp",
		"0,1,512,R,1e3":                   "a.spc:1: time stamp",
		"0,1,512,R,1.":                    "a.spc:1: time stamp",
		"0,1,512,R,":                      "a.spc:1: time stamp",
		"0,1,512,R,.5":                    "a.spc:1: time stamp",
		"0,1,512,R,1.+5":                  "a.spc:1: time stamp",
		"0,1,512,R,0.1234567891":          "a.spc:1: time stamp",
		"0,1,512,R,1000000.1":             "a.spc:1: time stamp",
		good + "0,1,512,R,0.05":           "a.spc:2: time stamp 0.050000, expected at least 0.100000, that of the request before",
		good + strings.Repeat("1", 70000): "a.spc:2: longer than 65536 B, expected a request: unit, block",
	} {
		trace, err := spc.Read(strings.NewReader(text), "a.spc")
		require.ErrorContains(t, err, expected)
		require.Nil(t, trace)
	}
}

// A trace is read as it is, or decompressed from gzip or bzip2, whatever the
// name of its file. Broken compression is an error.
func TestUnpack(t *testing.T) {
	const text = "0,1,512,R,0.100000\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	b, err := base64.StdEncoding.DecodeString(bzipped)
	require.NoError(t, err)
	for _, in := range []string{text, packed.String(), string(b)} {
		r, err := spc.Unpack(strings.NewReader(in))
		require.NoError(t, err)
		out, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	}
	r, err := spc.Unpack(strings.NewReader(packed.String()[:packed.Len()-5]))
	require.NoError(t, err)
	_, err = spc.Read(r, "a.spc.gz")
	require.EqualError(t, err, "a.spc.gz: unexpected EOF")
	_, err = spc.Unpack(strings.NewReader("\x1f\x8bx"))
	require.Error(t, err)
}

// bzipped is the text above, compressed with bzip2.
const bzipped = "QlpoOTFBWSZTWYph+g0AAARaACAQAAVyABAAIAAhoxDQgyYh3DvEZpDPRIeLuSKcKEhFMP0GgA=="

// A written trace can be read back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.SampledFrom(spc.Models).Draw(rt, "model")
		trace := m.Generate(rapid.IntRange(1, 50).Draw(rt, "requests"), rapid.Uint64().Draw(rt, "seed"))
		for i := range trace.Requests {
			trace.Requests[i].At += sim.Time(rapid.IntRange(0, 1).Draw(rt, "more"))*sim.Time(i)*sim.Nanosecond + sim.Time(i)*sim.Microsecond
		}
		if rapid.Bool().Draw(rt, "measured") {
			trace.Synthetic = ""
		}
		var b bytes.Buffer
		require.NoError(rt, trace.Write(&b, "", ""))
		back, err := spc.Read(&b, "a.spc")
		require.NoError(rt, err)
		require.Equal(rt, trace, back)
	})
}

// A synthetic load has the given parameters, and stays within its units. The
// same seed makes the same trace.
func TestGenerate(t *testing.T) {
	for _, m := range spc.Models {
		require.NoError(t, m.Validate())
		const n = 20000
		trace := m.Generate(n, 1)
		all := trace.Requests
		require.Equal(t, m.Name, trace.Synthetic)
		require.Equal(t, trace, m.Generate(n, 1))
		require.NotEqual(t, trace, m.Generate(n, 2))
		writes, first, bytes, follow := 0, 0, int64(0), 0
		end := map[int]int64{}
		for i := range all {
			r := &all[i]
			require.Less(t, r.Unit, m.Units)
			require.LessOrEqual(t, r.LBA*spc.Block+r.Size, m.UnitBytes)
			if r.Write {
				writes++
			}
			if r.LBA*spc.Block < m.UnitBytes/10 {
				first++
			}
			if at, known := end[r.Unit]; known && at == r.LBA {
				follow++
			}
			end[r.Unit] = r.LBA + r.Size/spc.Block
			bytes += r.Size
		}
		mean, weights := 0.0, 0.0
		for _, s := range m.Sizes {
			mean, weights = mean+float64(s.Size)*s.Weight, weights+s.Weight
		}
		require.InDelta(t, m.Writes, float64(writes)/n, 0.02)
		require.InEpsilon(t, mean/weights, float64(bytes)/n, 0.02)
		require.InDelta(t, m.Sequential, float64(follow)/n, 0.02)
		require.InEpsilon(t, float64(n)/m.Rate, all[n-1].At.Seconds(), 0.05)
		if m.Zipf > 0 {
			require.Greater(t, first, n/2, "a tenth of the places has most of the requests")
		} else {
			require.InDelta(t, 0.1, float64(first)/n, 0.02)
		}
	}
	_, err := spc.ModelOf("nix")
	require.EqualError(t, err, `no load "nix", expected one of oltp, websearch`)
}

// An invalid model is refused, with an error for each wrong field.
func TestValidate(t *testing.T) {
	for expected, spoil := range map[string]func(m *spc.Model){
		"units: 0, expected 1 to 65535":                  func(m *spc.Model) { m.Units = 0 },
		"unit-bytes: 8192, expected a multiple of 4096 ": func(m *spc.Model) { m.UnitBytes = 8192 },
		"unit-bytes: 268435457":                          func(m *spc.Model) { m.UnitBytes++ },
		"writes: 1.5, expected 0 to 1":                   func(m *spc.Model) { m.Writes = 1.5 },
		"zipf: 1, expected 0 to below 1":                 func(m *spc.Model) { m.Zipf = 1 },
		"sequential: -1, expected 0 to 1":                func(m *spc.Model) { m.Sequential = -1 },
		"rate: 0, expected 0.001 to 1e+09":               func(m *spc.Model) { m.Rate = 0 },
		"sizes: none":                                    func(m *spc.Model) { m.Sizes = nil },
		"sizes: 100 B of weight 1":                       func(m *spc.Model) { m.Sizes = []spc.WeightedSize{{100, 1}} },
	} {
		m := *spc.Models[0]
		spoil(&m)
		require.ErrorContains(t, m.Validate(), expected)
	}
}

// A trace ends at the largest time stamp.
func TestGenerateEnds(t *testing.T) {
	m := *spc.Models[0]
	m.Rate = 1e-3
	trace := m.Generate(2000, 1)
	require.InDelta(t, 1000, len(trace.Requests), 150)
}

// Read accepts any input without harm, and an accepted trace is valid.
func FuzzRead(f *testing.F) {
	seeds, err := filepath.Glob(filepath.Join("testdata", "*.spc"))
	require.NoError(f, err)
	require.NotEmpty(f, seeds)
	for _, name := range seeds {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		trace, err := spc.Read(bytes.NewReader(b), "a.spc")
		if err != nil {
			require.Nil(t, trace)
			return
		}
		var w bytes.Buffer
		require.NoError(t, trace.Write(&w, "", ""))
		again, err := spc.Read(&w, "a.spc")
		require.NoError(t, err)
		require.Equal(t, trace, again)
	})
}
