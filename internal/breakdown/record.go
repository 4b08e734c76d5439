package breakdown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Record keeps what a run did, step by step, so that one can go back from the
// end of an operation to its beginning (Path) and say how busy what was (Use).
// It is an observer of Follow.
type Record struct {
	messages map[uint64]*message
	tasks    map[sim.Task]*handling
	nodes    []nodeRecord
	held     int64  // memory of what is kept, bytes, about
	limit    int64  // of held; 0: none
	full     func() // told once when it is more
}

// FullError says that what a run did took more memory than there is beside it.
type FullError struct {
	Left int64 // bytes, for what it did
}

// Error says what can be done.
func (e *FullError) Error() string {
	return fmt.Sprintf("--breakdown: its steps are held until the run ends, and take more than %s, which is what the memory limit leaves for them: measure fewer or shorter messages, or raise --memory-limit", sim.Size(e.Left).Rounded())
}

// stepBytes is what a step takes, about: 26 to 57 of pingpong and of osu's bw
// and allreduce, measured, and something for what is not in these.
const stepBytes = 64

// Limit lets what is kept take so much memory, bytes; 0: any. When it takes
// more nothing further is kept, so that neither Path nor Use say anything, and
// full is called, once.
func (r *Record) Limit(bytes int64, full func()) { r.limit, r.full = bytes, full }

// keeps reports whether there is room for a step more.
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

// message is what was seen of a message, in the order in which it was seen.
type message struct {
	source, target int32 // nodes; target -1: it has not arrived
	made           sim.Time
	because        sim.Because
	by             sim.Task
	asked          sim.Time
	end            int // OfEnd: index of what has made it among the ends of its source; -1: nothing
	packets        []passage
	sent           sim.Time // when the data of its last packet was at its source's NIC
	marks          []mark   // at its target: what its record waits for
}

// passage is when a packet came to the stages, 0 if it did not, how long it
// takes a link, and how long it is.
type passage struct {
	ready, wired, arrived, found sim.Time
	bytes                        int64
}

// handling is a handler's run.
type handling struct {
	segments []segment
}

type segment struct {
	from, to sim.Time
	why      sim.Stopped
}

// mark is something that a message's later stages may have waited for.
type mark struct {
	at, from sim.Time
	of       sim.Task // NoHandler: packet, else the task
	landed   bool
}

// end is something that the host, a triggered operation or a waiting handler may have waited for.
type end struct {
	at   sim.Time
	of   sim.Task
	sent bool
}

// nodeRecord is what happened at a node.
type nodeRecord struct {
	rank       int32
	ends       []end
	work       []work // of its cores, in the order in which it ended
	timers     []sim.Time
	disks      []command
	faults     []fault
	frames     []frame
	processors map[int32][]span
	busy       map[string][]span // of DMA and link, see use.go
	queues     [queueCount][]change
}

// work is what a core did.
type work struct {
	span
	process string
	part    Part
}

// command is one of the storage device, and whose it was.
type command struct {
	span
	process string
}

// fault is an access of a message that has met an absent page.
type fault struct {
	at   sim.Time
	flow uint64
}

// frame is one of the management network that has come from another node.
type frame struct {
	span
	source int32
}

// Lines of a timeline.
const (
	lineCore = 1 + iota
	lineStorage
	lineSMMU
	lineEthernet
)

// NewRecord returns an empty one.
func NewRecord() *Record {
	return &Record{messages: map[uint64]*message{}, tasks: map[sim.Task]*handling{}}
}

// Forget drops what Path needs. Use stays as it is.
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

// Span implements Observer: it keeps the work of cores, of storage and of the
// management network, and how long an SMMU had accesses wait.
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
			return // all of it was told by itself
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

// Instant implements Observer: it keeps faults of the SMMU.
func (r *Record) Instant(t *Track, name string, at sim.Time, flow uint64, _ []sim.Arg) {
	if t.Kind == lineSMMU && strings.HasPrefix(name, "fault") {
		n := r.node(int32(t.ID))
		n.faults = append(n.faults, fault{at, flow})
	}
}

// partOfWork is what a core's work is a part of, by its name on the timeline.
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

// packet is what was seen of a packet of a message.
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

// busied notes that something was busy; what goes on where it was is one span.
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
	// a second time: its message was sent again
	if k := len(h.segments); k > 0 && s.Why == sim.NotStopped {
		h.segments = h.segments[:0]
	}
	h.segments = append(h.segments, segment{s.From, s.To, s.Why})
	m := r.message(s.Flow)
	m.marks = append(m.marks, mark{at: s.To, of: s.Task})
}

// latest is the last end of a node that was there at a time; -1: none.
func (n *nodeRecord) latest(at sim.Time) int {
	i, _ := slices.BinarySearchFunc(n.ends, at, func(e end, t sim.Time) int {
		if e.at <= t {
			return -1
		}
		return 1
	})
	return i - 1
}
