package experiment

import (
	"fmt"

	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// row returns the row of the ledger, or the user's.
func (r *LedgerRow) row(e *Experiment) (*ledger.Row, error) {
	if r.Row != nil {
		return r.Row, nil
	}
	row, ok := ledger.Find(r.ID)
	if !ok {
		return nil, fmt.Errorf("experiment %s: no row %s in the ledger", e.Name, r.ID)
	}
	return row, nil
}

// units are units of columns and of the ledger, each in the smallest of those it
// can be converted to. KB and MB are none: their sense differs between
// publications.
var units = map[report.Kind][]map[string]float64{
	report.Duration: {{"ps": 1, "ns": 1e3, "us": 1e6, "µs": 1e6, "ms": 1e9, "s": 1e12}},
	report.Share:    {{"": 1, "%": 0.01, "ratio": 1}},
	report.Change:   {{"": 1, "%": 0.01}},
	report.Ratio:    {{"": 1, "ratio": 1, "x": 1}},
	report.Size:     {{"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}},
	report.Number: {
		{"MBps": 1e6, "Gbps": 1e9 / 8, "GiBps": 1 << 30, "MB/s": 1e6, "GB/s": 1e9, "GiB/s": 1 << 30, "Mb/s": 1e6 / 8, "Gb/s": 1e9 / 8},
		{"ops": 1, "kops": 1e3, "k transactions/s": 1e3},
	},
}

// factorTo returns by what the number in a column is multiplied to be in a unit
// of the ledger.
func factorTo(c report.Column, unit string) (float64, error) {
	for _, family := range units[c.Kind] {
		if own, to := family[c.Unit], family[unit]; own > 0 && to > 0 {
			return own / to, nil
		}
	}
	if c.Kind == report.Count || c.Kind == report.Number && c.Unit == unit {
		return 1, nil // of what the unit names
	}
	return 0, fmt.Errorf("column %s has the unit %q, which is not converted to %q", c.Name, c.Unit, unit)
}
