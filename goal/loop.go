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
			op := &m.ops[id]
			if m.readyMessage(op) > e.time {
				m.enqueue(op.peer, waitMsg, id, stamp)
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
	op := &m.ops[id]
	switch op.kind {
	case Recv:
		m.recv(id, t)
	case Send:
		if m.readySend(op) > t {
			m.enqueue(op.rank, waitSend, id, stamp)
		} else {
			m.send(id, t)
		}
	case Calc:
		if m.readyCalc(op) > t {
			m.enqueue(op.rank, waitCalc, id, stamp)
		} else {
			m.calc(id, t)
		}
	}
}

func (m *Simulator) readyCalc(op *simOp) int64 { return m.clocks(op.rank)[op.cpu] }

func (m *Simulator) readySend(op *simOp) int64 {
	c := m.clocks(op.rank)
	return max(c[op.cpu], c[m.cpus+m.nics+int(op.nic)])
}

func (m *Simulator) readyMessage(op *simOp) int64 {
	c := m.clocks(op.peer)
	return max(c[op.cpu], c[m.cpus+int(op.nic)])
}

func (m *Simulator) calc(id uint32, t int64) {
	op := &m.ops[id]
	end := m.busy(op.rank, t, int64(op.size))
	m.clocks(op.rank)[op.cpu] = end
	if m.watch != nil {
		m.watch.calc(id, t, end)
	}
	m.open--
	m.release(op.start, m.succEnd(id))
	m.schedule()
}

func (m *Simulator) send(id uint32, t int64) {
	op, p := &m.ops[id], &m.p
	c := m.clocks(op.rank)
	end := m.busy(op.rank, t, p.Overhead+sizeCost(op.size, p.ByteOverhead))
	gap := t + p.Gap + sizeCost(op.size, p.ByteGap)
	c[op.cpu], c[m.cpus+m.nics+int(op.nic)] = end, gap
	if m.watch != nil {
		m.watch.send(id, t, end, gap)
	}
	m.open--
	m.result.Messages++
	m.push(m.busy(op.rank, t, p.Overhead)+p.L, evMsg|id)
	if op.size <= p.Eager {
		m.release(op.start, m.succEnd(id))
	} else {
		m.release(op.start, op.done)
	}
	m.schedule()
}

func (m *Simulator) recv(id uint32, t int64) {
	op := &m.ops[id]
	q := &m.ranks[op.rank]
	msg := m.match.take(&q.msgs, op)
	if msg == none {
		m.match.put(&q.recvs, id)
		m.release(op.start, op.done)
		m.schedule()
		return
	}
	from := &m.ops[msg]
	m.waiting--
	m.open--
	m.countSizes(op, from)
	doneAt := m.succEnd(msg) // the sender releases nothing
	if op.size > m.p.Eager {
		// The clocks belong to the sender, the indices to the receive
		// (LogGOPS'10 simulator).
		m.raise(from.rank, op.cpu, op.nic, id, t)
		if from.size > m.p.Eager {
			doneAt = from.done
		}
	} else if from.size > m.p.Eager {
		m.stuck = append(m.stuck, msg)
	}
	if from.rank == op.rank {
		m.release(op.start, op.done)
		m.release(doneAt, m.succEnd(msg))
		m.release(op.done, m.succEnd(id))
		m.schedule()
		return
	}
	if from.rank < op.rank {
		m.release(doneAt, m.succEnd(msg))
		m.schedule()
	}
	m.release(op.start, m.succEnd(id))
	m.schedule()
	if from.rank > op.rank {
		m.release(doneAt, m.succEnd(msg))
		m.schedule()
	}
}

// message handles the arrival of the message of send id.
func (m *Simulator) message(id uint32, t int64) {
	op, p := &m.ops[id], &m.p
	c := m.clocks(op.peer)
	gap := sizeCost(op.size, p.ByteGap)
	end := m.busy(op.peer, t, p.Overhead+max(gap, sizeCost(op.size, p.ByteOverhead)))
	gap += t + p.Gap
	c[op.cpu], c[m.cpus+int(op.nic)] = end, gap
	if m.watch != nil {
		m.watch.message(id, t, end, gap)
	}
	q := &m.ranks[op.peer]
	to := m.match.take(&q.recvs, op)
	if to == none {
		m.match.put(&q.msgs, id)
		m.waiting++
		return
	}
	m.open--
	into := &m.ops[to]
	m.countSizes(into, op)
	if op.size <= p.Eager {
		m.release(into.done, m.succEnd(to))
		m.schedule()
		return
	}
	m.raise(op.rank, op.cpu, op.nic, id|evMsg, t)
	if op.rank <= into.rank {
		m.release(op.done, m.succEnd(id))
		if op.rank < into.rank {
			m.schedule()
		}
	}
	m.release(into.done, m.succEnd(to))
	m.schedule()
	if op.rank > into.rank {
		m.release(op.done, m.succEnd(id))
		m.schedule()
	}
}

func (m *Simulator) countSizes(recv, send *simOp) {
	if recv.size != send.size {
		m.result.Mismatched++
	}
}

// raise moves the clocks of the sender of a rendezvous message up to the time
// of the match. Event by made the match.
func (m *Simulator) raise(rank uint32, cpu, nic uint8, by uint32, t int64) {
	c := m.clocks(rank)
	gs := m.cpus + m.nics + int(nic)
	if m.watch != nil {
		m.watch.raised(rank, cpu, nic, by, t)
	}
	c[cpu] = max(c[cpu], t)
	c[gs] = max(c[gs], t)
}

// succEnd returns the end of the list of operations that operation id releases
// when it is done.
func (m *Simulator) succEnd(id uint32) uint32 {
	return m.ops[id+1].start
}

// release counts one release of each operation in a part of succ, and collects
// the operations that wait for no other.
func (m *Simulator) release(from, to uint32) {
	for _, x := range m.succ[from:to] {
		st := &m.ops[x].opState
		if st.link--; st.link == 0 {
			m.released = append(m.released, x)
		}
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
				if m.ops[id].kind == kind {
					m.scheduleOp(id)
				}
			}
		}
	}
	m.released = m.released[:0]
}

func (m *Simulator) scheduleOp(id uint32) {
	op := &m.ops[id]
	if op.kind == Send {
		m.push(m.readySend(op), evOp|id)
		return
	}
	t := m.readyCalc(op)
	if op.kind == Recv && m.watch != nil {
		m.watch.recv(id, t)
	}
	m.push(t, evOp|id)
}

func (m *Simulator) push(t int64, what uint32) {
	m.queue.push(event{t, uint64(m.stamp)<<32 | uint64(what)})
	m.stamp++
}
