//go:build !tinygo

package reduction

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Errors of calls.
var (
	ErrBusy    = errors.New("reduction: the call before is not over")
	ErrDiffers = errors.New("another member gave a vector of another length, operation or type")
)

// Member is a process's part of a group. It needs no handlers: operations that
// a counter triggers keep the window, one counter for each place of it.
type Member struct {
	group  *Group
	ni     *runtime.NI
	rank   int
	target portals.ID
	bits   uint64
	counts []portals.Handle // of results, by block modulo the window
	before []uint64         // what they have had before the call
	places portals.Handle   // of places whose results are there
	over   uint64           // what places has at the end of the call
	done   portals.Handle   // of calls that are over, and of trouble
	status runtime.View
	first  uint32 // number of the next call's first block
	active bool
	call   []portals.Handle // entries
	entry  portals.ME       // the last one; here it is no allocation
	source portals.MD
	bound  portals.Handle   // descriptor of source; 0: none yet
	old    []portals.Handle // descriptors of earlier vectors, perhaps still in use
	broken error
}

// Open makes a process a member. It takes no time. beside is another membership of
// the process, whose counter also counts the calls of this one; nil: it has its own.
func (g *Group) Open(p *runtime.Proc, rank int, beside *Member) (*Member, error) {
	u := handlers.NewSetup("reduction", p)
	if rank < 0 || rank >= len(g.o.Members) || u.Self != g.o.Members[rank] {
		return nil, fmt.Errorf("reduction: process %s is %v, not rank %d of the group's %d", p, u.Self, rank, len(g.o.Members))
	}
	m := &Member{group: g, ni: u.NI, rank: rank}
	a := g.parent[rank]
	m.target = portals.PhysID(uint32(g.o.Tree[a].Node), g.pids[a])
	m.bits = KindVector | uint64(g.place[rank])<<PlaceShift
	for range g.o.Window {
		m.counts = append(m.counts, u.Counter("results of reduction"))
	}
	m.before = make([]uint64, len(m.counts))
	m.places = u.Counter("results of reduction")
	if beside != nil {
		m.done = beside.done
	} else {
		m.done = u.Counter("results of reduction")
	}
	m.status = p.Alloc(8)
	u.Of = fmt.Sprintf(" of group %d", g.o.Number)
	u.Append(u.Table(g.pt, portals.EQNone, 0), portals.AnyID, m.status, portals.ME{
		MatchBits: KindTrouble, CT: m.done, Options: portals.OptMEOpPut | portals.OptMEEventCTComm | silent,
	})
	return m, u.Err
}

const silent = portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable

// Begin sends the first blocks as one message, which takes nic.overhead of the
// core. Others follow by themselves when results come. All members begin the
// same calls in the same order.
func (m *Member) Begin(c allreduce.Call) error {
	if err := m.check(c); err != nil {
		return err
	}
	return m.begin(operation{c.Source, c.Result, c.Source.Len(), Sign(c.Source.Len(), c.Op, c.Type), m.bits, 0})
}

// Reduce begins an allreduce whose result goes to the root alone; at other members
// c.Result does not count.
func (m *Member) Reduce(c allreduce.Call, root int) error {
	if m.rank != root {
		c.Result = c.Source
	}
	if err := m.check(c); err != nil {
		return err
	}
	o := operation{c.Source, c.Result, c.Source.Len(), Sign(c.Source.Len(), c.Op, c.Type) | Reduce, m.bits, 0}
	if m.rank != root {
		o.result = m.nothing()
	}
	return m.rooted(o, root)
}

// Broadcast begins to copy the root's bytes to the other members. A token of each
// member says that it has room for a block.
func (m *Member) Broadcast(v runtime.View, root int) error {
	o := operation{m.status, v, v.Len(), Sign(v.Len(), 0, 0) &^ Reduce, m.bits, 0}
	if m.rank == root {
		o.source, o.result = v, m.nothing()
	}
	return m.rooted(o, root)
}

// Barrier begins a broadcast of a token into no room: it ends when all members have
// begun.
func (m *Member) Barrier() error {
	return m.rooted(operation{m.status, m.nothing(), Token, Sign(0, 0, 0), m.bits, 0}, 0)
}

// Allgather begins a broadcast of the bytes of each member: those of member i go to
// piece i of the others' results. It leaves out the member's own piece.
func (m *Member) Allgather(own, all runtime.View) error {
	n := own.Len() * len(m.group.o.Members)
	if all.Len() != n || n == 0 {
		return fmt.Errorf("reduction: %d B of each of %d members, and %d B for all, expected %d B, at least one of each", own.Len(), len(m.group.o.Members), all.Len(), n)
	}
	return m.begin(operation{own, all, n, Sign(n, 0, 0) &^ Reduce, m.bits | Rooted, own.Len()})
}

