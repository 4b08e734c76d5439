//go:build !tinygo

package txlog

import (
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Client is a process that uses a region. A node may have one client of a
// region.
type Client struct {
	p       *runtime.Proc
	ni      *runtime.NI
	o       Options
	home    portals.ID
	replies portals.Handle // counter
	got     uint64
	answers portals.Handle // queue
	landing runtime.View   // data of reads
	get     portals.Handle
	request runtime.View
	put     portals.Handle
	count   uint32
	stats   ClientStats
}

// ClientStats counts the work of a client.
type ClientStats struct{ Reads, Commits, Aborts uint64 }

// Stats returns the client's counts.
func (c *Client) Stats() ClientStats { return c.stats }

// Join gives a process access to the region of a home. A node may have one
// client: requests of another one fail with ErrTaken. It takes no virtual time.
func Join(p *runtime.Proc, home portals.ID, o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if p.Rank() >= 1<<(32-countBits) {
		return nil, fmt.Errorf("txlog: node %d, expected one below %d", p.Rank(), 1<<(32-countBits))
	}
	u := handlers.NewSetup("txlog", p)
	c := &Client{p: p, ni: u.NI, o: o, home: home, replies: u.Counter(""), answers: u.Queue(8, ""), landing: p.Alloc(o.Region), request: p.Alloc(o.slot())}
	c.get = u.Bind(c.landing, portals.MD{CT: c.replies, Options: portals.OptMDEventCTReply})
	c.put = u.Bind(c.request, portals.MD{})
	u.Table(o.PT+readEntry, c.answers, 0)
	u.Append(o.PT+readEntry, home, c.landing, portals.ME{MatchBits: Bits, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable})
	return c, u.Err
}

// Tx is a transaction. A client has one at a time.
type Tx struct {
	c      *Client
	tag    uint64
	reads  uint64
	writes []place
	bytes  int
}

// place is bytes of the region, with their new values.
type place struct {
	offset int
	data   []byte
}

// Begin begins a transaction and forgets an uncommitted one. It takes no
// virtual time.
func (c *Client) Begin() *Tx {
	c.count = (c.count + 1) & countMask
	return &Tx{c: c, tag: uint64(c.p.Rank())<<countBits | uint64(c.count)}
}

// Read reads bytes of the region at an offset, including the transaction's own
// writes. Error: ErrRange.
func (t *Tx) Read(offset int, b []byte) error {
	c := t.c
	if err := c.o.within(offset, len(b)); err != nil || len(b) == 0 {
		return err
	}
	if err := c.fetch(t, offset, len(b)); err != nil {
		return err
	}
	t.reads++
	c.stats.Reads++
	copy(b, c.landing.Slice(offset, offset+len(b)).Read())
	for _, w := range t.writes {
		if from, to := max(offset, w.offset), min(offset+len(b), w.offset+len(w.data)); from < to {
			copy(b[from-offset:to-offset], w.data[from-w.offset:])
		}
	}
	return nil
}

// fetch brings bytes of the region to the same place in landing.
func (c *Client) fetch(t *Tx, offset, n int) error {
	if c.o.ByHost {
		c.head(t, askRead, uint64(offset))
		words := c.request.Slice(requestSize, requestSize+8).Write()
		le.PutUint64(words, uint64(n))
		answer, err := c.ask(requestSize + 8)
		if err == nil && answer != served {
			err = fmt.Errorf("txlog: a read of %d B at %d was refused: has the home the same options?", n, offset)
		}
		return err
	}
	if err := c.ni.Get(portals.Get{MD: c.get, Offset: uint64(offset), Length: uint64(n), Target: c.home, PT: c.o.PT + readEntry, MatchBits: Bits | t.tag, RemoteOffset: uint64(offset)}); err != nil {
		return err
	}
	c.got++
	v, err := c.ni.CTWait(c.replies, c.got)
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("txlog: a read of %d B at %d failed", n, offset)
	}
	return err
}

// Write changes bytes of the region at an offset when the transaction commits.
// It takes no virtual time. Errors: ErrRange; more than Options.Commit.
func (t *Tx) Write(offset int, b []byte) error {
	o := &t.c.o
	if err := o.within(offset, len(b)); err != nil {
		return err
	}
	n := (len(b) + 7) &^ 7
	if t.bytes+n > o.Commit {
		return fmt.Errorf("txlog: a transaction writes %d B, expected %d at most", t.bytes+n, o.Commit)
	}
	if len(b) > 0 {
		t.bytes += n
		t.writes = append(t.writes, place{offset, append([]byte(nil), b...)})
	}
	return nil
}

// Commit ends the transaction. If nothing that it has read has changed, it
// makes the transaction's writes visible at once and returns true.
func (t *Tx) Commit() (bool, error) {
	number, err := t.commit()
	return err == nil && number&aborted == 0, err
}

// commit returns the answer of the home's host.
func (t *Tx) commit() (uint64, error) {
	c := t.c
	c.head(t, uint64(len(t.writes)), t.reads)
	at := requestSize
	for _, w := range t.writes {
		b := c.request.Slice(at, at+placeSize+len(w.data)).Write()
		le.PutUint64(b, uint64(w.offset))
		le.PutUint64(b[8:], uint64(len(w.data)))
		copy(b[placeSize:], w.data)
		at += placeSize + (len(w.data)+7)&^7
	}
	c.p.Stream(int64(t.bytes), int64(at))
	answer, err := c.ask(at)
	if err != nil {
		return 0, err
	}
	if answer&aborted == 0 {
		c.stats.Commits++
	} else {
		c.stats.Aborts++
	}
	return answer, nil
}

// head writes the first words of a request.
func (c *Client) head(t *Tx, kind, more uint64) {
	b := c.request.Slice(0, requestSize).Write()
	le.PutUint64(b, t.tag<<32|kind)
	le.PutUint64(b[8:], more)
}

// ask sends the request to the home's host and waits for the answer.
func (c *Client) ask(n int) (uint64, error) {
	slot := uint64(c.p.Rank()) * uint64(c.o.slot())
	if err := c.ni.Put(portals.Put{MD: c.put, Length: uint64(n), Target: c.home, PT: c.o.PT + requestEntry, MatchBits: Bits, RemoteOffset: slot}); err != nil {
		return 0, err
	}
	ev, err := c.ni.EQWait(c.answers)
	if err != nil {
		return 0, err
	}
	c.p.Compute(c.p.Reads(used.Match).Host.Match)
	if ev.HdrData == taken {
		return 0, ErrTaken
	}
	return ev.HdrData, nil
}
