package goal

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

func (m *Simulator) loop() error {
	limited := m.limits != sim.Limits{}
	now := int64(0) // time of the last event
	for n := uint64(0); ; n++ {
		e, ok := m.queue.pop()
		if !ok {
			return nil
		}
		if limited || n%lookEvery == 0 {
			if err := m.stopped(n, now, e); err != nil {
				return err
			}
		}
		if e.time > maxTime {
			return fmt.Errorf("goal: %w", ErrOverflow)
		}
		now = e.time
		id := uint32(e.key) & idMask
		switch stamp := uint32(e.key >> 32); uint32(e.key) &^ idMask {
		case evWake:
			m.wake(id, e.time, stamp)
		case evMsg:
			if m.readyMessage(id) > e.time {
				m.enqueue(m.s.at(id).peer, waitMsg, id, stamp)
			} else {
				m.message(id, e.time)
			}
		default:
			m.operation(id, e.time, stamp)
		}
	}
}

// operation runs an operation or puts it into a wait queue.
func (m *Simulator) operation(id uint32, t int64, stamp uint32) {
	switch m.s.at(id).kind() {
	case Recv:
		m.recv(id, t)
	case Send:
		if m.readySend(id) > t {
			m.enqueue(m.s.rank(id), waitSend, id, stamp)
		} else {
			m.send(id, t)
		}
	case Calc:
		if m.readyCalc(id) > t {
			m.enqueue(m.s.rank(id), waitCalc, id, stamp)
		} else {
			m.calc(id, t)
		}
	}
}

func (m *Simulator) readyCalc(id uint32) int64 { return m.clocks(m.s.rank(id))[m.s.unit(id).cpu] }

func (m *Simulator) readySend(id uint32) int64 {
	c, u := m.clocks(m.s.rank(id)), m.s.unit(id)
	return max(c[u.cpu], c[m.sendNIC(u)])
}

func (m *Simulator) readyMessage(id uint32) int64 {
	c, u := m.clocks(m.s.at(id).peer), m.s.unit(id)
	return max(c[u.cpu], c[m.recvNIC(u)])
}

// sendNIC and recvNIC return the index of a network interface's clock for each
// direction.
func (m *Simulator) sendNIC(u unit) int { return m.cpus + m.nics + int(u.nic) }
func (m *Simulator) recvNIC(u unit) int { return m.cpus + int(u.nic) }

func (m *Simulator) calc(id uint32, t int64) {
	rank := m.s.rank(id)
	end := m.busy(rank, t, int64(m.s.size(id)))
	m.clocks(rank)[m.s.unit(id).cpu] = end
	if m.watch != nil {
		m.watch.calc(id, t, end)
	}
	m.open--
	m.releaseStarted(id)
	m.releaseDone(id)
	m.schedule()
}

func (m *Simulator) send(id uint32, t int64) {
	rank, u, size, p := m.s.rank(id), m.s.unit(id), m.s.size(id), &m.p
	c := m.clocks(rank)
	end := m.busy(rank, t, p.Overhead+p.ByteOverhead.after(size))
	gap := t + p.Gap + p.ByteGap.after(size)
	c[u.cpu], c[m.sendNIC(u)] = end, gap
	if m.watch != nil {
		m.watch.send(id, t, end, gap)
	}
	m.open--
	m.result.Messages++
	m.push(m.busy(rank, t, p.Overhead)+p.L, evMsg|id)
	m.releaseStarted(id)
	if size <= p.Eager {
		m.releaseDone(id)
	}
	m.schedule()
}

func (m *Simulator) recv(id uint32, t int64) {
	rank := m.s.rank(id)
	q := &m.ranks[rank]
	msg := m.match.take(&q.msgs, id)
	if msg == none {
		m.match.put(rank, &q.recvs, id)
		m.releaseStarted(id)
		m.schedule()
		return
	}
	from := m.s.rank(msg)
	m.waiting--
	m.open--
	m.matched(id, msg)
	over := false // the sender's operation
	if large := m.s.size(msg) > m.p.Eager; m.s.size(id) > m.p.Eager {
		// The clocks belong to the sender, the indices to the receive
		// (LogGOPS'10 simulator).
		m.raise(from, m.s.unit(id), id, t)
		over = large
	} else if large {
		m.stuck = append(m.stuck, msg)
	}
	if over && from < rank {
		m.releaseDone(msg)
		m.schedule()
	}
	m.releaseStarted(id)
	if over && from == rank {
		m.releaseDone(msg)
	}
	m.releaseDone(id)
	m.schedule()
	if over && from > rank {
		m.releaseDone(msg)
		m.schedule()
	}
}

