package nic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Delay is a time, written "3ns", or a number of cycles of the device's clock,
// written "3 cycles". With cycles a device of another clock needs one change,
// hpu.clock. At most one of the two is not 0.
type Delay struct {
	Fixed  sim.Time
	Cycles int64
}

// Time is how long the delay is at a clock.
func (d Delay) Time(clock sim.Frequency) sim.Time {
	if d.Cycles == 0 {
		return d.Fixed
	}
	return clock.Cycles(d.Cycles)
}

// IsZero reports whether there is no delay. Package yaml asks for it.
func (d Delay) IsZero() bool { return d == Delay{} }

// check returns an error unless the delay is 0 to MaxTime.
func (d Delay) check(clock sim.Frequency) error {
	if t := d.Time(max(1, clock)); t < 0 || d.Cycles < 0 || t > MaxTime || d.Cycles != 0 && d.Fixed != 0 {
		return fmt.Errorf("%v, expected a time or a number of cycles, 0 to %v", d, MaxTime)
	}
	return nil
}

// String is the text of [Delay.MarshalText].
func (d Delay) String() string {
	if d.Cycles == 0 {
		return d.Fixed.String()
	}
	if d.Cycles == 1 {
		return "1 cycle"
	}
	return strconv.FormatInt(d.Cycles, 10) + " cycles"
}

// MarshalText writes what UnmarshalText reads.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a time, for example "3ns", or cycles: "3 cycles".
func (d *Delay) UnmarshalText(text []byte) error {
	number, inCycles := strings.CutSuffix(strings.TrimSuffix(strings.TrimSpace(string(text)), "s"), "cycle")
	if !inCycles {
		t, err := sim.ParseTime(string(text))
		if err != nil {
			return fmt.Errorf("%w, or of cycles", err)
		}
		*d = Delay{Fixed: t}
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q, expected a whole number of cycles", text)
	}
	*d = Delay{Cycles: n}
	return nil
}
