package goal

import "slices"

// Stats count the contents of a schedule.
type Stats struct {
	Ranks int `json:"ranks"`
	// Ops is the number of operations; Sends, Recvs and Calcs are the numbers
	// of each kind.
	Ops   int `json:"ops"`
	Sends int `json:"sends"`
	Recvs int `json:"recvs"`
	Calcs int `json:"calcs"`
	// Collectives is the number of named collectives.
	Collectives int `json:"collectives,omitempty"`
	// Dependencies counts requires and irequires.
	Dependencies int `json:"dependencies"`
	// Bytes is the size of all sends, CalcNS the time of all computations.
	Bytes  uint64 `json:"bytes"`
	CalcNS uint64 `json:"calc_ns"`
	// Sent and Received are the messages per rank, as counted from the sends.
	Sent     Distribution `json:"sent_per_rank"`
	Received Distribution `json:"received_per_rank"`
}

// Stat counts the contents of a schedule.
func Stat(s *Schedule) Stats {
	st := Stats{Ranks: s.Ranks(), Ops: s.Len(), Dependencies: int(s.links), Collectives: len(s.colls)}
	sent, received := make([]int64, s.Ranks()), make([]int64, s.Ranks())
	for r, v := range s.All() {
		for i := range v.Len() {
			switch op := v.Op(i); op.Kind {
			case Send:
				st.Sends++
				st.Bytes += op.Size
				sent[r]++
				received[op.Peer]++
			case Recv:
				st.Recvs++
			case Calc:
				st.Calcs++
				st.CalcNS += op.Size
			}
		}
	}
	st.Sent, st.Received = distribute(sent), distribute(received)
	return st
}

// Distribution describes a set of numbers. A percentile is the smallest number
// that at least the given share does not exceed.
type Distribution struct {
	Min  int64   `json:"min"`
	P25  int64   `json:"p25"`
	P50  int64   `json:"p50"`
	P75  int64   `json:"p75"`
	P99  int64   `json:"p99"`
	Max  int64   `json:"max"`
	Mean float64 `json:"mean"`
}

// distribute describes values, at least one, and sorts them.
func distribute(values []int64) Distribution {
	slices.Sort(values)
	at := func(percent int) int64 { return values[(len(values)*percent+99)/100-1] }
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return Distribution{
		Min: values[0], P25: at(25), P50: at(50), P75: at(75), P99: at(99), Max: values[len(values)-1],
		Mean: sum / float64(len(values)),
	}
}
