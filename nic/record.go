package nic

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
)

// execute starts the handler of a context. It writes the handler's record and
// runs the first segment.
func (d *act) execute(r *run) hpu.Status {
	in := r.task.in
	h := in.handlers
	r.ctx = h.program.Context(r.index)
	var fn hpu.Func
	bytes, record := 0, 0
	switch r.task.kind {
	case headerHandler:
		fn, record = h.header, hpu.HeaderSize
		var user int
		user, bytes = writeHeader(r, in)
		d.settle(in, offered, user)
	case payloadHandler:
		fn, record = h.payload, hpu.PayloadSize
		bytes = writePayload(r, in)
		d.settleOffered(in, int(r.task.packet), bytes)
	case completionHandler:
		fn, record = h.completion, hpu.CompletionSize
		bytes = writeCompletion(r, in)
	}
	r.filled = uint32(bytes)
	d.watch.began(r, record)
	if d.tells {
		d.tellContext(r, fn)
	}
	budget := d.hpu.MaxCycles + d.hpu.MaxCyclesPerByte*int64(bytes)
	if t := d.requests.tenants; t != nil {
		budget = t.budget(h.memory, budget)
	}
	s := r.ctx.Start(fn, r.ctx.ArgsAddr(), h.state, budget)
	r.cycles = r.ctx.Cycles()
	return s
}

// resume continues a suspended handler.
func (d *act) resume(r *run) hpu.Status {
	d.watch.answered(r)
	s := r.ctx.Resume(r.ready)
	r.cycles = r.ctx.Cycles()
	return s
}

func (d *act) ended(r *run) hpu.Outcome {
	out := r.ctx.Outcome()
	d.watch.ended(r, &out)
	d.unlooked(r)
	if poison.On {
		r.spoil()
	}
	return out
}

// writeHeader writes the header record (docs/abi.md) and the user header.
func writeHeader(r *run, in *inbound) (user, bytes int) {
	f, h, d := in.frame, &in.frame.Header, in.d
	user = in.userHeader()
	var whole []byte
	if in.d.Spin.FirstPacket && !in.lostFirst {
		whole = in.whole(0)
	}
	bytes = r.give(f.part(0, max(user, len(whole))))
	base, mem := r.ctx.ArgsAddr(), r.ctx.Program().Present()
	rec := mem[base : base+hpu.HeaderSize]
	le := binary.LittleEndian
	le.PutUint32(rec[0:], recordType(f))
	le.PutUint32(rec[4:], uint32(user))
	le.PutUint64(rec[8:], h.RLength)
	le.PutUint64(rec[16:], d.MLength)
	putProcess(rec[24:], h.Initiator, h.NI.Logical())
	putProcess(rec[32:], h.Target, h.NI.Logical())
	le.PutUint64(rec[40:], in.d.Spin.Stamp.On(h.MatchBits, h.UID))
	le.PutUint64(rec[48:], d.Offset)
	le.PutUint64(rec[56:], h.HdrData)
	le.PutUint64(rec[64:], in.number)
	le.PutUint32(rec[72:], r.packet)
	le.PutUint32(rec[76:], uint32(d.List)) // bit 0: overflow list
	le.PutUint32(rec[80:], uint32(h.Op))
	le.PutUint32(rec[84:], uint32(h.Type))
	putRange(rec[88:], r.packet, len(whole))
	return user, bytes
}

// give copies bytes of a packet to where the context has a packet of that size.
func (r *run) give(data []byte) (bytes int) {
	r.packet = r.ctx.PacketAddr(len(data))
	return copy(r.ctx.Program().Present()[r.packet:], data)
}

// lastPacket is the last packet with data that the entry takes.
func (in *inbound) lastPacket() int { return (max(int(in.d.MLength), 1) - 1) / in.frame.MTU }

// whole is the part of packet i that the entry takes, user header included.
func (in *inbound) whole(i int) []byte {
	from, to := in.frame.Span(i)
	to = min(to, int(in.d.MLength))
	return in.frame.part(min(from, to), to)
}

// recordType is the number of a request in docs/abi.md.
func recordType(f *Frame) uint32 {
	if f.Self {
		return uint32(portals.OpSwap) + 1
	}
	return uint32(f.Header.Kind)
}

// writePayload writes the payload record (docs/abi.md) and copies the packet
// into the context's memory.
func writePayload(r *run, in *inbound) (bytes int) {
	h := &in.frame.Header
	from, to := in.frame.Span(int(r.task.packet))
	from, to = in.clip(from, to)
	if to = max(from, to); in.spoiled {
		to = from
	}
	bytes = r.give(in.frame.part(from, to))
	base, mem := r.ctx.ArgsAddr(), r.ctx.Program().Present()
	rec := mem[base : base+hpu.PayloadSize]
	le := binary.LittleEndian
	le.PutUint32(rec[0:], r.packet)
	le.PutUint32(rec[4:], uint32(to-from))
	le.PutUint64(rec[8:], uint64(in.frame.At+from-int(in.skip)))
	le.PutUint64(rec[16:], in.number)
	putProcess(rec[24:], h.Initiator, h.NI.Logical())
	le.PutUint64(rec[32:], h.HdrData)
	le.PutUint64(rec[40:], in.d.Spin.Stamp.On(h.MatchBits, h.UID))
	le.PutUint64(rec[48:], in.d.Offset+uint64(from-int(in.skip)))
	whole := in.d.MLength
	if in.frame.Datagram {
		whole = uint64(in.frame.Whole)
	}
	le.PutUint64(rec[56:], whole)
	return bytes
}

// writeCompletion writes the completion record (docs/abi.md).
func writeCompletion(r *run, in *inbound) (bytes int) {
	h := &in.frame.Header
	base := r.ctx.ArgsAddr()
	rec := r.ctx.Program().Present()[base : base+hpu.CompletionSize]
	le := binary.LittleEndian
	le.PutUint64(rec[0:], in.dropped)
	le.PutUint32(rec[8:], flag(in.flowCtl))
	le.PutUint32(rec[12:], flag(in.fail != portals.NIOK))
	le.PutUint64(rec[16:], in.number)
	putProcess(rec[24:], h.Initiator, h.NI.Logical())
	le.PutUint64(rec[32:], h.HdrData)
	le.PutUint64(rec[40:], in.d.Spin.Stamp.On(h.MatchBits, h.UID))
	le.PutUint64(rec[48:], in.d.Offset)
	le.PutUint64(rec[56:], in.d.MLength)
	var packet []byte
	if last := in.lastPacket(); in.d.Spin.LastPacket && !in.lostLast && in.frame.carries(last) {
		packet = in.whole(last)
	}
	bytes = r.give(packet)
	putRange(rec[64:], r.packet, bytes)
	return bytes
}

// putRange writes the address and length of bytes in HPU memory. Without bytes
// both are 0.
func putRange(rec []byte, address uint32, bytes int) {
	if bytes == 0 {
		address = 0
	}
	binary.LittleEndian.PutUint32(rec, address)
	binary.LittleEndian.PutUint32(rec[4:], uint32(bytes))
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// putProcess writes a process identifier: node and process, or on a logical
// interface rank and 0.
func putProcess(rec []byte, id portals.ID, logical bool) {
	nid, pid := id.NID, id.PID
	if logical {
		nid, pid = id.Rank, 0
	}
	binary.LittleEndian.PutUint32(rec, nid)
	binary.LittleEndian.PutUint32(rec[4:], pid)
}
