//go:build !tinygo

package part

import (
	"errors"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
)

// message is a message of the kernel to a process, by netlink, or to itself.
type message struct {
	block   FaultRecord      // to ask for
	more    []FaultRecord    // likewise, with the same message
	ask     bool             // ask for block
	fault   host.DeviceFault // the page
	plan    Plan             // to touch
	refused bool             // the page must be sent, and the process cannot have it
}

// tell has a message carried out, by the kernel if it can.
func (c *client) tell(t *host.Thread, m message) {
	if c.process.Gone() { // nobody would read it
		return
	}
	if c.driver.part.options.Method == InKernel {
		c.act(t, &m)
		return
	}
	c.deliver(t, m)
}

// deliver sends the process a message. A message without room is lost (T:
// netlink may drop messages); then the block's time-out repeats it.
func (c *client) deliver(t *host.Thread, m message) {
	d := c.driver
	d.stats.Messages++
	t.CPU().Use(used.Netlink)
	t.Run(d.spec.NetlinkSend, "netlink")
	if len(c.inbox) >= d.spec.NetlinkQueue {
		d.stats.Dropped++
		return
	}
	c.inbox = append(c.inbox, m)
	c.thread.Wake()
}

// behind is a range that a policy wants after its answer to a fault, to touch
// in the same way.
type behind struct {
	Range
	write bool
}

// await waits for a message: busily, or asleep (ResolveSpec.NetlinkWake).
func (c *client) await(t *host.Thread) {
	t.Spin("a netlink message")
	t.CPU().Use(used.Listener)
	if wake := c.driver.spec.NetlinkWake; wake > 0 {
		t.Run(wake, "context switch")
	}
}

// listen is the thread of the process that waits for messages (T §3.2.1).
func (c *client) listen(t *host.Thread) {
	var later []behind
	for {
		for len(c.inbox) == 0 {
			if len(later) == 0 {
				c.await(t)
				continue
			}
			r := &later[0]
			piece := Range{r.Start, min(r.End, r.Start+aheadPages*host.PageBytes)}
			r.Start = piece.End
			// a piece that nobody has asked for may stay absent
			if c.touch(t, piece, r.write) != nil || r.Start >= r.End {
				later = append(later[:0], later[1:]...)
			}
		}
		m := c.inbox[0]
		c.inbox = append(c.inbox[:0], c.inbox[1:]...)
		t.Follow(m.fault.Flow)
		t.CPU().Use(used.Netlink)
		t.Run(c.driver.spec.NetlinkReceive, "netlink message")
		switch err := c.touch(t, m.plan.First, m.fault.Write); {
		case errors.Is(err, host.ErrNoMemory):
			c.driver.stats.Short++
			m.ask = m.ask && c.process.Present(m.fault.Addr, true)
		case err != nil: // T: SIGSEGV, which the library catches
			c.driver.refuse(&m.fault)
			m.refused = !m.fault.Write
		}
		c.act(t, &m)
		if m.plan.Then.Start < m.plan.Then.End {
			later = append(later, behind{m.plan.Then, m.fault.Write})
		}
	}
}

// act sends the request of a message. It may get lost on the way, like all
// messages of the device.
func (c *client) act(t *host.Thread, m *message) {
	var err error
	switch {
	case m.refused:
		err = c.queue.Unreadable(t, m.fault.Addr&^(host.PageBytes-1))
	case m.ask:
		c.driver.stats.Requests++
		err = c.queue.Resume(t, &m.block)
		for i := range m.more {
			c.driver.stats.Requests++
			err = errors.Join(err, c.queue.Resume(t, &m.more[i]))
		}
	}
	// the interface or the process is gone: the block ends by its time-out, or
	// with DENIED when it comes again
	if err != nil && m.ask {
		c.driver.stats.Requests -= 1 + int64(len(m.more))
	}
}

// touch reads or writes a byte of each page of a range.
func (c *client) touch(t *host.Thread, r Range, write bool) error {
	if r.Start >= r.End {
		return nil
	}
	c.driver.count(r)
	t.CPU().Use(used.Touch)
	if write && c.driver.spec.FaultTouch == host.TouchRead {
		if err := c.process.Populate(t, r.Start, r.End-r.Start, false); err != nil {
			return err
		}
	}
	return c.process.Populate(t, r.Start, r.End-r.Start, write)
}

// refuse ends transfers that use a page that the process cannot have with
// DENIED.
func (d *Driver) refuse(f *host.DeviceFault) {
	d.stats.Refused++
	d.smmu.Deny(f.Process, f.Addr, f.Write)
}
