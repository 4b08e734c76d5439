// Package faults is the host's side of PART's fault FIFO (handler library part): who resolves page faults, a driver or a program, takes entries, brings the pages
// in, and asks for the blocks.
package faults

import (
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma/channels"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Load makes the engine with PART ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*channels.Engine, error) {
	return channels.LoadLibrary(c, handlers.Must("part"))
}

// Queue is the fault FIFO of a process.
type Queue struct {
	page   *channels.Page
	pushed portals.Handle // counts entries
	seen   uint64
}

// Open returns the FIFO of a page of an engine of Load. It is for the time before the process first waits.
func Open(p *runtime.Proc, g *channels.Page) (*Queue, error) {
	ct, err := g.NI().CTAlloc()
	if err != nil {
		return nil, err
	}
	g.NI().Label(ct, "page faults")
	if err := g.Installed().Set("fault_ct", uint64(ct)); err != nil {
		return nil, err
	}
	return &Queue{page: g, pushed: ct}, nil
}

// Await waits until something was pushed since the last call that returned.
func (q *Queue) Await() error {
	v, err := q.page.NI().CTWait(q.pushed, q.seen+1)
	q.seen = v.Success
	return err
}

// Next takes the oldest entry; false: there is none. It takes two reads of 64 bits from the interface, at the second of which the entry is gone (T); that there is none shows at the
// first.
func (q *Queue) Next(p *runtime.Proc) (f part.Fault, found bool, err error) {
	load := 2 * p.Cluster().Profile().DMA.Latency // there and back
	p.Compute(load)
	in := q.page.Installed()
	number := func(name string) uint64 {
		v, failed := in.Number(name)
		if err == nil {
			err = failed
		}
		n, _ := v.(uint64)
		return n
	}
	head := number("head")
	if err != nil || head == number("tail") {
		return f, false, err
	}
	var e part.Entry
	for i := range e.Words {
		e.Words[i] = uint32(number(fmt.Sprintf("fifo[%d].words[%d]", head%part.Entries, i)))
	}
	p.Compute(load)
	if err == nil {
		err = in.Set("head", uint64(uint32(head+1)))
	}
	f, found = e.Decode()
	return f, found, err
}

// Resume asks the source of a block to send it again, now that its pages are there (P: ERR). It takes nic.overhead, and may get lost.
func (q *Queue) Resume(f *part.Fault) error {
	e := f.Encode()
	return q.page.Command(part.KindAskAgain, spin.EncodeState(&e))
}
