package main

import (
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/spin"
)

// reads is how many DMA reads a handler has on the bus at once.
const reads = 8

// pack sends the stream of the entry's memory. The message of the host starts workers, messages to self, each of which packs a batch of packets and then
// asks for its next one: so HPUs share the work, and no handler runs long.
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
	buffer, busy := acquire(s)
	first := h.HdrData
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
	*busy = 0
	if next := first + uint64(send.Batch)*uint64(send.Workers); next < packets && again(h, s, next).Failed() {
		return spin.Fail
	}
	return spin.Drop
}

// again asks for a batch.
func again(h *spin.Header, s *datatype.State, packet uint64) spin.Result {
	op := spin.Op{PTIndex: s.Send.SelfPT, MatchBits: h.MatchBits, HdrData: packet}
	return spin.ToSelf(&op)
}

// acquire takes a buffer; there are as many as workers.
func acquire(s *datatype.State) (spin.Ptr, *uint64) {
	for at := spin.After(s) + spin.Ptr(s.Send.Buffers); ; at += spin.Ptr(8 + (s.Send.Packet+7)&^7) {
		busy := spin.At[uint64](at)
		if spin.CAS(busy, 0, 1) {
			return at + 8, busy
		}
	}
}

// gather reads the runs of a packet; more says that the stream goes on behind it.
func gather(s *datatype.State, t datatype.Tree, c *datatype.Cursor, into []byte, more bool) bool {
	var open [reads]spin.Handle
	issued, ended := 0, 0
	for {
		n := uint64(len(into))
		if n > c.Left {
			n = c.Left
		}
		if issued-ended == reads {
			if open[ended%reads].Wait().Failed() {
				return false
			}
			ended++
		}
		handle := spin.DMAFromHostNB(spin.MEHostMem, uint64(s.Origin+c.Place), into[:n])
		if handle < 0 {
			return false
		}
		open[issued%reads] = handle
		issued++
		c.Place += int64(n)
		c.Left -= n
		if into = into[n:]; c.Left == 0 && (len(into) > 0 || more) {
			c.Next(t)
		}
		if len(into) == 0 {
			break
		}
	}
	for ; ended < issued; ended++ {
		if open[ended%reads].Wait().Failed() {
			return false
		}
	}
	s.Runs += uint64(issued)
	return true
}