// message handles the arrival of the message of send id.
func (m *Simulator) message(id uint32, t int64) {
	peer, u, size, p := m.s.at(id).peer, m.s.unit(id), m.s.size(id), &m.p
	c := m.clocks(peer)
	gap := p.ByteGap.after(size)
	end := m.busy(peer, t, p.Overhead+max(gap, p.ByteOverhead.after(size)))
	gap += t + p.Gap
	c[u.cpu], c[m.recvNIC(u)] = end, gap
	if m.watch != nil {
		m.watch.message(id, t, end, gap)
	}
	q := &m.ranks[peer]
	to := m.match.take(&q.recvs, id)
	if to == none {
		m.match.put(peer, &q.msgs, id)
		m.waiting++
		return
	}
	m.open--
	m.matched(to, id)
	if size <= p.Eager {
		m.releaseDone(to)
		m.schedule()
		return
	}
	rank := m.s.rank(id)
	m.raise(rank, u, id|evMsg, t)
	if rank <= peer {
		m.releaseDone(id)
		if rank < peer {
			m.schedule()
		}
	}
	m.releaseDone(to)
	m.schedule()
	if rank > peer {
		m.releaseDone(id)
		m.schedule()
	}
}

// matched notes which message a receive takes.
func (m *Simulator) matched(recv, send uint32) {
	if m.pairs != nil {
		from, to := m.s.rank(send), m.s.rank(recv)
		m.pairs(int(from), int(send-m.s.ranks[from].first), int(to), int(recv-m.s.ranks[to].first))
	}
	if m.s.size(recv) != m.s.size(send) {
		m.result.Mismatched++
	}
}

// raise moves the clocks of the sender of a rendezvous message up to the time
// of the match. Event by made the match.
func (m *Simulator) raise(rank uint32, u unit, by uint32, t int64) {
	c := m.clocks(rank)
	gs := m.sendNIC(u)
	if m.watch != nil {
		m.watch.raised(rank, u, by, t)
	}
	c[u.cpu] = max(c[u.cpu], t)
	c[gs] = max(c[gs], t)
}

// releaseStarted releases the operations that wait for the start of id.
func (m *Simulator) releaseStarted(id uint32) {
	if m.s.at(id).bits&startList != 0 {
		m.release(id, true)
	}
}

// releaseDone releases the operations that wait for the end of id.
func (m *Simulator) releaseDone(id uint32) { m.release(id, false) }

// release counts one release of each operation in a list of id, and collects
// the operations that wait for no other.
func (m *Simulator) release(id uint32, start bool) {
	for e := m.s.edges(id); len(e.list) > 0; {
		x, atStart := e.next()
		if atStart != start {
			continue
		}
		switch left := &m.left[x]; {
		case *left == manyDeps:
			if m.many[x]--; m.many[x] > 0 {
				continue
			}
		case *left > 1:
			*left--
			continue
		}
		m.released = append(m.released, x)
	}
}

// schedule puts the released operations, all of one rank, into the event queue:
// sends, receives, computations, each in order of release.
func (m *Simulator) schedule() {
	switch len(m.released) {
	case 0:
		return
	case 1:
		m.scheduleOp(m.released[0])
	default:
		for kind := Send; kind <= Calc; kind++ {
			for _, id := range m.released {
				if m.s.at(id).kind() == kind {
					m.scheduleOp(id)
				}
			}
		}
	}
	m.released = m.released[:0]
}

func (m *Simulator) scheduleOp(id uint32) {
	kind := m.s.at(id).kind()
	if kind == Send {
		m.push(m.readySend(id), evOp|id)
		return
	}
	t := m.readyCalc(id)
	if kind == Recv && m.watch != nil {
		m.watch.recv(id, t)
	}
	m.push(t, evOp|id)
}

func (m *Simulator) push(t int64, what uint32) {
	m.queue.push(event{t, uint64(m.stamp)<<32 | uint64(what)})
	m.stamp++
}
