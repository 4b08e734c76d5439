//go:build !tinygo

package raid5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// As many servers may have failed as there are parity servers. The array does
// not watch over servers: a program that knows of a failure tells the clients
// (Client.Fail). Then
//
//   - the bytes of a failed data server are computed from as many other servers
//     as there are data servers (Array.rebuilding), and a write to it changes
//     parity only, by the difference from the data that it would have;
//   - failed parity servers get no messages; without any parity server, data
//     servers only write.
//
// A client that computes the bytes of a failed server must see data and parity
// of the same moment. So while a data server has failed, a client that writes,
// or reads from it, first locks the rows: rowLocks words at the first parity
// server that has not failed, which clients swap. All rows of a chunk have the
// same word.

const rowLocks = 256

// ErrHeld is the error of an access to rows that another client has locked for
// Options.Timeout: nothing was done. If that client is gone, Rebuild frees
// them.
var ErrHeld = errors.New("raid5: another client has rows for itself, and does not give them back in time")

// ErrFailed is the error of an access to an array with more failed servers than
// parity servers.
var ErrFailed = errors.New("raid5: a server has failed that nothing stands in for")

// Fail tells the client that a server has failed. Tell every client before it
// begins an access when others may have been told.
func (c *Client) Fail(server int) error {
	if server < 0 || server >= len(c.servers) {
		return fmt.Errorf("raid5: no server %d, expected 0 to %d", server, len(c.servers)-1)
	}
	failed := c.failed | 1<<server
	if bits.OnesCount32(failed) > c.parities() {
		return ErrFailed
	}
	c.failed = failed
	return nil
}

// Restored tells the client that all failed servers are back: they, or others
// in their place under their names, have been rebuilt.
func (c *Client) Restored() { c.failed = 0 }

// Failed returns the failed servers that the client knows, in order.
func (c *Client) Failed() (list []int) {
	_ = each(c.failed, func(server int) error { list = append(list, server); return nil })
	return list
}

func (c *Client) hasFailed(server int) bool { return c.failed>>server&1 != 0 }

// told returns the parity servers that have not failed, with bit 0 for the
// first.
func (c *Client) told() uint32 { return c.code.ParityServers() &^ (c.failed >> c.o.Data) }

// degraded reports whether a data server has failed.
func (c *Client) degraded() bool { return c.failed&(1<<c.o.Data-1) != 0 }

// touched returns the failed data servers that have a part of a range.
func (c *Client) touched(offset, length int64) (set uint32) {
	_ = each(c.failed&(1<<c.o.Data-1), func(server int) error {
		if low, high := c.o.Span(server, offset, length); low < high {
			set |= 1 << server
		}
		return nil
	})
	return set
}

