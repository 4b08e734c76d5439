package spc

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/sim"
)

// Model is the parameters of a synthetic trace. The models of this package are
// our own: their shape is typical for such loads, but they are not
// measurements.
type Model struct {
	Name        string
	Description string
	Units       int            // volumes, 1 to MaxUnit
	UnitBytes   int64          // of each, a multiple of Align, up to 1 TiB
	Writes      float64        // share of the requests
	Sizes       []WeightedSize // of the requests
	// 0 to below 1: how uneven the use of a unit's places is, with the first
	// ones used most; the first x of all have x^(1-Zipf) of the requests
	Zipf float64
	// share of the requests that begin where the previous request of their unit
	// ended
	Sequential float64
	Rate       float64 // mean requests per second; intervals are exponential
}

// WeightedSize is a size, a multiple of Block of up to MaxSize bytes, with its
// relative frequency.
type WeightedSize struct {
	Size   int64
	Weight float64
}

// Align divides the places of requests that do not continue another, bytes.
const Align = 4096

// Models are the synthetic loads.
var Models = []*Model{
	{
		Name: "oltp", Description: "transactions, as of a bank: two thirds and more of the requests write, few kilobytes, at places of which some are hot",
		Units: 8, UnitBytes: 256 << 20, Writes: 0.75, Zipf: 0.9, Sequential: 0.1, Rate: 120,
		Sizes: []WeightedSize{{512, 0.25}, {2048, 0.2}, {4096, 0.35}, {8192, 0.15}, {16384, 0.05}},
	},
	{
		Name: "websearch", Description: "a search engine: nearly all requests read, 8 to 32 KiB, at places that are all alike",
		Units: 6, UnitBytes: 2 << 30, Writes: 0.0002, Zipf: 0, Sequential: 0.05, Rate: 330,
		Sizes: []WeightedSize{{8192, 0.55}, {16384, 0.2}, {24576, 0.1}, {32768, 0.15}},
	},
}

// ModelOf returns the model with a name.
func ModelOf(name string) (*Model, error) {
	var names []string
	for _, m := range Models {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("no load %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// Validate lists everything that is wrong, with names of fields in lower case.
func (m *Model) Validate() error {
	var errs []error
	fail := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	share := func(name string, x float64, below bool) {
		if !(x >= 0 && x <= 1) || below && x == 1 {
			fail(name, "%v, expected 0 to %s1", x, map[bool]string{true: "below "}[below])
		}
	}
	if m.Units < 1 || m.Units > MaxUnit {
		fail("units", "%d, expected 1 to %d", m.Units, MaxUnit)
	}
	largest := int64(0)
	for _, s := range m.Sizes {
		largest = max(largest, s.Size)
		if s.Size < Block || s.Size > MaxSize || s.Size%Block != 0 || !(s.Weight > 0) {
			fail("sizes", "%d B of weight %v, expected a multiple of %d up to %d, and a weight above 0", s.Size, s.Weight, Block, MaxSize)
		}
	}
	if len(m.Sizes) == 0 {
		fail("sizes", "none")
	}
	if least := max(largest, Align); m.UnitBytes < least || m.UnitBytes > 1<<40 || m.UnitBytes%Align != 0 {
		fail("unit-bytes", "%d, expected a multiple of %d from %d to %d", m.UnitBytes, Align, least, int64(1)<<40)
	}
	share("writes", m.Writes, false)
	share("zipf", m.Zipf, true)
	share("sequential", m.Sequential, false)
	if !(m.Rate >= 1e-3 && m.Rate <= 1e9) {
		fail("rate", "%v, expected 0.001 to 1e+09 requests in a second", m.Rate)
	}
	return errors.Join(errs...)
}

// Generate makes n requests. It makes fewer if time stamps would exceed the
// limit of a trace. The same seed makes the same requests.
func (m *Model) Generate(n int, seed uint64) *Trace {
	rng := rand.New(rand.NewPCG(seed, 0x5bc))
	next := make([]int64, m.Units) // end of the previous request, blocks
	total := 0.0
	for _, s := range m.Sizes {
		total += s.Weight
	}
	t := &Trace{Synthetic: m.Name, Requests: make([]Request, 0, n)}
	var now float64 // seconds
	for range n {
		if now += rng.ExpFloat64() / m.Rate; now >= maxTime {
			break
		}
		one := Request{Unit: rng.IntN(m.Units), Write: rng.Float64() < m.Writes, At: sim.Time(now*1e6) * sim.Microsecond}
		pick := rng.Float64() * total
		i := slices.IndexFunc(m.Sizes, func(s WeightedSize) bool { pick -= s.Weight; return pick < 0 })
		one.Size = m.Sizes[max(i, 0)].Size
		room := (m.UnitBytes - one.Size) / Block
		if one.LBA = next[one.Unit]; rng.Float64() >= m.Sequential || one.LBA > room {
			one.LBA = m.place(rng, room*Block/Align) * (Align / Block)
		}
		next[one.Unit] = one.LBA + one.Size/Block
		t.Requests = memory.Append(t.Requests, one)
	}
	return t
}

// place draws a place from 0 to last.
func (m *Model) place(rng *rand.Rand, last int64) int64 {
	return min(int64(math.Pow(rng.Float64(), 1/(1-m.Zipf))*float64(last+1)), last)
}
