//go:build !tinygo

package raid5

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Errors of accesses.
var (
	ErrRefused = errors.New("raid5: a server has refused a write")
	ErrMemory  = errors.New("raid5: a server could not be reached, or its memory was not there")
	ErrSilent  = errors.New("raid5: servers have not answered in time")
)

// Client is a process's way to an array. It does one access at a time.
type Client struct {
	*Array
	p      *runtime.Proc
	ni     *runtime.NI
	id     portals.ID
	slot   uint32           // the first of two, for what is under way
	last   uint32           // the last of the client's
	eq     portals.Handle   // what servers answer
	mds    []portals.Handle // of the access under way
	rounds [clientSlots / flights]round
	spent  bool   // servers have not answered so often that there are no slots left
	failed uint32 // servers: bit i is server i
}

// round is what a client sends words with until servers have not answered: what
// was asked before may still come.
type round struct {
	word   runtime.View // a word to send, one received, a range
	md, ct portals.Handle
	swaps  uint64 // so far
}

// round is the one that there is now.
func (c *Client) round() *round { return &c.rounds[(c.slot+clientSlots-1-c.last)/flights] }

// A client has clientSlots slots: flights for what is under way, and as many
// anew each time that servers have not answered, since they may still do so.
const (
	flights     = 2
	clientSlots = 4 * flights
)

