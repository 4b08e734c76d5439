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

// waitQueue is a pairing heap of entries, ordered by stamp. Their pointers are
// link and child.
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
func (m *Simulator) ready(q *waitQueue, i uint32) int64 {
	id := m.entries.all[i].op
	switch q.class {
	case waitCalc:
		return m.readyCalc(id)
	case waitSend:
		return m.readySend(id)
	default:
		return m.readyMessage(id)
	}
}

// waitQueue returns the number of a rank's queue for the clocks that operation id needs.
func (m *Simulator) waitQueue(rank, class, id uint32) uint32 {
	w := &m.wait
	if m.clock == nil {
		n := &m.ranks[rank].wait[class]
		if *n == 0 {
			w.queues = append(double(w.queues, 1), waitQueue{first: none, class: class})
			*n = uint32(len(w.queues))
		}
		return *n - 1
	}
	u := m.s.unit(id)
	low := class<<16 | uint32(u.cpu)<<8
	if class != waitCalc {
		low |= uint32(u.nic)
	}
	n, added := w.table.get(tableKey{uint64(rank), uint64(low)})
	if added {
		w.queues = append(double(w.queues, 1), waitQueue{first: none, class: class})
	}
	return n
}

// enqueue puts an operation or message that cannot run into its queue at a
// rank.
func (m *Simulator) enqueue(rank, class, id, stamp uint32) {
	n := m.waitQueue(rank, class, id)
	q := &m.wait.queues[n]
	i := m.entries.get(&m.ranks[rank].free, id, stamp)
	first := q.first == none || stamp < m.entries.all[q.first].stamp
	q.first = m.entries.meld(q.first, i)
	if first {
		m.arm(n, q, m.ready(q, i))
	}
}

// arm pushes the event that wakes the first entry of the queue.
func (m *Simulator) arm(n uint32, q *waitQueue, t int64) {
	q.armed = t
	m.queue.push(event{t, uint64(m.entries.all[q.first].stamp)<<32 | evWake | uint64(n)})
}

// wake runs the first entry of a queue if its clocks are free. A wake-up is
// ignored if the queue has another first entry now, or a later time.
func (m *Simulator) wake(n uint32, t int64, stamp uint32) {
	q := &m.wait.queues[n]
	i := q.first
	if i == none || m.entries.all[i].stamp != stamp || q.armed != t {
		return
	}
	if r := m.ready(q, i); r > t {
		m.arm(n, q, r)
		return
	}
	id := m.entries.all[i].op
	q.first = m.entries.meldAll(m.entries.all[i].child)
	rank := m.s.rank(id)
	if q.class == waitMsg {
		rank = m.s.at(id).peer
	}
	m.entries.give(&m.ranks[rank].free, i)
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
func (e *entries) meld(a, b uint32) uint32 {
	if a == none {
		return b
	}
	if b == none {
		return a
	}
	all := e.all
	if all[b].stamp < all[a].stamp {
		a, b = b, a
	}
	all[b].link = all[a].child
	all[a].child = b
	return a
}

// meldAll joins the heaps of a list: first pairs from the front, then the
// results from the back.
func (e *entries) meldAll(list uint32) uint32 {
	all := e.all
	pairs := none
	for list != none {
		a := list
		b := all[a].link
		all[a].link = none
		list = none
		if b != none {
			list = all[b].link
			all[b].link = none
		}
		a = e.meld(a, b)
		all[a].link = pairs
		pairs = a
	}
	whole := none
	for pairs != none {
		next := all[pairs].link
		all[pairs].link = none
		whole = e.meld(whole, pairs)
		pairs = next
	}
	return whole
}
