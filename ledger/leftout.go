package ledger

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Near is how near a row comes when spinsim identify chooses answers to open
// questions. A fit that explains noise brings Fitted near and leaves LeftOut
// far.
type Near struct {
	ID      string
	Fitted  float64 // distance with the answers that bring all rows nearest
	LeftOut float64 // with those that are found without the rows of the same experiment
	Inputs  string  // hash of rows, measurements and questions; if it changes, both are too old
	Command string  // that finds them
}

//go:embed leftout.tsv
var leftOut string

// AllNear are the distances that are part of the program, by the ids of rows.
var AllNear = sync.OnceValue(func() map[string]*Near {
	list, err := ParseNear(leftOut)
	if err != nil {
		panic(fmt.Sprintf("ledger: leftout.tsv: %v", err))
	}
	all := make(map[string]*Near, len(list))
	for i := range list {
		all[list[i].ID] = &list[i]
	}
	return all
})

const nearColumns = "id\tfitted\tleft_out\tinputs\tcommand\n"

// FormatNear writes distances as the file that ParseNear reads.
func FormatNear(list []Near) string {
	var b strings.Builder
	b.WriteString(nearColumns)
	for _, n := range list {
		fmt.Fprintf(&b, "%s\t%.4g\t%.4g\t%s\t%s\n", n.ID, n.Fitted, n.LeftOut, n.Inputs, n.Command)
	}
	return b.String()
}

// ParseNear reads distances, one row in a line.
func ParseNear(text string) (list []Near, err error) {
	err = eachLine(text, nearColumns, func(f []string) (err error) {
		n := Near{ID: f[0], Inputs: f[3], Command: f[4]}
		if n.Fitted, err = strconv.ParseFloat(f[1], 64); err == nil {
			n.LeftOut, err = strconv.ParseFloat(f[2], 64)
		}
		if err == nil && (math.IsNaN(n.Fitted) || n.Fitted < 0 || n.LeftOut < 0) {
			err = fmt.Errorf("distances %s and %s, expected numbers from 0", f[1], f[2])
		}
		list = append(list, n)
		return err
	})
	return list, err
}

// NearScore compares three distances of the same rows: a publication's rows with
// numbers that identify tries.
type NearScore struct {
	Rows                            int
	Today, Fitted, LeftOut          float64 // medians; NaN: no rows
	TodayP90, FittedP90, LeftOutP90 float64
}

// NearScore scores rows of the publication that fresh accepts. Repeated rows do
// not count.
func (p *Publication) NearScore(measured map[string]*Measured, near map[string]*Near, fresh func(id string) bool) (s NearScore, err error) {
	var today, fitted, left []float64
	for i := range p.Rows {
		r := &p.Rows[i]
		m, n := measured[r.ID], near[r.ID]
		if m == nil || n == nil || !fresh(r.ID) {
			continue
		}
		off, err := r.Off(m.Ours)
		if err != nil {
			return s, err
		}
		today, fitted, left = append(today, off.Distance), append(fitted, n.Fitted), append(left, n.LeftOut)
	}
	for _, list := range [][]float64{today, fitted, left} {
		slices.Sort(list)
	}
	return NearScore{
		len(today), Quantile(today, 0.5), Quantile(fitted, 0.5), Quantile(left, 0.5),
		Quantile(today, 0.9), Quantile(fitted, 0.9), Quantile(left, 0.9),
	}, nil
}
