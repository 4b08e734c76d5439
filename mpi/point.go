package mpi

import (
	"github.com/spinsim/spinsim/runtime"
)

// Isend starts to send the bytes of v, memory from Rank.Alloc that must not
// change until the request is complete. A message of at most Options.Eager
// bytes is eager; a longer one waits for its receive.
func (c *Comm) Isend(v runtime.View, target int, tag uint32) (*Request, error) {
	return c.isend("send", v, target, tag, mode{})
}

// Issend is Isend, but completes only when the message has a receive.
func (c *Comm) Issend(v runtime.View, target int, tag uint32) (*Request, error) {
	return c.isend("synchronous send", v, target, tag, mode{synchronous: true})
}

// Irsend is Isend with the program's promise that the receive is posted. As in
// MPICH, this gains nothing.
func (c *Comm) Irsend(v runtime.View, target int, tag uint32) (*Request, error) {
	return c.isend("ready send", v, target, tag, mode{})
}

func (c *Comm) isend(what string, v runtime.View, target int, tag uint32, m mode) (*Request, error) {
	if err := c.message(what, v, target, 0, tag, false); err != nil {
		return nil, err
	}
	if target == ProcNull {
		return c.nobody(), nil
	}
	if err := c.r.own(v); err != nil {
		return nil, err
	}
	return c.r.startSend(v, c.Translate(target), envelope{source: c.r.rank, tag: tag, context: c.point()}, m)
}

// Irecv starts to receive a message into v, memory from Rank.Alloc. source may
// be AnySource, tag AnyTag. A longer message is an error that ends the run.
func (c *Comm) Irecv(v runtime.View, source int, tag uint32) (*Request, error) {
	if err := c.message("receive", v, source, AnySource, tag, true); err != nil {
		return nil, err
	}
	if source == ProcNull {
		q := c.nobody()
		q.receives, q.status = true, Status{Source: ProcNull, Tag: AnyTag}
		return q, nil
	}
	if err := c.r.own(v); err != nil {
		return nil, err
	}
	return c.r.startReceive(v, c, envelope{source: c.Translate(source), tag: tag, context: c.point()}, nil)
}

// nobody returns a completed request to or from ProcNull.
func (c *Comm) nobody() *Request {
	q := c.r.newRequest()
	c.r.complete(q)
	return q
}

// Send is Isend and Wait.
func (c *Comm) Send(v runtime.View, target int, tag uint32) error {
	return c.waited(c.Isend(v, target, tag))
}

// Ssend is Issend and Wait.
func (c *Comm) Ssend(v runtime.View, target int, tag uint32) error {
	return c.waited(c.Issend(v, target, tag))
}

// Rsend is Irsend and Wait.
func (c *Comm) Rsend(v runtime.View, target int, tag uint32) error {
	return c.waited(c.Irsend(v, target, tag))
}

func (c *Comm) waited(q *Request, err error) error {
	if err != nil {
		return err
	}
	_, err = c.r.Wait(q)
	return err
}

// Recv is Irecv and Wait.
func (c *Comm) Recv(v runtime.View, source int, tag uint32) (Status, error) {
	q, err := c.Irecv(v, source, tag)
	if err != nil {
		return Status{}, err
	}
	return c.r.Wait(q)
}

// Sendrecv sends and receives at the same time, to and from any ranks. The two
// views must not overlap.
func (c *Comm) Sendrecv(send runtime.View, target int, sendTag uint32, receive runtime.View, source int, receiveTag uint32) (Status, error) {
	if err := c.apart("sendrecv", send, receive); err != nil {
		return Status{}, err
	}
	in, err := c.Irecv(receive, source, receiveTag)
	return c.sendrecv(in, err, func() (*Request, error) { return c.Isend(send, target, sendTag) })
}

// sendrecv starts a send after a receive has started, and waits for both.
func (c *Comm) sendrecv(in *Request, err error, send func() (*Request, error)) (Status, error) {
	if err != nil {
		return Status{}, err
	}
	out, err := send()
	if err != nil {
		return Status{}, err
	}
	s, err := c.r.Wait(in)
	if err != nil {
		return Status{}, err
	}
	_, err = c.r.Wait(out)
	return s, err
}

// SendrecvReplace sends the bytes of v and receives into v. As in MPICH 3.2.1
// the core first copies the bytes to send.
func (c *Comm) SendrecvReplace(v runtime.View, target int, sendTag uint32, source int, receiveTag uint32) (Status, error) {
	if err := c.message("sendrecv", v, target, 0, sendTag, false); err != nil {
		return Status{}, err
	}
	if err := c.r.own(v); err != nil {
		return Status{}, err
	}
	kept, err := c.r.temporary.get(c.r, v.Len())
	if err != nil {
		return Status{}, err
	}
	defer c.r.temporary.put(kept)
	part := kept.Slice(0, v.Len())
	c.r.p.Copy(part, v)
	return c.Sendrecv(part, target, sendTag, v, source, receiveTag)
}

// Iprobe reports whether a message has come that a receive would take now, and
// returns its status. source and tag may be wildcards. Iprobe first handles
// everything that has arrived. If there is no message, at least one look at
// memory (host.poll) has passed, so a program may call Iprobe in a loop.
func (c *Comm) Iprobe(source int, tag uint32) (Status, bool, error) {
	if err := c.message("probe", runtime.View{}, source, AnySource, tag, true); err != nil {
		return Status{}, false, err
	}
	if source == ProcNull {
		return Status{Source: ProcNull, Tag: AnyTag}, true, nil
	}
	if err := c.r.arrived(); err != nil {
		return Status{}, false, err
	}
	s, found, err := c.probed(source, tag)
	if err == nil && !found {
		c.r.looked()
	}
	return s, found, err
}

func (c *Comm) probed(source int, tag uint32) (Status, bool, error) {
	s, found, err := c.r.transport.probe(envelope{source: c.Translate(source), tag: tag, context: c.point()})
	s.Source = c.rankOf(s.Source)
	return s, found, err
}

// Probe waits for a message that a receive would take, and returns its status.
// source and tag may be wildcards.
func (c *Comm) Probe(source int, tag uint32) (Status, error) {
	s, found, err := c.Iprobe(source, tag)
	c.r.call = "Probe"
	for err == nil && !found {
		if err = c.r.transport.awaitProbe(); err == nil {
			err = c.r.proceed()
		}
		if err == nil {
			s, found, err = c.probed(source, tag)
		}
	}
	c.r.call = ""
	return s, err
}
