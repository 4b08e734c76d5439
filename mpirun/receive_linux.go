package mpirun

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/mpi"
)

// Receives that are more than one message into one buffer: what is looked for,
// claimed, withdrawn or several.

// peek looks for a message, and may claim it: then it is received at once, into
// a buffer.
func (k *rank) peek(p *post) error {
	s, found, err := k.r.Probe(int(p.peer), tagOf(p.endpoint, p.tag, p.flags), p.ignore)
	switch {
	case err != nil:
		return err
	case !found:
		k.r.Looked()
		k.push(done{context: p.context, flags: flagReceive | flagTagged, err: errNoMessage, endpoint: p.endpoint})
		return nil
	}
	d := k.described(p.context, s)
	if err := p.aimed(d); err != nil {
		return err
	}
	d.endpoint = p.endpoint
	k.push(d)
	if p.flags&(postClaim|postDiscard) == 0 {
		return nil
	}
	own := *p
	own.kind, own.peer, own.tag, own.ignore, own.length = postReceive, int32(s.Source), d.tag, 0, uint64(s.Bytes)
	if p.flags&postDiscard != 0 { // the peek's completion is the only one
		own.flags |= postQuiet
	}
	if err := k.start(&own, true); err != nil {
		return err
	}
	if p.flags&postDiscard != 0 {
		return nil
	}
	for i := range k.flights {
		if f := &k.flights[i]; f.of != nil && f.context == p.context {
			f.claimed, f.status = true, s
		}
	}
	return nil
}

// aimed reports whether a message is from the endpoint that a receive names: on the
// network a receive compares ranks alone.
func (p *post) aimed(d done) error {
	if p.peer < 0 || p.peerEndpoint == d.sourceEndpoint {
		return nil
	}
	return fmt.Errorf("a receive from endpoint %d of rank %d has found a message of its endpoint %d first, which is not supported", p.peerEndpoint, p.peer, d.sourceEndpoint)
}

// claim receives the message that a peek with the same context has found.
func (k *rank) claim(p *post) error {
	for i := range k.flights {
		f := &k.flights[i]
		if !f.claimed || f.context != p.context {
			continue
		}
		here := f.of == nil
		f.post, f.claimed = *p, false
		if f.status.Bytes > int(p.length) && p.flags&postDiscard == 0 {
			return fmt.Errorf("message of %d B from rank %d is %w of %d B", f.status.Bytes, f.status.Source, mpi.ErrTruncate, p.length)
		}
		if here {
			return k.deliver(i)
		}
		return nil // settle does it
	}
	return errors.New("a receive of a message that no peek has claimed")
}

// cancel withdraws the receive with a context, and says whether it did. A quiet
// one withdraws all receives of an endpoint, which has ended.
func (k *rank) cancel(p *post) error {
	k.arg = 0
	all := p.flags&postQuiet != 0
	n := len(k.later)
	k.later = slices.DeleteFunc(k.later, func(f post) bool { return f.endpoint == p.endpoint && (all || f.context == p.context) })
	if len(k.later) < n && !all {
		k.push(done{context: p.context, flags: flagReceive | flagMessage, err: errCanceled, endpoint: p.endpoint})
		k.arg = 1
		return nil
	}
	for i := range k.flights {
		f := &k.flights[i]
		if f.of == nil || f.kind != postReceive || f.endpoint != p.endpoint || !all && f.context != p.context {
			continue
		}
		gone, err := k.r.Cancel(f.of)
		if gone {
			if !all {
				k.push(done{context: f.context, flags: flagReceive | flagTagged, err: errCanceled, endpoint: f.endpoint})
			}
			k.end(i)
			k.arg = 1
		}
		if err != nil || !all {
			return err
		}
	}
	return nil
}

// several starts a receive of several messages, behind those of its endpoint that
// still have room: one buffer is full before the next one begins.
func (k *rank) several(p *post) error {
	for i := range k.flights {
		if f := &k.flights[i]; f.of != nil && f.kind == postReceive && f.flags&postMulti != 0 && f.endpoint == p.endpoint {
			k.later = append(k.later, *p)
			return nil
		}
	}
	return k.start(p, false)
}

// emptied starts the next receive of several messages of an endpoint, if any.
func (k *rank) emptied(endpoint uint16) error {
	i := slices.IndexFunc(k.later, func(p post) bool { return p.endpoint == endpoint })
	if i < 0 {
		return nil
	}
	p := k.later[i]
	k.later = slices.Delete(k.later, i, i+1)
	return k.start(&p, false)
}

// refill goes on with a receive of several messages.
func (k *rank) refill(number int) error {
	f := &k.flights[number]
	v := f.view.Slice(int(f.filled), f.view.Len())
	q, err := k.r.Receive(v, int(f.peer), tagOf(f.endpoint, f.tag, f.flags), f.ignore)
	if err != nil {
		return err
	}
	q.User, f.of = number, q
	return nil
}
