package driver

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Of an array one server may have failed. Whoever knows says so to the clients (Client.Fail): who watches over servers is no part of the array. Then
//
//   - what a data server had is the exclusive or of what the others have, and a write to it changes parity only: by the difference to what it would have;
//   - without the parity server data servers write, and that is all.
//
// A client that computes what the failed server had must see data and parity of the same moment. So while a data server has failed, whoever writes, or reads what it had,
// first takes the rows for itself: rowLocks words at the parity server, which clients swap; rows of a chunk have one.

const rowLocks = 256

// ErrFailed is an access to an array of which more than one server has failed, or one without parity.
var ErrFailed = errors.New("raid5: a server has failed that nothing stands in for")

// Fail tells the client that a server has failed. Every client must be told before it begins an access when others may have been.
func (c *Client) Fail(server int) error {
	if server < 0 || server >= len(c.servers) {
		return fmt.Errorf("raid5: no server %d, expected 0 to %d", server, len(c.servers)-1)
	}
	if c.parity() < 0 || c.failed >= 0 && c.failed != server {
		return ErrFailed
	}
	c.failed = server
	return nil
}

// Restored tells the client that all servers are as before: the one that had failed, or one in its place under its name, has been rebuilt.
func (c *Client) Restored() { c.failed = -1 }

// Failed is the server that has failed, as the client knows; -1: none.
func (c *Client) Failed() int { return c.failed }

// degraded reports whether a data server has failed.
func (c *Client) degraded() bool { return c.failed >= 0 && c.failed != c.parity() }

// touches reports whether the failed server has some of a range.
func (c *Client) touches(offset, length int64) bool {
	low, high := c.o.Span(c.failed, offset, length)
	return low < high
}

