//go:build !tinygo

package kv

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Client is a client of a store, with one request under way at a time.
type Client struct {
	o       Options
	p       *runtime.Proc
	ni      *runtime.NI
	servers []Address
	pt      uint32
	eq      portals.Handle
	answers runtime.View
	out     *outbox
	tag     uint64
	again   uint64
	remote  *reader // nil: servers answer
}

// tries is how often a client asks before it reports that a server is busy.
const tries = 100_000

// Dial gives a process a client. It takes no virtual time. The options must be
// the servers'.
func Dial(p *runtime.Proc, servers []Address, o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, errors.New("kv: no servers, expected at least one")
	}
	u := handlers.NewSetup("kv", p)
	c := &Client{o: o, p: p, ni: u.NI, servers: servers, answers: u.Locked(AnswerSize + o.MaxValue), out: newOutbox(u, p, 2, RequestSize+o.MaxKey+o.MaxValue)}
	c.eq = u.Queue(o.MaxValue/int(p.Cluster().Profile().Fabric.MTU)+8, "answers of the key-value store")
	c.pt = u.Table(portals.PTAny, c.eq, 0)
	u.Append(c.pt, portals.AnyID, c.answers, portals.ME{MatchBits: requestBits, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable})
	if o.Mode == OneSided {
		c.remote = newReader(u, c)
	}
	return c, u.Err
}

// Again returns how often servers have sent a request back, and how often a
// read by RDMA met a change and began again.
func (c *Client) Again() uint64 { return c.again }

// Get returns the value of a key, which is valid until the program next waits,
// and its version. ErrNotFound: there is none.
func (c *Client) Get(key []byte) (value []byte, version uint64, err error) {
	if c.remote != nil {
		return c.remote.get(key)
	}
	a, err := c.do(&Request{Op: Get, Room: uint64(c.o.MaxValue)}, key, nil)
	if err != nil {
		return nil, 0, err
	}
	return c.answers.Slice(AnswerSize, AnswerSize+int(a.Value)).Read(), a.Version, nil
}

// Put inserts a key, or replaces its value, and returns its new version.
// Versions of a key grow and are never 0.
func (c *Client) Put(key, value []byte) (version uint64, err error) {
	a, err := c.do(&Request{Op: Put}, key, value)
	return a.Version, err
}

// Delete removes a key, and returns its old version. ErrNotFound: there is
// none.
func (c *Client) Delete(key []byte) (version uint64, err error) {
	a, err := c.do(&Request{Op: Delete}, key, nil)
	return a.Version, err
}

// Swap replaces the value of a key if it has the given version, and returns the
// new version. Version 0: it inserts the key if there is none. Otherwise it
// returns a *ChangedError.
func (c *Client) Swap(key []byte, version uint64, value []byte) (uint64, error) {
	a, err := c.do(&Request{Op: Swap, Expect: version}, key, value)
	return a.Version, err
}

// server returns the server of a key, from bits of the hash that are not the
// first to choose a stripe or a bucket.
func (c *Client) server(hash uint64) int {
	high, _ := bits.Mul64(bits.ReverseBytes64(hash), uint64(len(c.servers)))
	return int(high)
}

func (c *Client) id(server int) portals.ID {
	return portals.PhysID(c.servers[server].NID, c.servers[server].PID)
}

// do sends a request until it is carried out.
func (c *Client) do(r *Request, key, value []byte) (a Answer, err error) {
	if err := c.keyFits(key); err != nil {
		return a, err
	}
	if len(value) > c.o.MaxValue {
		return a, fmt.Errorf("kv: a value of %d B, expected at most %d (MaxValue)", len(value), c.o.MaxValue)
	}
	to := c.id(c.server(Hash(key)))
	r.Key, r.Value, r.PT, r.Bits = uint32(len(key)), uint32(len(value)), c.pt, requestBits
	for range tries {
		c.tag = (c.tag + 1) & (1<<32 - 1)
		r.Tag = c.tag
		slot, b, err := c.out.take()
		if err != nil {
			return a, err
		}
		b.CopyFrom(encode(r))
		b.Slice(RequestSize, b.Len()).CopyFrom(key)
		b.Slice(RequestSize+len(key), b.Len()).CopyFrom(value)
		if err := c.out.send(slot, RequestSize+len(key)+len(value), to, uint32(c.o.PT+requestEntry), requestBits, 0); err != nil {
			return a, err
		}
		if a, err = c.await(); err != nil {
			return a, err
		}
		if a.Status != Again {
			return a, c.errorOf(&a)
		}
		c.again++
	}
	return a, ErrBusy
}

func (c *Client) keyFits(key []byte) error {
	if len(key) > c.o.MaxKey {
		return fmt.Errorf("kv: a key of %d B, expected at most %d (MaxKey)", len(key), c.o.MaxKey)
	}
	return nil
}

// await returns the answer to the last request when all of it is there.
func (c *Client) await() (a Answer, err error) {
	for there := uint64(0); ; {
		ev, err := c.ni.EQWait(c.eq)
		if err != nil {
			return a, err
		}
		if ev.Type != portals.EventPut || ev.HdrData>>32 != c.tag {
			continue
		}
		if there += ev.MLength; there == ev.HdrData&(1<<32-1) {
			return a, decode(c.answers.Read(), &a)
		}
	}
}

func (c *Client) errorOf(a *Answer) error {
	switch a.Status {
	case OK:
		return nil
	case NotFound:
		return ErrNotFound
	case Changed:
		return &ChangedError{a.Version}
	case Full:
		return ErrFull
	case TooLong:
		return fmt.Errorf("kv: the value has %d B, expected at most %d (MaxValue)", a.Value, c.o.MaxValue)
	}
	return ErrIllegal
}
