package goal

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ByteTime is the time that a byte takes: a decimal number of nanoseconds,
// exactly. The zero value is 0.
type ByteTime struct {
	whole int64
	// and part/of, where of is the smallest power of ten that will do
	part, of uint64
}

// maxDecimals is the most digits after the point: so many fit in 64 bits.
const maxDecimals = 18

// PerByte returns a time of whole nanoseconds for each byte.
func PerByte(ns int64) ByteTime { return ByteTime{whole: ns} }

// ParseByteTime reads a decimal number of nanoseconds, such as 6 or 0.04.
func ParseByteTime(text string) (ByteTime, error) {
	whole, decimals, point := strings.Cut(text, ".")
	ns, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || point && decimals == "" {
		return ByteTime{}, fmt.Errorf("goal: %q, expected nanoseconds such as 6 or 0.04", text)
	}
	t := PerByte(int64(ns)) //nolint:gosec // 63 bits
	if decimals = strings.TrimRight(decimals, "0"); decimals == "" {
		return t, nil
	}
	if len(decimals) > maxDecimals {
		return ByteTime{}, fmt.Errorf("goal: %q, expected at most %d digits after the point", text, maxDecimals)
	}
	if t.part, err = strconv.ParseUint(decimals, 10, 64); err != nil {
		return ByteTime{}, fmt.Errorf("goal: %q, expected nanoseconds such as 6 or 0.04", text)
	}
	t.of = 1
	for range decimals {
		t.of *= 10
	}
	return t, nil
}

// String returns the number as ParseByteTime reads it.
func (t ByteTime) String() string {
	text := strconv.FormatInt(t.whole, 10)
	if t.part == 0 {
		return text
	}
	return text + "." + strconv.FormatUint(t.of+t.part, 10)[1:]
}

// MarshalJSON writes the number.
func (t ByteTime) MarshalJSON() ([]byte, error) { return []byte(t.String()), nil }

// after returns the time of all bytes of a message but the first, in whole
// nanoseconds, because clocks count these in the public simulators of the model
// and here. The product is exact and rounded down, once for each message.
func (t ByteTime) after(size uint64) int64 {
	if size == 0 {
		return 0
	}
	ns := int64(size-1) * t.whole
	if t.part > 0 {
		ns += int64(t.fraction(size - 1))
	}
	return ns
}

// fraction returns the time of bytes at part/of.
func (t ByteTime) fraction(bytes uint64) uint64 {
	hi, lo := bits.Mul64(bytes, t.part)
	ns, _ := bits.Div64(hi, lo, t.of) // part is less than of, so hi is, too
	return ns
}

// fits reports whether all bytes of a message but the first take at most MaxCost.
func (t ByteTime) fits(size uint64) bool {
	if size == 0 {
		return true
	}
	hi, ns := bits.Mul64(size-1, uint64(t.whole))
	if hi != 0 || ns > uint64(MaxCost) {
		return false
	}
	if t.part == 0 {
		return true
	}
	more := t.fraction(size - 1)
	return more <= uint64(MaxCost) && ns+more <= uint64(MaxCost)
}

// Times returns the time of a number of bytes in whole nanoseconds, rounded down.
// false: it is more than MaxCost.
func (t ByteTime) Times(bytes uint64) (ns uint64, fits bool) {
	if bytes == ^uint64(0) || !t.fits(bytes+1) {
		return 0, false
	}
	return uint64(t.after(bytes + 1)), true
}
