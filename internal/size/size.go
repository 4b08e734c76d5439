// Package size reads and writes numbers of bytes as people do: 4096, 4KiB, 1.5MiB.
package size

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"PiB", 1 << 50},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"PB", 1e15},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"Pi", 1 << 50},
	{"B", 1},
	{"", 1},
}

// Parse reads a number of bytes, at least 0 and below 2^53, with an optional unit (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB).
func Parse(s string) (int64, error) {
	t := strings.ReplaceAll(strings.TrimSpace(s), " ", "")
	for _, u := range units {
		v, ok := strings.CutSuffix(t, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			break
		}
		if f *= u.bytes; f < 0 || f >= 1<<53 || f != math.Trunc(f) {
			return 0, fmt.Errorf("size %q: expected a whole number of bytes from 0 to 2^53", s)
		}
		return int64(f), nil
	}
	return 0, fmt.Errorf("size %q: expected a number of bytes such as 8, 4KiB or 1MB", s)
}
