//go:build !tinygo

package raid5

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Without handlers, clients put into a buffer of the server's host. There each
// client has room for hostWindow pieces at each core. The core looks at
// received pieces, and puts the difference to the parity server's core with the
// same number. The parity server has as much room for each data server.
const hostWindow = 4

// hostTicket is the header data of pieces in such buffers.
type hostTicket uint64

const (
	hostPlaceBits = 40 // offset in the memory of a core
	hostRoundBits = 4
)

func newHostTicket(slot uint32, round int, at uint64) hostTicket {
	return hostTicket(slot)<<(hostPlaceBits+hostRoundBits) | hostTicket(round)<<hostPlaceBits | hostTicket(at)
}

func (t hostTicket) slot() uint32 { return uint32(t >> (hostPlaceBits + hostRoundBits)) }
func (t hostTicket) round() int   { return int(t>>hostPlaceBits) & (1<<hostRoundBits - 1) }
func (t hostTicket) at() int      { return int(t & (1<<hostPlaceBits - 1)) }

// room returns the place of a piece in its buffer.
func (t hostTicket) room() int { return (int(t.slot())/service.Slots*hostWindow + t.round()) * Chunk }

// hostServer is the program of a core.
type hostServer struct {
	*Array
	p       *runtime.Proc
	s       *server
	core    int
	memory  runtime.View
	buffer  runtime.View
	md      portals.Handle // of buffer
	eq, ct  portals.Handle
	answers uint64              // due from the parity server
	waiting map[hostTicket]*due // client writes whose differences are with parity servers
}

func (a *Array) host(p *runtime.Proc, s *server, core int) error {
	h := &hostServer{Array: a, p: p, s: s, core: core, memory: s.parts[core], waiting: make(map[hostTicket]*due)}
	rooms, sides := a.o.Clients*hostWindow, max(a.parities(), 1)
	if s.index >= a.o.Data {
		rooms, sides = rooms*a.o.Data, 1
	}
	u := handlers.NewSetup("raid5", p)
	h.buffer = u.Locked(rooms * sides * Chunk)
	h.eq, h.ct = u.Queue((1+sides)*rooms+1, "requests to the array"), u.Counter("answers of the parity server")
	u.Table(a.o.PT, h.eq, 0)
	h.md = u.Bind(h.buffer, portals.MD{})
	const options = portals.OptMEOpPut | portals.OptMEEventLinkDisable
	request := portals.ME{MatchBits: WriteBits, IgnoreBits: WriteBits ^ AloneBits, Options: options}
	switch {
	case s.index >= a.o.Data:
		request.MatchBits, request.IgnoreBits = DeltaBits, 0
	case a.parities() > 1:
		request.IgnoreBits = ^uint64(KindMask)
	}
	u.Append(a.o.PT, portals.AnyID, h.buffer, request)
	done := portals.ME{MatchBits: DoneBits, CT: h.ct, Options: options | portals.OptMEEventCTComm}
	if a.o.Mode == Triggered {
		done.Options |= portals.OptMEEventCommDisable
	}
	a.append(u, runtime.View{}, done, true)
	u.Append(a.o.PT, portals.AnyID, runtime.View{}, portals.ME{MatchBits: FillBits, IgnoreBits: ^uint64(KindMask), Options: options})
	if a.readable(u, s, h.memory); u.Err != nil {
		return u.Err
	}
	return h.loop()
}

