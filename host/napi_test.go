package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// backlog is a device with more frames at once than its core can take; each
// frame takes a picosecond.
type backlog struct {
	left int
	most []int // requested numbers of frames
}

func (f *backlog) poll(t *Thread, most int) int {
	f.most = append(f.most, most)
	n := min(most, f.left)
	f.left -= n
	t.Run(sim.Time(n), "frames")
	return n
}

// A tasklet takes a budget of frames, in batches. Then a thread continues, in
// turn with another thread. For example, after 100 frames in one go the other
// thread gets its turn after the thread's first batch of 40; without a budget
// it gets none before the end. Frames that come while the line is off interrupt
// once, when it is on again, and not before it has rested.
func TestNAPI(t *testing.T) {
	for _, c := range []struct {
		name             string
		budget, weight   int
		rest             sim.Time
		most             []int
		interrupts, late int64
		worked           sim.Time // when the other thread has worked
		// when the last of four frames that come at 1,000 and four at 1,001 is
		// taken
		again sim.Time
	}{
		{"all in the interrupt", 0, 0, 0, []int{64, 64, 64, 64, 64, 64, 64}, 3, 0, 257, 1004},
		{"a budget", 100, 40, 0, []int{40, 40, 20, 40, 40, 40, 40, 40, 40}, 2, 4, 101, 1004},
		{"a budget that is not used up", 1000, 100, 7, []int{100, 100, 100, 100, 100}, 2, 0, 257, 1004},
		{"a rest", 1000, 100, 900, []int{100, 100, 100, 100}, 2, 0, 257, 1156},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(1, CPUSpec{})
			f := &backlog{left: 256}
			n := m.NewNAPI(0, "device", &OSSpec{PollBudget: c.budget, PollWeight: c.weight, PollRest: c.rest}, f.poll)
			var worked, again sim.Time
			m.at(0, n.Line().Raise)
			m.at(1, func() {
				m.Kthread(0, "other", func(t *Thread) {
					t.Run(1, "work")
					worked = t.Now()
				})
			})
			for i := range sim.Time(2) {
				m.at(1000+i, func() {
					f.left += 4
					n.Line().Raise()
				})
			}
			for at := sim.Time(1000); at < 3000; at++ {
				m.at(at, func() {
					if f.left > 0 {
						again = at
					}
				})
			}
			require.NoError(t, m.eng.Run())
			t.Log(f.most, n.Stats, worked, again)
			require.Equal(t, c.most, f.most[:len(c.most)])
			require.Zero(t, f.left)
			require.Equal(t, []int64{c.interrupts, c.late}, []int64{n.Stats.Interrupts, n.Stats.Late})
			require.Equal(t, []sim.Time{c.worked, c.again}, []sim.Time{worked, again})
		})
	}
}