// Open gives a process a way to the array: as client number 0 to
// Options.Clients-1, which no other process is. It takes no virtual time.
func (a *Array) Open(p *runtime.Proc, number int) (*Client, error) {
	if err := p.SettingUp(); err != nil {
		return nil, err
	}
	if number < 0 || number >= a.o.Clients {
		return nil, fmt.Errorf("raid5: client %d, expected 0 to %d", number, a.o.Clients-1)
	}
	c := &Client{Array: a, p: p, ni: p.NI(), slot: uint32(number) * clientSlots}
	c.last = c.slot + clientSlots - 1
	var err error
	if c.id, err = c.ni.Objects().PhysID(); err != nil {
		return nil, err
	}
	if c.id.PID > MaxPID || c.id.NID > MaxNID {
		return nil, fmt.Errorf("raid5: the client is %v, expected nodes up to %d and processes up to %d", c.id, MaxNID, MaxPID)
	}
	if c.eq, err = c.ni.Objects().EQAlloc(c.answersAtOnce()); err != nil {
		return nil, err
	}
	c.ni.Objects().Label(c.eq, "answers of the array")
	for i := range c.rounds {
		r := &c.rounds[i]
		if r.ct, err = c.ni.Objects().CTAlloc(); err != nil {
			return nil, err
		}
		r.word = p.Alloc(16 + RangeSize)
		r.word.Lock()
		r.md, err = c.ni.Objects().MDBind(&portals.MD{Start: r.word.Addr(), Length: uint64(r.word.Len()), CT: r.ct, Options: portals.OptMDEventCTReply | portals.OptMDVolatile})
		if err != nil {
			return nil, err
		}
	}
	for _, e := range []struct {
		pt           uint32
		bits, ignore uint64
	}{
		{a.replyPT(), ReplyBits, MaxSlots - 1},
		{a.o.PT, DoneBits, DoneBits ^ FailedBits}, // of the parity server
	} {
		if _, err = c.ni.Objects().PTAlloc(0, c.eq, e.pt); err != nil {
			return nil, fmt.Errorf("raid5: portal table entry %d: %w", e.pt, err)
		}
		me := portals.ME{
			UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: e.bits, IgnoreBits: e.ignore, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
		}
		if e.pt == a.o.PT {
			err = a.append(c.ni, &me, true)
		} else {
			_, err = c.ni.MEAppend(e.pt, &me, portals.PriorityList, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// answersAtOnce is how many may come before the client looks at any.
func (a *Array) answersAtOnce() uint64 {
	n := len(a.servers) * (a.o.Cores*hostWindow + flights)
	return uint64(max(n, (int(a.burst()/a.mtu)+2)*max(a.parities(), 1))) + clientSlots
}

// burst is how many bytes of a client may be on the way to handlers in each
// flight: with what others send, they have room in a server's network
// interface.
func (a *Array) burst() int64 {
	n := int64(a.c.Profile().NIC.PacketBuffer) / int64(2*flights*a.o.Clients)
	if row := a.o.Unit * int64(a.o.Data); n > row {
		return n / row * row
	}
	return max(n, a.mtu)
}

// Write returns when all servers have what the view has, and parity is that of
// it; with Options.Durable when their storage devices have it.
func (c *Client) Write(offset int64, from runtime.View) error {
	n := int64(from.Len())
	if err := errors.Join(c.o.within(offset, n), c.own(from), c.usable()); err != nil || n == 0 {
		return err
	}
	from.Read()
	write := c.writeHosts
	if c.o.By == Handlers {
		write = c.writeHandlers
	}
	var err error
	if c.degraded() {
		err = c.writeDegraded(offset, from, write)
	} else {
		err = write(offset, from)
	}
	if err == nil {
		err = c.persist(c.changed(offset, n))
	}
	return errors.Join(err, c.release())
}

// own is an error for memory of another process, whose addresses mean something else here.
func (c *Client) own(v runtime.View) error {
	if v.Len() > 0 && v.Proc() != c.p {
		return errors.New("raid5: the memory is another process's, expected the client's own")
	}
	return nil
}

// release forgets the descriptors of an access; those that a transport still
// needs, with the next one.
func (c *Client) release() (err error) {
	used := c.mds[:0]
	for _, md := range c.mds {
		switch e := c.ni.Objects().MDRelease(md); {
		case errors.Is(e, portals.ErrInUse):
			used = append(used, md)
		default:
			err = errors.Join(err, e)
		}
	}
	c.mds = used
	return err
}

// writeHandlers puts pieces into the memory of the servers, whose network
// interfaces answer once for each flight.
func (c *Client) writeHandlers(offset int64, from runtime.View) error {
	burst := c.burst()
	n := int64(from.Len())
	return c.flights(int((n+burst-1)/burst), func(i int, slot uint32) (answers int, err error) {
		low := int64(i) * burst
		part := from.Slice(int(low), int(min(low+burst, n)))
		return c.writeFlight(offset+low, part, slot)
	})
}

// writeFlight sends a part of a write and returns how many servers will answer.
func (c *Client) writeFlight(offset int64, from runtime.View, slot uint32) (answers int, err error) {
	packets := make([]int64, len(c.servers))
	each := func(f func(Piece) error) error {
		return c.o.Pieces(offset, int64(from.Len()), func(p Piece) error {
			if c.hasFailed(p.Server) {
				return nil
			}
			return f(p)
		})
	}
	told := int64(max(bits.OnesCount32(c.told()), 1))
	_ = each(func(p Piece) error { packets[p.Server] += told * ((p.Length + c.mtu - 1) / c.mtu); return nil })
	for _, n := range packets {
		if n > 0 {
			answers++
		}
	}
	return answers, each(func(p Piece) error {
		id, at := c.target(p.Server, p.At)
		t := NewTicket(c.id.NID, c.id.PID, slot, uint32(packets[p.Server]))
		return c.put(from, offset, p, id, at, uint64(t))
	})
}

// flights sends parts of an access, the next one when the answers to the last
// but one are there: the client has two of them under way.
func (c *Client) flights(n int, send func(i int, slot uint32) (answers int, err error)) error {
	var open [flights]int
	var failed error
	for i := 0; i < n || open != [flights]int{}; {
		if which := i % flights; i < n && failed == nil && open[which] == 0 {
			var err error
			if open[which], err = send(i, c.slot+uint32(which)); err != nil {
				return err
			}
			i++
			continue
		} else if failed != nil && open == [flights]int{} {
			break
		}
		e, err := c.event()
		if err != nil {
			return err
		}
		if which := uint32(e.MatchBits&(MaxSlots-1)) - c.slot; which < flights && e.PTIndex == c.replyPT() {
			open[which]--
			failed = errors.Join(failed, status(&e))
		}
	}
	return failed
}

// status is what an answer says.
func status(e *portals.Event) error {
	switch e.HdrData {
	case OK:
		return nil
	case Refused:
		return ErrRefused
	}
	return ErrMemory
}

// event waits for an answer. If none comes in time those that come later are not taken for others.
func (c *Client) event() (portals.Event, error) {
	if c.o.Timeout == 0 {
		return c.ni.EQWait(c.eq)
	}
	e, _, err := c.ni.EQPoll([]portals.Handle{c.eq}, c.o.Timeout)
	if errors.Is(err, portals.ErrEQEmpty) {
		return e, c.silent()
	}
	return e, err
}

// silent is what happens when nobody answers.
func (c *Client) silent() error {
	if c.slot+flights > c.last {
		c.spent = true
		return c.usable()
	}
	c.slot += flights
	return fmt.Errorf("%w: %v", ErrSilent, c.o.Timeout)
}

// usable says why a client has no slot any more.
func (c *Client) usable() error {
	if c.spent {
		return fmt.Errorf("%w, too often for this client", ErrSilent)
	}
	return nil
}

// put sends a piece.
func (c *Client) put(from runtime.View, offset int64, p Piece, id portals.ID, at, header uint64) error {
	md, err := c.bind(from, offset, p, portals.CTNone)
	if err != nil {
		return err
	}
	match := uint64(WriteBits)
	if down := uint64(c.failed >> c.o.Data); down != 0 && c.parities() == 1 {
		match = AloneBits
	} else {
		match |= down << ChainShift
	}
	return c.ni.Put(portals.Put{MD: md, Length: uint64(p.Length), Target: id, PT: c.o.PT, MatchBits: match, RemoteOffset: at, HdrData: header})
}

// bind describes where a piece lies in a view that has the array from offset on.
func (c *Client) bind(v runtime.View, offset int64, p Piece, ct portals.Handle) (portals.Handle, error) {
	md := portals.MD{CT: ct}
	if ct != portals.CTNone {
		md.Options |= portals.OptMDEventCTReply
	}
	list := c.o.vectors(p, v.Addr(), offset)
	if len(list) == 1 {
		md.Start, md.Length = list[0].Base, list[0].Length
	} else {
		md.IOVec, md.Length = list, uint64(len(list))
		md.Options |= portals.OptMDIOVec
	}
	h, err := c.ni.Objects().MDBind(&md)
	if err == nil {
		c.mds = append(c.mds, h)
	}
	return h, err
}

// Read returns when the view has what the array has.
func (c *Client) Read(offset int64, into runtime.View) error {
	n := int64(into.Len())
	if err := errors.Join(c.o.within(offset, n), c.own(into), c.usable()); err != nil || n == 0 {
		return err
	}
	into.Write()
	read := c.readOthers
	if c.touched(offset, n) != 0 {
		read = c.readDegraded
	}
	return errors.Join(read(offset, into), c.release())
}

// readOthers gets what servers have that have not failed.
func (c *Client) readOthers(offset int64, into runtime.View) error {
	return c.counted(func(ct portals.Handle) (n int, err error) {
		err = c.o.Pieces(offset, int64(into.Len()), func(p Piece) error {
			if c.hasFailed(p.Server) {
				return nil
			}
			md, err := c.bind(into, offset, p, ct)
			if err != nil {
				return err
			}
			n++
			id, at := c.target(p.Server, p.At)
			return c.ni.Get(portals.Get{MD: md, Length: uint64(p.Length), Target: id, PT: c.o.PT, MatchBits: ReadBits, RemoteOffset: at})
		})
		return n, err
	})
}

// counted waits for as many replies as f says.
func (c *Client) counted(f func(ct portals.Handle) (int, error)) error {
	ct, err := c.ni.Objects().CTAlloc()
	if err != nil {
		return err
	}
	n, err := f(ct)
	if err == nil {
		err = c.count(ct, uint64(n))
	}
	return errors.Join(err, c.ni.Objects().CTFree(ct))
}

// count waits for a counter.
func (c *Client) count(ct portals.Handle, n uint64) error {
	timeout := runtime.Forever
	if c.o.Timeout != 0 {
		timeout = c.o.Timeout
	}
	v, _, err := c.ni.CTPoll([]portals.Handle{ct}, []uint64{n}, timeout)
	switch {
	case errors.Is(err, portals.ErrCTNoneReached):
		return c.silent()
	case err == nil && v.Failure > 0:
		return ErrMemory
	}
	return err
}
