// Package combine has the arithmetic of handlers that combine vectors. It runs in
// modules.
package combine

import (
	"math"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/spin"
)

// Vectors computes acc = acc op v. Integers wrap around. Minimum and maximum of
// floating-point numbers follow IEEE 754-2019 (a NaN wins, -0 is below 0). A
// NaN is always the same one, so that no result depends on the order of
// operands.
func Vectors(acc, v []byte, op, kind uint16) {
	switch kind {
	case allreduce.Int32:
		integers(spin.View[int32](acc), spin.View[int32](v), op)
	case allreduce.Int64:
		integers(spin.View[int64](acc), spin.View[int64](v), op)
	case allreduce.Float32:
		floats32(spin.View[float32](acc), spin.View[float32](v), op)
	case allreduce.Float64:
		floats64(spin.View[float64](acc), spin.View[float64](v), op)
	}
}

func integers[T int32 | int64](acc, v []T, op uint16) {
	v = v[:len(acc)]
	switch op {
	case allreduce.Sum:
		for i := range acc {
			acc[i] += v[i]
		}
	case allreduce.Min:
		for i := range acc {
			acc[i] = min(acc[i], v[i])
		}
	case allreduce.Max:
		for i := range acc {
			acc[i] = max(acc[i], v[i])
		}
	}
}

// The one NaN of each type: math.NaN, and its value as a float32.
const (
	nan64 = 0x7ff8000000000001
	nan32 = 0x7fc00000
)

func floats32(acc, v []float32, op uint16) {
	v = v[:len(acc)]
	switch op {
	case allreduce.Sum:
		for i := range acc {
			acc[i] = one32(acc[i] + v[i])
		}
	case allreduce.Min:
		for i := range acc {
			acc[i] = one32(min(acc[i], v[i]))
		}
	case allreduce.Max:
		for i := range acc {
			acc[i] = one32(max(acc[i], v[i]))
		}
	}
}

func floats64(acc, v []float64, op uint16) {
	v = v[:len(acc)]
	switch op {
	case allreduce.Sum:
		for i := range acc {
			acc[i] = one64(acc[i] + v[i])
		}
	case allreduce.Min:
		for i := range acc {
			acc[i] = one64(min(acc[i], v[i]))
		}
	case allreduce.Max:
		for i := range acc {
			acc[i] = one64(max(acc[i], v[i]))
		}
	}
}

func one32(x float32) float32 {
	if x != x {
		return math.Float32frombits(nan32)
	}
	return x
}

func one64(x float64) float64 {
	if x != x {
		return math.Float64frombits(nan64)
	}
	return x
}
