package collective

import "github.com/spinsim/spinsim/goal"

// Alone makes a schedule of one collective of another schedule, by its number in
// Collectives: its operations with what they require of each other, for as many
// ranks. What came before it and beside it is not there.
func Alone(s *goal.Schedule, number int) (*goal.Schedule, error) {
	b := goal.NewBuilder()
	for rank, ops := range s.All() {
		b.Rank(rank)
		at := make(map[int]int)
		for i := range ops.Len() {
			if ops.Collective(i) == number {
				b.Begin(s.Collectives()[number])
				at[i] = b.Add(ops.Op(i))
			}
		}
		for i := range ops.Len() {
			y, mine := at[i]
			if !mine {
				continue
			}
			for k := range ops.AfterDone(i) {
				if x, also := at[k]; also {
					b.Requires(x, y)
				}
			}
			for k := range ops.AfterStart(i) {
				if x, also := at[k]; also {
					b.IRequires(x, y)
				}
			}
		}
	}
	return b.Schedule()
}