// ReduceScatter begins a reduce of each member's piece of the vectors: c.Result is as
// long as a piece.
func (m *Member) ReduceScatter(c allreduce.Call) error {
	result, n, pieces := c.Result, c.Source.Len(), len(m.group.o.Members)
	if c.Result = c.Source; result.Len()*pieces != n {
		return fmt.Errorf("reduction: %d B for the result, expected one of %d pieces of %d B", result.Len(), pieces, n)
	}
	if err := m.check(c); err != nil {
		return err
	}
	return m.begin(operation{c.Source, result, n, Sign(n, c.Op, c.Type) | Reduce, m.bits | Rooted, result.Len()})
}

// nothing is the room of a result that does not come.
func (m *Member) nothing() runtime.View { return m.status.Slice(0, 0) }

func (m *Member) rooted(o operation, root int) error {
	switch {
	case o.bytes == 0:
		return errors.New("reduction: a broadcast of 0 B, expected at least one")
	case root < 0 || root >= len(m.group.o.Members):
		return fmt.Errorf("reduction: root %d, expected one of %d members", root, len(m.group.o.Members))
	}
	o.bits |= Rooted
	if m.rank == root {
		o.bits |= RootBit << IndexShift
	}
	return m.begin(o)
}

// check refuses what cannot be combined.
func (m *Member) check(c allreduce.Call) error {
	n := c.Source.Len()
	switch size := int(allreduce.Size(c.Type)); {
	case c.Result.Len() != n:
		return fmt.Errorf("reduction: %d B for the result, expected %d B", c.Result.Len(), n)
	case size == 0 || n%size != 0 || n == 0 || c.Op < allreduce.Sum || c.Op > allreduce.Max:
		return fmt.Errorf("reduction: %d B, operation %d, type %d: expected whole elements, at least one, and an operation and a type of the library", n, c.Op, c.Type)
	}
	return nil
}

// operation is what a member does in a call. If source is the status, it sends its
// bytes as a token for each block.
type operation struct {
	source, result runtime.View
	bytes          int    // of the vector
	sign           uint32 // see Sign
	bits           uint64 // match bits
	piece          int    // bytes of the vector that have a member as their root; 0: all have one
}

func (m *Member) begin(o operation) error {
	if m.broken != nil || m.active {
		return cmp.Or(m.broken, ErrBusy)
	}
	o.source.Read()
	o.result.Write()
	objects := m.ni.Objects()
	md, err := m.bind(o.source)
	if err != nil {
		return err
	}
	m.active = true
	blocks, window := m.blocks(&o), len(m.counts)
	if err := m.expect(o.result, blocks); err != nil {
		return err
	}
	for b := window; b < blocks; b++ {
		place := m.place(b)
		if err := objects.Triggered(m.send(&o, md, b, b+1), m.counts[place], m.before[place]+uint64(b/window)); err != nil {
			return err
		}
	}
	for b := range min(window, blocks) {
		place := m.place(b)
		m.before[place] += uint64((blocks - b + window - 1) / window)
		if err := objects.Triggered(portals.CTInc{CT: m.places, Increment: portals.CTEvent{Success: 1}}, m.counts[place], m.before[place]); err != nil {
			return err
		}
	}
	m.over += uint64(min(window, blocks))
	if err := objects.Triggered(portals.CTInc{CT: m.done, Increment: portals.CTEvent{Success: 1}}, m.places, m.over); err != nil {
		return err
	}
	first := min(window, blocks)
	if o.piece > 0 || m.token(&o) {
		first = 1 // a message is one block: the others follow at once
	}
	err = m.ni.Put(m.send(&o, md, 0, first))
	for b := first; b < min(window, blocks); b++ {
		err = errors.Join(err, objects.Triggered(m.send(&o, md, b, b+1), m.counts[m.place(b)], 0))
	}
	m.first += uint32(blocks)
	return err
}

func (m *Member) token(o *operation) bool { return o.source.Addr() == m.status.Addr() }

// blocks is how many there are: a block has one root.
func (m *Member) blocks(o *operation) int {
	piece := cmp.Or(o.piece, o.bytes)
	return o.bytes / piece * ((piece + m.group.block - 1) / m.group.block)
}

