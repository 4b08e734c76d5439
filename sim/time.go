package sim

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Time is a point or a length of virtual time in picoseconds. Points are never
// negative; the range is about 106 days.
type Time int64

// Units of virtual time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	// MaxTime is later than every event.
	MaxTime Time = math.MaxInt64

	// Horizon is the end of virtual time, 53 days. A run that posts a later event
	// fails with ErrHorizon. The sum of a point before it and a length up to it is
	// a Time.
	Horizon = MaxTime / 2
)

// ErrHorizon is wrapped by the error of a run whose virtual time would go
// beyond [Horizon].
var ErrHorizon = errors.New("virtual time would go on beyond " + Horizon.String() + ", the most that a run may have")

// Later returns t + d, neither negative, or the first time beyond [Horizon] if
// it is earlier. A wait for that time ends the run, and adding another length
// to it does not overflow. Later is for sums of many lengths, for example the
// time when a queue becomes empty.
func (t Time) Later(d Time) Time {
	if d > Horizon-t {
		return Horizon + 1
	}
	return t + d
}

// Plus returns t + d, neither negative, or MaxTime if it is less. It is for
// totals over many nodes.
func (t Time) Plus(d Time) Time {
	if d > MaxTime-t {
		return MaxTime
	}
	return t + d
}

// timeUnits is in falling order of length. String uses the first spelling.
var timeUnits = []struct {
	length    Time
	spellings []string
}{
	{Second, []string{"s"}},
	{Millisecond, []string{"ms"}},
	{Microsecond, []string{"µs", "us", "μs"}},
	{Nanosecond, []string{"ns"}},
	{Picosecond, []string{"ps"}},
}

// Nanoseconds returns t in nanoseconds.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// Microseconds returns t in microseconds.
func (t Time) Microseconds() float64 { return float64(t) / float64(Microsecond) }

// Seconds returns t in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// String returns t exactly, in the largest unit that is not above it: "1.234
// µs". [ParseTime] reads it back.
func (t Time) String() string {
	if t == 0 {
		return "0 s"
	}
	sign, u := "", uint64(t)
	if t < 0 {
		sign, u = "-", -uint64(t)
	}
	for _, unit := range timeUnits {
		length := uint64(unit.length)
		if u < length {
			continue
		}
		s := sign + strconv.FormatUint(u/length, 10)
		if rest := u % length; rest != 0 {
			width := len(strconv.FormatUint(length, 10)) - 1
			s += "." + strings.TrimRight(fmt.Sprintf("%0*d", width, rest), "0")
		}
		return s + " " + unit.spellings[0]
	}
	panic("sim: unreachable: every non-zero time has a unit")
}

// ParseTime reads a decimal number and a unit of s, ms, µs (or us), ns or ps,
// as in "65ns", "6.7 ns" or "20ps". A bare "0" needs no unit. It returns an
// error if the text has another form, is finer than a picosecond or is out of
// range.
func ParseTime(s string) (Time, error) {
	text := strings.TrimSpace(s)
	if text == "0" {
		return 0, nil
	}
	number := strings.TrimRightFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	unit := strings.TrimSpace(text[len(number):])
	for _, u := range timeUnits {
		for _, spelling := range u.spellings {
			if unit != spelling {
				continue
			}
			ps, err := parseScaled(number, uint64(u.length))
			if err != nil {
				return 0, fmt.Errorf("time %q: %w", s, err)
			}
			return Time(ps), nil
		}
	}
	return 0, fmt.Errorf("time %q: want a number and a unit of s, ms, µs, ns, ps", s)
}

// parseScaled returns the decimal number in text times scale, exactly.
func parseScaled(text string, scale uint64) (int64, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" && fraction == "" {
		return 0, fmt.Errorf("want a decimal number before the unit, got %q", text)
	}
	var value uint64
	for i, c := range []byte(whole + fraction) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("want a decimal number before the unit, got %q", text)
		}
		if i >= len(whole) {
			if scale%10 != 0 {
				if c == '0' {
					continue
				}
				return 0, fmt.Errorf("%q has more digits than can be kept exactly", text)
			}
			scale /= 10
		}
		high, low := bits.Mul64(value, 10)
		sum, carry := bits.Add64(low, uint64(c-'0'), 0)
		if high != 0 || carry != 0 {
			return 0, fmt.Errorf("%q is out of range", text)
		}
		value = sum
	}
	high, low := bits.Mul64(value, scale)
	if high != 0 || low > math.MaxInt64 {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	if negative {
		return -int64(low), nil
	}
	return int64(low), nil
}

// MarshalText returns the text of [Time.String].
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the forms of [ParseTime], for example "6.7ns" in a
// profile.
func (t *Time) UnmarshalText(text []byte) error {
	v, err := ParseTime(string(text))
	if err != nil {
		return err
	}
	*t = v
	return nil
}
