package gsas

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// home is the process that owns the heap of a node.
type home struct {
	space     *Space
	node      int
	pid       uint32
	p         *runtime.Proc
	page      *exanet.Interface
	rdma      *rdma.Page
	out       *exanet.Outbox
	memory    runtime.View
	base      Pointer // of the heap
	heap      heap
	held      []request  // requests that wait for earlier ones, in the order of arrival
	moving    []transfer // large requests under way
	arrived   portals.Handle
	completed portals.Handle
	seen      uint64 // completed transfers that the home has handled
	counts    Counts
}

// request is a message with its sender.
type request struct {
	message
	from portals.ID
}

// transfer is a request whose bytes RDMA moves.
type transfer struct {
	request
	t *rdma.Pending
}

// barrier is where processes wait for each other.
type barrier struct {
	processes uint64
	waiting   []request
}

// run is the program of a home.
func (h *home) run(p *runtime.Proc) (err error) {
	h.p = p
	if h.page, h.rdma, err = h.space.join(p, h.space.o.Home, h.pageOptions()); err != nil {
		return err
	}
	h.out = h.page.Outbox(func(uint64, exanet.Address, error) { h.counts.Lost++ })
	h.arrived, _ = h.page.Signals()
	h.completed, _ = h.rdma.Signals()
	h.memory = p.Alloc(h.space.o.Heap)
	start := h.memory.Addr()
	at, err := exanet.TargetAt(h.node, int(h.pid), start)
	if err != nil {
		return err
	}
	h.base = Pointer(at)
	h.heap = heap{start: start, end: start + uint64(h.memory.Len())}
	for {
		acted, err := h.act()
		if err != nil {
			return err
		}
		if acted {
			continue
		}
		if err := h.out.Await([]portals.Handle{h.completed}, []uint64{h.seen + 1}, runtime.Forever); err != nil {
			return err
		}
	}
}

// pageOptions returns the options of the home's RDMA page. The page has room
// for the processes of all pages of all nodes, up to maxPeers.
func (h *home) pageOptions() rdma.Options {
	o := h.space.o.Channels
	if _, given := o.State["peers"]; given {
		return o
	}
	peers := min(rdma.Pages*rdma.Channels*len(h.space.homes), maxPeers)
	o.State = maps.Clone(o.State)
	if o.State == nil {
		o.State = map[string]any{}
	}
	o.State["peers"] = peers
	o.Memory = max(o.Memory, minMemory) + int64(peers)*rdma.PeerSize
	return o
}

// maxPeers is the maximum number of channels that a home reads from and writes
// to by RDMA, unless Options.Channels sets it. minMemory is the library's
// memory without peers, in bytes.
const (
	maxPeers  = 1 << 16
	minMemory = 64 << 10
)

// act handles one event, if there is any.
func (h *home) act() (acted bool, err error) {
	v, err := h.page.NI().Objects().CTGet(h.completed)
	if err != nil {
		return false, err
	}
	if v.Success > h.seen {
		h.seen = v.Success
		return true, h.ended()
	}
	if v, err = h.page.NI().Objects().CTGet(h.arrived); err != nil {
		return false, err
	}
	if v.Success > uint64(h.page.Taken()) {
		return true, h.take()
	}
	return h.out.Act()
}

// take takes a message out of the mailbox, and serves it if it need not wait.
func (h *home) take() error {
	var b [exanet.MaxPayload]byte
	m, found, err := h.page.Poll(b[:])
	if err != nil || !found {
		return err
	}
	r := request{from: portals.PhysID(m.NID, m.PID)}
	if !r.decode(&b, m.Bytes) {
		h.counts.Strange++
		return nil
	}
	h.p.Reads(used.Message)
	host := &h.p.Reads(used.Match).Host
	h.p.Compute(host.Message + host.Match) // the code, and the look-up of the allocation
	if h.waits(&r, h.held) {
		h.counts.Held++
		h.held = append(h.held, r)
		return nil
	}
	return h.serve(&r)
}

// touches returns the address range of a request; 0 bytes: none.
func (r *request) touches() (from, n uint64, write bool) {
	from = r.target.Target().VA()
	switch {
	case r.op == opRead:
		return from, r.a, false
	case r.op == opWrite:
		return from, r.a, true
	case r.op == opStore:
		return from, uint64(r.length), true
	case r.op == opFree:
		return from, 1, true // one byte stands for the allocation: overlap compares whole allocations
	case r.op.atomic():
		return from, 8, true
	}
	return 0, 0, false
}

