package gsas

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Member is a process that uses a space. Only the program of that process calls
// its methods. Each method returns when its operation is complete, so a process
// has one operation at a time.
type Member struct {
	space    *Space
	p        *runtime.Proc
	page     *exanet.Interface
	rdma     *rdma.Page
	out      *exanet.Outbox
	flag     runtime.View // notification of a large read
	arrived  portals.Handle
	notified portals.Handle
	seen     uint64
	number   uint32 // of the last request
	home     portals.ID
	reply    message
	replied  bool
	lost     error // why the last request will not be delivered
	outdated uint64
}

// Open makes a process a member. Call it before the process first waits; it
// takes no virtual time. A process without a protection domain is admitted to
// the space's. A process of another domain becomes a member whose requests are
// refused.
func (s *Space) Open(p *runtime.Proc) (*Member, error) {
	m := &Member{space: s, p: p}
	var err error
	if m.page, m.rdma, err = s.join(p, s.o.Member, s.o.Channels); err != nil {
		return nil, err
	}
	m.out = m.page.Outbox(func(tag uint64, _ exanet.Address, err error) {
		if uint32(tag) == m.number {
			m.lost = err
		}
	})
	m.flag = p.Alloc(8)
	m.flag.Lock()
	m.arrived, _ = m.page.Signals()
	_, m.notified = m.rdma.Signals()
	return m, nil
}

// Proc returns the process.
func (m *Member) Proc() *runtime.Proc { return m.p }

// Outdated returns the number of answers to requests that were given up
// (ErrTimedOut).
func (m *Member) Outdated() uint64 { return m.outdated }

// Counts returns the statistics of the process's packetizer and mailbox.
func (m *Member) Counts() exanet.Counts { return m.page.Counts() }

// Alloc allocates n zeroed bytes on a node, n at least 1, at a multiple of 16.
// ErrNoMemory, ErrNoHome.
func (m *Member) Alloc(node, n int) (Pointer, error) {
	if n < 1 {
		return Null, fmt.Errorf("gsas: alloc of %d bytes on node %d: %w", n, node, ErrSize)
	}
	return m.make(opAlloc, node, n, "bytes")
}

// Free frees an allocation or a barrier, after the operations of others in it
// have ended. ErrDead: at is not the start of an allocation, or it was freed
// before.
func (m *Member) Free(at Pointer) error {
	_, err := m.do(&message{op: opFree, target: at})
	return err
}

// Read fills a view of at least one byte with the bytes at a pointer, at one
// moment.
func (m *Member) Read(at Pointer, into runtime.View) error {
	n := into.Len()
	q := message{op: opRead, target: at, a: uint64(n)}
	if n > Inline {
		into.Write() // brings in missing pages
		q.b, q.c = into.Addr(), m.flag.Addr()
	}
	reply, err := m.do(&q)
	if err == nil && n <= Inline {
		into.CopyFrom(reply.bytes[:n])
	}
	return err
}

// Write writes a view of at least one byte to a pointer, at one moment.
func (m *Member) Write(at Pointer, from runtime.View) error {
	n := from.Len()
	q := message{op: opStore, target: at, length: n}
	if n > Inline || n == 0 {
		from.Read()
		q = message{op: opWrite, target: at, a: uint64(n), b: from.Addr()}
	} else {
		from.CopyTo(q.bytes[:])
	}
	_, err := m.do(&q)
	return err
}

// Load reads the word of 8 bytes at a pointer, a multiple of 8. All words are
// little endian.
func (m *Member) Load(at Pointer) (uint64, error) { return m.word(opLoad, at, 0, 0) }

// Store writes the word at a pointer, a multiple of 8.
func (m *Member) Store(at Pointer, v uint64) error {
	_, err := m.word(opStoreWord, at, v, 0)
	return err
}

// FetchAdd adds to the word at a pointer, a multiple of 8. It returns the
// word's previous value, as do the operations that follow.
func (m *Member) FetchAdd(at Pointer, n uint64) (uint64, error) { return m.word(opFetchAdd, at, n, 0) }

// Swap replaces the word.
func (m *Member) Swap(at Pointer, v uint64) (uint64, error) { return m.word(opSwap, at, v, 0) }

// CompareAndSwap replaces the word by v if it equals old. It did if the result
// equals old.
func (m *Member) CompareAndSwap(at Pointer, old, v uint64) (uint64, error) {
	return m.word(opCompareSwap, at, v, old)
}

// FetchOr sets the bits of v in the word.
func (m *Member) FetchOr(at Pointer, v uint64) (uint64, error) { return m.word(opFetchOr, at, v, 0) }

// FetchAnd clears the bits that are 0 in v.
func (m *Member) FetchAnd(at Pointer, v uint64) (uint64, error) { return m.word(opFetchAnd, at, v, 0) }

// FetchXor inverts the bits of v in the word.
func (m *Member) FetchXor(at Pointer, v uint64) (uint64, error) { return m.word(opFetchXor, at, v, 0) }

