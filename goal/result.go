package goal

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Result is the result of a run.
type Result struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// Events is the number of operations run plus messages sent.
	Events int64 `json:"events"`
	// Messages is the number of messages sent.
	Messages int64 `json:"messages"`
	// Mismatched counts messages whose receive has another size. The model
	// ignores the difference.
	Mismatched int64 `json:"mismatched"`
	// MaxNS is the largest finishing time in ns, MaxRank the first rank with
	// it.
	MaxNS   int64 `json:"max_ns"`
	MaxRank int   `json:"max_rank"`
	// FinishNS is the finishing time of each rank in ns.
	FinishNS []int64 `json:"finish_ns"`
}

// Distribution describes the finishing times.
func (r Result) Distribution() Distribution { return distribute(slices.Clone(r.FinishNS)) }

// WriteJSON writes the result as one JSON object on a line.
func (r Result) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteTable writes the result as a table: sums, the maximum and the
// distribution of the finishing times.
func (r Result) WriteTable(w io.Writer) error {
	d := r.Distribution()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(value int64, name string) { fmt.Fprintf(t, "%d\t  %s\n", value, name) }
	row(r.MaxNS, "ns  last rank finishes")
	row(int64(r.MaxRank), "    which rank that is")
	row(d.P99, "ns  99 % of the ranks have finished")
	row(d.P75, "ns  75 %")
	row(d.P50, "ns  half")
	row(d.P25, "ns  25 %")
	row(d.Min, "ns  first rank finishes")
	row(int64(d.Mean), "ns  mean")
	row(int64(r.Ranks), "    ranks")
	row(r.Messages, "    messages")
	row(r.Events, "    operations and messages")
	if r.Mismatched > 0 {
		row(r.Mismatched, "    messages received with another size")
	}
	return t.Flush()
}
