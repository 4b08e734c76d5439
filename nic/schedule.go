package nic

import (
	"errors"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// handlerKind is the kind of handler that a task runs.
type handlerKind uint8

const (
	headerHandler handlerKind = iota
	payloadHandler
	completionHandler
)

var handlerKindNames = [...]string{"header", "payload", "completion"}

func (k handlerKind) String() string { return handlerKindNames[k] }

// task is a handler that wants to run.
type task struct {
	in      *inbound
	kind    handlerKind
	cluster uint16 // that has it, if clusters are homes
	packet  int32
}

// run is the state of a context of a processor. A handler runs in segments:
// from its start or a suspension to the next suspension or its end. A segment
// is executed at its first instant and occupies the core for the cycles it is
// charged.
type run struct {
	// Every event of a run needs these, so they lie side by side:
	core       *core
	task       task
	generation uint32 // counts tasks
	active     bool
	resumed    bool // the present segment is not the first
	landed     bool // in its last suspension it waited for its data to land
	status     hpu.Status
	index      int  // of the context on the node
	next       *run // in a runQueue
	ctx        *hpu.Context
	cycles     int64 // charged to the handler, with the present segment

	// Segments need these:
	charged int64    // cycles charged before the present segment
	start   sim.Time // when the present segment began
	ready   int64    // result to resume with
	since   sim.Time // when it was suspended; -1: it computes
	gave    sim.Time // until when it has offered its core; -1: never
	began   sim.Time // when the handler began
	number  int64    // of the handler on its node, from 1
	fixed   sim.Time // of a varied pool: the time of the handler
	late    int32    // operations of earlier handlers that are still on their way
	looks   bool     // there are DMA handles
	follows bool     // it waited for its core
	first   bool     // its first run in its cluster, where its cost depends on that

	// Actions need these:
	wait blockedOn
	// address of the context's buffer, and how many bytes the device has put
	// there for the handler
	packet, filled uint32
	// the last failed access to host memory that the handler knows of
	failed  failedAccess
	handles []dmaHandle
	desc    hpu.Operation // of a wait with an operation record
	sent    sim.Time      // when the packets that it sends have left (hpu.send)
	fn      hpu.Func      // the handler, where its cost depends on more than its instructions
	_       [8]byte       // 384 bytes in all: it begins a cache line
}

// at is the handler's own time after it has been charged a number of cycles.
func (r *run) at(cycles int64) sim.Time {
	p := r.core.pool
	if p.varied && !r.resumed {
		return r.start + r.fixed
	}
	at := r.start + p.time(cycles-r.charged, r.resumed)
	if p.rate.IsZero() || r.resumed || r.task.kind != payloadHandler {
		return at
	}
	from, to := r.task.in.frame.Span(int(r.task.packet))
	return at + p.rate.Time(int64(to-from))
}

// over is when the present segment frees its core.
func (r *run) over() sim.Time {
	end := r.at(r.cycles)
	if r.status == hpu.Done {
		end = max(end+r.core.pool.after, r.sent)
	}
	return end
}

// core is one processor. It executes one segment at a time, of any of its
// contexts. It is one cache line.
type core struct {
	pool    *pool
	runs    []*run   // by context; nil: none has run there yet
	resume  runQueue // contexts whose suspension has ended
	first   int32    // index of its first context on the node
	index   int32    // on the node
	number  int16    // in the pool
	active  int16    // contexts in use
	running bool
	follows bool // it begins a handler that waited
}

// runQueue is contexts in order of arrival. A context is in one at most.
type runQueue struct{ head, tail *run }

func (q *runQueue) push(r *run) {
	if q.head == nil {
		q.head = r
	} else {
		q.tail.next = r
	}
	q.tail = r
}

// pop removes the oldest context; there must be one.
func (q *runQueue) pop() *run {
	r := q.head
	q.head, r.next = r.next, nil
	return r
}

// schedule runs the handlers of a node on its processors (sPIN'17 §3.1). Tasks
// of a pool run in order of arrival, each on the idle core with the fewest
// contexts in use, the lowest number first. A context whose suspension has
// ended goes before new tasks.
type schedule struct {
	*env
	act       acting
	next      delivery
	runs      []*run // contexts of all pools, nil where none has run yet
	waiting   int32  // handlers that wait for a processor
	sparse    bool   // there are many nodes: contexts without a handler have no run
	buffered  int64  // bytes of packets that wait for a processor
	calls     int64
	cycles    int64    // charged
	inside    sim.Time // of handlers, from beginning to end
	firstEnd  sim.Time
	lastEnd   sim.Time
	programs  programs
	pools     []pool
	homes     *homes   // of messages; nil: handlers have none
	tenants   *tenants // nil: the profile names none
	triggered int64    // messages that triggered flow control
	dropped   int64    // packets
}

// acting executes handlers and their requests.
type acting interface {
	// execute runs the first segment of a handler and sets r.cycles.
	execute(r *run) hpu.Status
	// resume runs the next segment of a handler with the result r.ready, and
	// sets r.cycles.
	resume(r *run) hpu.Status
	// ended returns the result of a handler that is not blocked.
	ended(r *run) hpu.Outcome
	// suspended carries out the call that a handler waits for. ready means that
	// the handler need not wait and the result is known.
	suspended(r *run) (result int64, ready bool)
	// changed runs after a segment. Those that wait for a change of the HPU
	// memory look again.
	changed(m *Memory)
}

// programs finds the handlers of an entry.
type programs interface {
	installed(s *portals.Spin) *installed
}

// The events of schedule.
const (
	kindDispatched sim.Kind = kindsOfSchedule + iota // *run: a handler's first cycle
	// *run: a handler has ended or was suspended
	kindSegmentEnd
	// *inbound: all packets are in host memory, and the completion handler may
	// run
	kindDelivered
	// *run: a handler that has yielded in vain continues
	kindLooksAgain
	kindCopied // cluster: a handler's packet is in the memory of its cluster
)

func (s *schedule) handle(e *sim.Event) {
	switch e.Kind {
	case kindDispatched:
		s.execute(e.P.(*run))
	case kindCopied:
		s.ready(s.homes.clusters[e.A].copying.pop())
	case kindSegmentEnd:
		s.segmentEnd(e.P.(*run))
	case kindDelivered:
		s.completion(e.P.(*inbound))
	case kindLooksAgain:
		s.resumable(e.P.(*run), 0)
	default:
		unknown("schedule", e)
	}
}

// begin chooses the phase of a message to an entry with handlers.
func (s *schedule) begin(in *inbound) {
	d := in.d
	h := s.programs.installed(d.Spin)
	if h.memory.freed {
		s.report.handlerFailed(HandlerError{
			Rank: int(s.rank), At: s.now(), Program: h.memory.name, Handler: headerHandler.String(), Err: errors.New("its HPU memory was freed"),
		})
		in.dropped, in.fail = d.MLength, portals.NIDropped
		in.discards(failed)
		return
	}
	if !in.frame.carries(0) { // no handler can judge a message whose first data is missing
		in.phase = phaseDeposit
		return
	}
	in.handlers = h
	if s.queueFull(h.memory) {
		s.lose(in, handlersWaiting, in.frame.Packets, d.MLength)
		s.triggerFlowControl(in)
		in.handlers = nil
		in.discards(handlersWaiting)
		return
	}
	if in.spoiled && (h.header.Valid() || !h.payload.Valid()) {
		in.handlers = nil
		in.discard()
		return
	}
	if !s.admitted(in) {
		s.lose(in, messageMemoryFull, in.frame.Packets, d.MLength)
		s.triggerFlowControl(in)
		in.handlers = nil
		in.discards(messageMemoryFull)
		return
	}
	h.memory.uses++
	s.watch.arrived(in)
	in.skip = int32(min(h.userHeader, d.MLength))
	if h.header.Valid() {
		in.phase = phaseHeader
		s.queue(task{in: in, kind: headerHandler})
		return
	}
	s.processData(in)
}

// packet handles a packet of a message with handlers whose header has been
// matched.
func (s *schedule) packet(in *inbound, i int) {
	switch in.phase {
	case phaseHeader:
		if s.admit(in, i) {
			in.waiting = append(in.waiting, int32(i))
		}
	case phaseHandlers:
		if in.payloadBytes(i) == 0 && !in.spoiled {
			s.settleRest(in, i)
			s.dealt(in)
		} else if s.admit(in, i) {
			s.queue(task{in: in, kind: payloadHandler, packet: int32(i)})
		}
	default:
		s.next.packet(in, i)
	}
}

// missing counts packet i of a message to an entry with handlers as dropped.
// The packet will never come, or came without its data.
func (s *schedule) missing(in *inbound, i int) {
	in.dropped += uint64(in.payloadBytes(i))
	in.lostLast = in.lostLast || i == in.lastPacket()
	s.dealt(in)
}

// dealt counts a packet as handled. After the last one the message is
// completed.
func (s *schedule) dealt(in *inbound) {
	in.left--
	if in.left > 0 || in.phase == phaseHeader {
		return
	}
	switch {
	case !in.completes:
		s.next.complete(in)
	case in.data == 0: // otherwise kindDelivered follows the last posted write
		s.completion(in)
	}
}

// completion starts the completion handler of a message.
func (s *schedule) completion(in *inbound) {
	in.completes = false
	in.phase = phaseComplete
	s.queue(task{in: in, kind: completionHandler})
}

// admit takes packet i into the packet buffer. If there is no room, it drops
// the packet and triggers flow control on the portal table entry (sPIN'17
// §3.2). A packet for a payload handler needs a place in the handler queue,
// too.
func (s *schedule) admit(in *inbound, i int) bool {
	from, to := in.frame.Span(i)
	size := int64(to - from)
	switch {
	case s.buffered+size > int64(s.spec.PacketBuffer) || s.tenants != nil && !s.tenants.room(in.handlers.memory, 0, size):
		s.overflow(in, i, packetBufferFull)
	case in.phase == phaseHandlers && s.queueFull(in.handlers.memory):
		s.overflow(in, i, handlersWaiting)
	default:
		unbuffer(s, in, -size)
		return true
	}
	return false
}

// unbuffer notes that bytes of a message leave the packet buffer.
func unbuffer(s *schedule, in *inbound, bytes int64) {
	s.buffered -= bytes
	if s.tenants != nil {
		s.tenants.list[in.handlers.memory.tenant].buffered -= bytes
	}
}

// queueFull reports whether no more header or payload handlers of a program may
// wait for a processor. A completion handler may always wait: a message has at
// most one, and the message had a place.
func (s *schedule) queueFull(m *Memory) bool {
	waiting := int(s.waiting)
	if s.tenants != nil {
		waiting -= s.tenants.beyond
	}
	return waiting >= s.hpu.WaitingHandlers || s.tenants != nil && !s.tenants.room(m, 1, 0)
}

// overflow drops packet i for lack of room and disables the portal table entry.
func (s *schedule) overflow(in *inbound, i int, cause fate) {
	n := in.payloadBytes(i)
	s.lose(in, cause, 1, uint64(n))
	s.settle(in, cause, n)
	s.settleRest(in, i)
	in.lostFirst = in.lostFirst || i == 0
	in.lostLast = in.lostLast || i == in.lastPacket()
	s.triggerFlowControl(in)
	s.dealt(in)
}

// lose counts dropped packets of a message and their bytes that would have been
// delivered.
func (s *schedule) lose(in *inbound, cause fate, packets int, bytes uint64) {
	in.lose(loss{cause: cause, at: s.now(), tenant: s.tenants.blames(s, in, cause)}, packets, bytes)
	in.dropped += bytes
	s.dropped += int64(packets)
	if s.tenants != nil && in.handlers != nil {
		s.tenants.list[in.handlers.memory.tenant].Dropped += int64(packets)
	}
}

func (s *schedule) triggerFlowControl(in *inbound) {
	if !in.flowCtl {
		in.flowCtl = true
		s.triggered++
		in.iface.Port.DisableForFlowControl(in.frame.Header.PT)
	}
}

// payloadBytes is how many bytes of packet i a payload handler would see:
// without the user header and truncated bytes.
func (in *inbound) payloadBytes(i int) int {
	from, to := in.frame.Span(i)
	return max(0, min(to, int(in.d.MLength))-max(from, int(in.skip)))
}

// segmentEnd runs when a segment has used its cycles.
func (s *schedule) segmentEnd(r *run) {
	took := r.cycles - r.charged
	s.cycles += took
	r.charged = r.cycles
	h := r.task.in.handlers
	if r.status == hpu.Blocked {
		s.suspended(r, took)
	} else {
		s.done(r)
	}
	if s.lookers > 0 {
		s.act.changed(h.memory)
	}
}

// done ends a handler.
func (s *schedule) done(r *run) {
	s.inside += s.now() - r.began
	s.lastEnd = s.now()
	if s.firstEnd == 0 {
		s.firstEnd = s.now()
	}
	if r.first {
		r.task.in.handlers.memory.warmed(r.ctx.Cluster(), r.fn)
	}
	c, t, out := r.core, r.task, s.act.ended(r)
	if s.tenants != nil && c.pool.hpu != nil {
		s.tenants.ends(t, &out)
	}
	t.in.landed = r.landed
	r.active = false
	r.task = task{}
	c.active--
	s.ended(t, &out, &r.failed)
	s.release(r)
	s.idle(c)
	if s.homes != nil && c.pool.hpu != nil {
		s.leftCluster(t.cluster)
	}
}

// suspended handles a handler that has used the cycles before a call that
// waits. The call takes effect now. The handler's last segment had took cycles.
func (s *schedule) suspended(r *run, took int64) {
	r.since = s.now()
	r.landed = false
	if r.wait.op == hpu.OpYield {
		s.yield(r, took)
		return
	}
	if result, ready := s.act.suspended(r); ready {
		r.ready = result
		s.resume(r)
		return
	}
	s.idle(r.core)
}

// yield gives the core to other handlers that want it. In a waiting loop whose
// rounds take no time, a handler may yield a second time at the same moment. It
// has then seen everything that others do at that moment. It looks again later,
// because otherwise it would use up its budget before anything can happen.
func (s *schedule) yield(r *run, took int64) {
	c := r.core
	if r.gave == s.now() {
		r.gave += s.round(c.pool, took)
		s.post(r.gave, kindLooksAgain, 0, r)
		s.idle(c)
		return
	}
	r.gave = s.now()
	if c.resume.head == nil && c.pool.tasks.len() == 0 && (!arbitrates(s, c.pool) || s.tenants.waiting == 0) {
		r.ready = 0
		s.resume(r)
		return
	}
	pause(s, r)
	if arbitrates(s, c.pool) {
		s.tenants.serve(s, c, r)
		s.tenants.fill(s, c.pool)
		return
	}
	if c.resume.head == r && int(c.active) < len(c.runs) {
		if t, ok := s.nextTask(c.pool); ok {
			c.running = false
			s.start(c, t)
			return
		}
	}
	s.idle(c)
}
