package goal

import (
	"container/heap"
	"iter"
	"math/big"
	"slices"
)

// model is the endpoint model, taken literally: one event queue, and an event
// that must wait goes back into it. It shares only the schedule with the
// simulator.
type model struct {
	s       *Schedule
	p       Params
	queue   modelQueue
	ts      int
	o       [][]int64
	gr, gs  [][]int64
	rq, uq  [][]*modelEvent
	deps    [][]int
	free    [][]*modelEvent // released operations per rank, in order of release
	noise   func(r int, t, work int64) int64
	ran     int
	pending int
}

type modelEvent struct {
	time int64
	ts   int
	msg  bool
	rank int // of the operation; for a message, of the target
	src  int // of a message
	i    int // number of the operation in its rank
	op   Op
	done bool // the send is done
	send *modelEvent
}

type modelQueue []*modelEvent

func (q modelQueue) Len() int { return len(q) }
func (q modelQueue) Less(i, j int) bool {
	return q[i].time < q[j].time || q[i].time == q[j].time && q[i].ts < q[j].ts
}
func (q modelQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *modelQueue) Push(x any)   { *q = append(*q, x.(*modelEvent)) }
func (q *modelQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// runModel returns the finishing times. complete: all operations ran and all
// messages were received. noise returns the end of work that begins at t.
func runModel(s *Schedule, p Params, noise func(r int, t, work int64) int64) (finish []int64, complete bool) {
	m := &model{s: s, p: p, noise: noise}
	n := s.Ranks()
	m.rq, m.uq = make([][]*modelEvent, n), make([][]*modelEvent, n)
	m.free = make([][]*modelEvent, n)
	for r, v := range s.All() {
		m.o = append(m.o, make([]int64, 256))
		m.gr = append(m.gr, make([]int64, 256))
		m.gs = append(m.gs, make([]int64, 256))
		var deps []int
		for i := range v.Len() {
			deps = append(deps, v.Deps(i))
			if v.Deps(i) == 0 {
				m.free[r] = append(m.free[r], &modelEvent{rank: r, i: i, op: v.Op(i)})
			}
		}
		m.deps = append(m.deps, deps)
		m.insert(r)
	}
	for m.queue.Len() > 0 {
		m.step(heap.Pop(&m.queue).(*modelEvent))
	}
	complete = m.ran == s.Len() && m.pending == 0
	for r := range n {
		finish = append(finish, slices.Max(m.o[r]))
	}
	return finish, complete
}

// insert puts the released operations of a rank into the event queue.
func (m *model) insert(r int) {
	slices.SortStableFunc(m.free[r], func(a, b *modelEvent) int { return int(a.op.Kind) - int(b.op.Kind) })
	for _, e := range m.free[r] {
		e.time = m.o[r][e.op.CPU]
		if e.op.Kind == Send {
			e.time = max(e.time, m.gs[r][e.op.NIC])
		}
		m.add(e)
	}
	m.free[r] = nil
}

func (m *model) add(e *modelEvent) {
	e.ts = m.ts
	m.ts++
	heap.Push(&m.queue, e)
}

func (m *model) release(r int, list iter.Seq[int]) {
	for x := range list {
		if m.deps[r][x]--; m.deps[r][x] == 0 {
			m.free[r] = append(m.free[r], &modelEvent{rank: r, i: x, op: m.s.Rank(r).Op(x)})
		}
	}
}

func (m *model) started(e *modelEvent) { m.release(e.rank, m.s.Rank(e.rank).AfterStart(e.i)) }

func (m *model) finished(e *modelEvent) {
	if !e.done {
		e.done = true
		m.release(e.rank, m.s.Rank(e.rank).AfterDone(e.i))
	}
}

// bytes returns (size-1)*perByte, rounded down.
func (m *model) bytes(e *modelEvent, perByte ByteTime) int64 {
	if e.op.Size == 0 {
		return 0
	}
	exact, _ := new(big.Rat).SetString(perByte.String())
	exact.Mul(exact, new(big.Rat).SetUint64(e.op.Size-1))
	return new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
}

func (m *model) step(e *modelEvent) {
	t, r, cpu, nic := e.time, e.rank, e.op.CPU, e.op.NIC
	wait := t
	switch {
	case e.msg:
		wait = max(m.o[r][cpu], m.gr[r][nic])
	case e.op.Kind == Send:
		wait = max(m.o[r][cpu], m.gs[r][nic])
	case e.op.Kind == Calc:
		wait = m.o[r][cpu]
	}
	if wait > t {
		e.time = wait
		heap.Push(&m.queue, e)
		return
	}
	touched := []int{r}
	switch {
	case e.msg:
		m.o[r][cpu] = m.noise(r, t, m.p.Overhead+max(m.bytes(e, m.p.ByteOverhead), m.bytes(e, m.p.ByteGap)))
		m.gr[r][nic] = t + m.p.Gap + m.bytes(e, m.p.ByteGap)
		touched = m.arrive(e)
	case e.op.Kind == Calc:
		m.ran++
		m.o[r][cpu] = m.noise(r, t, int64(e.op.Size))
		m.started(e)
		m.finished(e)
	case e.op.Kind == Send:
		m.ran++
		m.started(e)
		m.o[r][cpu] = m.noise(r, t, m.p.Overhead+m.bytes(e, m.p.ByteOverhead))
		m.gs[r][nic] = t + m.p.Gap + m.bytes(e, m.p.ByteGap)
		m.add(&modelEvent{
			time: m.noise(r, t, m.p.Overhead) + m.p.L, msg: true, rank: int(e.op.Peer), src: r, op: e.op, send: e,
		})
		if e.op.Size <= m.p.Eager {
			m.finished(e)
		}
	case e.op.Kind == Recv:
		m.started(e)
		touched = m.post(e)
	}
	slices.Sort(touched)
	for _, r := range slices.Compact(touched) {
		m.insert(r)
	}
}

func (m *model) match(recv, msg *modelEvent) bool {
	return (recv.op.Peer == Any || int(recv.op.Peer) == msg.src) &&
		(recv.op.Tag == AnyTag || msg.op.Tag == AnyTag || recv.op.Tag == msg.op.Tag)
}

func (m *model) post(e *modelEvent) []int {
	for i, u := range m.uq[e.rank] {
		if !m.match(e, u) {
			continue
		}
		m.uq[e.rank] = slices.Delete(m.uq[e.rank], i, i+1)
		m.pending--
		m.ran++
		if e.op.Size > m.p.Eager {
			m.finished(u.send)
			m.raise(u.src, e.op.CPU, e.op.NIC, e.time)
		}
		m.finished(e)
		return []int{e.rank, u.src}
	}
	m.rq[e.rank] = append(m.rq[e.rank], e)
	return []int{e.rank}
}

func (m *model) arrive(e *modelEvent) []int {
	for i, r := range m.rq[e.rank] {
		if !m.match(r, e) {
			continue
		}
		m.rq[e.rank] = slices.Delete(m.rq[e.rank], i, i+1)
		m.ran++
		if e.op.Size > m.p.Eager {
			m.finished(e.send)
			m.raise(e.src, e.op.CPU, e.op.NIC, e.time)
		}
		m.finished(r)
		return []int{e.rank, e.src}
	}
	m.uq[e.rank] = append(m.uq[e.rank], e)
	m.pending++
	return nil
}

func (m *model) raise(r int, cpu, nic uint8, t int64) {
	m.o[r][cpu] = max(m.o[r][cpu], t)
	m.gs[r][nic] = max(m.gs[r][nic], t)
}
