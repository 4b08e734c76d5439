package runtime

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/sim"
)

// handlerKind tells which of a message's handlers a task runs.
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
	m      *message
	kind   handlerKind
	packet int32
}

// run is what a context of an HPU is doing. A handler runs in segments: from its start, or from a suspension, to the next
// suspension or its end. A segment is executed at its first instant and occupies the core for the cycles it was charged.
type run struct {
	index      int // of the context on the node
	active     bool
	generation uint32 // counts tasks
	ctx        *hpu.Context
	task       task
	first      sim.Time // when the handler began
	start      sim.Time // when the present segment began
	charged    int64    // cycles charged before the present segment
	status     hpu.Status
	wait       blockedOn
	ready      int64 // result to resume with
	handles    []dmaHandle
	since      sim.Time // when it was suspended
	landed     bool     // it was suspended last until data of it had landed
}

// core is one HPU: it executes one segment at a time, of any of its contexts.
type core struct {
	index   int
	running bool
	active  int        // contexts in use
	resume  ring[*run] // contexts whose suspension has ended, in that order
}

// hpuPool schedules the handlers of a node on its HPUs (sPIN'17 §3.1): tasks in order of arrival, each on the idle core with
// the fewest contexts in use, the lowest number first. A context whose suspension has ended goes before new tasks.
type hpuPool struct {
	cores    []core
	runs     []run // contexts: core c has runs[c*perCore : (c+1)*perCore]
	perCore  int
	tasks    ring[task]
	promised int          // puts that handlers have made for a later moment
	dmaBytes int64        // of DMA operations of handlers on their way
	dmaWaits ring[*dmaOp] // blocking ones that hpu.dma_bytes has no room for
	commands int          // operations from host memory and timers that handlers have asked for and that have not left
	buffered int64        // bytes of packets that wait for an HPU
	egress   ring[*run]
	acts     actions
}

func (p *hpuPool) init(n *Node) {
	spec := &n.profile.HPU
	p.cores = make([]core, spec.Cores)
	for i := range p.cores {
		p.cores[i].index = i
	}
	p.perCore = spec.Contexts
	p.runs = make([]run, spec.Cores*spec.Contexts)
	p.acts.n = n
	for i := range p.runs {
		p.runs[i].index = i
	}
}

func (p *hpuPool) coreOf(r *run) *core { return &p.cores[r.index/p.perCore] }

// admit takes packet i into the packet buffer, or drops it and triggers flow control on the portal table entry
// (sPIN'17 §3.2). A packet that a payload handler is to see needs a place in its queue too.
func (n *Node) admit(m *message, i int) bool {
	from, to := m.span(i)
	size := int64(to - from)
	switch {
	case n.hpus.buffered+size > int64(n.profile.NIC.PacketBuffer):
		n.overflow(m, i, packetBufferFull)
	case m.rx.phase == phaseHandlers && n.queueFull():
		n.overflow(m, i, handlersWaiting)
	default:
		n.hpus.buffered += size
		return true
	}
	return false
}

// queueFull reports whether no header or payload handler may be added to those that wait for an HPU. Completion handlers always
// may: there is one for a message at most, and the message had a place.
func (n *Node) queueFull() bool { return n.hpus.tasks.len() >= n.profile.HPU.WaitingHandlers }

// overflow drops packet i for want of room and disables the portal table entry.
func (n *Node) overflow(m *message, i int, cause shortage) {
	r := &m.rx
	n.lose(m, cause, 1, uint64(r.payloadBytes(m, i)))
	r.lostFirst = r.lostFirst || i == 0
	n.triggerFlowControl(m)
	n.dealt(m)
}

func (n *Node) triggerFlowControl(m *message) {
	r := &m.rx
	if !r.flowCtl {
		r.flowCtl = true
		n.stats.FlowControl++
		r.ni.port.DisableForFlowControl(m.hdr.PT)
	}
}

// payloadBytes is how many bytes of packet i a payload handler would see: without the user header and what was truncated.
func (r *receive) payloadBytes(m *message, i int) int {
	from, to := m.span(i)
	return max(0, min(to, int(r.d.MLength))-max(from, r.skip))
}

// queueTask starts a handler on the idle core with the fewest contexts in use, or makes it wait for one.
func (n *Node) queueTask(t task) {
	p := &n.hpus
	best := -1
	for i := 0; i < len(p.cores) && p.tasks.len() == 0; i++ { // while tasks wait no core can take one
		c := &p.cores[i]
		if !c.running && c.active < p.perCore && (best < 0 || c.active < p.cores[best].active) {
			best = i
		}
	}
	if best < 0 {
		p.tasks.push(t)
		return
	}
	n.startTask(best, t)
}

// coreIdle gives a core that has finished a segment its next one: a handler whose suspension has ended, or the oldest task.
func (n *Node) coreIdle(c *core) {
	c.running = false
	switch p := &n.hpus; {
	case c.resume.len() > 0:
		n.resumeRun(c.resume.pop())
	case p.tasks.len() > 0 && c.active < p.perCore:
		n.startTask(c.index, p.tasks.pop())
	}
}

// resumable ends the suspension of a run with a result; it goes on when its core is idle.
func (n *Node) resumable(r *run, result int64) {
	if poison.On {
		r.checkWaiting()
	}
	r.ready = result
	c := n.hpus.coreOf(r)
	if c.running {
		c.resume.push(r)
		return
	}
	n.resumeRun(r)
}
