//go:build !tinygo

package rnr

import (
	"errors"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// kernel is the driver of a node's interface.
type kernel struct {
	library *Loaded
	smmu    *host.SMMUDriver
	spec    *host.OSSpec
	ends    map[*host.Process]bool
	stats   Stats
	found   sim.Time // when the interface last met an absent page of a process with connections
}

// Served has the times of a fault's steps (NPF'17, figure 3).
type Served struct {
	Type int // rnr.InitiatorWrite, …
	// the interface has met the page; correct if the node has no other fault
	// meanwhile
	Found     sim.Time
	Interrupt sim.Time // the firmware interrupts
	Begun     sim.Time // the kernel begins to serve it
	Addresses sim.Time // the pages are there
	Tables    sim.Time // and in the interface's tables
}

// Stats counts the work of a node's kernel.
type Stats struct {
	Interrupts int64
	Faults     int64 // reported by the firmware
	Pages      int64 // of ranges that were brought in
	Refused    int64 // pages that a process cannot have
	Short      int64 // ranges without enough memory
}

// Stats returns the counts of a node's kernel for its connections.
func (l *Loaded) Stats(node int) Stats {
	if k := l.nodes[node]; k != nil {
		return k.stats
	}
	return Stats{}
}

// faulting is the kernel's state of an end's faults.
type faulting struct {
	seen  [Types]uint64 // reports
	last  [Types]Fault
	times [Types]Served
	tasks [Types]*host.Tasklet // one may wait for storage while another works
}

// attach lets the kernel serve the faults of an end.
func (c *Conn) attach() {
	n := c.proc.Node()
	if n.Driver() == nil {
		return // all memory is present
	}
	l := c.library
	k := l.nodes[c.proc.Rank()]
	if k == nil {
		k = &kernel{library: l, smmu: n.Driver(), spec: n.Kernel().Spec(), ends: map[*host.Process]bool{}}
		k.smmu.Serve(k)
		l.nodes[c.proc.Rank()] = k
	}
	k.ends[c.proc.OS()] = true
	c.kernel = k
	for i := range c.fault.tasks {
		c.fault.tasks[i] = n.CPU().NewTasklet("NPF", func(t *host.Thread) { c.resolve(t, i) })
	}
	c.ni.Interrupt(c.faults, n.CPU().RequestIRQ(k.spec.InterruptCore, "NPF", c.interrupt))
}

// delay makes a part of a fault take longer.
func (l *Loaded) delay(t *host.Thread, part Part, pages int) {
	if l.o.Delay != nil {
		t.Run(l.o.Delay(part, pages), "delay")
	}
}

// Fault implements host.FaultHandler. For connections it does nothing, because
// their firmware reports faults: the NIC's translation unit has no interrupt of
// its own. Other processes get their page.
func (k *kernel) Fault(t *host.Thread, f host.DeviceFault) {
	if k.ends[f.Process] && !f.Stalled {
		k.found = t.Now() - k.spec.Interrupt - k.spec.FaultInterrupt
		k.smmu.Resolved(&f)
		return
	}
	k.smmu.PageIn(t, f)
}

// interrupt is the interrupt handler: it reads the firmware's report.
func (c *Conn) interrupt(t *host.Thread) {
	c.kernel.stats.Interrupts++
	t.CPU().Use(used.SMMUInterrupt)
	c.library.delay(t, PartFirmware, 0)
	raised := t.Now() - c.kernel.spec.Interrupt
	c.library.delay(t, PartHandler, 0)
	all := c.host.Snapshot()[FaultsAt:]
	for i := range c.fault.last {
		f := &c.fault.last[i]
		if spin.DecodeState(all[i*FaultSize:][:FaultSize], f) == nil && f.Count != c.fault.seen[i] {
			c.fault.seen[i] = f.Count
			c.fault.times[i] = Served{Type: i, Found: c.kernel.found, Interrupt: raised}
			c.fault.tasks[i].Schedule(t.Core())
		}
	}
}

// resolve brings in the memory that a request needs, from the absent page on,
// and lets the request continue. It tells the hardware first, then the
// firmware, which may report the next fault of the type.
func (c *Conn) resolve(t *host.Thread, kind int) {
	k, f := c.kernel, c.fault.last[kind]
	k.stats.Faults++
	times := &c.fault.times[kind]
	times.Begun = t.Now()
	write := kind == ResponderWrite || kind == InitiatorRead
	for i, r := range c.ranges(&f) {
		err := k.pages(t, c.proc.OS(), r, write)
		switch {
		case errors.Is(err, host.ErrNoMemory): // the missing pages fault again
			k.stats.Short++
		case errors.Is(err, errRest): // nobody has asked for the rest yet: it faults when somebody does
		case err != nil && i == 0:
			k.stats.Refused++
			k.smmu.Deny(c.proc.OS(), f.Address, write)
		}
		if err != nil {
			break
		}
	}
	times.Addresses = t.Now()
	t.CPU().Use(used.SMMUServed)
	t.Run(k.spec.FaultTasklet, "tables of the NIC")
	times.Tables = t.Now()
	c.say(t, c.pt, uint64(kind))
	if c.library.o.Served != nil {
		c.library.o.Served(c.proc.Rank(), times)
	}
	if !c.library.o.OnePage {
		c.say(t, c.pt+1, uint64(kind))
	}
}

// pages brings the pages of a range in. The first comes by itself, so that it
// is refused only if the process cannot have it.
func (k *kernel) pages(t *host.Thread, p *host.Process, r Range, write bool) error {
	k.stats.Pages += int64((r.Address+r.Length-1)/host.PageBytes-r.Address/host.PageBytes) + 1
	var pin host.Pin
	err := p.GetUserPages(t, r.Address, r.Length, write, &pin)
	pages := pin.Pages()
	pin.Put(t)
	k.library.delay(t, PartAddresses, pages)
	if err != nil && pages > 0 && !errors.Is(err, host.ErrNoMemory) {
		return errRest
	}
	return err
}

// errRest is the error for a range whose first page was brought in, but not all
// others.
var errRest = errors.New("a part of it cannot be had")

// ranges returns the memory that a fault needs: the page, or everything that
// the work request, or the other end's, still needs.
func (c *Conn) ranges(f *Fault) []Range {
	if c.library.o.OnePage {
		return []Range{{Address: f.Address &^ (host.PageBytes - 1), Length: host.PageBytes}}
	}
	if f.Work == 0 {
		return []Range{{Address: f.Address, Length: max(1, f.Length)}}
	}
	w := &c.sends[(f.Work-1)%MaxWork]
	if f.Type == ResponderWrite {
		w = &c.recvs[(f.Work-1)%MaxWork]
	}
	var list []Range
	for i := range w.List[:w.Ranges] {
		r := w.List[i]
		switch {
		case r.Length == 0, len(list) == 0 && f.Address-r.Address >= r.Length: // before it
		case len(list) == 0:
			list = append(list, Range{Address: f.Address, Length: r.Address + r.Length - f.Address})
		default:
			list = append(list, r)
		}
	}
	return list
}

// say sends the device a message, unless the process has ended.
func (c *Conn) say(t *host.Thread, pt uint32, kind uint64) {
	_ = c.ni.By(t).Put(portals.Put{MD: c.md, Length: 8, Target: c.self, PT: pt, MatchBits: KindResume, HdrData: kind})
}

// Proc returns the process of an end.
func (c *Conn) Proc() *runtime.Proc { return c.proc }
