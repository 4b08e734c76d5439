package proxy

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/fields"
)

// maxBytes is the largest message of a simulated network interface.
const maxBytes = 1 << 30

// Schedule makes the schedule of some iterations on a number of ranks. Each
// rank computes for calcNS nanoseconds in every iteration.
func (p *Proxy) Schedule(ranks, iterations int, calcNS uint64) (*goal.Schedule, error) {
	if err := p.Check(ranks, iterations); err != nil {
		return nil, err
	}
	m := &maker{Proxy: p, grid: Grid(ranks, len(p.Periodic)), b: goal.NewBuilder(), calc: calcNS}
	for _, ph := range p.Phases {
		m.shares += uint64(ph.During + ph.After)
	}
	for r := range ranks {
		m.rank(r, iterations)
		if m.err != nil {
			return nil, m.err
		}
	}
	return m.b.Schedule()
}

// Check returns why there is no schedule for these numbers. It does not check
// sizes of messages.
func (p *Proxy) Check(ranks, iterations int) error {
	for i, n := range []int{ranks, iterations} {
		if n < 1 {
			return &fields.Wrong{Package: "proxy", Option: []string{"ranks", "iterations"}[i], Err: fmt.Errorf("%d, expected at least 1", n)}
		}
	}
	ops := p.perIteration()
	if ranks > goal.MaxGenerated/ops/iterations {
		return fmt.Errorf("proxy: %s on %d ranks in %d iterations: %w", p.Name, ranks, iterations, goal.ErrTooLarge)
	}
	return nil
}

// Operations bounds how many operations the schedule for these numbers has.
func (p *Proxy) Operations(ranks, iterations int) int { return p.perIteration() * ranks * iterations }

// perIteration bounds how many operations a rank has in an iteration.
func (p *Proxy) perIteration() (ops int) {
	for _, ph := range p.Phases {
		ops += 4*len(ph.Messages) + 2 // a send and a receive to either side, two computations
	}
	return ops
}

// Grid splits ranks into factors that are as equal as possible, the largest
// first. Each is the largest factor that leaves the others no smaller on
// average.
func Grid(ranks, dims int) []int {
	var grid []int
	for d := dims; d > 1; d-- {
		factor := 1
		for f := 2; power(f, d) <= ranks; f++ {
			if ranks%f == 0 {
				factor = f
			}
		}
		grid = append(grid, factor)
		ranks /= factor
	}
	grid = append(grid, ranks)
	slices.SortFunc(grid, func(a, b int) int { return b - a })
	return grid
}

func power(f, d int) int {
	n := 1
	for range d {
		n *= f
	}
	return n
}

// maker builds a schedule.
type maker struct {
	*Proxy
	grid   []int
	b      *goal.Builder
	calc   uint64 // ns of an iteration
	shares uint64 // of an iteration, in all
	at     []int  // the present rank's place in the grid
	before []int  // what the next operations must wait for
	err    error
}

func (m *maker) rank(r, iterations int) {
	m.b.Rank(r)
	m.before = nil
	m.at = m.at[:0]
	for _, n := range m.grid {
		m.at = append(m.at, r%n)
		r /= n
	}
	for range iterations {
		tag := uint32(0)
		for i := range m.Phases {
			tag = m.phase(&m.Phases[i], tag)
		}
	}
}

// phase adds the operations of a phase; its messages have tags from the given one on.
func (m *maker) phase(ph *Phase, tag uint32) (next uint32) {
	var sends, waits []int
	for i := range ph.Messages {
		msg := &ph.Messages[i]
		for _, side := range []string{Down, Up} {
			if msg.Side == "" || msg.Side == side {
				sends, waits = m.exchange(msg, side, tag, sends, waits)
				tag++
			}
		}
	}
	if c, ok := m.compute(ph.During, m.before, sends); ok {
		waits = append(waits, c)
	}
	if len(waits)+len(sends) > 0 {
		m.before = append(sends, waits...)
	}
	if c, ok := m.compute(ph.After, m.before, nil); ok {
		m.before = []int{c}
	}
	return tag
}

// compute adds a computation of a share of the iteration's time. It requires
// the end of some operations and the start of others.
func (m *maker) compute(share int, done, started []int) (op int, ok bool) {
	if m.shares == 0 || share == 0 || m.calc == 0 {
		return 0, false
	}
	op = m.b.Calc(m.calc * uint64(share) / m.shares)
	for _, y := range done {
		m.b.Requires(op, y)
	}
	for _, y := range started {
		m.b.IRequires(op, y)
	}
	return op, true
}

// exchange adds the send of a message to one side and the receive from the other.
func (m *maker) exchange(msg *Message, side string, tag uint32, sends, waits []int) ([]int, []int) {
	size := m.bytes(msg)
	if size > maxBytes {
		m.err = fmt.Errorf("proxy: %s: message of %d B along dimension %d, expected at most %d", m.Name, size, msg.Dim, maxBytes)
		return sends, waits
	}
	step := 1
	if side == Down {
		step = -1
	}
	if from, found := m.neighbour(msg.Dim, -step); found {
		waits = append(waits, m.after(m.b.Recv(size, from, tag)))
	}
	if to, found := m.neighbour(msg.Dim, step); found {
		sends = append(sends, m.after(m.b.Send(size, to, tag)))
	}
	return sends, waits
}

// after makes an operation wait for the previous phase.
func (m *maker) after(op int) int {
	for _, y := range m.before {
		m.b.Requires(op, y)
	}
	return op
}

// neighbour returns the rank one step along a dimension, if there is one and it
// is not the rank itself.
func (m *maker) neighbour(dim, step int) (rank int, found bool) {
	n := m.grid[dim]
	k := m.at[dim] + step
	if k < 0 || k >= n {
		if !m.Periodic[dim] {
			return 0, false
		}
		k = (k + n) % n
	}
	stride := 1
	for d, at := range m.at {
		if d == dim {
			at = k
		}
		rank += at * stride
		stride *= m.grid[d]
	}
	return rank, k != m.at[dim]
}

// bytes returns the length of a message: the largest rank's, if ranks differ.
func (m *maker) bytes(msg *Message) uint64 {
	n := uint64(msg.Unit)
	for d := range m.grid {
		if d == msg.Dim || n > maxBytes {
			continue
		}
		n *= uint64(m.points(d, msg.Pad))
	}
	return n
}

// points returns the extent of the largest rank in a dimension, padding
// included.
func (m *maker) points(d int, pad []int) (n int) {
	if len(m.Local) > 0 {
		n = m.Local[d]
	} else {
		n = (m.Global[d] + m.grid[d] - 1) / m.grid[d]
	}
	if len(pad) > 0 {
		n += pad[d]
	}
	return n
}
