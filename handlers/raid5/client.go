//go:build !tinygo

package raid5

import (
	"errors"
	"math/bits"

	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Errors of accesses.
var (
	ErrRefused = errors.New("raid5: a server has refused a write")
	ErrMemory  = errors.New("raid5: a server could not be reached, or its memory was not there")
	ErrSilent  = errors.New("raid5: servers have not answered in time")
)

// Client is a process's connection to an array. It does one access at a time.
type Client struct {
	*Array
	link
	rounds [service.Slots / service.Flights]round
	failed uint32 // servers: bit i is server i
}

type link = service.Link

// round is the memory with which a client sends words. After a missing answer
// the client uses another one, because the old answer may still come.
type round struct {
	word   runtime.View // a word to send, a received one, a range
	md, ct portals.Handle
	swaps  uint64 // so far
}

// round returns the present one.
func (c *Client) round() *round { return &c.rounds[c.Round()] }

// Open gives a process a connection to the array, as client number 0 to
// Options.Clients-1, unique among the processes. It takes no virtual time.
func (a *Array) Open(p *runtime.Proc, number int) (*Client, error) {
	l, s, err := service.Open(p, service.Options{
		Name: "raid5", Number: number, Clients: a.o.Clients, MaxNID: MaxNID, MaxPID: MaxPID, Answers: a.answersAtOnce(), Label: "answers of the array",
		Timeout: a.o.Timeout, Silent: ErrSilent, Memory: ErrMemory,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{Array: a, link: l}
	for i := range c.rounds {
		r := &c.rounds[i]
		r.ct, r.word = s.Counter(""), s.Locked(16+RangeSize)
		r.md = s.Bind(r.word, portals.MD{CT: r.ct, Options: portals.OptMDEventCTReply | portals.OptMDVolatile})
	}
	const options = portals.OptMEOpPut | portals.OptMEEventLinkDisable
	s.Table(a.replyPT(), c.Answers, 0)
	s.Append(a.replyPT(), portals.AnyID, runtime.View{}, portals.ME{MatchBits: ReplyBits, IgnoreBits: MaxSlots - 1, Options: options})
	s.Table(a.o.PT, c.Answers, 0) // of the parity server
	a.append(s, runtime.View{}, portals.ME{MatchBits: DoneBits, IgnoreBits: DoneBits ^ FailedBits, Options: options}, true)
	return c, s.Err
}

// answersAtOnce returns how many answers may come before the client looks at
// any.
func (a *Array) answersAtOnce() int {
	n := len(a.servers) * (a.o.Cores*hostWindow + service.Flights)
	return max(n, (int(a.burst()/a.mtu)+2)*max(a.parities(), 1)) + service.Slots
}

// burst returns how many bytes of a client may be on the way to handlers in
// each flight. Together with the data of other clients, they must fit in a
// server's network interface.
func (a *Array) burst() int64 {
	n := int64(a.c.Profile().NIC.PacketBuffer) / int64(2*service.Flights*a.o.Clients)
	if row := a.o.Unit * int64(a.o.Data); n > row {
		return n / row * row
	}
	return max(n, a.mtu)
}

// Write returns when all servers have the data of the view and parity agrees
// with it. With Options.Durable it returns when their storage devices have
// both.
func (c *Client) Write(offset int64, from runtime.View) error {
	n := int64(from.Len())
	if err := errors.Join(c.o.within(offset, n), c.own(from), c.Usable()); err != nil || n == 0 {
		return err
	}
	from.Read()
	write := c.writeHosts
	if c.o.Mode == Handlers {
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
	return errors.Join(err, c.Release())
}

// own returns an error for memory of another process, whose addresses have
// another meaning here.
func (c *Client) own(v runtime.View) error {
	if v.Len() > 0 && v.Proc() != c.Proc {
		return errors.New("raid5: the memory is another process's, expected the client's own")
	}
	return nil
}

// writeHandlers puts pieces into the memory of the servers. Their network
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
		t := NewTicket(c.Self.NID, c.Self.PID, slot, uint32(packets[p.Server]))
		return c.put(from, offset, p, id, at, uint64(t))
	})
}

// flights sends the parts of an access. It sends the next part after all
// answers to the last but one, so that two parts are under way.
func (c *Client) flights(n int, send func(i int, slot uint32) (answers int, err error)) error {
	var open [service.Flights]int
	var failed error
	for i := 0; i < n || open != [service.Flights]int{}; {
		if which := i % service.Flights; i < n && failed == nil && open[which] == 0 {
			var err error
			if open[which], err = send(i, c.Slot+uint32(which)); err != nil {
				return err
			}
			i++
			continue
		} else if failed != nil && open == [service.Flights]int{} {
			break
		}
		e, err := c.Event()
		if err != nil {
			return err
		}
		if which := uint32(e.MatchBits&(MaxSlots-1)) - c.Slot; which < service.Flights && e.PTIndex == c.replyPT() {
			open[which]--
			failed = errors.Join(failed, status(&e))
		}
	}
	return failed
}

// status returns the error in an answer.
func status(e *portals.Event) error {
	switch e.HdrData {
	case OK:
		return nil
	case Refused:
		return ErrRefused
	}
	return ErrMemory
}

// put sends a piece.
func (c *Client) put(from runtime.View, offset int64, p Piece, id portals.ID, at, header uint64) error {
	md, err := c.describe(from, offset, p, portals.CTNone)
	if err != nil {
		return err
	}
	match := uint64(WriteBits)
	if down := uint64(c.failed >> c.o.Data); down != 0 && c.parities() == 1 {
		match = AloneBits
	} else {
		match |= down << ChainShift
	}
	return c.NI.Put(portals.Put{MD: md, Length: uint64(p.Length), Target: id, PT: c.o.PT, MatchBits: match, RemoteOffset: at, HdrData: header})
}

// describe binds memory: where a piece lies in a view that has the array from offset on.
func (c *Client) describe(v runtime.View, offset int64, p Piece, ct portals.Handle) (portals.Handle, error) {
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
	return c.Bind(md)
}

// Read returns when the view has the data of the array.
func (c *Client) Read(offset int64, into runtime.View) error {
	n := int64(into.Len())
	if err := errors.Join(c.o.within(offset, n), c.own(into), c.Usable()); err != nil || n == 0 {
		return err
	}
	into.Write()
	read := c.readOthers
	if c.touched(offset, n) != 0 {
		read = c.readDegraded
	}
	return errors.Join(read(offset, into), c.Release())
}

// readOthers gets data from the servers that have not failed.
func (c *Client) readOthers(offset int64, into runtime.View) error {
	return c.Counted(func(ct portals.Handle) (n int, err error) {
		err = c.o.Pieces(offset, int64(into.Len()), func(p Piece) error {
			if c.hasFailed(p.Server) {
				return nil
			}
			md, err := c.describe(into, offset, p, ct)
			if err != nil {
				return err
			}
			n++
			id, at := c.target(p.Server, p.At)
			return c.NI.Get(portals.Get{MD: md, Length: uint64(p.Length), Target: id, PT: c.o.PT, MatchBits: ReadBits, RemoteOffset: at})
		})
		return n, err
	})
}
