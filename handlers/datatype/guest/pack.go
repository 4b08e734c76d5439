package main

import (
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/spin"
)

// reads is how many DMA reads a handler has on the bus at once.
const reads = 8

// pack sends the stream of the entry's memory. The host's message starts
// workers, which are messages to self. Each packs a batch of packets and then
// asks for its next one, so that HPUs share the work and no handler runs long.
//
//go:wasmexport pack
func pack(h *spin.Header, s *datatype.State) spin.Code {
	send := &s.Send
	packets := (s.Size + uint64(send.Packet) - 1) / uint64(send.Packet)
	if h.Type != spin.MsgSelf {
		for w := uint64(0); w < uint64(send.Workers) && w*uint64(send.Batch) < packets; w++ {
			if again(h, s, w*uint64(send.Batch)).Failed() {
				return spin.Fail
			}
		}
		return spin.Drop
	}
	first := h.HdrData
	buffer, busy := acquire(s)
	if busy == nil { // after the message that is being packed
		if again(h, s, first).Failed() {
			return spin.Fail
		}
		return spin.Drop
	}
	code := batch(s, first, packets, buffer)
	*busy = 0
	if next := first + uint64(send.Batch)*uint64(send.Workers); code == spin.Drop && next < packets && again(h, s, next).Failed() {
		return spin.Fail
	}
	return code
}

// batch packs and sends the packets from the first on.
func batch(s *datatype.State, first, packets uint64, buffer spin.Ptr) spin.Code {
	send := &s.Send
	var c datatype.Cursor
	t := tree(s)
	s.Seeks++
	c.Seek(t, s.Root, first*uint64(send.Packet))
	for i := first; i < first+uint64(send.Batch) && i < packets; i++ {
		n := uint64(send.Packet)
		if left := s.Size - i*uint64(send.Packet); n > left {
			n = left
		}
		if !gather(s, t, &c, buffer.Bytes(uint32(n)), i+1 < packets) {
			return spin.Fail
		}
		op := spin.Op{
			Local: buffer, Length: n, TargetNID: send.NID, TargetPID: send.PID, PTIndex: send.PT, MatchBits: send.Bits,
			RemoteOffset: send.Offset + i*uint64(send.Packet),
		}
		if spin.PutFromDevice(&op).Failed() {
			return spin.Fail
		}
		s.Packets++
		if send.DoneCT != 0 {
			spin.Counter(send.DoneCT).Inc(1, 0)
		}
	}
	return spin.Drop
}

// again asks for a batch.
func again(h *spin.Header, s *datatype.State, packet uint64) spin.Result {
	op := spin.Op{PTIndex: s.Send.SelfPT, MatchBits: h.MatchBits, HdrData: packet}
	return spin.ToSelf(&op)
}

// acquire takes a buffer; there are as many as workers of one message. nil: all are in use.
func acquire(s *datatype.State) (spin.Ptr, *uint64) {
	at := spin.After(s) + spin.Ptr(s.Send.Buffers)
	for range s.Send.Workers {
		busy := spin.At[uint64](at)
		if spin.CAS(busy, 0, 1) {
			return at + 8, busy
		}
		at += spin.Ptr(8 + (s.Send.Packet+7)&^7)
	}
	return 0, nil
}

// gather reads the runs of a packet; more means that the stream continues after
// it.
func gather(s *datatype.State, t datatype.Tree, c *datatype.Cursor, into []byte, more bool) bool {
	var w window
	base := uint64(s.Origin)
	for {
		n := uint64(len(into))
		if n > c.Left {
			n = c.Left
		}
		if !w.read(base+uint64(c.Place), into[:n]) {
			return false
		}
		c.Place += int64(n)
		c.Left -= n
		if into = into[n:]; len(into) == 0 {
			break
		}
		if size, stride, runs := c.Whole(t); runs > 0 { // as in runs
			if whole := uint64(len(into)) / size; runs > whole {
				runs = whole
			}
			place := base + uint64(c.Place) - size + uint64(stride)
			for range runs {
				if !w.read(place, into[:size]) {
					return false
				}
				place += uint64(stride)
				into = into[size:]
			}
			if c.Pass(runs, stride); len(into) == 0 {
				break
			}
		}
		c.Next(t)
	}
	if c.Left == 0 && more {
		c.Next(t)
	}
	s.Runs += uint64(w.issued)
	return w.drain()
}

// window is the DMA reads of a handler that are under way.
type window struct {
	open          [reads]spin.Handle
	issued, ended uint32
}

// read starts a DMA read when there is room.
func (w *window) read(offset uint64, into []byte) bool {
	if w.issued-w.ended == reads {
		if w.open[w.ended%reads].Wait().Failed() {
			return false
		}
		w.ended++
	}
	h := spin.DMAFromHostNB(spin.MEHostMem, offset, into)
	w.open[w.issued%reads] = h
	w.issued++
	return h >= 0
}

// drain waits for all.
func (w *window) drain() bool {
	for ; w.ended != w.issued; w.ended++ {
		if w.open[w.ended%reads].Wait().Failed() {
			return false
		}
	}
	return true
}
