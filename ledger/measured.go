package ledger

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Measured is what spinsim has measured for a row.
type Measured struct {
	ID      string
	Ours    Ours
	Command string  // that measures it
	How     string  // what of its output counts; "": one column
	Inputs  string  // hash of profiles, values and handlers; if it changes, Ours is too old
	Seconds float64 // that the measurement took: a power of 10, at least 0.1
}

//go:embed measured.tsv
var measured string

// AllMeasured are the measurements that are part of the program, by the ids of
// their rows.
var AllMeasured = sync.OnceValue(func() map[string]*Measured {
	list, err := ParseMeasured(measured)
	if err != nil {
		panic(fmt.Sprintf("ledger: measured.tsv: %v", err))
	}
	all := make(map[string]*Measured, len(list))
	for i := range list {
		all[list[i].ID] = &list[i]
	}
	return all
})

const measuredColumns = "id\tours\tseconds\tinputs\tcommand\thow\n"

// FormatMeasured writes measurements as the file that ParseMeasured reads.
func FormatMeasured(list []Measured) string {
	var b strings.Builder
	b.WriteString(measuredColumns)
	for _, m := range list {
		seconds := math.Pow10(max(-1, int(math.Ceil(math.Log10(m.Seconds)-1e-9))))
		fmt.Fprintf(&b, "%s\t%v\t%g\t%s\t%s\t%s\n", m.ID, m.Ours, seconds, m.Inputs, m.Command, m.How)
	}
	return b.String()
}

// ParseMeasured reads measurements, one in a line.
func ParseMeasured(text string) (list []Measured, err error) {
	err = eachLine(text, measuredColumns, func(f []string) (err error) {
		m := Measured{ID: f[0], Inputs: f[3], Command: f[4], How: f[5]}
		if m.Ours, err = ParseOurs(f[1]); err == nil {
			m.Seconds, err = strconv.ParseFloat(f[2], 64)
		}
		list = append(list, m)
		return err
	})
	return list, err
}
