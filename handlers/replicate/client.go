//go:build !tinygo

package replicate

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Errors of accesses.
var (
	ErrRange   = errors.New("replicate: beyond the end of the memory")
	ErrRefused = errors.New("replicate: a server has refused a write")
	ErrMemory  = errors.New("replicate: a server could not be reached, or its memory was not there")
	ErrSilent  = errors.New("replicate: servers have not answered in time")
	ErrFailed  = errors.New("replicate: no server is left")
	ErrDenied  = errors.New("replicate: the capability does not allow it")
)

// Caller is a process's connection to a group. It does one access at a time.
type Caller struct {
	*Group
	link
	number int
	live   uint32 // a bit for each server

	capability Capability
	header     runtime.View // the user header of requests to guarded servers
}

type link = service.Link

// Open gives a process a connection to the group, as client number 0 to
// Options.Clients-1, unique among the processes. It takes no virtual time.
func (g *Group) Open(p *runtime.Proc, number int) (*Caller, error) {
	l, s, err := service.Open(p, service.Options{
		Name: "replicate", Number: number, Clients: g.o.Clients, MaxNID: raid5.MaxNID, MaxPID: raid5.MaxPID,
		Answers: int(Last(MaxServers, true)) * (service.Flights*(hostChunks+1) + service.Slots), Label: "answers of servers with copies",
		Timeout: g.o.Timeout, Silent: ErrSilent, Memory: ErrMemory,
	})
	if err != nil {
		return nil, err
	}
	c := &Caller{Group: g, link: l, number: number, live: 1<<len(g.servers) - 1, header: s.Locked(FetchSize)}
	s.Table(g.replyPT(), c.Answers, 0)
	s.Append(g.replyPT(), portals.AnyID, runtime.View{}, portals.ME{
		MatchBits: ReplyBits, IgnoreBits: raid5.MaxSlots - 1, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	})
	return c, s.Err
}

// Fail tells the client that a server has failed, as found out by a program
// that watches over servers. Tell every client before it begins an access when
// others may have been told.
func (c *Caller) Fail(server int) error {
	if server < 0 || server >= len(c.servers) {
		return fmt.Errorf("replicate: no server %d, expected 0 to %d", server, len(c.servers)-1)
	}
	if c.live&^(1<<server) == 0 {
		return ErrFailed
	}
	c.live &^= 1 << server
	return nil
}

// Copy writes all data to a failed server, or one in its place, which is then
// alive. No client may write meanwhile, and other clients are told afterwards
// (Restored).
func (c *Caller) Copy(server int) error {
	live := c.live
	buffer := c.Proc.Alloc(int(min(c.o.Bytes, 1<<20)))
	for at := int64(0); at < c.o.Bytes; at += int64(buffer.Len()) {
		part := buffer.Slice(0, int(min(int64(buffer.Len()), c.o.Bytes-at)))
		if err := c.Read(at, part); err != nil {
			return err
		}
		c.live = 1 << server
		err := c.Write(at, part)
		c.live = live
		if err != nil {
			return err
		}
	}
	c.Restored(server)
	return nil
}

// Restored tells the client that a server is alive.
func (c *Caller) Restored(server int) { c.live |= 1 << server }

// within checks an access.
func (c *Caller) within(offset, n int64) error {
	if offset < 0 || offset > c.o.Bytes || n > c.o.Bytes-offset {
		return fmt.Errorf("%w: %d B at %d of %d", ErrRange, n, offset, c.o.Bytes)
	}
	return c.Usable()
}

// Write returns when all servers that are alive have the data of the view.
func (c *Caller) Write(offset int64, from runtime.View) error {
	n := int64(from.Len())
	if err := c.within(offset, n); err != nil || n == 0 {
		return err
	}
	from.Read()
	if c.o.Mode == Client {
		return errors.Join(c.sendAll(offset, from), c.Release())
	}
	if err := c.show(offset, n); err != nil {
		return err
	}
	md, err := c.BindView(from, portals.MD{})
	if err != nil {
		return err
	}
	return errors.Join(c.flights(offset, n, c.burst(), func(low, high int64, slot uint32) (answers, messages int, err error) {
		ends := c.messages(low, high)
		packets := int64(0)
		for i, at := range ends[1:] {
			packets += (at - ends[i] + c.shown() + c.mtu - 1) / c.mtu
		}
		ticket := uint64(raid5.NewTicket(c.Self.NID, c.Self.PID, slot, uint32(packets)))
		messages = len(ends) - 1
		for i, at := range ends[1:] {
			if err := c.send(md, from, offset, ends[i], at, ticket); err != nil {
				return 0, 0, err
			}
		}
		answers = int(Last(uint32(bits.OnesCount32(c.live)), c.o.Tree))
		if c.o.Mode == Hosts {
			answers *= messages // each message is answered
		}
		return answers, messages, nil
	}), c.Release())
}

