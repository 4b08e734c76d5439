package goal

import (
	"fmt"
	"math"

	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/sim"
)

// The model of ATLAHS' simulator. It has the state of the LogGOPS model and
// other rules:
//
//   - An operation that waits for others has a time: the latest end of those that
//     it requires, or 0 if a start is what releases it. Then a receive is at that
//     time, a send when its network interface is free, a computation when its
//     processor is.
//   - An event that finds its clocks busy comes again when they were to be free.
//     They may have gone back until then: a receive that finds its message does
//     not wait, and sets the clocks of its rank.
//   - A message that finds its clocks busy gives the receive back, behind others
//     of its source and tag.

type atlahs struct{ *Simulator }

// start prepares the state that the other model does not have.
func (m atlahs) start() {
	if m.at == nil {
		m.at = memory.Make[int64](m.s.ids())
	}
	clear(m.at)
	m.heap = m.heap[:0]
}

func (m atlahs) loop() error {
	limited := m.limits != sim.Limits{}
	now := int64(0) // time of the last event
	for n := uint64(0); len(m.heap) > 0; n++ {
		e := m.heap.pop()
		if limited || n%lookEvery == 0 {
			if err := m.stopped(n, now, e); err != nil {
				return err
			}
		}
		if e.time > maxTime || m.late {
			return fmt.Errorf("goal: %w", ErrOverflow)
		}
		if m.match.stamp == math.MaxUint32 {
			return fmt.Errorf("goal: more than %d receives and messages in queues, each time that one finds its clocks busy counts", m.match.stamp)
		}
		now = e.time
		id := uint32(e.key) & idMask
		switch {
		case uint32(e.key)&evMsg != 0:
			m.message(id, e.time)
		case m.s.at(id).kind() == Recv:
			m.recv(id, e.time)
		case m.s.at(id).kind() == Send:
			if free := m.readySend(id); free > e.time {
				m.heap.push(event{free, uint64(id)})
			} else {
				m.send(id, e.time)
			}
		default:
			if free := m.readyCalc(id); free > e.time {
				m.heap.push(event{free, uint64(id)})
			} else {
				m.calc(id, e.time)
			}
		}
	}
	return nil
}

func (m atlahs) calc(id uint32, t int64) {
	rank := m.s.rank(id)
	end := m.busy(rank, t, int64(m.s.size(id)))
	m.clocks(rank)[m.s.unit(id).cpu] = end
	if m.watch != nil {
		m.watch.calc(id, t, end)
	}
	m.open--
	m.releaseAt(id, true, 0)
	m.releaseAt(id, false, end)
	m.schedule()
}

func (m atlahs) send(id uint32, t int64) {
	rank, u, size, p := m.s.rank(id), m.s.unit(id), m.s.size(id), &m.p
	c := m.clocks(rank)
	end := m.busy(rank, t, p.Overhead+p.ByteOverhead.after(size))
	bytes := p.ByteGap.after(size)
	c[u.cpu], c[m.sendNIC(u)] = end, t+p.Gap+bytes
	if m.watch != nil {
		m.watch.send(id, t, end, t+p.Gap+bytes)
	}
	m.open--
	m.result.Messages++
	m.heap.push(event{end + p.L + bytes, evMsg | uint64(id)})
	m.releaseAt(id, true, 0)
	if !m.large(id) {
		m.releaseAt(id, false, end)
	}
	m.schedule()
}

// large reports whether a message is a rendezvous. None is smaller than a byte.
func (m atlahs) large(id uint32) bool { return max(m.s.size(id), 1) > m.p.Eager }