// FetchMin stores the smaller of the word and v, as signed numbers.
func (m *Member) FetchMin(at Pointer, v int64) (int64, error) {
	old, err := m.word(opFetchMin, at, uint64(v), 0)
	return int64(old), err
}

// FetchMax stores the larger of the word and v, as signed numbers.
func (m *Member) FetchMax(at Pointer, v int64) (int64, error) {
	old, err := m.word(opFetchMax, at, uint64(v), 0)
	return int64(old), err
}

// FetchMinUnsigned is FetchMin for unsigned numbers.
func (m *Member) FetchMinUnsigned(at Pointer, v uint64) (uint64, error) {
	return m.word(opFetchMinU, at, v, 0)
}

// FetchMaxUnsigned is FetchMax for unsigned numbers.
func (m *Member) FetchMaxUnsigned(at Pointer, v uint64) (uint64, error) {
	return m.word(opFetchMaxU, at, v, 0)
}

// NewBarrier makes a barrier for processes, 1 to 2^20, on a node. Free frees
// it; processes that wait there get ErrDead.
func (m *Member) NewBarrier(node, processes int) (Pointer, error) {
	return m.make(opBarrierAlloc, node, max(processes, 0), "processes")
}

// Barrier waits until all processes of the barrier have called it. Their
// earlier operations are then complete. The barrier can be used again.
func (m *Member) Barrier(at Pointer) error {
	_, err := m.do(&message{op: opBarrierWait, target: at})
	return err
}

func (m *Member) word(o op, at Pointer, a, b uint64) (uint64, error) {
	reply, err := m.do(&message{op: o, target: at, a: a, b: b})
	return reply.a, err
}

// make asks the home of a node for an allocation or a barrier.
func (m *Member) make(o op, node, n int, unit string) (Pointer, error) {
	what := func(err error) error {
		return fmt.Errorf("gsas: %s of %d %s on node %d: %w", opNames[o], n, unit, node, err)
	}
	if node < 0 || node >= len(m.space.homes) || m.space.homes[node] == nil {
		return Null, what(ErrNoHome)
	}
	reply, err := m.call(portals.PhysID(uint32(node), m.space.homes[node].pid), &message{op: o, a: uint64(n)})
	if err != nil {
		return Null, what(err)
	}
	return reply.target, nil
}

// do sends a request to the home of its pointer.
func (m *Member) do(q *message) (message, error) {
	o, at := q.op, q.target
	n, r := at.Node(), uint32(at.Target().Rank())
	var reply message
	err := ErrNoHome
	switch {
	case at == Null:
		err = ErrDead
	case n < len(m.space.homes) && m.space.homes[n] != nil && m.space.homes[n].pid == r:
		reply, err = m.call(portals.PhysID(uint32(n), r), q)
	}
	if err != nil {
		return reply, fmt.Errorf("gsas: %s at %v: %w", opNames[o], at, err)
	}
	return reply, nil
}

// call sends a request and waits for its answer.
func (m *Member) call(home portals.ID, q *message) (message, error) {
	m.p.Compute(m.p.Reads(used.Message).Host.Message)
	m.number++
	q.number, m.home, m.replied, m.lost = m.number, home, false, nil
	var b [exanet.MaxPayload]byte
	if err := m.out.Post(exanet.First(home.NID, home.PID), q.encode(&b), uint64(m.number)); err != nil {
		return message{}, err
	}
	for {
		acted, err := m.act()
		switch {
		case err != nil:
			return message{}, err
		case m.replied:
			return m.reply, m.reply.err()
		case m.lost != nil:
			return message{}, m.lost
		case acted:
			continue
		}
		if err := m.out.Await([]portals.Handle{m.notified}, []uint64{m.seen + 1}, runtime.Forever); err != nil {
			return message{}, err
		}
	}
}

// act handles one event, if there is any.
func (m *Member) act() (acted bool, err error) {
	v, err := m.page.NI().Objects().CTGet(m.notified)
	if err != nil {
		return false, err
	}
	if v.Success > m.seen {
		m.seen = v.Success
		m.p.Look(m.p.Reads(used.Look).Host.Poll)
		if binary.LittleEndian.Uint64(m.flag.Read()) == uint64(m.number) {
			m.reply, m.replied = message{op: opRead}, true
		}
		return true, nil
	}
	if v, err = m.page.NI().Objects().CTGet(m.arrived); err != nil {
		return false, err
	}
	if v.Success > uint64(m.page.Taken()) {
		return true, m.take()
	}
	return m.out.Act()
}

// take takes a message out of the mailbox.
func (m *Member) take() error {
	var b [exanet.MaxPayload]byte
	got, found, err := m.page.Poll(b[:])
	if err != nil || !found {
		return err
	}
	var r message
	if !r.decode(&b, got.Bytes) || got.NID != m.home.NID || got.PID != m.home.PID || r.number != m.number {
		m.outdated++
		return nil
	}
	m.reply, m.replied = r, true
	return nil
}
