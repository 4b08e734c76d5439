package exanet

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Outbox sends messages for a program that does not wait for each. A message
// goes out when a channel becomes free, in the order of Post. Messages of
// different channels may arrive in another order. While a mailbox is full the
// outbox resends. The program calls Act whenever something may have happened,
// and waits with Await. An interface has at most one outbox, which owns all its
// channels.
type Outbox struct {
	i        *Interface
	queue    []posted
	channels [Channels]struct {
		tag     uint64
		to      Address
		refused int      // how often it was refused, in a row
		again   sim.Time // do not resend before this time
	}
	seen    uint64 // answers that the outbox has handled
	dropped func(tag uint64, to Address, err error)
}

// posted is a message that waits for a channel.
type posted struct {
	to      Address
	tag     uint64
	length  int
	payload [MaxPayload]byte
}

// Outbox makes the outbox of an interface. It calls dropped for each message
// that will not be delivered, with the tag given to Post. The error is
// ErrForeign, ErrTimedOut (it may have been delivered), ErrIllegal, ErrLeft or
// ErrNoSpace.
func (i *Interface) Outbox(dropped func(tag uint64, to Address, err error)) *Outbox {
	return &Outbox{i: i, dropped: dropped}
}

// Post copies a message of up to 64 bytes and sends it as soon as there is a
// channel. It costs one Launch, now or in a later Act.
func (o *Outbox) Post(to Address, payload []byte, tag uint64) error {
	p := posted{to: to, tag: tag, length: len(payload)}
	if len(payload) <= MaxPayload { // otherwise Launch returns the error
		copy(p.payload[:], payload)
		if _, free := o.i.Free(); !free || len(o.queue) > 0 {
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

// Act handles one event, if there is any: answers, a message to resend, or a
// free channel.
func (o *Outbox) Act() (acted bool, err error) {
	if v, err := o.i.ni.Objects().CTGet(o.i.changed); err != nil {
		return false, err
	} else if o.ongoing() && v.Success > o.seen {
		o.seen = v.Success
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

func (o *Outbox) ongoing() bool { return slices.Contains(o.i.state[:], Ongoing) }

// look loads the states of the channels, and handles refused messages.
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

// Idle reports whether every message was delivered or dropped, as of the
// program's last look.
func (o *Outbox) Idle() bool {
	return len(o.queue) == 0 && !o.ongoing() && !slices.Contains(o.i.state[:], Refused)
}

// Await waits until the mailbox has a message, until the outbox has work, until
// one of further NI counters reaches its test, or until the time-out
// (runtime.Forever: none). It takes no time to find the cause: the code that
// acts looks.
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

// pause returns the time until the next resend, at most timeout.
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
