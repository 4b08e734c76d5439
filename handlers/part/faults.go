//go:build !tinygo

// On the host's side package part is the host's side of PART's fault FIFO
// (handler library part). A driver or a program resolves page faults: it takes
// entries, brings the pages in, and asks for the blocks.
package part

import (
	"encoding/binary"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// LoadEngine makes the engine with PART ready for the processes of a cluster.
func LoadEngine(c *runtime.Cluster) (*rdma.Engine, error) {
	return rdma.LoadSlot(c, EngineSlot)
}

// Queue is the fault FIFO of a process.
type Queue struct {
	page   *rdma.Page
	load   sim.Time       // of a register of the interface
	pushed portals.Handle // counts entries
	seen   uint64
}

// QueueOf returns the FIFO of a page of an engine of Load, for callers that
// learn of faults in another way than by Await.
func QueueOf(g *rdma.Page) *Queue {
	return &Queue{page: g, load: 2 * g.NI().Proc().Cluster().Profile().DMA.Latency}
}

// OpenQueue returns the FIFO of a page of an engine of Load. Call it before the
// process first waits.
func OpenQueue(g *rdma.Page) (*Queue, error) {
	u, q := handlers.NewListSetup("part", g.NI().Proc()), QueueOf(g)
	if q.pushed = u.Counter("page faults"); u.Err != nil {
		return nil, u.Err
	}
	return q, g.Installed().Set("fault_ct", uint64(q.pushed))
}

// Await waits until something was pushed since the last call that returned.
func (q *Queue) Await() error {
	v, err := q.page.NI().CTWait(q.pushed, q.seen+1)
	q.seen = v.Success
	return err
}

// Next takes the oldest entry; false: there is none. It reads 64 bits from the
// interface twice, with a round trip each. The second read removes the entry
// (T). The first read already shows whether there is one.
func (q *Queue) Next(t *host.Thread) (f FaultRecord, found bool) {
	t.Run(q.load, "fault FIFO")
	memory := q.page.Installed().HPU.Bytes()
	const headAt, tailAt, first = unsafe.Offsetof(State{}.Head), unsafe.Offsetof(State{}.Tail), unsafe.Offsetof(State{}.FIFO)
	head := binary.LittleEndian.Uint32(memory[headAt:])
	if head == binary.LittleEndian.Uint32(memory[tailAt:]) {
		return f, false
	}
	var e Entry
	at := first + uintptr(head%Entries)*unsafe.Sizeof(e)
	for i := range e.Words {
		e.Words[i] = binary.LittleEndian.Uint32(memory[at+4*uintptr(i):])
	}
	t.Run(q.load, "fault FIFO")
	binary.LittleEndian.PutUint32(memory[headAt:], head+1)
	return e.Decode()
}

// More reports whether there is an entry. It reads the interface once.
func (q *Queue) More(t *host.Thread) bool {
	t.Run(q.load, "fault FIFO")
	memory := q.page.Installed().HPU.Bytes()
	const headAt, tailAt = unsafe.Offsetof(State{}.Head), unsafe.Offsetof(State{}.Tail)
	return binary.LittleEndian.Uint32(memory[headAt:]) != binary.LittleEndian.Uint32(memory[tailAt:])
}

// Resume asks the source of a block to send it again, because its pages are now
// there (P: ERR). It takes nic.overhead, and may get lost.
func (q *Queue) Resume(t *host.Thread, f *FaultRecord) error {
	e := f.Encode()
	return q.page.Command(t, KindAskAgain, spin.EncodeState(&e))
}

// Unreadable ends the process's transfers from a page that it does not have:
// ErrDenied. It takes nic.overhead.
func (q *Queue) Unreadable(t *host.Thread, page uint64) error {
	return q.page.Command(t, KindUnreadable, binary.LittleEndian.AppendUint64(nil, page))
}
