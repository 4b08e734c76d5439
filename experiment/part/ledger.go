package part

import (
	"fmt"
	"math"
	"slices"

	"github.com/spinsim/spinsim/experiment"
)

// What the publications call similar, the same, no significant difference, or
// negligible: within a tenth.
const (
	alikeWithin = 1.1
	alikeHow    = "within a tenth"
)

// alike reports whether two times are what the publications call similar.
func alike(a, b float64) bool { return max(a, b) <= alikeWithin*min(a, b) }

// latency is the latency in µs at the only point with the values.
func latency(m *experiment.Measured, format string, args ...any) float64 {
	return m.At(experiment.LatencyColumn, fmt.Sprintf(format, args...))
}

// eachOf lists the values of an axis in their order, "axis=value" each.
func eachOf(m *experiment.Measured, axis string) (list []string) {
	for _, r := range m.Results {
		if is := fmt.Sprintf("%s=%v", axis, r.Point.Value(axis)); !slices.Contains(list, is) {
			list = append(list, is)
		}
	}
	return list
}

// always reports whether f holds for each value of an axis, "axis=value".
func always(m *experiment.Measured, axis string, f func(is string) bool) bool {
	return !slices.ContainsFunc(eachOf(m, axis), func(is string) bool { return !f(is) })
}

// kibibytes are the sizes of eachOf(m, "size").
func kibibytes(m *experiment.Measured) (list []float64) {
	for _, r := range m.Results {
		if size := float64(r.Point.Int("size")) / 1024; !slices.Contains(list, size) {
			list = append(list, size)
		}
	}
	return list
}

// upTo is the largest size in KiB for which f holds, as for all smaller ones.
// 0: for none.
func upTo(m *experiment.Measured, f func(is string) bool) (most float64) {
	for i, is := range eachOf(m, "size") {
		if !f(is) {
			break
		}
		most = kibibytes(m)[i]
	}
	return most
}

// fromOn is the smallest size in KiB for which f holds, as for all larger ones.
// 0: for none.
func fromOn(m *experiment.Measured, f func(is string) bool) (least float64) {
	all := eachOf(m, "size")
	for i := len(all) - 1; i >= 0 && f(all[i]); i-- {
		least = kibibytes(m)[i]
	}
	return least
}

// furthest is the number that is furthest from a published range.
func furthest(numbers []float64, low, high float64) float64 {
	off := func(n float64) float64 { return max(0, math.Log(low/n), math.Log(n/high)) }
	return slices.MaxFunc(numbers, func(a, b float64) int {
		if off(a) < off(b) {
			return -1
		}
		return 1
	})
}

// one is the only number of a row.
func one(f func(m *experiment.Measured) float64) func(m *experiment.Measured) []float64 {
	return func(m *experiment.Measured) []float64 { return []float64{f(m)} }
}
