package sim

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Rate is the speed of bytes on a link, a bus or a memory: an exact ratio of
// picoseconds to bytes, the G of LogGP. The zero Rate is infinitely fast: every
// number of bytes takes no time.
type Rate struct {
	ps, bytes uint64 // in lowest terms; bytes is 0 only in the zero Rate
}

// rateUnits are the spellings of a Rate. One unit passes bytes bytes in ps
// picoseconds. Inverse units count time, not bytes.
var rateUnits = []struct {
	name    string
	ps      uint64
	bytes   uint64
	inverse bool
}{
	{"ps/B", 1, 1, true},
	{"ns/B", 1000, 1, true},
	{"Mb/s", 8_000_000, 1, false},
	{"Gb/s", 8_000, 1, false},
	{"Tb/s", 8, 1, false},
	{"MB/s", 1_000_000, 1, false},
	{"GB/s", 1_000, 1, false},
	{"TB/s", 1, 1, false},
	{"MiB/s", 1_000_000_000_000, 1 << 20, false},
	{"GiB/s", 1_000_000_000_000, 1 << 30, false},
}

// NewRate returns the rate at which bytes bytes take ps picoseconds; bytes must
// be at least 1 and ps not negative.
func NewRate(ps Time, bytes int64) Rate {
	if ps < 0 || bytes < 1 {
		panic(fmt.Sprintf("sim: rate of %d ps for %d bytes", ps, bytes))
	}
	return newRate(uint64(ps), uint64(bytes))
}

func newRate(ps, bytes uint64) Rate {
	if ps == 0 {
		return Rate{}
	}
	a, b := ps, bytes
	for b != 0 {
		a, b = b, a%b
	}
	return Rate{ps / a, bytes / a}
}

// Bounds of the rates of a model, so that no time of a message or a queue
// overflows.
const (
	slowest = Millisecond // for a byte: 8 kb/s
	fastest = 1 << 20     // bytes in a picosecond
)

// Check returns an error if r is no rate for a link, a bus or a memory. The
// zero Rate, which is infinitely fast, is allowed.
func (r Rate) Check() error {
	high, least := bits.Mul64(r.bytes, uint64(slowest))
	if high == 0 && r.ps > least {
		return fmt.Errorf("%v is slower than %v for a byte", r, slowest)
	}
	if high, most := bits.Mul64(r.ps, fastest); r.ps > 0 && high == 0 && r.bytes > most {
		return fmt.Errorf("%v is faster than %d bytes in a picosecond", r, fastest)
	}
	return nil
}

// IsZero reports whether r is infinitely fast. An absent field of a profile is
// also zero.
func (r Rate) IsZero() bool { return r.ps == 0 }

// Time returns how long bytes bytes, not a negative number, take, rounded to
// the nearest picosecond, half up. It is exact for rates that are whole
// picoseconds per byte.
func (r Rate) Time(bytes int64) Time {
	if r.bytes <= 1 {
		return Time(r.ps) * Time(bytes)
	}
	high, low := bits.Mul64(r.ps, uint64(bytes))
	low, carry := bits.Add64(low, r.bytes/2, 0)
	quotient, _ := bits.Div64(high+carry, low, r.bytes)
	return Time(quotient)
}

// Bytes returns how many whole bytes pass in d; for the zero Rate, none.
func (r Rate) Bytes(d Time) int64 {
	if r.ps == 0 || d <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(d), r.bytes)
	quotient, _ := bits.Div64(high%r.ps, low, r.ps)
	return int64(quotient)
}

// String returns r exactly: as "20ps/B" if that is a whole number, else in a
// unit with a whole number below 1000, else as a quotient.
func (r Rate) String() string {
	switch {
	case r.ps == 0:
		return "0ps/B"
	case r.bytes == 1:
		return strconv.FormatUint(r.ps, 10) + "ps/B"
	}
	for _, u := range rateUnits {
		if u.inverse {
			continue
		}
		// Exact when the rate is a whole number of this unit.
		high, low := bits.Mul64(r.bytes, u.ps)
		divisor := r.ps * u.bytes
		if high == 0 && divisor/u.bytes == r.ps && low%divisor == 0 && low/divisor < 1000 {
			return strconv.FormatUint(low/divisor, 10) + u.name
		}
	}
	return fmt.Sprintf("%d/%dps/B", r.ps, r.bytes)
}

// ParseRate reads a decimal number and a unit: time per byte (ps/B, ns/B), bits
// per second (Mb/s, Gb/s, Tb/s) or bytes per second (MB/s, GB/s, TB/s, MiB/s,
// GiB/s). "20ps/B", "400Gb/s" and "50GB/s" are the same rate. It also reads a
// quotient of two whole numbers, as in "1000/3ps/B".
func ParseRate(s string) (Rate, error) {
	text := strings.TrimSpace(s)
	if text == "0" {
		return Rate{}, nil
	}
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		num, den, err := parseRatio(strings.TrimSpace(number))
		switch {
		case err != nil:
			return Rate{}, fmt.Errorf("rate %q: %w", s, err)
		case u.inverse && num == 0:
			return Rate{}, nil
		case num == 0:
			return Rate{}, fmt.Errorf("rate %q: want more than nothing per second", s)
		}
		if !u.inverse {
			num, den = den, num
		}
		psHigh, ps := bits.Mul64(num, u.ps)
		bytesHigh, bytes := bits.Mul64(den, u.bytes)
		r := newRate(ps, bytes)
		if psHigh|bytesHigh != 0 || r.ps > math.MaxInt32*1000 || r.bytes > math.MaxInt64 {
			return Rate{}, fmt.Errorf("rate %q: out of range", s)
		}
		return r, nil
	}
	return Rate{}, fmt.Errorf("rate %q: want a number and a unit of ps/B, ns/B, Mb/s, Gb/s, Tb/s, MB/s, GB/s, TB/s, MiB/s, GiB/s", s)
}

// parseRatio reads "12", "6.25" or "1000/3" as a quotient.
func parseRatio(text string) (num, den uint64, err error) {
	const fraction = 1_000_000 // decimals are kept to six places
	if top, bottom, ok := strings.Cut(text, "/"); ok {
		n, err := parseScaled(top, 1)
		if err != nil {
			return 0, 0, err
		}
		d, err := parseScaled(bottom, 1)
		if err != nil {
			return 0, 0, err
		}
		if n < 0 || d < 1 {
			return 0, 0, fmt.Errorf("want a positive quotient, got %q", text)
		}
		return uint64(n), uint64(d), nil
	}
	n, err := parseScaled(text, fraction)
	if err != nil {
		return 0, 0, err
	}
	if n < 0 {
		return 0, 0, fmt.Errorf("want a positive number, got %q", text)
	}
	r := newRate(uint64(n), fraction)
	if r.ps == 0 {
		return 0, 1, nil
	}
	return r.ps, r.bytes, nil
}

// MarshalText returns the text of [Rate.String].
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the forms of [ParseRate].
func (r *Rate) UnmarshalText(text []byte) error {
	v, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = v
	return nil
}