// overlap reports whether two requests must not be under way together. A free
// waits for all requests in its allocation.
func (h *home) overlap(a, b *request) bool {
	if a.op == opFree || b.op == opFree {
		x, y := h.heap.find(a.target.Target().VA()), h.heap.find(b.target.Target().VA())
		return x != nil && x == y
	}
	from, n, write := a.touches()
	others, m, writes := b.touches()
	return n > 0 && m > 0 && (write || writes) && from < others+m && others < from+n
}

// waits reports whether a request overlaps one under way, or one in before.
func (h *home) waits(r *request, before []request) bool {
	if h.space.unheld {
		return false
	}
	return slices.ContainsFunc(h.moving, func(m transfer) bool { return h.overlap(r, &m.request) }) ||
		slices.ContainsFunc(before, func(b request) bool { return h.overlap(r, &b) })
}

// ended handles completed transfers. Then it serves the requests that waited
// for them or for a channel.
func (h *home) ended() error {
	for i := 0; i < len(h.moving); {
		m := h.moving[i]
		if !m.t.Done() {
			i++
			continue
		}
		h.moving = slices.Delete(h.moving, i, i+1)
		switch {
		case m.t.Err() != nil:
			m.status = transferFailed
			m.b = uint64(1 + slices.IndexFunc(transferErrors[:], func(e error) bool { return errors.Is(m.t.Err(), e) }))
			fallthrough
		case m.op == opWrite: // the reader has a notification
			if err := h.answer(&m.request); err != nil {
				return err
			}
		}
	}
	for i := 0; i < len(h.held); {
		r := h.held[i]
		if h.waits(&r, h.held[:i]) {
			i++
			continue
		}
		h.held = slices.Delete(h.held, i, i+1)
		before := len(h.held)
		if err := h.serve(&r); err != nil {
			return err
		}
		// There was no channel: serve has put the request back into
		// held, so move it to its old place.
		if len(h.held) > before {
			h.held = slices.Insert(h.held[:before], i, r)
			i++
		}
	}
	return nil
}

// check returns why an access to an address is refused; done: it is not.
func (h *home) check(r *request) status {
	_, n, _ := r.touches()
	from := r.target.Target().VA()
	b := h.heap.find(from)
	switch {
	case r.target.Target().Node() != h.node || r.target.Target().Rank() != int(h.pid) || b == nil:
		return dead
	case r.op != opFree && r.op != opBarrierWait && b.barrier != nil:
		return isBarrier
	case r.op == opFree && b.at != from:
		return dead
	case r.op == opFree:
		return done
	case r.op == opBarrierWait:
		if b.barrier == nil || b.at != from {
			return notBarrier
		}
		return done
	case r.op.atomic() && from%8 != 0:
		return unaligned
	case n == 0:
		return badSize
	case n > b.length-(from-b.at):
		return beyond
	}
	return done
}

// serve executes a request. Afterwards the request is answered, under way,
// waits at a barrier or, without a free channel, is the last in held.
func (h *home) serve(r *request) error {
	h.counts.Requests++
	if r.op != opAlloc && r.op != opBarrierAlloc {
		if r.status = h.check(r); r.status != done {
			return h.answer(r)
		}
	}
	switch {
	case r.op == opAlloc || r.op == opBarrierAlloc:
		h.alloc(r)
	case r.op == opFree:
		return h.free(r)
	case r.op == opBarrierWait:
		return h.arrive(r)
	case r.op == opRead && r.a > Inline || r.op == opWrite:
		return h.move(r)
	case r.op == opRead:
		r.length = int(r.a)
		h.view(r.target, r.length).CopyTo(r.bytes[:])
		h.access(r.length)
	case r.op == opStore:
		h.view(r.target, r.length).CopyFrom(r.bytes[:r.length])
		h.access(r.length)
		r.length = 0
	default:
		h.word(r)
	}
	return h.answer(r)
}

// access charges the home for an access to memory that need not be in a cache,
// and for its bytes.
func (h *home) access(n int) {
	h.p.Compute(h.p.Reads(used.MemoryLatency).Host.MemoryLatency)
	h.p.Stream(int64(n), int64(n))
}

func (h *home) view(p Pointer, n int) runtime.View {
	at := int(p.Target().VA() - h.memory.Addr())
	return h.memory.Slice(at, at+n)
}

