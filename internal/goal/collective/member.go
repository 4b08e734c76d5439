package collective

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/goal"
)

// piece is a range of bytes. Of an allreduce, reducescatter, broadcast and reduce
// it is in the vector, of an allgather in the result. Of an alltoall the vectors
// of all members are one behind the other.
type piece struct{ from, to uint64 }

// step is an operation of a member.
type step struct {
	kind   goal.Kind
	peer   int // member
	tag    uint64
	data   []piece // of a message
	reduce bool    // a receive adds to what is there
	size   uint64  // bytes of the message with those of the protocol, or ns
	after  []int
}

// member makes the steps of a member of a collective.
type member struct {
	*Options

	n, me    int
	root     int // member
	bytes    uint64
	steps    []step
	most     int // steps
	threads  int // that have tags of their own
	messages map[way]uint64
	tags     uint64 // above the largest
	err      error
}

// way is where messages of a thread come one after the other.
type way struct {
	thread, peer int
	send         bool
}

// none is the place of a step that is not there.
const none = -1

var errTooLarge = errors.New("the schedule would have more operations than a schedule can have")

func (m *member) add(s step, after ...int) int {
	for _, y := range after {
		if y != none {
			s.after = append(s.after, y)
		}
	}
	if len(m.steps) >= m.most {
		m.err = errTooLarge
		return none
	}
	m.steps = append(m.steps, s)
	return len(m.steps) - 1
}

// message adds a message. Those of a thread between two members have tags in
// order, so that none can take the place of another.
func (m *member) message(kind goal.Kind, thread, peer int, data []piece, reduce bool, after ...int) int {
	w := way{thread, peer, kind == goal.Send}
	if m.messages == nil {
		m.messages = make(map[way]uint64)
	}
	tag := m.messages[w]*uint64(m.threads) + uint64(thread)
	m.messages[w]++
	m.tags = max(m.tags, tag+1)
	return m.add(step{kind: kind, peer: peer, tag: tag, data: data, reduce: reduce, size: m.Protocol.Wire(length(data))}, after...)
}

func (m *member) send(thread, to int, data []piece, after ...int) int {
	return m.message(goal.Send, thread, to, data, false, after...)
}

// recv adds a receive and its work, and returns what ends both.
func (m *member) recv(thread, from int, data []piece, reduce bool, after ...int) int {
	at := m.message(goal.Recv, thread, from, data, reduce, after...)
	cost := m.Copy
	if reduce {
		cost = m.Reduce
	}
	ns, fits := cost.Times(length(data))
	if !fits {
		m.err = fmt.Errorf("%d bytes at %v ns take more than %d ns", length(data), cost, goal.MaxCost)
	}
	if ns == 0 {
		return at
	}
	return m.add(step{kind: goal.Calc, size: ns}, at)
}

func length(data []piece) (n uint64) {
	for _, p := range data {
		n += p.to - p.from
	}
	return n
}

// at returns the member at a distance.
func (m *member) at(distance int) int { return ((m.me+distance)%m.n + m.n) % m.n }

// part returns part i of n of a piece.
func (p piece) part(i, n int) piece {
	each, more := (p.to-p.from)/uint64(n), (p.to-p.from)%uint64(n)
	start := func(i int) uint64 { return p.from + uint64(i)*each + min(uint64(i), more) }
	return piece{start(i), start(i + 1)}
}

// chunks divides a piece: each chunk has at most so many bytes, 0: all.
func (p piece) chunks(most uint64) (list []piece) {
	for from := p.from; ; from += most {
		if most == 0 || p.to-from <= most {
			return append(list, piece{from, p.to})
		}
		list = append(list, piece{from, from + most})
	}
}

// moved returns a piece at another place.
func (p piece) moved(by uint64) piece { return piece{p.from + by, p.to + by} }
