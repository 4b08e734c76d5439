package mpi

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/runtime"
)

// Operation is a message or a collective operation with its arguments, for
// Comm.Do, Comm.Start and Comm.Prepare: [Send], [Recv], [Barrier], [Bcast],
// [Scatter] and so on. The methods of Comm with the same names are short for
// the usual ones.
type Operation interface {
	// begin checks the arguments. A message is then under way; a collective
	// operation has not begun.
	begin(c *Comm) (running, error)
}

// running is an operation whose arguments were checked.
type running interface {
	wait() error                  // until it is complete
	asRequest() (*Request, error) // instead of wait
}

// underWay is a message under way.
type underWay struct {
	r *Rank
	q *Request
}

func (m underWay) wait() error {
	_, err := m.r.Wait(m.q)
	return err
}

func (m underWay) asRequest() (*Request, error) { return m.q, nil }

// Do makes an operation and returns when it is complete.
func (c *Comm) Do(o Operation) error {
	if o == nil {
		return errNothing
	}
	return blocking(o.begin(c))
}

var errNothing = errors.New("mpi: no operation")

// Start starts an operation. A collective operation makes progress while the
// program is in a call that waits or tests.
func (c *Comm) Start(o Operation) (*Request, error) {
	if o == nil {
		return nil, errNothing
	}
	run, err := o.begin(c)
	if err != nil {
		return nil, err
	}
	return run.asRequest()
}

// Persistent is an operation with stored arguments (MPI 4.1 §3.9). Each Start is
// one operation, with a request to wait for like any other.
type Persistent struct {
	c      *Comm
	o      Operation
	active bool
}

// Prepare stores an operation. The arguments of messages are checked at once,
// those of collective operations at each Start.
func (c *Comm) Prepare(o Operation) (*Persistent, error) {
	if o == nil {
		return nil, errNothing
	}
	var err error
	if m, is := o.(interface{ check(c *Comm) error }); is {
		err = m.check(c)
	}
	return &Persistent{c: c, o: o}, err
}

// Start starts the operation. Its previous request must have been given back.
func (p *Persistent) Start() (*Request, error) {
	if p == nil {
		return nil, errNothing
	}
	if p.active {
		return nil, fmt.Errorf("mpi: rank %d: a persistent operation on %s is started while it is active", p.c.r.rank, p.c.name)
	}
	q, err := p.c.Start(p.o)
	if err != nil {
		return nil, err
	}
	q.persistent, p.active = p, true
	return q, nil
}

// StartAll starts the operations in order and appends their requests to qs.
func StartAll(qs []*Request, ps ...*Persistent) ([]*Request, error) {
	for _, p := range ps {
		q, err := p.Start()
		if err != nil {
			return qs, err
		}
		qs = append(qs, q)
	}
	return qs, nil
}

// Send sends a message to a rank. Its data must not change until the request is
// complete. A message of at most Options.Eager bytes is eager; a longer one
// waits for its receive. Elements that are not in one piece are packed by the
// process's core before Start returns, so the program may change them then.
type Send struct {
	Data Data
	To   int // a rank, or ProcNull
	Tag  uint32
	Mode SendMode
}

// SendMode is when a send is complete.
type SendMode uint8

const (
	// Standard: when its memory may be used again.
	Standard SendMode = iota
	// Synchronous: when the message has a receive.
	Synchronous
	// Ready: as Standard, with the program's promise that the receive is
	// posted. As in MPICH, this gains nothing.
	Ready
	// Buffered: at once. The process's core copies the bytes into the attached
	// buffer. It is an error if that has no room (MPI_ERR_BUFFER).
	Buffered
)

var sendNames = [...]string{Standard: "send", Synchronous: "synchronous send", Ready: "ready send", Buffered: "buffered send"}

// check checks a message that is sent later.
func (o Send) check(c *Comm) error {
	if err := o.Mode.check(c); err != nil {
		return err
	}
	return c.checked("persistent send", o.Data, o.To, 0, o.Tag, false)
}

func (m SendMode) check(c *Comm) error {
	if int(m) >= len(sendNames) {
		return fmt.Errorf("mpi: rank %d: send of mode %d, expected Standard, Synchronous, Ready or Buffered", c.r.rank, m)
	}
	return nil
}

func (o Send) begin(c *Comm) (running, error) {
	q, err := o.start(c)
	return underWay{c.r, q}, err
}

