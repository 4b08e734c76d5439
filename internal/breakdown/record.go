package breakdown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Record stores the steps of a run. From them Path goes back from the end of an
// operation to its beginning, and Use computes how busy the resources were. It
// is an observer for Follow.
type Record struct {
	messages map[uint64]*message
	tasks    map[sim.Task]*handling
	nodes    []nodeRecord
	held     int64  // approximate memory of the record, bytes
	limit    int64  // of held; 0: none
	full     func() // called once when the limit is exceeded
}

// FullError means that the record of a run needs more memory than is left.
type FullError struct {
	Left int64 // bytes available for the record
}

// Error includes a remedy.
func (e *FullError) Error() string {
	return fmt.Sprintf("--breakdown: its steps are held until the run ends, and take more than %s, which is what the memory limit leaves for them: measure fewer or shorter messages, or raise --memory-limit", sim.Size(e.Left).Rounded())
}

// stepBytes is the approximate memory of a step. 26 to 57 bytes were measured
// for pingpong and for osu's bw and allreduce. The rest is a reserve for other
// programs.
const stepBytes = 64

// Limit sets the maximum memory of the record, bytes; 0: no limit. Beyond it
// nothing more is recorded, Path and Use have no results, and full is called
// once.
func (r *Record) Limit(bytes int64, full func()) { r.limit, r.full = bytes, full }

// keeps reports whether there is room for one more step.
func (r *Record) keeps() bool {
	if r.limit == 0 {
		return true
	}
	if r.held > r.limit {
		return false
	}
	if r.held += stepBytes; r.held > r.limit {
		r.full()
		return false
	}
	return true
}

// message is the record of a message, in the order of its events.
type message struct {
	source, target int32 // nodes; target -1: not yet arrived
	made           sim.Time
	because        sim.Because
	by             sim.Task
	asked          sim.Time
	end            int // OfEnd: index of its cause among the ends of its source; -1: none
	packets        []passage
	sent           sim.Time // when the data of its last packet was at the source's NIC
	marks          []mark   // at the target: what the record of its end waits for
}

// passage has the times when a packet reached the stages (0: it did not), its
// time on a link, and its length.
type passage struct {
	ready, wired, arrived, found sim.Time
	bytes                        int64
}

// handling is the run of a handler.
type handling struct {
	segments []segment
}

type segment struct {
	from, to sim.Time
	why      sim.Stopped
}

// mark is an event that later stages of a message may have waited for.
type mark struct {
	at, from sim.Time
	of       sim.Task // the packet if its handler is NoHandler, else the task
	landed   bool
}

// end is an event that the host, a triggered operation or a waiting handler may
// have waited for.
type end struct {
	at   sim.Time
	of   sim.Task
	sent bool
}

// nodeRecord is the record of a node.
type nodeRecord struct {
	rank       int32
	ends       []end
	work       []work // of its cores, in the order of the ends
	timers     []sim.Time
	disks      []command
	faults     []fault
	frames     []frame
	processors map[int32][]span
	busy       map[string][]span // of DMA and link, see use.go
	queues     [queueCount][]change
}

// work is a span of work of a core.
type work struct {
	span
	process string
	part    Part
}

// command is a command of the storage device, with its process.
type command struct {
	span
	process string
}

// fault is an access of a message to an absent page.
type fault struct {
	at   sim.Time
	flow uint64
}

// frame is a frame of the management network from another node.
type frame struct {
	span
	source int32
}

// Kinds of timeline lines.
const (
	lineCore = 1 + iota
	lineStorage
	lineSMMU
	lineEthernet
)

// NewRecord returns an empty record.
func NewRecord() *Record {
	return &Record{messages: map[uint64]*message{}, tasks: map[sim.Task]*handling{}}
}

// Forget drops the data for Path, and keeps the data for Use.
func (r *Record) Forget() {
	clear(r.messages)
	clear(r.tasks)
	for i := range r.nodes {
		n := &r.nodes[i]
		n.ends, n.work, n.timers, n.disks, n.faults, n.frames = nil, nil, nil, nil, nil, nil
	}
}

// Track implements Observer.
func (r *Record) Track(t *Track) int {
	switch {
	case strings.HasPrefix(t.Name, "CPU "):
		return lineCore
	case t.Name == "storage":
		return lineStorage
	case t.Name == "SMMU":
		return lineSMMU
	case t.Name == "Ethernet":
		return lineEthernet
	}
	return 0
}

// Span implements Observer. It records the work of cores, of storage and of the
// management network, and how long an SMMU held accesses back.
func (r *Record) Span(t *Track, name string, from, to sim.Time, _ uint64, args []sim.Arg) {
	if t.Kind == 0 || to == from || !r.keeps() {
		return
	}
	process, s := "", span{from, to}
	for i := range args {
		if args[i].Key == "process" {
			process = args[i].Text
		}
	}
	n := r.node(int32(t.ID))
	switch t.Kind {
	case lineCore:
		if strings.HasPrefix(name, "interrupt ") || strings.HasPrefix(name, "tasklet ") {
			return // all its parts are reported separately
		}
		p := partOfWork(name)
		if _, kernel := Number(args, "kernel"); kernel {
			p = System
		}
		n.work = append(n.work, work{s, process, p})
	case lineStorage:
		n.disks = append(n.disks, command{s, process})
	case lineEthernet:
		if source, known := Number(args, "from"); known {
			n.frames = append(n.frames, frame{s, int32(source)})
		}
	case lineSMMU:
		if name == "stalled" {
			n.busy[stalled] = append(n.busy[stalled], s)
		}
	}
}

