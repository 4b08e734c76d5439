package runtime

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/size"
	"github.com/spinsim/spinsim/sim"
)

// Size is a number of bytes, written 4096, 4KiB, 64kB, 1.5MiB, 1TiB.
type Size int64

// ParseSize reads a number of bytes, at least 0 and below 2^53, with an optional unit (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB).
func ParseSize(s string) (Size, error) {
	n, err := size.Parse(s)
	return Size(n), err
}

// UnmarshalText reads the forms of ParseSize.
func (z *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err != nil {
		return err
	}
	*z = v
	return nil
}

// String is the size with the largest binary unit that divides it.
func (z Size) String() string {
	switch {
	case z != 0 && z%(1<<40) == 0:
		return strconv.FormatInt(int64(z>>40), 10) + " TiB"
	case z != 0 && z%(1<<30) == 0:
		return strconv.FormatInt(int64(z>>30), 10) + " GiB"
	case z != 0 && z%(1<<20) == 0:
		return strconv.FormatInt(int64(z>>20), 10) + " MiB"
	case z != 0 && z%(1<<10) == 0:
		return strconv.FormatInt(int64(z>>10), 10) + " KiB"
	}
	return strconv.FormatInt(int64(z), 10) + " B"
}

// Frequency is a clock rate in hertz, written 2.5GHz or 150MHz.
type Frequency int64

// UnmarshalText reads a number with the unit Hz, kHz, MHz or GHz.
func (f *Frequency) UnmarshalText(text []byte) error {
	t := strings.ReplaceAll(strings.TrimSpace(string(text)), " ", "")
	for _, u := range []struct {
		suffix string
		hertz  float64
	}{{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1}} {
		if v, ok := strings.CutSuffix(t, u.suffix); ok {
			x, err := strconv.ParseFloat(v, 64)
			if err != nil || !(x*u.hertz >= 1) || x*u.hertz > 1e15 {
				break
			}
			*f = Frequency(x*u.hertz + 0.5)
			return nil
		}
	}
	return fmt.Errorf("frequency %q: expected a positive number with Hz, kHz, MHz or GHz", text)
}

// MarshalText writes the rate in hertz, exactly.
func (f Frequency) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%dHz", int64(f)), nil }

// String writes a frequency in the largest unit that it has at least one of: "2.5 GHz".
func (f Frequency) String() string {
	switch {
	case f >= 1e9:
		return strconv.FormatFloat(float64(f)/1e9, 'f', -1, 64) + " GHz"
	case f >= 1e6:
		return strconv.FormatFloat(float64(f)/1e6, 'f', -1, 64) + " MHz"
	}
	return strconv.FormatInt(int64(f), 10) + " Hz"
}

// Cycles returns the time of n cycles, to the nearest picosecond, at most sim.Horizon. f must be positive.
func (f Frequency) Cycles(n int64) sim.Time {
	period := int64(sim.Second) / int64(f)
	if n > int64(sim.Horizon)/(period+1) {
		return sim.Horizon
	}
	if period*int64(f) == int64(sim.Second) {
		return sim.Time(n * period)
	}
	return sim.Time(math.Round(float64(n) * float64(sim.Second) / float64(f)))
}
