package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

// String returns the frequency in the largest unit that is not above it: "2.5
// GHz".
func (f Frequency) String() string {
	switch {
	case f >= 1e9:
		return strconv.FormatFloat(float64(f)/1e9, 'f', -1, 64) + " GHz"
	case f >= 1e6:
		return strconv.FormatFloat(float64(f)/1e6, 'f', -1, 64) + " MHz"
	}
	return strconv.FormatInt(int64(f), 10) + " Hz"
}

// Cycles returns the time of n cycles, rounded to the nearest picosecond, at
// most [Horizon]. f must be positive.
func (f Frequency) Cycles(n int64) Time {
	const few = int64(Horizon) / (int64(Second) + 1) // at 1 Hz
	period := int64(Second) / int64(f)
	if n > few && n > int64(Horizon)/(period+1) {
		return Horizon
	}
	if period*int64(f) == int64(Second) {
		return Time(n * period)
	}
	return Time(math.Round(float64(n) * float64(Second) / float64(f)))
}
