//go:build !tinygo

package raid5

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// With Options.Durable a write ends when the storage devices of all changed
// servers have it: data and parity. When their memories have it, its client
// asks each server once, all at the same time. A program of the server lets the
// device write the range directly from memory. It is a separate process, so
// that the processes that serve continue, and it is the same one for all values
// of By. Requests that come while the device is busy are written together.
//
// After a loss of power the devices have all writes that had ended. Of other
// writes, parts may be there, and the parity of their rows may be old or new.
// After such a loss parity must be recomputed from the data (Client.Fail of
// the parity servers, then Rebuild), before a data server fails.

// rangeBits is the number of bits for the length of a request in its header
// data; the slot is above.
const rangeBits = 48

// flusher is the program of a server that owns its storage device.
type flusher struct {
	*Array
	p  *runtime.Proc
	s  *server
	eq portals.Handle
	md portals.Handle
}

// flusher starts the program.
func (a *Array) flusher(s *server) error {
	device := a.c.Node(s.node).Storage()
	if device == nil {
		return fmt.Errorf("raid5: node %d has no storage device (storage.kind), which durable writes need", s.node)
	}
	s.disk = device.Disk(int(a.o.ServerBytes()))
	s.flusher = uint32(a.c.Processes(s.node))
	return a.c.SpawnService(s.node, fmt.Sprintf("storage of server %d", s.index), func(p *runtime.Proc) error {
		f := &flusher{Array: a, p: p, s: s}
		if err := f.open(); err != nil {
			return err
		}
		return f.loop()
	})
}

func (f *flusher) open() error {
	s := handlers.NewSetup("raid5", f.p)
	f.eq = s.Queue(f.o.Clients*service.Slots+1, "writes for the storage device")
	s.Table(f.o.PT, f.eq, 0)
	f.md = s.Bind(runtime.View{}, portals.MD{})
	s.Append(f.o.PT, portals.AnyID, runtime.View{}, portals.ME{MatchBits: SyncBits, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable})
	return s.Err
}

// loop serves requests; all present ones are served together.
func (f *flusher) loop() error {
	match := f.c.Reads(used.Match).Host.Match
	for {
		e, err := f.p.NI().EQWait(f.eq)
		if err != nil {
			return err
		}
		var list []host.Extent
		var clients []portals.Event
		for err == nil {
			f.p.Compute(match)
			low, n := int64(e.RemoteOffset), int64(e.HdrData&(1<<rangeBits-1))
			if e.Fail == portals.NIOK && low+n <= f.o.ServerBytes() {
				list = append(list, host.Extent{At: int(low), Length: int(n)})
				clients = append(clients, e)
			}
			e, err = f.p.NI().Objects().EQGet(f.eq)
		}
		if !errors.Is(err, portals.ErrEQEmpty) {
			return err
		}
		f.s.disk.Store(f.p.Thread(), list, f.take)
		for i := range clients {
			bits := ReplyBits | clients[i].HdrData>>rangeBits
			if err := f.p.NI().Put(portals.Put{MD: f.md, Target: clients[i].Initiator, PT: f.replyPT(), MatchBits: bits, HdrData: OK}); err != nil {
				return err
			}
		}
	}
}

// take copies a part of the server's memory.
func (f *flusher) take(e host.Extent, into []byte) {
	for n := 0; n < len(into); {
		n += copy(into[n:], f.Peek(f.s.index, int64(e.At+n)))
	}
}

// span is the bytes of a server from low up to high.
type span struct {
	server    int
	low, high int64
}

// changed returns the spans that a write of a range has changed.
func (c *Client) changed(offset, length int64) (list []span) {
	rows := span{low: maxBytes}
	for d := range c.o.Data {
		low, high := c.o.Span(d, offset, length)
		if low >= high {
			continue
		}
		rows.low, rows.high = min(rows.low, low), max(rows.high, high)
		if !c.hasFailed(d) {
			list = append(list, span{d, low, high})
		}
	}
	for rows.server = c.o.Data; rows.server < len(c.servers); rows.server++ {
		if !c.hasFailed(rows.server) {
			list = append(list, rows)
		}
	}
	return list
}

// persist returns when storage devices have ranges of their servers.
func (c *Client) persist(list []span) error {
	if !c.o.Durable {
		return nil
	}
	return c.flights(1, func(_ int, slot uint32) (int, error) {
		for _, r := range list {
			s := c.servers[r.server]
			header := uint64(slot)<<rangeBits | uint64(r.high-r.low)
			if err := c.NI.Put(portals.Put{MD: c.round().md, Target: portals.PhysID(uint32(s.node), s.flusher), PT: c.o.PT, MatchBits: SyncBits, RemoteOffset: uint64(r.low), HdrData: header}); err != nil {
				return 0, err
			}
		}
		return len(list), nil
	})
}

// Stored returns the content of a server's storage device, with
// Options.Durable. It survives a loss of power.
func (a *Array) Stored(server int) []byte { return a.servers[server].disk.Content() }
