package goal

// Wait queues hold the operations and messages that found their processor or network interface busy. The model puts
// such an event back with the time at which both are free, again and again, and thereby tries all that wait whenever
// one gets its turn. Here all events of a rank that wait for the same clocks form a queue ordered by event number,
// and only its first is in the event queue. That gives the same result: an attempt that fails changes nothing, clocks
// never go back, and so of two events that wait for the same clocks the older can always run when the younger could.

// Classes of wait queues.
const (
	waitCalc = 0 << 16
	waitSend = 1 << 16
	waitMsg  = 2 << 16
)

// waitKey names the clocks that an operation or message waits for at a rank.
func waitKey(rank uint32, class uint64, op *simOp) uint64 {
	key := uint64(rank)<<18 | class | uint64(op.cpu)<<8
	if class != waitCalc {
		key |= uint64(op.nic)
	}
	return key
}

// waitQueue is a pairing heap of operations ordered by stamp; opState.link and child are its pointers.
type waitQueue struct {
	key   uint64
	armed int64 // time of the event that wakes the first of the queue
	first uint32
}

// waitQueues finds wait queues by their key. Queues are made when they are first needed and stay.
type waitQueues struct {
	queues []waitQueue
	table  []uint32 // a power of two; numbers of queues plus 1, or 0
	shift  uint
}

// get returns the number of the queue with the given key.
func (w *waitQueues) get(key uint64) uint32 {
	if 2*len(w.queues) >= len(w.table) {
		w.grow()
	}
	i := w.probe(key)
	if w.table[i] == 0 {
		w.queues = append(w.queues, waitQueue{key: key, first: none})
		w.table[i] = uint32(len(w.queues))
	}
	return w.table[i] - 1
}

func (w *waitQueues) probe(key uint64) uint64 {
	mask := uint64(len(w.table) - 1)
	i := key * 0x9e3779b97f4a7c15 >> w.shift
	for w.table[i] != 0 && w.queues[w.table[i]-1].key != key {
		i = (i + 1) & mask
	}
	return i
}

func (w *waitQueues) grow() {
	size := max(256, 2*len(w.table))
	w.table = make([]uint32, size)
	w.shift = 64
	for n := size; n > 1; n /= 2 {
		w.shift--
	}
	for i := range w.queues {
		w.table[w.probe(w.queues[i].key)] = uint32(i) + 1
	}
}

// reset empties all queues.
func (w *waitQueues) reset() {
	for i := range w.queues {
		w.queues[i].first = none
	}
}

// ready returns when the clocks of an entry of the queue are free.
func (m *Simulator) ready(q *waitQueue, id uint32) int64 {
	op := &m.ops[id]
	switch q.key & (3 << 16) {
	case waitCalc:
		return m.readyCalc(op)
	case waitSend:
		return m.readySend(op)
	default:
		return m.readyMessage(op)
	}
}

// enqueue puts an operation or message that cannot run into its queue.
func (m *Simulator) enqueue(key uint64, id, stamp uint32) {
	n := m.wait.get(key)
	q := &m.wait.queues[n]
	m.run[id] = opState{link: none, child: none, stamp: stamp}
	if q.first == none || stamp < m.run[q.first].stamp {
		q.first = m.meld(q.first, id)
		m.arm(n, q, m.ready(q, id))
	} else {
		q.first = m.meld(q.first, id)
	}
}

// arm makes the event that wakes the first of the queue.
func (m *Simulator) arm(n uint32, q *waitQueue, t int64) {
	q.armed = t
	m.queue.push(event{t, uint64(m.run[q.first].stamp)<<32 | evWake | uint64(n)})
}

// wake runs the first of a queue if its clocks are free. A wake-up whose queue has another first since, or a later
// time, counts for nothing.
func (m *Simulator) wake(n uint32, t int64, stamp uint32) {
	q := &m.wait.queues[n]
	id := q.first
	if id == none || m.run[id].stamp != stamp || q.armed != t {
		return
	}
	if r := m.ready(q, id); r > t {
		m.arm(n, q, r)
		return
	}
	q.first = m.meldAll(m.run[id].child)
	switch q.key & (3 << 16) {
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

// meld joins two heaps and returns the first of both.
func (m *Simulator) meld(a, b uint32) uint32 {
	if a == none {
		return b
	}
	if b == none {
		return a
	}
	if m.run[b].stamp < m.run[a].stamp {
		a, b = b, a
	}
	m.run[b].link = m.run[a].child
	m.run[a].child = b
	return a
}

// meldAll joins the heaps of a list: pairs from the front, then all pairs from the back.
func (m *Simulator) meldAll(list uint32) uint32 {
	pairs := none
	for list != none {
		a := list
		b := m.run[a].link
		m.run[a].link = none
		list = none
		if b != none {
			list = m.run[b].link
			m.run[b].link = none
		}
		a = m.meld(a, b)
		m.run[a].link = pairs
		pairs = a
	}
	all := none
	for pairs != none {
		next := m.run[pairs].link
		m.run[pairs].link = none
		all = m.meld(all, pairs)
		pairs = next
	}
	return all
}
