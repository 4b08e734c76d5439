package chakra

import (
	"container/heap"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
)

// network has the parameters of a network without overheads per message.
type network struct {
	latency int64
	perByte float64 // G: at the sender's network interface, ns
	atEnds  float64 // O: on the processors of send and receive, ns
}

// model is a literal model of a schedule as ATLAHS' simulator runs it (o and g
// are 0): operations exclude each other on their processor, messages at their
// sender's network interface.
type model struct {
	s *goal.Schedule
	network
	left    [][]int // releases that each operation waits for
	busy    map[[2]int]int64
	sending map[int]int64
	posted  map[channel][]int
	arrived map[channel][]int64
	finish  []int64 // of each rank
	events
	done int
}

// channel is what messages are matched by.
type channel struct{ from, to, tag int }

type happening struct {
	at        int64
	order     int
	rank, op  int
	completes bool // else it is ready
	arrives   bool // the message of a receive
}

type events []happening

func (e *events) Len() int      { return len(*e) }
func (e *events) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Push(x any)    { *e = append(*e, x.(happening)) }
func (e *events) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// run returns when the last rank has finished.
func run(t *testing.T, s *goal.Schedule, n network) (last int64) {
	m := &model{s: s, network: n, busy: map[[2]int]int64{}, sending: map[int]int64{}, posted: map[channel][]int{}, arrived: map[channel][]int64{}}
	m.finish = make([]int64, s.Ranks())
	order := 0
	push := func(h happening) {
		order++
		h.order = order
		heap.Push(&m.events, h)
	}
	for r, v := range s.All() {
		m.left = append(m.left, make([]int, v.Len()))
		for i := range v.Len() {
			if m.left[r][i] = v.Deps(i); v.Deps(i) == 0 {
				push(happening{rank: r, op: i})
			}
		}
	}
	for m.Len() > 0 {
		h := heap.Pop(&m.events).(happening)
		if !h.completes {
			m.begin(h, push)
			continue
		}
		m.done++
		m.finish[h.rank] = max(m.finish[h.rank], h.at)
		for next := range s.Rank(h.rank).AfterDone(h.op) {
			if m.left[h.rank][next]--; m.left[h.rank][next] == 0 {
				push(happening{at: h.at, rank: h.rank, op: next})
			}
		}
	}
	require.Equal(t, s.Len(), m.done, "operations that are done")
	for _, f := range m.finish {
		last = max(last, f)
	}
	return last
}

func (m *model) begin(h happening, push func(happening)) {
	op := m.s.Rank(h.rank).Op(h.op)
	h.completes = true
	if h.arrives {
		cpu := [2]int{h.rank, int(op.CPU)}
		h.at = max(h.at, m.busy[cpu]) + int64(float64(op.Size-1)*m.atEnds)
		m.busy[cpu] = h.at
		push(h)
		return
	}
	switch op.Kind {
	case goal.Calc:
		at := [2]int{h.rank, int(op.CPU)}
		h.at = max(h.at, m.busy[at]) + int64(op.Size)
		m.busy[at] = h.at
		push(h)
	case goal.Send:
		cpu := [2]int{h.rank, int(op.CPU)}
		if free := max(m.busy[cpu], m.sending[h.rank]); free > h.at {
			push(happening{at: free, rank: h.rank, op: h.op})
			return
		}
		gap := int64(float64(op.Size-1) * m.perByte)
		m.sending[h.rank] = h.at + gap
		h.at += int64(float64(op.Size-1) * m.atEnds)
		m.busy[cpu] = h.at
		push(h)
		c := channel{h.rank, int(op.Peer), int(op.Tag)}
		at := h.at + m.latency + gap
		if list := m.posted[c]; len(list) > 0 {
			m.posted[c] = list[1:]
			push(happening{at: at, rank: c.to, op: list[0], arrives: true})
			return
		}
		m.arrived[c] = append(m.arrived[c], at)
	case goal.Recv:
		c := channel{int(op.Peer), h.rank, int(op.Tag)}
		if list := m.arrived[c]; len(list) > 0 {
			m.arrived[c] = list[1:]
			push(happening{at: max(h.at, list[0]), rank: h.rank, op: h.op, arrives: true})
			return
		}
		m.posted[c] = append(m.posted[c], h.op)
	}
}
