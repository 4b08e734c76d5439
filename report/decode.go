package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Decode reads a value of the column from JSON. It is the inverse of
// [Table.Write], to the last picosecond. A text that is no value of the
// column's kind is an error.
func (c Column) Decode(text json.RawMessage) (any, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, fmt.Errorf("%s: no value", c.Key())
	}
	if string(text) == "null" {
		return nil, nil
	}
	v, err := c.decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s, expected a value of kind %s", c.Key(), shortened(text), c.Kind)
	}
	return v, nil
}

func (c Column) decode(text []byte) (any, error) {
	digits := string(text)
	switch c.Kind {
	case Text:
		var s string
		err := json.Unmarshal(text, &s)
		return s, err
	case Flag:
		var b bool
		err := json.Unmarshal(text, &b)
		return b, err
	case Count, Size:
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil && c.Kind == Count {
			var wide uint64
			if wide, err = strconv.ParseUint(digits, 10, 64); err == nil || !c.Fractions {
				return wide, err
			}
			break
		}
		return n, err
	case Duration:
		return parseTime(digits, durationUnits[c.Unit])
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = errors.New("no number")
	}
	return f, err
}

// parseTime is the inverse of exactTime.
func parseTime(digits string, unit sim.Time) (sim.Time, error) {
	text, negative := strings.CutPrefix(digits, "-")
	whole, fraction, point := strings.Cut(text, ".")
	width := len(strconv.FormatInt(int64(unit), 10)) - 1
	if len(fraction) > width || point && fraction == "" || whole == "" {
		return 0, errors.New("no time")
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", width-len(fraction)), 10, 63)
	if negative {
		return -sim.Time(n), err //nolint:gosec // 63 bits
	}
	return sim.Time(n), err //nolint:gosec // 63 bits
}

// longestShown is how many bytes of a wrong value an error shows.
const longestShown = 40

func shortened(text []byte) string {
	if len(text) > longestShown {
		return strings.ToValidUTF8(string(text[:longestShown]), "") + "…"
	}
	return string(text)
}

// Same reports whether two values of the column's Go types are equal.
func (c Column) Same(a, b any) bool {
	x, ok := c.kept(a)
	y, also := c.kept(b)
	return ok && also && x == y
}
