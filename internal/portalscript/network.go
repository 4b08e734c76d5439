package portalscript

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// fail reads a fail type.
func (c *command) fail(def portals.FailType) (portals.FailType, error) {
	s, ok := c.Arg("fail")
	if !ok {
		return def, nil
	}
	i, known := lookup(portals.FailNames, s)
	if !known {
		return 0, c.Errorf("fail %q, want one of %s", s, strings.Join(portals.FailNames, " "))
	}
	return portals.FailType(i), nil
}

// cmdSend moves operations from the outbox into the network: one, or all with
// "all". With fail= the delivery fails; with late= its source memory stays in
// use until "sent".
func cmdSend(w *world, c *command, f *iface) error {
	fail, err := c.fail(portals.NIOK)
	if err != nil {
		return err
	}
	all := len(c.pos) == 1 && c.pos[0] == "all"
	if len(c.pos) == 1 && !all {
		return c.Errorf("%q, want all or nothing", c.pos[0])
	}
	for n := 0; ; n++ {
		op := f.port.NextOp()
		if op == nil {
			if n == 0 {
				return w.printf("%d: nothing to send", c.proc)
			}
			return nil
		}
		if err := w.sendOne(c, f, op, fail); err != nil || !all {
			return err
		}
	}
}

func (w *world) sendOne(c *command, f *iface, op *portals.Op, fail portals.FailType) error {
	if w.messages++; w.messages > maxMessages {
		return &Error{Line: w.line, Why: fmt.Sprintf("more than %d messages", maxMessages)}
	}
	if fail == portals.NIOK {
		fail = w.carry(f, op)
	}
	if name, late := c.Arg("late"); late {
		if f.late[name] != nil {
			return c.Errorf("operation %q is in use", name)
		}
		f.late[name] = op
		return nil
	}
	f.port.Sent(op, fail)
	f.port.Release(op)
	return nil
}

func cmdSent(w *world, c *command, f *iface) error {
	op := f.late[c.pos[0]]
	if op == nil {
		return c.Errorf("no operation is called %q", c.pos[0])
	}
	fail, err := c.fail(portals.NIOK)
	if err != nil {
		return err
	}
	delete(f.late, c.pos[0])
	f.port.Sent(op, fail)
	f.port.Release(op)
	return nil
}

// next takes the next message of a kind out of the inbox.
func (f *iface) next(request bool) (message, bool) {
	for i, m := range f.inbox {
		if isRequest := m.hdr.Kind < portals.OpAck; isRequest == request {
			f.inbox = append(f.inbox[:i:i], f.inbox[i+1:]...)
			return m, true
		}
	}
	return message{}, false
}

// cmdReceive matches the next request, or takes the next reply if there is
// none.
func cmdReceive(w *world, c *command, f *iface) error {
	name := c.pos[0]
	if f.open[name] != nil {
		return c.Errorf("delivery %q is in use", name)
	}
	m, ok := f.next(true)
	if !ok {
		for i, r := range f.inbox {
			if r.hdr.Kind == portals.OpReply {
				m, ok = r, true
				f.inbox = append(f.inbox[:i:i], f.inbox[i+1:]...)
				break
			}
		}
	}
	if !ok {
		return w.printf("%d: nothing to receive", c.proc)
	}
	var d *portals.Delivery
	if m.hdr.Kind == portals.OpReply {
		d = f.port.ReplyTo(&m.hdr)
	} else {
		d = f.port.Receive(&m.hdr)
	}
	f.open[name] = d
	f.data[d] = m.data
	if !d.Matched() {
		return w.printf("%d: %s: refused, %v", c.proc, name, d.Fail)
	}
	spin := ""
	if d.Spin != nil {
		spin = fmt.Sprintf(", handlers %d %d %d", d.Spin.Handlers.Header, d.Spin.Handlers.Payload, d.Spin.Handlers.Completion)
	}
	cookie := ""
	if d.Cookie() != 0 {
		cookie = fmt.Sprintf(", cookie %d", d.Cookie())
	}
	return w.printf("%d: %s: %v into %s (%v) at offset %d, %d of %d bytes%s%s", c.proc, name, m.hdr.Kind,
		f.nameOf(d.Handle()), d.List, d.Offset, d.MLength, d.Header.RLength, spin, cookie)
}

func (f *iface) delivery(c *command) (*portals.Delivery, error) {
	d := f.open[c.pos[0]]
	if d == nil {
		return nil, c.Errorf("no delivery is called %q", c.pos[0])
	}
	return d, nil
}

func cmdLand(w *world, c *command, f *iface) error {
	d, err := f.delivery(c)
	if err != nil {
		return err
	}
	data := f.data[d]
	off, err := c.num("off", 0)
	if err != nil {
		return err
	}
	n, err := c.num("n", uint64(len(data)))
	if err != nil {
		return err
	}
	if off > uint64(len(data)) {
		return c.Errorf("offset %d, the message has %d bytes", off, len(data))
	}
	if size := uint64(d.Header.Type.Size()); size > 0 && off%size != 0 {
		return c.Errorf("offset %d is no multiple of the datatype", off)
	}
	f.port.Write(d, off, data[off:][:min(n, uint64(len(data))-off)])
	return nil
}

func cmdFinish(w *world, c *command, f *iface) error {
	d, err := f.delivery(c)
	if err != nil {
		return err
	}
	o := d.Done()
	if o.Delivered, err = c.num("delivered", o.Delivered); err != nil {
		return err
	}
	if o.Fail, err = c.fail(o.Fail); err != nil {
		return err
	}
	_, o.Pending = c.Arg("pending")
	if !o.Pending {
		delete(f.open, c.pos[0])
		delete(f.data, d)
	}
	f.port.Finish(d, o)
	return nil
}

// cmdAcknowledge answers an open delivery before it is complete.
func cmdAcknowledge(w *world, c *command, f *iface) error {
	d, err := f.delivery(c)
	if err != nil {
		return err
	}
	fail, err := c.fail(portals.NIOK)
	if err != nil {
		return err
	}
	f.port.Acknowledge(d, fail)
	return nil
}

func cmdAnswer(w *world, c *command, f *iface) error {
	m, ok := f.next(false)
	if !ok {
		return w.printf("%d: nothing to answer", c.proc)
	}
	w.arrive(f, &m)
	return nil
}

// cmdDrop loses the next message on its way to the process. Its initiator
// learns that no answer will come.
func cmdDrop(w *world, c *command, f *iface) error {
	fail, err := c.fail(portals.NIUndeliverable)
	if err != nil {
		return err
	}
	m, ok := f.next(true)
	if !ok {
		return w.printf("%d: nothing to drop", c.proc)
	}
	m.from.port.Lost(&m.hdr, fail)
	return nil
}