// locked calls f while the client has the rows of a range for itself.
func (c *Client) locked(offset, length int64, f func() error) error {
	first, last := c.o.chunks(offset, length)
	taken := min(last-first+1, rowLocks)
	words := make([]int64, 0, taken)
	for chunk := first; chunk < first+taken; chunk++ {
		words = append(words, chunk%rowLocks)
	}
	if first%rowLocks+taken > rowLocks { // in ascending order: nobody waits for who waits for it
		i := rowLocks - first%rowLocks
		words = append(append([]int64(nil), words[i:]...), words[:i]...)
	}
	var err error
	n, own := 0, uint64(c.slot)+1
	for ; n < len(words) && err == nil; n++ {
		err = c.swapUntil(words[n], 0, own)
	}
	if err == nil {
		err = f()
	}
	for _, word := range words[:n] { // the last one may be another's, if the answer has not come
		if _, e := c.swap(word, own, 0); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// swapUntil changes a word from one value to another, and waits until it has the first.
func (c *Client) swapUntil(word int64, from, to uint64) error {
	look := c.c.Profile().Host.Poll
	for times := sim.Time(1); ; times = min(2*times, 256) {
		found, err := c.swap(word, from, to)
		if err != nil || found == from {
			return err
		}
		c.p.Sleep((times + sim.Time(c.slot)) * look) // clients do not keep in step
	}
}

func (c *Client) swap(word int64, from, to uint64) (found uint64, err error) {
	r := c.round()
	binary.LittleEndian.PutUint64(r.word.Slice(0, 8).Write(), to)
	var operand [8]byte
	binary.LittleEndian.PutUint64(operand[:], from)
	s := c.servers[c.parity()]
	r.swaps++
	err = c.ni.Swap(r.md, 8, r.md, 0, 8, portals.PhysID(uint32(s.node), s.pid), c.o.PT, raid5.LockBits, uint64(8*word), 0, 0, operand[:], portals.OpCSWAP, portals.Uint64)
	if err != nil {
		return 0, err
	}
	if err := c.count(r.ct, r.swaps); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(r.word.Slice(8, 16).Read()), nil
}

// readDegraded reads a range of which a failed server has some.
func (c *Client) readDegraded(offset int64, into runtime.View) error {
	return c.locked(offset, int64(into.Len()), func() error {
		if err := c.readOthers(offset, into); err != nil {
			return err
		}
		low, high := c.o.Span(c.failed, offset, int64(into.Len()))
		most := min(int64(c.c.Profile().Limits.MaxIOVecs), max(c.burst()/c.o.Unit, 1))
		for low < high {
			end := min(high, (low/c.o.Unit+most)*c.o.Unit)
			p := Piece{c.failed, low, end - low}
			if err := c.reconstruct(p, into, c.o.vectors(p, into.Addr(), offset)); err != nil {
				return err
			}
			low = end
		}
		return nil
	})
}

// reconstruct computes what a failed server had, for memory of the view that vectors describe.
func (c *Client) reconstruct(p Piece, view runtime.View, into []portals.IOVec) error {
	if c.o.By == Handlers {
		return c.gather(p, into)
	}
	sum := c.p.Alloc(int(p.Length))
	if err := c.sum(p, sum); err != nil {
		return err
	}
	b := sum.Read()
	for _, v := range into {
		at := int(v.Base - view.Addr())
		n := copy(view.Slice(at, at+int(v.Length)).Write(), b)
		b = b[n:]
	}
	c.p.Stream(p.Length, p.Length)
	return nil
}

// gather has servers send the sum, one after the other.
func (c *Client) gather(p Piece, into []portals.IOVec) error {
	ct, err := c.ni.CTAlloc()
	if err != nil {
		return err
	}
	me := portals.ME{
		CT: ct, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: raid5.SumBits,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable | portals.OptMEEventCTComm | portals.OptMEEventCTBytes,
	}
	if len(into) == 1 {
		me.Start, me.Length = into[0].Base, into[0].Length
	} else {
		me.IOVec, me.Length = into, uint64(len(into))
		me.Options |= portals.OptMEIOVec
	}
	entry, err := c.ni.MEAppend(c.replyPT(), &me, portals.PriorityList, 0)
	if err != nil {
		return err
	}
	d := raid5.NewDestination(c.id.NID, c.id.PID, -uint64(p.At))
	if err := c.ask(p, raid5.ToClient, uint64(d)); err != nil {
		return err
	}
	err = c.count(ct, uint64(p.Length))
	return errors.Join(err, c.ni.MEUnlink(entry), c.ni.CTFree(ct))
}

// ask begins a chain of all servers but the one that has failed.
func (c *Client) ask(p Piece, last int, header uint64) error {
	r := c.round()
	asked := r.word.Slice(16, 16+raid5.RangeSize).Write()
	binary.LittleEndian.PutUint64(asked, uint64(p.At))
	binary.LittleEndian.PutUint64(asked[8:], uint64(p.Length))
	chain := (uint64(1)<<len(c.servers) - 1) &^ (1 << p.Server)
	first := 0
	if p.Server == 0 {
		first = 1
	}
	s := c.servers[first]
	bits := uint64(last)<<raid5.LastShift | chain<<raid5.ChainShift | raid5.GatherBits
	return c.ni.Put(r.md, 16, raid5.RangeSize, portals.NoAck, portals.PhysID(uint32(s.node), s.pid), c.o.PT, bits, 0, 0, header)
}

// sum gets what all others have and adds it, on the client's core.
func (c *Client) sum(p Piece, into runtime.View) error {
	parts := c.p.Alloc(into.Len() * (len(c.servers) - 1))
	err := c.counted(func(ct portals.Handle) (n int, err error) {
		place := 0
		for i := range c.servers {
			if i == p.Server {
				continue
			}
			part := parts.Slice(place*into.Len(), (place+1)*into.Len())
			md, err := c.ni.MDBind(&portals.MD{Start: part.Addr(), Length: uint64(part.Len()), CT: ct, Options: portals.OptMDEventCTReply})
			if err != nil {
				return n, err
			}
			c.mds = append(c.mds, md)
			for at := p.At; at < p.At+p.Length; {
				length := min(Chunk-at%Chunk, p.At+p.Length-at)
				id, remote := c.target(i, at)
				if err := c.ni.Get(md, uint64(at-p.At), uint64(length), id, c.o.PT, raid5.ReadBits, remote, 0); err != nil {
					return n, err
				}
				at += length
				n++
			}
			place++
		}
		return n, nil
	})
	if err != nil {
		return err
	}
	total, all := into.WriteFrom(parts)
	clear(total)
	for len(all) > 0 {
		xor(total, all[:len(total)])
		all = all[len(total):]
	}
	c.p.Stream(int64(parts.Len()), int64(into.Len()))
	return nil
}

// writeDegraded writes a range while a data server has failed: what it has of it changes parity only.
func (c *Client) writeDegraded(offset int64, from runtime.View, others func(offset int64, from runtime.View) error) error {
	return c.locked(offset, int64(from.Len()), func() error {
		if err := others(offset, from); err != nil || !c.touches(offset, int64(from.Len())) {
			return err
		}
		return c.o.Pieces(offset, int64(from.Len()), func(p Piece) error {
			if p.Server != c.failed {
				return nil
			}
			changes := c.p.Alloc(int(p.Length))
			if err := c.reconstruct(p, changes, []portals.IOVec{{Base: changes.Addr(), Length: uint64(p.Length)}}); err != nil {
				return err
			}
			into, data := changes.WriteFrom(from)
			for _, v := range c.o.vectors(p, 0, offset) {
				xor(into[:v.Length], data[v.Base:v.Base+v.Length])
				into = into[v.Length:]
			}
			c.p.Stream(2*p.Length, p.Length)
			return c.changeParity(p, changes)
		})
	})
}

// changeParity sends a difference to the parity server and waits until it is applied.
func (c *Client) changeParity(p Piece, changes runtime.View) error {
	md, err := c.ni.MDBind(&portals.MD{Start: changes.Addr(), Length: uint64(changes.Len())})
	if err != nil {
		return err
	}
	c.mds = append(c.mds, md)
	id, at := c.target(c.parity(), p.At)
	answers, header := (p.Length+c.mtu-1)/c.mtu, uint64(raid5.NewTicket(c.id.NID, c.id.PID, c.slot, 0))
	if c.o.By != Handlers { // the room of the server that has failed
		answers = 1
		t := newHostTicket(c.slot, 0, at)
		header, at = uint64(t), uint64(c.failed*c.o.Clients*hostWindow*Chunk+t.room())
	}
	if err := c.ni.Put(md, 0, uint64(p.Length), portals.NoAck, id, c.o.PT, raid5.DeltaBits, at, 0, header); err != nil {
		return err
	}
	for answers > 0 {
		e, err := c.event()
		if err != nil {
			return err
		}
		if e.PTIndex != c.o.PT || e.HdrData != header {
			continue // the answer to something that this client waits for no more
		}
		if e.MatchBits != raid5.DoneBits {
			return ErrMemory
		}
		answers--
	}
	return nil
}

// Rebuild writes anew all that a server had, from what the others have: into one that stands in its place under its name. No client writes meanwhile, and
// clients are told afterwards (Restored).
func (c *Client) Rebuild() error {
	if c.failed < 0 {
		return errors.New("raid5: no server has failed")
	}
	if err := c.usable(); err != nil {
		return err
	}
	rebuild := c.rebuildHosts
	if c.o.By == Handlers {
		rebuild = c.rebuildHandlers
	}
	if err := rebuild(); err != nil {
		return err
	}
	return c.persist([]span{{c.failed, 0, c.o.ServerBytes()}})
}

// rebuildHandlers has chains of the servers' handlers fill the failed server's memory.
func (c *Client) rebuildHandlers() error {
	bytes := c.o.ServerBytes()
	step := max(c.burst()/Chunk, 1) * Chunk
	return c.flights(int((bytes+step-1)/step), func(i int, slot uint32) (answers int, err error) {
		low := int64(i) * step
		high := min(low+step, bytes)
		packets := int64(0)
		for at := low; at < high; at += Chunk {
			packets += (min(Chunk, high-at) + c.mtu - 1) / c.mtu
		}
		t := raid5.NewTicket(c.id.NID, c.id.PID, slot, uint32(packets))
		for at := low; at < high; at += Chunk {
			if err := c.ask(Piece{c.failed, at, min(Chunk, high-at)}, c.failed, uint64(t)); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
}
