package goal

// Result is what a run says.
type Result struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// Events is the number of operations that ran and messages that were sent.
	Events int64 `json:"events"`
	// Messages is the number of messages sent.
	Messages int64 `json:"messages"`
	// Mismatched counts messages whose receive has another size.
	Mismatched int64 `json:"mismatched"`
	// MaxNS is the largest finishing time in ns, MaxRank the first rank that has it.
	MaxNS   int64 `json:"max_ns"`
	MaxRank int   `json:"max_rank"`
	// FinishNS is the finishing time of each rank in ns.
	FinishNS []int64 `json:"finish_ns"`
}
