package sim

import (
	"strconv"

	"github.com/spinsim/spinsim/internal/size"
)

// Size is a number of bytes, written 4096, 4KiB, 64kB, 1.5MiB, 1TiB.
type Size int64

// ParseSize reads a number of bytes, at least 0 and below 2^53, with an
// optional unit (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB).
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

// String returns the size with the largest binary unit that divides it.
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

// Rounded returns the size with three digits and a unit, for sizes that are not
// exact.
func (z Size) Rounded() string {
	v, unit := float64(z), " B"
	for _, u := range []string{" KiB", " MiB", " GiB", " TiB", " PiB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/(1<<10), u
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + unit
}
