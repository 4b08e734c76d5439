package exanet

import (
	"errors"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Outbox sends messages of a program that does not wait for each: they go by
// the channels as these become free, in the order of Post as far as channels
// keep it, and again while a mailbox is full. The program calls Act whenever
// something may have happened, and waits with Await. An interface has one
// outbox or none, and its channels are the outbox's.
type Outbox struct {
	i        *Interface
	queue    []posted
	channels [Channels]struct {
		tag     uint64
		to      Address
		refused int      // how often it was, in a row
		again   sim.Time // not before it is sent again
	}
	seen    uint64 // answers that the program has looked after
	dropped func(tag uint64, to Address, err error)
}

// posted is a message that waits for a channel.
type posted struct {
	to      Address
	tag     uint64
	length  int
	payload [MaxPayload]byte
}

// Outbox makes the outbox of an interface. dropped is told of each message that
// will not be delivered, with the tag given to Post: ErrForeign, ErrTimedOut
// (it may have been delivered), ErrIllegal, ErrLeft or ErrNoSpace.
func (i *Interface) Outbox(dropped func(tag uint64, to Address, err error)) *Outbox {
	return &Outbox{i: i, dropped: dropped}
}

// Post sends a message of up to 64 bytes, of which it makes a copy, as soon as
// there is a channel. What it takes is that of Launch, now or in a later Act.
func (o *Outbox) Post(to Address, payload []byte, tag uint64) error {
	p := posted{to: to, tag: tag, length: len(payload)}
	if len(payload) <= MaxPayload { // otherwise Launch says so
		copy(p.payload[:], payload)
		if len(o.queue) > 0 {
			o.queue = append(o.queue, p)
			return nil
		}
		if _, free := o.i.Free(); !free {
			o.queue = append(o.queue, p)
			return nil
		}
	}
	return o.launch(&p, payload)
}

func (o *Outbox) launch(p *posted, payload []byte) error {
	c, _ := o.i.Free()
	if err := o.i.Launch(c, p.to, payload); err != nil {
		return err
	}
	ch := &o.channels[c]
	ch.tag, ch.to, ch.refused = p.tag, p.to, 0
	return nil
}

// Act deals with one thing that has happened, if there is any: answers,
// messages to be sent again, channels that have become free.
func (o *Outbox) Act() (acted bool, err error) {
	if n, err := o.answered(); err != nil {
		return false, err
	} else if o.ongoing() && n > o.seen {
		o.seen = n
		o.look()
		return true, nil
	}
	for c := range o.channels {
		if o.i.state[c] == Refused && o.i.proc.Now() >= o.channels[c].again {
			return true, o.i.Again(c)
		}
	}
	if _, free := o.i.Free(); free && len(o.queue) > 0 {
		p := o.queue[0]
		o.queue = o.queue[:copy(o.queue, o.queue[1:])]
		return true, o.launch(&p, p.payload[:p.length])
	}
	return false, nil
}

func (o *Outbox) answered() (uint64, error) {
	v, err := o.i.ni.Objects().CTGet(o.i.changed)
	return v.Success, err
}

func (o *Outbox) ongoing() bool {
	for _, s := range o.i.state {
		if s == Ongoing {
			return true
		}
	}
	return false
}

// look loads the states of the channels, and deals with those of messages that were refused.
func (o *Outbox) look() {
	before := o.i.state
	o.i.Look()
	for c := range before {
		if before[c] != Ongoing || o.i.state[c] == Ongoing {
			continue
		}
		ch := &o.channels[c]
		switch err := o.i.Reason(c); {
		case err == nil:
		case errors.Is(err, ErrFull):
			ch.refused++
			ch.again = o.i.proc.Now() + o.i.Pause(ch.refused)
		default:
			o.i.Forget(c)
			o.dropped(ch.tag, ch.to, err)
		}
	}
}

// Idle reports that every message was delivered or dropped, as far as the program knows.
func (o *Outbox) Idle() bool {
	if len(o.queue) > 0 {
		return false
	}
	for _, s := range o.i.state {
		if s == Ongoing || s == Refused {
			return false
		}
	}
	return true
}

// Await waits until there is a message in the mailbox, until the outbox has
// something to act on, until one of further counters of NI has reached its
// test, or for a time (runtime.Forever: without end). A look at what it was
// takes no time here: whoever acts looks.
func (o *Outbox) Await(cts []portals.Handle, tests []uint64, timeout sim.Time) error {
	i := o.i
	i.handles, i.tests = append(i.handles[:0], i.arrived), append(i.tests[:0], uint64(i.head)+1)
	if o.ongoing() {
		i.handles, i.tests = append(i.handles, i.changed), append(i.tests, o.seen+1)
	}
	i.handles, i.tests = append(i.handles, cts...), append(i.tests, tests...)
	_, _, err := i.ni.CTPollAt(i.handles, i.tests, o.pause(timeout), 0)
	if errors.Is(err, portals.ErrCTNoneReached) {
		return nil
	}
	return err
}

// pause is how long it takes until a message is to be sent again, but not longer than timeout.
func (o *Outbox) pause(timeout sim.Time) sim.Time {
	for c := range o.channels {
		if o.i.state[c] == Refused {
			if left := max(0, o.channels[c].again-o.i.proc.Now()); timeout == runtime.Forever || left < timeout {
				timeout = left
			}
		}
	}
	return timeout
}
