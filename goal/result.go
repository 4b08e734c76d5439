package goal

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Result is what a run says.
type Result struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// Events is the number of operations that ran and of messages that were sent.
	Events int64 `json:"events"`
	// Messages is the number of messages sent.
	Messages int64 `json:"messages"`
	// Mismatched counts messages whose receive has another size, which the model ignores.
	Mismatched int64 `json:"mismatched"`
	// MaxNS is the largest finishing time in ns, MaxRank the first rank that has it.
	MaxNS   int64 `json:"max_ns"`
	MaxRank int   `json:"max_rank"`
	// FinishNS is the finishing time of each rank in ns.
	FinishNS []int64 `json:"finish_ns"`
}

// Distribution describes the finishing times.
func (r Result) Distribution() Distribution { return distribute(slices.Clone(r.FinishNS)) }

// WriteJSON writes the result as one JSON object on a line.
func (r Result) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteTable writes the result as a table: sums, the maximum and the distribution of the finishing times.
func (r Result) WriteTable(w io.Writer) error {
	d := r.Distribution()
	t := table.NewWriter()
	t.AppendRows([]table.Row{
		{"ranks", r.Ranks},
		{"operations and messages", r.Events},
		{"messages", r.Messages},
	})
	if r.Mismatched > 0 {
		t.AppendRow(table.Row{"received with another size", r.Mismatched})
	}
	t.AppendSeparator()
	t.AppendRows([]table.Row{
		{"finish max (ns)", r.MaxNS},
		{"  at rank", r.MaxRank},
		{"  99 %", d.P99},
		{"  75 %", d.P75},
		{"  median", d.P50},
		{"  25 %", d.P25},
		{"  min", d.Min},
		{"  mean", int64(d.Mean)},
	})
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}
