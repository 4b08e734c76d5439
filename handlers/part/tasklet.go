//go:build !tinygo

package part

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
)

// Driver is the part of a node's kernel that handles page faults of its RDMA
// engine.
type Driver struct {
	part    *Part
	node    int
	smmu    *host.SMMUDriver
	spec    *host.OSSpec
	receive *host.Tasklet
	send    *host.Tasklet
	clients []*client
	turn    int                // of the client whose FIFO is next
	writes  []host.DeviceFault // for the receive tasklet: details are in the FIFO
	others  []host.DeviceFault // for the send tasklet: everything is in the registers
	stats   Stats
}

func newDriver(s *Part, node int, n *runtime.Node) *Driver {
	d := &Driver{part: s, node: node, smmu: n.Driver(), spec: n.Kernel().Spec()}
	d.receive = n.CPU().NewTasklet("PART receive", d.receives)
	d.send = n.CPU().NewTasklet("PART send", d.sends)
	d.smmu.Serve(d)
	return d
}

// Stats returns the counts.
func (d *Driver) Stats() Stats { return d.stats }

func (d *Driver) client(p *host.Process) *client {
	for _, c := range d.clients {
		if c.process == p {
			return c
		}
	}
	return nil
}

// Fault implements host.FaultHandler. It is the end of the interrupt handler.
// The receive tasklet also runs after a fault at a source, because a fault at a
// destination meanwhile is not in the registers (T §3.2.1).
func (d *Driver) Fault(t *host.Thread, f host.DeviceFault) {
	c := d.client(f.Process)
	if f.Write && !f.Stalled && c != nil {
		d.writes = append(d.writes, f)
	} else { // a stalled access, or an access of another library, is in no FIFO
		d.others = append(d.others, f)
		d.send.Schedule(t.Core())
	}
	if c != nil {
		if c.pending = true; c.flow == 0 {
			c.flow = f.Flow
		}
		d.receive.Schedule(t.Core())
	}
}

// sends is the send tasklet: it brings in the page in the registers.
func (d *Driver) sends(t *host.Thread) {
	d.stats.Sends++
	if len(d.others) > 0 {
		t.Follow(d.others[0].Flow)
	}
	t.CPU().Use(used.SMMUServed)
	t.Run(d.spec.FaultTasklet, "tasklet")
	for left := d.spec.Batch(); len(d.others) > 0; left-- {
		if left == 0 {
			d.send.Schedule(t.Core())
			break
		}
		f := d.others[0]
		d.others = append(d.others[:0], d.others[1:]...)
		t.Follow(f.Flow)
		d.serve(t, d.client(f.Process), &f)
	}
	if slices.ContainsFunc(d.clients, func(c *client) bool { return c.pending }) {
		d.receive.Schedule(t.Core()) // it has given way
	}
}

// serve handles a fault that only the SMMU knows. c is nil for a process
// without a page of channels.
func (d *Driver) serve(t *host.Thread, c *client, f *host.DeviceFault) {
	plan := d.plan(t, f.Process, f.Addr, !f.Write, Block{})
	if c != nil && d.part.options.Method == Touch && !f.Stalled {
		c.deliver(t, message{fault: *f, plan: plan})
		d.smmu.Resolved(f)
		return
	}
	switch err := d.bring(t, f.Process, plan.First, f.Write); {
	case errors.Is(err, host.ErrNoMemory): // the user of the page asks again
		d.stats.Short++
	case err != nil:
		d.stats.Refused++
		d.smmu.Refuse(f)
		if c != nil && !f.Write {
			c.tell(t, message{fault: *f, refused: true})
		}
		return
	}
	d.smmu.Resolved(f)
	_ = d.bring(t, f.Process, plan.Then, f.Write) // pages that nobody has asked for may stay absent
}

// receives is the receive tasklet. A run handles a batch of pages (P: the
// content of the FIFO at its beginning), in turn for the processes of the node.
// If there are more it schedules itself; otherwise one transfer would keep the
// core from its programs. It ends earlier if the send tasklet waits for its
// turn, and continues after it: without HUPCF, open faults at sources end the
// writes of blocks, which come again and again.
func (d *Driver) receives(t *host.Thread) {
	d.stats.Receives++
	before := d.stats.work()
	defer func() {
		if d.stats.work() == before {
			d.stats.Idle++
		}
	}()
	next := d.waiting()
	if next != nil {
		t.Follow(next.flow)
	}
	t.CPU().Use(used.SMMUServed)
	t.Run(d.spec.FaultTasklet, "tasklet")
	left := d.spec.Batch()
	for next = d.waiting(); next != nil && left > 0; next = d.waiting() {
		next.pending = false
		left = next.serve(t, left)
		d.turn++
		if len(d.others) > 0 {
			break
		}
	}
	d.release()
	// of another library of a process, or the FIFO was full
	for ; len(d.writes) > 0 && left > 0; left-- {
		f := d.writes[0]
		d.writes = append(d.writes[:0], d.writes[1:]...)
		d.serve(t, nil, &f)
	}
	if left == 0 && (d.waiting() != nil || len(d.writes) > 0) {
		d.receive.Schedule(t.Core())
	}
}

// work grows with each thing that a driver does.
func (s *Stats) work() int64 { return s.Entries + s.Ranges + s.Messages + s.Requests + s.Refused }

// waiting returns the next process whose FIFO may have entries; nil: none has.
func (d *Driver) waiting() *client {
	for range d.clients {
		if c := d.clients[d.turn%len(d.clients)]; c.pending {
			return c
		}
		d.turn++
	}
	return nil
}

// release lets the SMMU forget faults whose pages were handled.
func (d *Driver) release() {
	d.writes = slices.DeleteFunc(d.writes, func(f host.DeviceFault) bool {
		if !d.client(f.Process).dealt(f.Addr) && !d.smmu.Unresolvable(f.Process.Space(), f.Addr, true) {
			return false
		}
		d.smmu.Resolved(&f)
		return true
	})
}

// plan asks the policy. The answer is cut to the mapping of the address.
func (d *Driver) plan(t *host.Thread, p *host.Process, addr uint64, source bool, b Block) Plan {
	f := Fault{Page: addr &^ (host.PageBytes - 1), Source: source, Node: d.node, Process: p, Block: b, At: t.Now()}
	start, end, ok := p.Mapping(addr)
	if !ok {
		return Plan{First: Range{f.Page, f.Page + host.PageBytes}}
	}
	f.Mapping = Range{start, end}
	plan := d.part.options.Policy(f)
	if plan.Took > 0 {
		t.Run(plan.Took, "policy")
	}
	if plan.Search {
		t.CPU().Use(used.Search)
	}
	if plan.Search && d.spec.FaultSearch > 0 {
		t.Run(d.spec.FaultSearch, "tasklet")
	}
	plan.First, plan.Then = plan.First.within(f.Mapping), plan.Then.within(f.Mapping)
	if !plan.First.has(f.Page) {
		plan.First = Range{f.Page, f.Page + host.PageBytes}
	}
	return plan
}

// bring brings the pages of a range in.
func (d *Driver) bring(t *host.Thread, p *host.Process, r Range, write bool) error {
	if r.Start >= r.End {
		return nil
	}
	d.count(r)
	var pin host.Pin
	err := p.GetUserPages(t, r.Start, r.End-r.Start, write, &pin)
	pin.Put(t)
	return err
}

func (d *Driver) count(r Range) {
	d.stats.Ranges++
	d.stats.Pages += int64(r.End-r.Start) / host.PageBytes
}