// pointer returns the Pointer to an address of the heap.
func (h *home) pointer(addr uint64) Pointer { return h.base.Plus(int64(addr - h.memory.Addr())) }

// word executes an atomic operation.
func (h *home) word(r *request) {
	v := h.view(r.target, 8)
	b := v.Write() // atomic: no time passes from here until the word is stored
	old := binary.LittleEndian.Uint64(b)
	binary.LittleEndian.PutUint64(b, r.op.apply(old, r.a, r.b))
	r.a = old
	h.access(8)
}

// apply returns the new value of a word.
func (o op) apply(old, a, b uint64) uint64 {
	switch o {
	case opFetchAdd:
		return old + a
	case opSwap, opStoreWord:
		return a
	case opCompareSwap:
		if old == b {
			return a
		}
		return old
	case opFetchOr:
		return old | a
	case opFetchAnd:
		return old & a
	case opFetchXor:
		return old ^ a
	case opFetchMin:
		return uint64(min(int64(old), int64(a)))
	case opFetchMax:
		return uint64(max(int64(old), int64(a)))
	case opFetchMinU:
		return min(old, a)
	case opFetchMaxU:
		return max(old, a)
	}
	return old
}

// alloc serves a request for zeroed memory or for a barrier.
func (h *home) alloc(r *request) {
	n, bytes := r.a, r.a
	if r.op == opBarrierAlloc {
		bytes = heapAlign
	}
	r.target, r.a = Null, 0
	if n == 0 || r.op == opBarrierAlloc && n > maxBarrier {
		r.status = badSize
		return
	}
	b := h.heap.alloc(bytes)
	if b == nil {
		r.status = noMemory
		return
	}
	r.target = h.pointer(b.at)
	if r.op == opBarrierAlloc {
		b.barrier = &barrier{processes: n}
		return
	}
	clear(h.view(r.target, int(n)).Write())
	h.p.Stream(0, int64(n))
}

// free frees an allocation. Processes that wait at a freed barrier learn that
// it is dead.
func (h *home) free(r *request) error {
	b := h.heap.free(r.target.Target().VA())
	if b.barrier != nil {
		for i := range b.barrier.waiting {
			b.barrier.waiting[i].status = dead
			if err := h.answer(&b.barrier.waiting[i]); err != nil {
				return err
			}
		}
	}
	return h.answer(r)
}

// maxBarrier is the maximum number of processes of a barrier.
const maxBarrier = 1 << 20

// arrive adds a process to a barrier. The last one releases all.
func (h *home) arrive(r *request) error {
	b := h.heap.find(r.target.Target().VA()).barrier
	b.waiting = append(b.waiting, *r)
	if uint64(len(b.waiting)) < b.processes {
		return nil
	}
	all := b.waiting
	b.waiting = nil
	for i := range all {
		if err := h.answer(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// move begins the RDMA transfer of a request.
func (h *home) move(r *request) error {
	v := h.view(r.target, int(r.a))
	x := rdma.Transfer{NID: r.from.NID, PID: r.from.PID, Length: r.a}
	var t *rdma.Pending
	var err error
	if r.op == opRead {
		v.Read() // brings in missing pages
		x.Source, x.Destination, x.Notify, x.Value = v.Addr(), r.b, r.c, uint64(r.number)
		t, err = h.rdma.Write(x)
	} else {
		v.Write()
		x.Source, x.Destination = r.b, v.Addr()
		t, err = h.rdma.Read(x)
	}
	if err == rdma.ErrNoChannel { //nolint:errorlint // it is what begins to move that says so
		h.counts.Requests--
		h.held = append(h.held, *r)
		return nil
	}
	if err != nil {
		return err
	}
	h.counts.Large++
	h.moving = append(h.moving, transfer{*r, t})
	return nil
}

// answer sends a request back to its sender, as its answer.
func (h *home) answer(r *request) error {
	if r.status != done {
		h.counts.Refused++
		r.length, r.a = 0, 0
	}
	if r.status != transferFailed {
		r.b = 0
	}
	if r.op != opAlloc && r.op != opBarrierAlloc {
		r.target = Null
	}
	if r.op == opRead || r.op == opWrite || r.op == opStore || r.op == opFree || r.op == opBarrierWait {
		r.a, r.c = 0, 0
	}
	var b [exanet.MaxPayload]byte
	return h.out.Post(exanet.First(r.from.NID, r.from.PID), r.encode(&b), 0)
}