// Instant implements Observer. It records faults of the SMMU.
func (r *Record) Instant(t *Track, name string, at sim.Time, flow uint64, _ []sim.Arg) {
	if t.Kind == lineSMMU && strings.HasPrefix(name, "fault") {
		n := r.node(int32(t.ID))
		n.faults = append(n.faults, fault{at, flow})
	}
}

// partOfWork returns the part for a core's work, from its name on the timeline.
func partOfWork(name string) Part {
	switch name {
	case "poll":
		return Look
	case "put", "get", "atomic", "fetch atomic", "swap":
		return Post
	case "acknowledgement", "context switch", "exit", "fork", "fsync", "get_user_pages", "invalidate", "madvise", "migrate", "mlock", "mmap", "mprotect", "munlock", "munmap", "netlink message", "page fault", "put_page",
		"read", "reclaim", "split":
		return System
	}
	return Compute
}

func (r *Record) node(rank int32) *nodeRecord {
	for int(rank) >= len(r.nodes) {
		r.nodes = append(r.nodes, nodeRecord{rank: int32(len(r.nodes)), processors: map[int32][]span{}, busy: map[string][]span{}})
	}
	return &r.nodes[rank]
}

func (r *Record) message(flow uint64) *message {
	m := r.messages[flow]
	if m == nil {
		m = &message{source: -1, target: -1, end: -1}
		r.messages[flow] = m
	}
	return m
}

// packet returns the record of a packet.
func (m *message) packet(i int32) *passage {
	for int(i) >= len(m.packets) {
		m.packets = append(m.packets, passage{})
	}
	return &m.packets[i]
}

// Step implements Stepped.
func (r *Record) Step(s *sim.Step) {
	if !r.keeps() {
		return
	}
	n := r.node(s.Rank)
	r.queue(n, s)
	switch s.Kind {
	case sim.StepMessage:
		r.made(n, s)
	case sim.StepReady:
		m := r.message(s.Flow)
		m.packet(s.Packet).ready = s.To
		m.sent = max(m.sent, s.To)
	case sim.StepWire:
		n.busied(egress, span{s.From, s.To})
		r.message(s.Flow).packet(s.Packet).wired = s.To - s.From
	case sim.StepArrived:
		m := r.message(s.Flow)
		m.target = s.Rank
		p := m.packet(s.Packet)
		p.arrived = s.To
		if p.wired > 0 {
			n.busied(ingress, span{s.To - p.wired, s.To})
		}
	case sim.StepFound:
		m := r.message(s.Flow)
		m.packet(s.Packet).found = s.To
		m.marks = append(m.marks, mark{at: s.To, of: sim.Task{Flow: s.Flow, Packet: s.Packet, Handler: sim.NoHandler}})
	case sim.StepSegment:
		r.computed(n, s)
	case sim.StepTransfer:
		name := dmaIn
		if s.Out {
			name = dmaOut
		}
		n.busied(name, span{s.From, s.To})
	case sim.StepLanded:
		m := r.message(s.Flow)
		m.marks = append(m.marks, mark{at: s.To, from: s.From, of: s.Task, landed: true})
	case sim.StepTimer:
		n.timers = append(n.timers, s.To)
	case sim.StepDone:
		n.ends = append(n.ends, end{s.To, s.Task, s.Sent})
	}
}

// busied records that something was busy. It extends the previous span if the
// new one adjoins it.
func (n *nodeRecord) busied(name string, s span) {
	list := n.busy[name]
	if k := len(list) - 1; k >= 0 && s.from >= list[k].from && s.from <= list[k].to {
		list[k].to = max(list[k].to, s.to)
		return
	}
	n.busy[name] = append(list, s)
}

func (r *Record) made(n *nodeRecord, s *sim.Step) {
	m := r.message(s.Flow)
	m.source, m.made, m.because, m.by, m.asked = s.Rank, s.To, s.Because, s.By, s.Asked
	if k := len(n.ends) - 1; s.Because == sim.OfEnd && k >= 0 && n.ends[k].at == s.To {
		m.end = k
	}
}

func (r *Record) computed(n *nodeRecord, s *sim.Step) {
	n.processors[s.Processor] = append(n.processors[s.Processor], span{s.From, s.To})
	h := r.tasks[s.Task]
	if h == nil {
		h = &handling{}
		r.tasks[s.Task] = h
	}
	// a second run: its message was retransmitted
	if k := len(h.segments); k > 0 && s.Why == sim.NotStopped {
		h.segments = h.segments[:0]
	}
	h.segments = append(h.segments, segment{s.From, s.To, s.Why})
	m := r.message(s.Flow)
	m.marks = append(m.marks, mark{at: s.To, of: s.Task})
}

// latest returns the index of the last end of a node up to a time, or -1.
func (n *nodeRecord) latest(at sim.Time) int {
	i, _ := slices.BinarySearchFunc(n.ends, at, func(e end, t sim.Time) int {
		if e.at <= t {
			return -1
		}
		return 1
	})
	return i - 1
}
