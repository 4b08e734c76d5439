//go:build !tinygo

package part

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
)

// client is a process with a page of channels.
type client struct {
	driver  *Driver
	process *host.Process
	queue   *Queue
	pending bool          // its FIFO may have entries
	flow    uint64        // for timelines: of the first fault since its FIFO was empty
	blocks  []block       // that have faulted, in the order of the FIFO
	recent  [recent]block // the last ones that were asked for
	later   []Range       // to bring in after all blocks were asked for
	due     []FaultRecord // blocks to ask for at the end of the run (host.AskRun)
	brought []Range       // since the process last had nothing to do
	// netlink
	thread *host.Thread
	inbox  []message
}

// recent is the number of blocks whose handled pages the driver remembers (T:
// of two transactions).
const recent = 2

// block is an attempt to send a block, some of whose pages were absent.
type block struct {
	FaultRecord          // without the address
	pages       []uint64 // in the order of the FIFO
	done        int      // number of pages handled
	late        bool     // its request has left
	asked       bool     // with an earlier page (host.AskPage)
}

func (b *block) is(f *FaultRecord) bool {
	return b.NID == f.NID && b.PID == f.PID && b.Slot == f.Slot && b.Sequence == f.Sequence && len(b.pages) > 0
}

func (d *Driver) attach(p *runtime.Proc, g *rdma.Page) {
	c := &client{driver: d, process: p.OS(), queue: QueueOf(g)}
	d.clients = append(d.clients, c)
	if d.part.options.Method != InKernel {
		c.thread = p.Node().CPU().Kthread(d.core(p), p.Name()+" page faults", c.listen)
	}
}

// core returns the core of a process's thread.
func (d *Driver) core(p *runtime.Proc) int {
	p.Reads(used.Cores)
	switch d.spec.NetlinkCore {
	case host.CoreProcess:
		return p.Thread().Core()
	case host.CoreInterrupt:
		return d.spec.InterruptCore
	}
	return (p.Thread().Core() + 1) % p.Node().CPU().Cores()
}

// serve handles up to left pages of the FIFO, or fewer if the send tasklet
// waits. It returns how many more pages the run may handle.
func (c *client) serve(t *host.Thread, left int) int {
	t.CPU().Use(used.Block)
	t.Follow(c.flow)
	if len(c.blocks)+len(c.later) == 0 {
		c.brought = c.brought[:0]
	}
	c.collect(t)
	defer c.request(t)
	for len(c.blocks)+len(c.later) > 0 {
		if len(c.blocks) > 0 {
			left = c.resolve(t, left)
		} else {
			c.ahead(t)
			c.again(t)
			left--
		}
		if (left == 0 || len(c.driver.others) > 0) && len(c.blocks)+len(c.later) > 0 {
			c.pending = true
			return left
		}
	}
	if c.driver.spec.FaultLook == host.LookOnce && c.queue.More(t) {
		c.pending = true
		return 0 // the next run reads them
	}
	c.flow = 0
	return left
}

// again reads what has come since the run began, if a run looks again.
func (c *client) again(t *host.Thread) {
	if c.driver.spec.FaultLook != host.LookOnce {
		c.collect(t)
	}
}

// request asks for the blocks of a run, with one message (host.AskRun).
func (c *client) request(t *host.Thread) {
	if len(c.due) == 0 {
		return
	}
	m := message{block: c.due[0], more: slices.Clone(c.due[1:]), ask: true, fault: host.DeviceFault{Process: c.process, Write: true, Flow: t.Flow()}}
	c.due = c.due[:0]
	c.driver.release()
	c.tell(t, m)
}

// ahead brings in a piece that nobody has asked for yet. Requests that come
// meanwhile go first.
func (c *client) ahead(t *host.Thread) {
	r := &c.later[0]
	for r.Start < r.End && c.process.Present(r.Start, true) {
		r.Start += host.PageBytes
	}
	piece := Range{r.Start, min(r.End, r.Start+aheadPages*host.PageBytes)}
	r.Start = piece.End
	// a piece that nobody has asked for may stay absent
	if err := c.driver.bring(t, c.process, piece, true); err != nil || r.Start >= r.End {
		c.later = append(c.later[:0], c.later[1:]...)
	}
}

// aheadPages is how many pages come between two looks at the FIFO.
const aheadPages = 64

// collect reads the FIFO until it is empty.
func (c *client) collect(t *host.Thread) {
	for f, found := c.queue.Next(t); found; f, found = c.queue.Next(t) {
		c.driver.stats.Entries++
		c.note(&f)
	}
}

