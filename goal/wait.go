package goal

// Wait queues hold the operations and messages that found their processor or
// network interface busy. In the model such an event goes back into the event
// queue, at the time when both are free. This repeats, so each time one event
// gets its turn, all others are tried without success.
//
// Here all events of a rank that wait for the same clocks form a queue, ordered
// by event number, and only the first is in the event queue. The result is the
// same. A failed attempt changes nothing, and clocks never go back. So of two
// events that wait for the same clocks, the older can always run when the
// younger could.

// Classes of wait queues.
const (
	waitCalc = iota
	waitSend
	waitMsg
)

// waitQueue is a pairing heap of operations, ordered by stamp. Its pointers are
// opState.link and child.
type waitQueue struct {
	armed int64 // time of the event that wakes the first entry
	first uint32
	class uint32
}

// waitQueues holds the queues. A queue is made at its first use and stays. The
// table numbers queues by rank, class, processor and network interface, unless
// rankState.wait does.
type waitQueues struct {
	table  keyTable
	queues []waitQueue
}

func (w *waitQueues) reset() {
	for i := range w.queues {
		w.queues[i].first = none
	}
}

// ready returns the time when the clocks of an entry of the queue are free.
func (m *Simulator) ready(q *waitQueue, id uint32) int64 {
	op := &m.ops[id]
	switch q.class {
	case waitCalc:
		return m.readyCalc(op)
	case waitSend:
		return m.readySend(op)
	default:
		return m.readyMessage(op)
	}
}

// waitQueue returns the number of a rank's queue for the clocks that op needs.
func (m *Simulator) waitQueue(rank, class uint32, op *simOp) uint32 {
	w := &m.wait
	if m.clock == nil {
		n := &m.ranks[rank].wait[class]
		if *n == 0 {
			w.queues = append(w.queues, waitQueue{first: none, class: class})
			*n = uint32(len(w.queues))
		}
		return *n - 1
	}
	low := class<<16 | uint32(op.cpu)<<8
	if class != waitCalc {
		low |= uint32(op.nic)
	}
	n, added := w.table.get(tableKey{uint64(rank), low})
	if added {
		w.queues = append(w.queues, waitQueue{first: none, class: class})
	}
	return n
}

// enqueue puts an operation or message that cannot run into its queue at a
// rank.
func (m *Simulator) enqueue(rank, class, id, stamp uint32) {
	n := m.waitQueue(rank, class, &m.ops[id])
	q := &m.wait.queues[n]
	m.ops[id].opState = opState{link: none, child: none, stamp: stamp}
	if q.first == none || stamp < m.ops[q.first].stamp {
		q.first = m.meld(q.first, id)
		m.arm(n, q, m.ready(q, id))
	} else {
		q.first = m.meld(q.first, id)
	}
}

// arm pushes the event that wakes the first entry of the queue.
func (m *Simulator) arm(n uint32, q *waitQueue, t int64) {
	q.armed = t
	m.queue.push(event{t, uint64(m.ops[q.first].stamp)<<32 | evWake | uint64(n)})
}

// wake runs the first entry of a queue if its clocks are free. A wake-up is
// ignored if the queue has another first entry now, or a later time.
func (m *Simulator) wake(n uint32, t int64, stamp uint32) {
	q := &m.wait.queues[n]
	id := q.first
	if id == none || m.ops[id].stamp != stamp || q.armed != t {
		return
	}
	if r := m.ready(q, id); r > t {
		m.arm(n, q, r)
		return
	}
	q.first = m.meldAll(m.ops[id].child)
	switch q.class {
	case waitCalc:
		m.calc(id, t)
	case waitSend:
		m.send(id, t)
	default:
		m.message(id, t)
	}
	if q.first != none {
		m.arm(n, q, max(t, m.ready(q, q.first)))
	}
}

// meld joins two heaps and returns the new first entry.
func (m *Simulator) meld(a, b uint32) uint32 {
	if a == none {
		return b
	}
	if b == none {
		return a
	}
	if m.ops[b].stamp < m.ops[a].stamp {
		a, b = b, a
	}
	m.ops[b].link = m.ops[a].child
	m.ops[a].child = b
	return a
}

// meldAll joins the heaps of a list: first pairs from the front, then the
// results from the back.
func (m *Simulator) meldAll(list uint32) uint32 {
	pairs := none
	for list != none {
		a := list
		b := m.ops[a].link
		m.ops[a].link = none
		list = none
		if b != none {
			list = m.ops[b].link
			m.ops[b].link = none
		}
		a = m.meld(a, b)
		m.ops[a].link = pairs
		pairs = a
	}
	all := none
	for pairs != none {
		next := m.ops[pairs].link
		m.ops[pairs].link = none
		all = m.meld(all, pairs)
		pairs = next
	}
	return all
}