// locked calls f while the client has locked the rows of a range.
func (c *Client) locked(offset, length int64, f func() error) error {
	first, last := c.o.chunks(offset, length)
	taken := min(last-first+1, rowLocks)
	words := make([]int64, 0, taken)
	for chunk := first; chunk < first+taken; chunk++ {
		words = append(words, chunk%rowLocks)
	}
	// ascending order, so that clients do not wait for each other in a circle
	if first%rowLocks+taken > rowLocks {
		i := rowLocks - first%rowLocks
		words = append(append([]int64(nil), words[i:]...), words[:i]...)
	}
	var err error
	n, own := 0, uint64(c.Slot)+1
	for ; n < len(words) && err == nil; n++ {
		err = c.swapUntil(words[n], 0, own)
	}
	if err == nil {
		err = f()
	}
	// the last one may belong to another client, if its answer has not come
	for _, word := range words[:n] {
		if _, e := c.swap(word, own, 0); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// swapUntil changes a word from one value to another, and waits for the first
// value if necessary. It does not wait for ever for one client.
func (c *Client) swapUntil(word int64, from, to uint64) error {
	look := c.c.Reads(used.Look).Host.Poll
	holder, since := from, c.Proc.Now()
	for times := sim.Time(1); ; times = min(2*times, 256) {
		found, err := c.swap(word, from, to)
		if err != nil || found == from {
			return err
		}
		if found != holder {
			holder, since = found, c.Proc.Now()
		} else if c.o.Timeout != 0 && c.Proc.Now()-since > c.o.Timeout {
			return fmt.Errorf("%w: client %d, for %v", ErrHeld, (holder-1)/service.Slots, c.Proc.Now()-since)
		}
		c.Proc.Sleep((times + sim.Time(c.Slot)) * look) // not all at the same time
	}
}

func (c *Client) swap(word int64, from, to uint64) (found uint64, err error) {
	r := c.round()
	binary.LittleEndian.PutUint64(r.word.Slice(0, 8).Write(), to)
	var operand [8]byte
	binary.LittleEndian.PutUint64(operand[:], from)
	s := c.servers[c.o.Data+bits.TrailingZeros32(c.told())]
	r.swaps++
	err = c.NI.Swap(portals.Swap{GetMD: r.md, GetOffset: 8, MD: r.md, Length: 8, Target: portals.PhysID(uint32(s.node), s.pid), PT: c.o.PT, MatchBits: LockBits, RemoteOffset: uint64(8 * word), Operand: operand[:], Op: portals.OpCSWAP, Type: portals.Uint64})
	if err != nil {
		return 0, err
	}
	if err := c.Count(r.ct, r.swaps); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(r.word.Slice(8, 16).Read()), nil
}

// free frees the locked rows of all clients, and calls f meanwhile.
func (c *Client) free(f func() error) error {
	if !c.degraded() {
		return f()
	}
	zeros := c.Proc.Alloc(8 * rowLocks)
	return c.Counted(func(ct portals.Handle) (n int, err error) {
		md, err := c.BindView(zeros, portals.MD{CT: ct, Options: portals.OptMDEventCTAck})
		if err != nil {
			return 0, err
		}
		err = each(c.told(), func(i int) error {
			n++
			s := c.servers[c.o.Data+i]
			return c.NI.Put(portals.Put{MD: md, Length: uint64(zeros.Len()), Ack: portals.CTAck, Target: portals.PhysID(uint32(s.node), s.pid), PT: c.o.PT, MatchBits: LockBits})
		})
		return n, errors.Join(err, f())
	})
}

// readDegraded reads a range with parts on failed servers.
func (c *Client) readDegraded(offset int64, into runtime.View) error {
	return c.locked(offset, int64(into.Len()), func() error {
		if err := c.readOthers(offset, into); err != nil {
			return err
		}
		most := min(int64(c.c.Profile().Limits.MaxIOVecs), max(c.burst()/c.o.Unit, 1))
		return each(c.touched(offset, int64(into.Len())), func(server int) error {
			low, high := c.o.Span(server, offset, int64(into.Len()))
			for low < high {
				end := min(high, (low/c.o.Unit+most)*c.o.Unit)
				p := Piece{server, low, end - low}
				if err := c.reconstruct(p, into, c.o.vectors(p, into.Addr(), offset)); err != nil {
					return err
				}
				low = end
			}
			return nil
		})
	})
}

// reconstruct computes bytes of a failed server into the memory of the view
// that vectors describe.
func (c *Client) reconstruct(p Piece, view runtime.View, into []portals.IOVec) error {
	if c.o.Mode == Handlers {
		return c.gather(p, into)
	}
	return c.sum(p, view, into)
}

// gather lets servers send the sum, one after the other.
func (c *Client) gather(p Piece, into []portals.IOVec) error {
	ct, err := c.NI.Objects().CTAlloc()
	if err != nil {
		return err
	}
	me := portals.ME{
		CT: ct, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: SumBits,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable | portals.OptMEEventCTComm | portals.OptMEEventCTBytes,
	}
	if len(into) == 1 {
		me.Start, me.Length = into[0].Base, into[0].Length
	} else {
		me.IOVec, me.Length = into, uint64(len(into))
		me.Options |= portals.OptMEIOVec
	}
	entry, err := c.NI.MEAppend(c.replyPT(), &me, portals.PriorityList, 0)
	if err != nil {
		return err
	}
	d := NewDestination(c.Self.NID, c.Self.PID, -uint64(p.At))
	if err := c.ask(p, ToClient, uint64(d)); err != nil {
		return err
	}
	err = c.Count(ct, uint64(p.Length))
	return errors.Join(err, c.NI.Objects().MEUnlink(entry), c.NI.Objects().CTFree(ct))
}

// ask starts a chain of servers that computes bytes of a failed one.
func (c *Client) ask(p Piece, last int, header uint64) error {
	r := c.round()
	r.word.Slice(16, 16+RangeSize).CopyFrom(spin.EncodeState(&Range{Offset: uint64(p.At), Length: uint64(p.Length)}))
	chain := c.rebuilding(c.failed)
	s := c.servers[bits.TrailingZeros32(chain)]
	match := uint64(last)<<LastShift | uint64(chain)<<ChainShift
	if c.parities() == 1 {
		match |= GatherBits
	} else {
		match |= uint64(p.Server)<<LostShift | CollectBits
	}
	return c.NI.Put(portals.Put{MD: r.md, Offset: 16, Length: RangeSize, Target: portals.PhysID(uint32(s.node), s.pid), PT: c.o.PT, MatchBits: match, HdrData: header})
}

// sum gets the bytes of other servers and adds them, on the client's core, at
// the places of the vectors.
func (c *Client) sum(p Piece, view runtime.View, into []portals.IOVec) error {
	set, length := c.rebuilding(c.failed), int(p.Length)
	parts := c.Proc.Alloc(length * c.o.Data)
	err := c.Counted(func(ct portals.Handle) (n int, err error) {
		place := 0
		err = each(set, func(i int) error {
			part := parts.Slice(place*length, (place+1)*length)
			md, err := c.BindView(part, portals.MD{CT: ct, Options: portals.OptMDEventCTReply})
			if err != nil {
				return err
			}
			for at := p.At; at < p.At+p.Length; {
				length := min(Chunk-at%Chunk, p.At+p.Length-at)
				id, remote := c.target(i, at)
				if err := c.NI.Get(portals.Get{MD: md, Offset: uint64(at - p.At), Length: uint64(length), Target: id, PT: c.o.PT, MatchBits: ReadBits, RemoteOffset: remote}); err != nil {
					return err
				}
				at += length
				n++
			}
			place++
			return nil
		})
		return n, err
	})
	if err != nil {
		return err
	}
	from := 0
	for _, v := range into {
		at := int(v.Base - view.Addr())
		total, all := view.Slice(at, at+int(v.Length)).WriteFrom(parts)
		clear(total)
		_ = each(set, func(i int) error {
			add(total, all[from:], c.code.Coefficient(set, uint32(p.Server), uint32(i)))
			all = all[min(length, len(all)):]
			return nil
		})
		from += len(total)
	}
	c.Proc.Stream(int64(parts.Len()), p.Length)
	return nil
}

// writeDegraded writes a range while data servers have failed. Parts on failed
// servers change parity only.
func (c *Client) writeDegraded(offset int64, from runtime.View, others func(offset int64, from runtime.View) error) error {
	return c.locked(offset, int64(from.Len()), func() error {
		if err := others(offset, from); err != nil || c.touched(offset, int64(from.Len())) == 0 {
			return err
		}
		return c.o.Pieces(offset, int64(from.Len()), func(p Piece) error {
			if !c.hasFailed(p.Server) {
				return nil
			}
			changes := c.Proc.Alloc(int(p.Length))
			if err := c.reconstruct(p, changes, []portals.IOVec{{Base: changes.Addr(), Length: uint64(p.Length)}}); err != nil {
				return err
			}
			into, data := changes.WriteFrom(from)
			for _, v := range c.o.vectors(p, 0, offset) {
				xor(into[:v.Length], data[v.Base:v.Base+v.Length])
				into = into[v.Length:]
			}
			c.Proc.Stream(2*p.Length, p.Length)
			return c.changeParity(p, changes)
		})
	})
}

// changeParity sends the parity servers a difference of a data server, times
// the coefficient of each, and waits until it is applied.
func (c *Client) changeParity(p Piece, changes runtime.View) error {
	header := uint64(NewTicket(c.Self.NID, c.Self.PID, c.Slot, 0))
	answers := int64(0)
	err := each(c.told(), func(i int) error {
		product := changes
		if by := c.coefficient(c.o.Data+i, p.Server); by != 1 {
			product = c.Proc.Alloc(changes.Len())
			into, from := product.WriteFrom(changes)
			clear(into)
			add(into, from, by)
			c.Proc.Stream(p.Length, p.Length)
		}
		md, err := c.BindView(product, portals.MD{})
		if err != nil {
			return err
		}
		id, at := c.target(c.o.Data+i, p.At)
		if c.o.Mode != Handlers { // the room of the failed server
			answers++
			t := newHostTicket(c.Slot, 0, at)
			header, at = uint64(t), uint64(p.Server*c.o.Clients*hostWindow*Chunk+t.room())
		} else {
			answers += (p.Length + c.mtu - 1) / c.mtu
		}
		return c.NI.Put(portals.Put{MD: md, Length: uint64(p.Length), Target: id, PT: c.o.PT, MatchBits: DeltaBits, RemoteOffset: at, HdrData: header})
	})
	for err == nil && answers > 0 {
		var e portals.Event
		e, err = c.Event()
		switch {
		case err != nil:
		// the answer to something for which this client no longer waits
		case e.PTIndex != c.o.PT || e.HdrData != header:
		case e.MatchBits != DoneBits:
			return ErrMemory
		default:
			answers--
		}
	}
	return err
}

// Rebuild recomputes all bytes of failed servers from the others, and writes
// them into the servers that replace them under their names. No client may
// write meanwhile, and clients are told afterwards (Restored). Rebuild also
// frees all locked rows, because their client may be gone.
func (c *Client) Rebuild() error {
	if c.failed == 0 {
		return errors.New("raid5: no server has failed")
	}
	if err := c.Usable(); err != nil {
		return err
	}
	rebuild := c.rebuildHosts
	if c.o.Mode == Handlers {
		rebuild = c.rebuildHandlers
	}
	var spans []span
	err := c.free(func() error {
		return each(c.failed, func(server int) error {
			spans = append(spans, span{server, 0, c.o.ServerBytes()})
			return rebuild(server)
		})
	})
	if err != nil {
		return err
	}
	return errors.Join(c.persist(spans), c.Release())
}

// rebuildHandlers lets chains of the servers' handlers fill a failed server's
// memory.
func (c *Client) rebuildHandlers(server int) error {
	bytes := c.o.ServerBytes()
	step := max(c.burst()/Chunk, 1) * Chunk
	return c.flights(int((bytes+step-1)/step), func(i int, slot uint32) (answers int, err error) {
		low := int64(i) * step
		high := min(low+step, bytes)
		packets := int64(0)
		for at := low; at < high; at += Chunk {
			packets += (min(Chunk, high-at) + c.mtu - 1) / c.mtu
		}
		t := NewTicket(c.Self.NID, c.Self.PID, slot, uint32(packets))
		for at := low; at < high; at += Chunk {
			if err := c.ask(Piece{server, at, min(Chunk, high-at)}, server, uint64(t)); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
}