// send is the message of some blocks.
func (m *Member) send(o *operation, md portals.Handle, from, to int) portals.Put {
	put := portals.Put{
		MD: md, Target: m.target, PT: m.group.pt, MatchBits: o.bits, HdrData: uint64(m.first+uint32(from)) | uint64(o.sign)<<32,
	}
	switch at := from * m.group.block; {
	case o.piece > 0:
		m.sendPiece(o, &put, from)
	case m.token(o):
		put.Length = Token
	case o.bits&Rooted != 0:
		put.Offset, put.Length = uint64(at), uint64(min(to*m.group.block, o.bytes)-at)
		put.MatchBits |= uint64(at) << IndexShift
	default:
		put.Offset, put.Length = uint64(at), uint64(min(to*m.group.block, o.bytes)-at)
		put.MatchBits |= uint64(from) << IndexShift
	}
	return put
}

// sendPiece is the message of a block of a member's piece. In an allgather only that
// member has it, in a reduce-scatter it alone gets it.
func (m *Member) sendPiece(o *operation, put *portals.Put, block int) {
	each := (o.piece + m.group.block - 1) / m.group.block
	owner, at := block/each, block%each*m.group.block
	put.Length = uint64(min(m.group.block, o.piece-at))
	gathers, mine := o.sign&Reduce == 0, owner == m.rank
	switch {
	case !gathers:
		put.Offset = uint64(owner*o.piece + at)
	case mine:
		put.Offset = uint64(at)
	default:
		put.Length = uint64(min(Token, o.piece))
	}
	if mine {
		if gathers {
			at += owner * o.piece
		}
		put.MatchBits |= uint64(at|RootBit) << IndexShift
	}
}

// place returns the place of a block of the present call in the window.
func (m *Member) place(block int) uint32 { return (m.first + uint32(block)) % uint32(len(m.counts)) }

// expect makes entries for the results of a call.
func (m *Member) expect(result runtime.View, blocks int) error {
	for b := range min(blocks, len(m.counts)) {
		place := m.place(b)
		m.entry = portals.ME{
			Start: result.Addr(), Length: uint64(result.Len()), UID: portals.UIDAny, MatchID: portals.AnyID,
			MatchBits: KindResult | uint64(place)<<PlaceShift, IgnoreBits: ^uint64(1<<IndexShift - 1),
			CT: m.counts[place], Options: portals.OptMEOpPut | portals.OptMEEventCTComm | silent,
		}
		h, err := m.ni.MEAppend(m.group.pt, &m.entry, portals.PriorityList, 0)
		if err != nil {
			return err
		}
		m.call = append(m.call, h)
	}
	return nil
}

// Done reports whether the call is over, and the reason if it has failed. It takes
// no time.
func (m *Member) Done() (bool, error) {
	if !m.active || m.broken != nil {
		return true, m.broken
	}
	if binary.LittleEndian.Uint32(m.status.Read()) == Differs {
		m.broken = fmt.Errorf("reduction: rank %d of %d: %w", m.rank, len(m.group.o.Members), ErrDiffers)
		return true, m.broken
	}
	v, err := m.ni.Objects().CTGet(m.places)
	if err == nil && v.Success < m.over {
		return false, nil
	}
	return true, errors.Join(err, m.release())
}

// release gives back what the call has used.
func (m *Member) release() error {
	for _, h := range m.call {
		if err := m.ni.Objects().MEUnlink(h); err != nil {
			return err
		}
	}
	m.active, m.call = false, m.call[:0]
	return nil
}

// bind returns a descriptor of a vector. Programs use the same vectors again, so it
// keeps the last one.
func (m *Member) bind(v runtime.View) (portals.Handle, error) {
	source := portals.MD{Start: v.Addr(), Length: uint64(v.Len())}
	if m.bound != 0 && source.Start == m.source.Start && source.Length == m.source.Length {
		return m.bound, nil
	}
	if m.bound != 0 {
		m.old = append(m.old, m.bound)
	}
	m.source = source
	kept := m.old[:0]
	for _, md := range m.old {
		// a reliable transport may still wait for an acknowledgement
		if err := m.ni.Objects().MDRelease(md); errors.Is(err, portals.ErrInUse) {
			kept = append(kept, md)
		} else if err != nil {
			return 0, err
		}
	}
	m.old = kept
	md, err := m.ni.Objects().MDBind(&m.source)
	m.bound = md
	return md, err
}

// Wait waits until the result is there, or the reason why it will not come. The
// core has then looked at the result for the poll time.
func (m *Member) Wait() error {
	if !m.active {
		return m.broken
	}
	over, failed := false, error(nil)
	err := service.Await(m.ni, m.done, func() bool {
		over, failed = m.Done()
		return over
	})
	return errors.Join(failed, err)
}

// NI returns the interface of the process, for programs that wait for several
// things.
func (m *Member) NI() *runtime.NI { return m.ni }

// Signal returns the counter of calls that are over, for programs that wait for
// several things.
func (m *Member) Signal() portals.Handle { return m.done }