// send puts a message to the first server that is alive, with the capability in
// front if the server is guarded.
func (c *Caller) send(md portals.Handle, from runtime.View, offset, low, high int64, ticket uint64) (err error) {
	to, match := c.Group.id(Of(c.live, 0)), uint64(c.live)<<LiveShift|StoreBits
	at, size := uint64(low-offset), uint64(high-low)
	if c.o.Key != nil {
		match ^= StoreBits ^ AdmitBits
		list := []portals.IOVec{{Base: c.header.Addr(), Length: CapabilitySize}, {Base: from.Addr() + at, Length: size}}
		if md, err = c.Bind(portals.MD{IOVec: list, Length: uint64(len(list)), Options: portals.OptMDIOVec}); err != nil {
			return err
		}
		at, size = 0, size+CapabilitySize
	}
	return c.NI.Put(portals.Put{MD: md, Offset: at, Length: size, Target: to, PT: c.o.PT, MatchBits: match, RemoteOffset: uint64(low), HdrData: ticket})
}

// burst returns how many bytes of a client may be on the way to handlers in
// each flight. Together with the data of other clients, they must fit in a
// server's network interface.
func (c *Caller) burst() int64 {
	if c.o.Mode == Hosts {
		return hostChunks * chunk
	}
	n := int64(c.c.Profile().NIC.PacketBuffer) / int64(2*service.Flights*c.o.Clients)
	return max(n/Block*Block, Block)
}

// messages returns the places where messages of a range begin, and its end. No
// packet lies in two blocks of a server. Messages to hosts are chunks.
func (c *Caller) messages(low, high int64) []int64 {
	list := []int64{low}
	step, shown := int64(Block), c.shown()
	if c.o.Mode == Hosts {
		step = chunk
	}
	rest := c.o.Mode == Handlers && step%c.mtu == 0
	for at := low; at < high; {
		next := (at/step + 1) * step
		if rest && next < high {
			// the first packet has that much less of the memory, and the others
			// begin where blocks do
			if at%c.mtu == shown {
				break
			}
			next = min(next, at+c.mtu-((at-shown)%c.mtu+c.mtu)%c.mtu)
		}
		if at = next; at < high {
			list = append(list, at)
		}
	}
	return append(list, high)
}

// flights sends a range in parts of burst bytes, which end at multiples of
// burst. It sends the next part after all answers to the last but one.
func (c *Caller) flights(offset, n, burst int64, send func(low, high int64, slot uint32) (answers, messages int, err error)) error {
	var open, messages [service.Flights]int
	low, end := offset, offset+n
	denied := false
	for i := 0; low < end || open != [service.Flights]int{}; {
		if which := i % service.Flights; low < end && open[which] == 0 {
			high := min((low/burst+1)*burst, end)
			var err error
			if open[which], messages[which], err = send(low, high, c.Slot+uint32(which)); err != nil {
				return err
			}
			low = high
			i++
			continue
		}
		e, err := c.Event()
		if err != nil {
			return err
		}
		which := uint32(e.MatchBits&(raid5.MaxSlots-1)) - c.Slot
		switch {
		case which >= service.Flights: // of an access that was given up
		case e.HdrData == Denied: // each message gets its own denial
			low, denied = end, true
			if messages[which]--; messages[which] == 0 {
				open[which] = 0
			}
		case e.HdrData != OK:
			_ = c.Retire() // others may still answer
			if e.HdrData == Refused {
				return ErrRefused
			}
			return ErrMemory
		default:
			open[which]--
		}
	}
	if denied {
		return ErrDenied
	}
	return nil
}

// sendAll puts a range to each server, and waits for their acknowledgements.
func (c *Caller) sendAll(offset int64, from runtime.View) error {
	return c.counted(from, portals.OptMDEventCTAck, func(md portals.Handle) (n int, err error) {
		for live := c.live; live != 0; live &= live - 1 {
			to := c.Group.id(Of(live, 0))
			if err := c.NI.Put(portals.Put{MD: md, Length: uint64(from.Len()), Ack: portals.Ack, Target: to, PT: c.o.PT, MatchBits: StoreBits, RemoteOffset: uint64(offset)}); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
}

// Read returns when the view has a server's data. Different clients ask
// different servers.
func (c *Caller) Read(offset int64, into runtime.View) error {
	n := int64(into.Len())
	if err := c.within(offset, n); err != nil || n == 0 {
		return err
	}
	into.Write()
	if c.o.Key != nil {
		return errors.Join(c.fetch(offset, into), c.Release())
	}
	return errors.Join(c.counted(into, portals.OptMDEventCTReply, func(md portals.Handle) (int, error) {
		return 1, c.NI.Get(portals.Get{MD: md, Length: uint64(n), Target: c.reads(), PT: c.o.PT, MatchBits: ReadBits, RemoteOffset: uint64(offset)})
	}), c.Release())
}

// reads returns the server from which the client reads.
func (c *Caller) reads() portals.ID {
	return c.Group.id(Of(c.live, uint32(c.number%bits.OnesCount32(c.live))))
}

// counted waits for the number of answers that f returns.
func (c *Caller) counted(v runtime.View, options portals.MDOptions, f func(md portals.Handle) (int, error)) error {
	return c.Counted(func(ct portals.Handle) (int, error) {
		md, err := c.BindView(v, portals.MD{CT: ct, Options: options})
		if err != nil {
			return 0, err
		}
		return f(md)
	})
}