// note adds an entry to its block.
func (c *client) note(f *FaultRecord) {
	for i := range c.blocks {
		if b := &c.blocks[i]; b.is(f) {
			c.add(b, f.Address)
			return
		}
	}
	var b block
	for i := range c.recent {
		if r := &c.recent[i]; r.is(f) {
			if slices.Contains(r.pages, f.Address) {
				c.driver.stats.Skipped++
				return
			}
			c.add(r, f.Address)
			c.driver.stats.Late++
			b.late = true
			break
		}
	}
	b.FaultRecord, b.pages = *f, []uint64{f.Address}
	c.blocks = append(c.blocks, b)
}

func (c *client) add(b *block, page uint64) {
	if slices.Contains(b.pages, page) {
		c.driver.stats.Skipped++
		return
	}
	b.pages = append(b.pages, page)
}

// resolve brings in the pages of the oldest block, also pages that enter the
// FIFO only then, and has the block sent again once for all of its pages (P:
// they fault in one pass). It stops within the block after left pages, and
// returns how many more pages the run may handle.
func (c *client) resolve(t *host.Thread, left int) int {
	for {
		b := &c.blocks[0]
		page := b.pages[b.done]
		if b.done++; b.done == len(b.pages) {
			c.again(t)
			b = &c.blocks[0]
		}
		last := b.done == len(b.pages)
		c.page(t, page, c.asks(b, page, last))
		left--
		if last {
			break
		}
		if left == 0 {
			return 0
		}
	}
	b := c.blocks[0]
	c.blocks = append(c.blocks[:0], c.blocks[1:]...)
	if !b.late && !c.driver.spec.FaultForget {
		copy(c.recent[1:], c.recent[:])
		c.recent[0] = b
	}
	return left
}

// asks reports whether a block is asked for with a page of it, the last one so
// far or an earlier one. With host.AskPage each page asks that is brought in,
// and an attempt whose pages have all come for others once. The source ignores
// requests for an attempt that is over (T §3.2.3).
func (c *client) asks(b *block, page uint64, last bool) bool {
	switch c.driver.spec.Asks() {
	case host.AskPage:
		ask := !c.has(page) || last && !b.asked && !b.late
		b.asked = b.asked || ask
		return ask
	case host.AskRun:
		if last && !b.late {
			c.due = append(c.due, b.FaultRecord)
		}
		return false
	}
	return last && !b.late
}

// gather adds those failed pages of the oldest block to a range that follow it
// without a gap, if they come with one call (ResolveSpec.FaultGather).
func (c *client) gather(r Range) Range {
	if c.driver.spec.FaultGather {
		for slices.Contains(c.blocks[0].pages, r.End) {
			r.End += host.PageBytes
		}
	}
	return r
}

// page brings in a page of the oldest block, and the other pages that the
// policy wants. With ask it has the block sent again.
func (c *client) page(t *host.Thread, page uint64, ask bool) {
	d := c.driver
	m := message{block: c.blocks[0].FaultRecord, ask: ask, fault: host.DeviceFault{Process: c.process, Addr: page, Write: true, Flow: t.Flow()}}
	if !c.has(page) {
		b := &m.block
		m.plan = d.plan(t, c.process, page, false, Block{Known: true, Node: b.NID, PID: b.PID, Transaction: b.Slot, Sequence: b.Sequence})
		if d.part.options.Method != Touch {
			m.plan.First = c.gather(m.plan.First)
		}
		c.brought = append(c.brought, m.plan.First)
		if d.part.options.Method == Touch {
			d.release()
			c.deliver(t, m)
			return
		}
		switch err := d.bring(t, c.process, m.plan.First, true); {
		// now, for the whole block: a missing page faults again, or the
		// time-out repeats it
		case errors.Is(err, host.ErrNoMemory):
			d.stats.Short++
			ask = ask && c.process.Present(page, true)
		case err != nil:
			d.refuse(&m.fault) // what was asked for ends with DENIED
		}
		if m.plan.Then.Start < m.plan.Then.End {
			c.brought = append(c.brought, m.plan.Then)
			c.later = append(c.later, m.plan.Then)
		}
		m.plan = Plan{}
	}
	if ask {
		d.release() // with HUPCF 0 the block would otherwise meet the fault again
		c.tell(t, m)
	}
}

// has reports whether a page is there that the driver has brought in for
// another one.
func (c *client) has(page uint64) bool { return c.asked(page) && c.process.Present(page, true) }

// dealt reports whether a page was present or is present now.
func (c *client) dealt(addr uint64) bool { return c.asked(addr) || c.process.Present(addr, true) }

func (c *client) asked(addr uint64) bool {
	return slices.ContainsFunc(c.brought, func(r Range) bool { return r.has(addr) })
}