func (o Send) start(c *Comm) (q *Request, err error) {
	if err := o.Mode.check(c); err != nil {
		return nil, err
	}
	what := sendNames[o.Mode]
	m := mode{synchronous: o.Mode == Synchronous}
	if o.Data.Type == nil {
		if err := o.Data.plain(); err != nil {
			return nil, fmt.Errorf("mpi: rank %d: %s: %w", c.r.rank, what, err)
		}
		if o.Mode == Buffered {
			return o.buffered(c)
		}
		return c.r.isend(c, what, o.Data.Memory, o.To, o.Tag, m)
	}
	what = "typed " + what
	t, err := c.elements(what, o.Data, o.To, 0, o.Tag, false)
	switch {
	case err != nil:
		return nil, err
	case o.Mode == Buffered:
		return nil, fmt.Errorf("mpi: rank %d: %s: expected bytes in one piece, without a Type", c.r.rank, what)
	case o.To == ProcNull:
		return c.r.requests.nobody(), nil
	case t.whole:
		return c.r.isend(c, what, t.memory, o.To, o.Tag, m)
	}
	if t.packed, err = c.r.temporary.get(c.r, t.size); err != nil {
		return nil, err
	}
	t.pack(c.r)
	m.typed = t
	return c.r.startSend(t.packed.Slice(0, t.size), c.Translate(o.To), envelope{source: c.r.rank, tag: o.Tag, context: c.point()}, m)
}

// Recv receives a message. A longer one is an error that ends the run,
// ErrTruncate. A message may be shorter, and may end within an element
// (Status.Count). The sender may use another type with the same number of
// bytes. As in MPI, nothing checks that it has the same basic types in the same
// order. No byte of memory may belong to two elements.
//
// With Offload the NIC unpacks elements that are not in one piece (package
// handlers/datatype). A message of up to Options.Eager bytes is unpacked while
// it arrives, into the receive's match entry. The receiver gets the data of a
// longer message, and then unpacks it with a message to itself. The process's
// core unpacks in all other cases: with Host, when the message came before its
// receive, and when the type does not fit into HPU memory. Stats counts both.
type Recv struct {
	Data Data
	From int    // a rank, AnySource or ProcNull
	Tag  uint32 // or AnyTag
}

// check checks a message that is received later.
func (o Recv) check(c *Comm) error {
	return c.checked("persistent receive", o.Data, o.From, AnySource, o.Tag, true)
}

func (o Recv) begin(c *Comm) (running, error) {
	q, err := o.start(c)
	return underWay{c.r, q}, err
}

func (o Recv) start(c *Comm) (q *Request, err error) {
	if o.Data.Type == nil {
		if err := o.Data.plain(); err != nil {
			return nil, fmt.Errorf("mpi: rank %d: receive: %w", c.r.rank, err)
		}
		return c.Irecv(o.Data.Memory, o.From, o.Tag)
	}
	t, err := c.elements("typed receive", o.Data, o.From, AnySource, o.Tag, true)
	if err != nil {
		return nil, err
	}
	if o.From == ProcNull || t.whole {
		return c.Irecv(t.memory, o.From, o.Tag)
	}
	if t.packed, err = c.r.temporary.get(c.r, t.size); err != nil {
		return nil, err
	}
	q = c.r.requests.add()
	q.receives, q.addr, q.length, q.comm, q.typed = true, t.packed.Addr(), t.size, c, t
	q.env = envelope{source: c.Translate(o.From), tag: o.Tag, context: c.point()}
	if err := c.r.transport.receive(q); err != nil {
		return nil, err
	}
	return q, nil
}

// Isend starts to send the bytes of v, memory from Rank.Alloc: see Send.
func (c *Comm) Isend(v runtime.View, target int, tag uint32) (*Request, error) {
	return c.r.isend(c, sendNames[Standard], v, target, tag, mode{})
}

func (r *Rank) isend(c *Comm, what string, v runtime.View, target int, tag uint32, m mode) (*Request, error) {
	if err := c.message(what, v.Len(), target, 0, tag, false); err != nil {
		return nil, err
	}
	if target == ProcNull {
		return r.requests.nobody(), nil
	}
	if err := r.own(v); err != nil {
		return nil, err
	}
	return r.startSend(v, c.Translate(target), envelope{source: r.rank, tag: tag, context: c.point()}, m)
}

// Irecv starts to receive a message into v, memory from Rank.Alloc. source may
// be AnySource, tag AnyTag.
func (c *Comm) Irecv(v runtime.View, source int, tag uint32) (*Request, error) {
	if err := c.message("receive", v.Len(), source, AnySource, tag, true); err != nil {
		return nil, err
	}
	if source == ProcNull {
		q := c.r.requests.nobody()
		q.receives, q.status = true, Status{Source: ProcNull, Tag: AnyTag}
		return q, nil
	}
	if err := c.r.own(v); err != nil {
		return nil, err
	}
	return c.r.startReceive(v, c, envelope{source: c.Translate(source), tag: tag, context: c.point()}, nil)
}

// Send is Isend and Wait.
func (c *Comm) Send(v runtime.View, target int, tag uint32) error {
	q, err := c.Isend(v, target, tag)
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
	if overlap(send, receive) {
		return Status{}, fmt.Errorf("mpi: rank %d: sendrecv: %d B at %#x and %d B at %#x overlap", c.r.rank, send.Len(), send.Addr(), receive.Len(), receive.Addr())
	}
	in, err := c.Irecv(receive, source, receiveTag)
	if err != nil {
		return Status{}, err
	}
	out, err := c.Isend(send, target, sendTag)
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
	if err := c.message("sendrecv", v.Len(), target, 0, sendTag, false); err != nil {
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
