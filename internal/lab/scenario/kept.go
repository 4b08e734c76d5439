package scenario

import (
	"encoding/json"
	"fmt"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// keptResult is a result in a checkpoint.
type keptResult struct {
	End      sim.Time    `json:"end_ps"`
	Checked  int         `json:"checked"`
	Failures []string    `json:"failures"`
	Notes    []string    `json:"notes"`
	Cut      string      `json:"cut,omitempty"`
	Tables   []keptTable `json:"tables"`
}

// keptTable is one of its tables.
type keptTable struct {
	Name string               `json:"name"`
	Idle []string             `json:"idle"`
	Rows [][]checkpoint.Value `json:"rows"`
}

// encode makes a value for a checkpoint of the result; nil if a limit has ended
// the run.
func (x *Result) encode() any {
	if x.Incomplete {
		return nil
	}
	kept := keptResult{End: x.End, Checked: x.Checked, Failures: x.Failures, Notes: x.Notes, Cut: x.Cut}
	for _, t := range x.Tables {
		one := keptTable{Name: t.Name, Idle: t.idle}
		for _, row := range t.Rows() {
			values := make([]checkpoint.Value, len(row))
			for i, v := range row {
				values[i].V = v
			}
			one.Rows = append(one.Rows, values)
		}
		kept.Tables = append(kept.Tables, one)
	}
	return kept
}

// decode makes a result of the plan from what encode has made.
func (p *Plan) decode(text []byte) (*Result, error) {
	var kept keptResult
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("what is kept of %s: %w", p.spec.file, err)
	}
	x := p.newResult(kept.End)
	x.Checked, x.Failures, x.Notes, x.Cut = kept.Checked, kept.Failures, kept.Notes, kept.Cut
	for _, one := range kept.Tables {
		t := Table{Name: one.Name, Table: report.New(TableColumns(one.Name)...), idle: one.Idle}
		t.Title = tableTitles[one.Name]
		for _, row := range one.Rows {
			values := make([]any, len(row))
			for i, v := range row {
				if values[i] = v.V; i >= len(t.Columns) || !t.Columns[i].Holds(v.V) {
					return nil, fmt.Errorf("what is kept of %s: table %s: %v is no value of column %d", p.spec.file, one.Name, v.V, i+1)
				}
			}
			t.Add(values...)
		}
		x.Tables = append(x.Tables, t)
	}
	return x, nil
}