func (m atlahs) recv(id uint32, t int64) {
	rank, u := m.s.rank(id), m.s.unit(id)
	q := &m.ranks[rank]
	msg := m.match.take(&q.msgs, id)
	if msg == none {
		m.match.put(rank, &q.recvs, id)
		m.releaseAt(id, true, 0)
		m.schedule()
		return
	}
	from := m.s.rank(msg)
	m.waiting--
	m.open--
	m.matched(id, msg)
	// The simulator of ATLAHS stops if the message is later than its receive.
	t = max(t, m.at[msg])
	nic, end := m.received(msg, id, id, max(m.clocks(rank)[m.sendNIC(u)], t), t)
	over := false // the sender's operation
	if m.large(id) {
		m.free(from, u, end, nic)
		over = m.large(msg)
	} else if m.large(msg) {
		m.stuck = append(m.stuck, msg)
	}
	if over && from != rank {
		m.releaseAt(msg, false, end)
		m.schedule()
	}
	m.releaseAt(id, true, 0)
	if over && from == rank {
		m.releaseAt(msg, false, end)
	}
	m.releaseAt(id, false, end)
	m.schedule()
}

// message handles the arrival of the message of send id, with all bytes.
func (m atlahs) message(id uint32, t int64) {
	peer := m.s.at(id).peer
	q := &m.ranks[peer]
	to := m.match.take(&q.recvs, id)
	if to == none {
		m.at[id] = t
		m.match.put(peer, &q.msgs, id)
		m.waiting++
		return
	}
	c, u := m.clocks(peer), m.s.unit(id)
	if free := max(c[m.s.unit(to).cpu], c[m.recvNIC(u)]); free > t {
		m.match.put(peer, &q.recvs, to)
		m.heap.push(event{free, evMsg | uint64(id)})
		return
	}
	m.open--
	m.matched(to, id)
	nic, end := m.received(id, to, id, t, t)
	rank, over := m.s.rank(id), m.large(id)
	if over {
		m.free(rank, u, end, nic)
	}
	if over && rank == peer {
		m.releaseAt(id, false, end)
	}
	m.releaseAt(to, false, end)
	m.schedule()
	if over && rank != peer {
		m.releaseAt(id, false, end)
		m.schedule()
	}
}

// received keeps the processor of receive to and the network interface of
// operation by, which has made the match, busy with message id. The network
// interface begins at start.
func (m atlahs) received(id, to, by uint32, start, t int64) (nic, end int64) {
	rank, p := m.s.rank(to), &m.p
	nic = start + p.Gap
	end = m.busy(rank, nic, p.Overhead+p.ByteOverhead.after(m.s.size(by)))
	c := m.clocks(rank)
	c[m.s.unit(to).cpu], c[m.recvNIC(m.s.unit(by))] = end, nic
	if m.watch != nil {
		m.watch.received(id, to, by, t, nic, end)
	}
	m.late = m.late || end > maxTime
	return nic, end
}

// free moves the clocks of the sender of a rendezvous message up to the end of
// its receive.
func (m atlahs) free(rank uint32, u unit, end, nic int64) {
	c := m.clocks(rank)
	c[u.cpu] = max(c[u.cpu], end)
	c[m.sendNIC(u)] = max(c[m.sendNIC(u)], nic)
}

// releaseAt is Simulator.release at time t. The operations become ready at the latest end
// of those that they require, but at 0 if a start is the last release.
func (m atlahs) releaseAt(id uint32, start bool, t int64) {
	if start && m.s.at(id).bits&startList == 0 {
		return
	}
	for e := m.s.edges(id); len(e.list) > 0; {
		x, atStart := e.next()
		if atStart != start {
			continue
		}
		m.at[x] = max(m.at[x], t)
		switch left := &m.left[x]; {
		case *left == manyDeps:
			if m.many[x]--; m.many[x] > 0 {
				continue
			}
		case *left > 1:
			*left--
			continue
		}
		if start {
			m.at[x] = 0
		}
		m.released = append(m.released, x)
	}
}

// schedule puts the released operations, all of one rank, into the event
// queue in order of release.
func (m atlahs) schedule() {
	for _, id := range m.released {
		t := m.at[id]
		switch m.s.at(id).kind() {
		case Send:
			t = max(t, m.clocks(m.s.rank(id))[m.sendNIC(m.s.unit(id))])
		case Calc:
			t = max(t, m.readyCalc(id))
		}
		m.heap.push(event{t, uint64(id)})
	}
	m.released = m.released[:0]
}
