package exanest

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/experiment"
)

// Helpers for rows of the ledger that need several points.

// doubling lists from, 2 from, 4 from, ..., to.
func doubling(from, to int) (list []int) {
	for ; from <= to; from *= 2 {
		list = append(list, from)
	}
	return list
}

// listed writes values for LedgerRow.Of: "size=1,2,4".
func listed(axis string, values []int) string {
	return axis + "=" + strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",")
}

// along returns the numbers in a column at several values of an axis. at has the
// other values, as in Measured.At.
func along(m *experiment.Measured, column, at, axis string, values []int) []float64 {
	numbers := make([]float64, len(values))
	for i, v := range values {
		numbers[i] = m.At(column, fmt.Sprintf("%s %s=%d", at, axis, v))
	}
	return numbers
}

// jump returns the value before the largest step between neighbouring numbers,
// as a ratio.
func jump(values []int, numbers []float64) float64 {
	before, most := 0, 0.0
	for i := range len(numbers) - 1 {
		if step := numbers[i+1] / numbers[i]; step > most {
			before, most = values[i], step
		}
	}
	return float64(before)
}

// within reports whether ours is less than a share away from other.
func within(share, ours, other float64) bool {
	return ours > (1-share)*other && ours < (1+share)*other
}

// mean returns the mean of numbers.
func mean(numbers []float64) float64 {
	sum := 0.0
	for _, n := range numbers {
		sum += n
	}
	return sum / float64(len(numbers))
}