// loop serves requests one after the other.
func (h *hostServer) loop() error {
	match := h.c.Reads(used.Match).Host.Match
	for {
		e, err := h.p.NI().EQWait(h.eq)
		if err != nil {
			return err
		}
		if e.Fail != portals.NIOK {
			continue // a message whose rest will not come
		}
		h.p.Compute(match)
		switch e.MatchBits & KindMask {
		case WriteBits, AloneBits:
			err = h.write(&e)
		case DeltaBits:
			err = h.apply(&e)
		case FillBits:
			err = h.rebuild(&e)
		default:
			t := hostTicket(e.HdrData)
			if d := h.waiting[t]; d != nil {
				if d.answers--; d.answers == 0 {
					delete(h.waiting, t)
					err = h.answer(d.client, t, OK)
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// write takes a piece over: it reads old and new data, and writes new data and
// the difference.
func (h *hostServer) write(e *portals.Event) error {
	t, n := hostTicket(e.HdrData), int(e.MLength)
	if !h.has(t, t.room(), n) {
		return h.answer(e.Initiator, t, Refused)
	}
	told := h.code.ParityServers() &^ uint32(e.MatchBits>>ChainShift)
	if e.MatchBits == AloneBits {
		told = 0
	}
	if told == 0 {
		if err := h.forget(); err != nil {
			return err
		}
		h.p.Copy(h.memory.Slice(t.at(), t.at()+n), h.buffer.Slice(t.room(), t.room()+n))
		return h.answer(e.Initiator, t, OK)
	}
	block, piece := h.memory.Slice(t.at(), t.at()+n), h.buffer.Slice(t.room(), t.room()+n)
	exchange(block.Write(), piece.Write())
	runtime.Pass(h.p, block, block, piece, piece)
	if h.o.Mode == Triggered {
		if err := h.prepare(e.Initiator, t); err != nil {
			return err
		}
	} else {
		h.waiting[t] = &due{e.Initiator, bits.OnesCount32(told)}
	}
	remote := uint64(h.s.index*h.o.Clients*hostWindow*Chunk + t.room())
	return each(told, func(i int) error {
		s, from := h.servers[h.o.Data+i], h.product(t.room(), n, i)
		target := portals.PhysID(uint32(s.node), s.pid+uint32(h.core))
		return h.p.NI().Put(portals.Put{MD: h.md, Offset: uint64(from), Length: uint64(n), Target: target, PT: h.o.PT, MatchBits: DeltaBits, RemoteOffset: remote, HdrData: e.HdrData})
	})
}

// due is the state of a client's write that waits.
type due struct {
	client  portals.ID
	answers int // of parity servers
}

// product multiplies a difference in a room by a parity server's coefficient,
// into a room of its own, and returns that room. A coefficient of 1 changes
// nothing.
func (h *hostServer) product(room, n, parity int) int {
	c := h.coefficient(h.o.Data+parity, h.s.index)
	if c == 1 {
		return room
	}
	own := parity*h.o.Clients*hostWindow*Chunk + room
	into, from := h.buffer.Slice(own, own+n).WriteFrom(h.buffer.Slice(room, room+n))
	clear(into)
	add(into, from, c)
	runtime.Pass(h.p, h.buffer.Slice(own, own+n), h.buffer.Slice(room, room+n))
	return own
}

// forget drops writes that the parity server has not answered, because it or
// this server had failed. Clients have got no answer, and write again.
func (h *hostServer) forget() error {
	clear(h.waiting)
	if err := h.p.NI().Objects().CTCancelTriggered(h.ct); err != nil {
		return err
	}
	v, err := h.p.NI().Objects().CTGet(h.ct)
	h.answers = v.Success
	return err
}

// prepare lets the network interface answer the client when the parity server
// has answered. Answers come in the order of the differences.
func (h *hostServer) prepare(client portals.ID, t hostTicket) error {
	h.answers++
	return h.p.NI().Objects().Triggered(portals.Put{MD: h.md, Target: client, PT: h.replyPT(), MatchBits: ReplyBits | uint64(t.slot()), HdrData: OK}, h.ct, h.answers)
}

// apply changes parity: it reads parity and the difference, and writes parity.
func (h *hostServer) apply(e *portals.Event) error {
	t, n := hostTicket(e.HdrData), int(e.MLength)
	from := int(e.RemoteOffset)
	if !h.has(t, from, n) {
		return nil // not from a data server
	}
	block, change := h.memory.Slice(t.at(), t.at()+n), h.buffer.Slice(from, from+n)
	xor(block.WriteFrom(change))
	runtime.Pass(h.p, block, block, change)
	return h.p.NI().Put(portals.Put{MD: h.md, Target: e.Initiator, PT: h.o.PT, MatchBits: DoneBits, HdrData: e.HdrData})
}

// has reports whether the core has the bytes of a ticket, and whether its
// buffer has them from a place on. So an invalid message does no harm.
func (h *hostServer) has(t hostTicket, from, n int) bool {
	return t.at() <= h.memory.Len()-n && from >= 0 && from <= h.buffer.Len()-n
}

// answer answers a client.
func (h *hostServer) answer(client portals.ID, t hostTicket, status uint64) error {
	return h.p.NI().Put(portals.Put{MD: h.md, Target: client, PT: h.replyPT(), MatchBits: ReplyBits | uint64(t.slot()), HdrData: status})
}

// exchange writes new data over old, and the difference over the new.
func exchange(stored, sent []byte) {
	for i, b := range sent {
		sent[i] ^= stored[i]
		stored[i] = b
	}
}

// xor adds from to to, which is as long.
func xor(to, from []byte) {
	for len(to) >= 8 {
		binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(to)^binary.LittleEndian.Uint64(from))
		to, from = to[8:], from[8:]
	}
	for i := range to {
		to[i] ^= from[i]
	}
}

// rebuild computes the core's memory from other servers' cores with the same
// number. While it adds up a chunk the next one comes.
func (h *hostServer) rebuild(e *portals.Event) error {
	if err := h.forget(); err != nil {
		return err
	}
	set := uint32(e.MatchBits >> ChainShift)
	if set>>len(h.servers) != 0 || bits.OnesCount32(set) != h.o.Data {
		return nil // not from a client
	}
	others := h.o.Data
	var rooms [2]runtime.View
	var cts, mds [2]portals.Handle
	u := handlers.NewSetup("raid5", h.p)
	for i := range rooms {
		rooms[i], cts[i] = h.p.Alloc(others*Chunk), u.Counter("")
		mds[i] = u.Bind(rooms[i], portals.MD{CT: cts[i], Options: portals.OptMDEventCTReply})
	}
	if u.Err != nil {
		return u.Err
	}
	chunks := (h.memory.Len() + Chunk - 1) / Chunk
	for i := range chunks + 1 {
		if i < chunks {
			if err := h.fetch(mds[i%2], i, set); err != nil {
				return err
			}
		}
		if i == 0 {
			continue
		}
		at := (i - 1) * Chunk
		v, err := u.NI.CTWait(cts[(i-1)%2], uint64(others*((i-1)/2+1)))
		if err == nil && v.Failure > 0 {
			err = ErrMemory
		}
		if err != nil {
			return err
		}
		into := h.memory.Slice(at, min(at+Chunk, h.memory.Len()))
		total, parts := into.WriteFrom(rooms[(i-1)%2])
		clear(total)
		_ = each(set, func(other int) error {
			add(total, parts, h.code.Coefficient(set, uint32(h.s.index), uint32(other)))
			parts = parts[Chunk:]
			return nil
		})
		h.p.Stream(int64(others*len(total)), int64(len(total)))
	}
	for i := range rooms {
		if err := errors.Join(u.NI.Objects().MDRelease(mds[i]), u.NI.Objects().CTFree(cts[i])); err != nil {
			return err
		}
	}
	return h.answer(e.Initiator, hostTicket(e.HdrData), OK)
}

// fetch gets a chunk from each of a set of servers' cores.
func (h *hostServer) fetch(md portals.Handle, chunk int, set uint32) error {
	place := 0
	return each(set, func(i int) error {
		s := h.servers[i]
		n := min(Chunk, h.memory.Len()-chunk*Chunk)
		id := portals.PhysID(uint32(s.node), s.pid+uint32(h.core))
		if err := h.p.NI().Get(portals.Get{MD: md, Offset: uint64(place * Chunk), Length: uint64(n), Target: id, PT: h.o.PT, MatchBits: ReadBits, RemoteOffset: uint64(chunk * Chunk)}); err != nil {
			return err
		}
		place++
		return nil
	})
}

// rebuildHosts asks the cores of a failed server to rebuild their memory, all at once.
func (c *Client) rebuildHosts(server int) error {
	s := c.servers[server]
	match := uint64(c.rebuilding(c.failed))<<ChainShift | FillBits
	for core := range c.o.Cores {
		id := portals.PhysID(uint32(s.node), s.pid+uint32(core))
		if err := c.NI.Put(portals.Put{MD: c.round().md, Target: id, PT: c.o.PT, MatchBits: match, HdrData: uint64(newHostTicket(c.Slot, 0, 0))}); err != nil {
			return err
		}
	}
	for due := c.o.Cores; due > 0; {
		e, err := c.Event()
		if err != nil {
			return err
		}
		if e.MatchBits == ReplyBits|uint64(c.Slot) {
			due--
		}
	}
	return nil
}

// writeHosts puts pieces into the buffers of the servers, whose cores answer
// each piece. A client has at most hostWindow pieces at each core.
func (c *Client) writeHosts(offset int64, from runtime.View) error {
	var due []Piece
	_ = c.o.Pieces(offset, int64(from.Len()), func(p Piece) error {
		if !c.hasFailed(p.Server) {
			due = append(due, p)
		}
		return nil
	})
	window := make(map[portals.ID]*hostPieces)
	open := 0
	var failed error
	for len(due) > 0 || open > 0 {
		later := due[:0]
		for _, p := range due {
			id, at := c.target(p.Server, p.At)
			w := window[id]
			if w == nil {
				w = &hostPieces{}
				window[id] = w
			}
			if w.sent-w.answered == hostWindow {
				later = append(later, p)
				continue
			}
			t := newHostTicket(c.Slot, w.sent%hostWindow, at)
			if err := c.put(from, offset, p, id, uint64(t.room()), uint64(t)); err != nil {
				return err
			}
			w.sent++
			open++
		}
		due = later
		e, err := c.Event()
		if err != nil {
			return err
		}
		if w := window[e.Initiator]; w != nil && e.MatchBits == ReplyBits|uint64(c.Slot) {
			w.answered++
			open--
			failed = errors.Join(failed, status(&e))
		}
	}
	return failed
}

// hostPieces counts the pieces of a write at a core of a server.
type hostPieces struct{ sent, answered int }
