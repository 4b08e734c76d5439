// The servers of a RAID-5 array: data servers write and stream differences, the
// parity server applies them (sPIN'17 §5.3).
//
//spin:library raid5 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/spin"
)

// open refuses a write that does not fit into the memory of a data server:
// nothing of it is written.
//
//go:wasmexport open
func open(h *spin.Header, s *raid5.State) spin.Code {
	if h.MLength == h.Length {
		return spin.ProcessData
	}
	spin.FAdd(&s.Counts.Refused, 1)
	if answer(s, raid5.Ticket(h.HdrData), raid5.Refused).Failed() {
		return spin.Fail
	}
	return spin.Drop
}

// write puts a packet of new data in its place, and sends the difference to the
// parity server.
//
//go:wasmexport write
func write(p *spin.Payload, s *raid5.State) spin.Code {
	if p.Length > s.BufferSize {
		return spin.Fail
	}
	i, buffer := acquire(s, p.Length)
	lock(s, p.HostOffset, p.Length)
	failed := spin.DMAFromHost(spin.MEHostMem, p.HostOffset, buffer).Failed() ||
		spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed()
	unlock(s, p.HostOffset, p.Length) // later reads see the new data
	var sent spin.Result
	switch {
	case failed:
		spin.FAdd(&s.Counts.Failed, 1)
		sent = settle(s, raid5.Ticket(p.HdrData), true)
	case s.Parity == raid5.NoParity || p.MatchBits == raid5.AloneBits:
		spin.FAdd(&s.Counts.Written, 1)
		sent = settle(s, raid5.Ticket(p.HdrData), false)
	default:
		spin.FAdd(&s.Counts.Written, 1)
		xor(buffer, p.Bytes())
		op := spin.Op{
			Local: spin.Addr(buffer), Length: uint64(p.Length), TargetNID: s.Servers[s.Parity].NID, TargetPID: s.Servers[s.Parity].PID, PTIndex: s.PT,
			MatchBits: raid5.DeltaBits, RemoteOffset: p.HostOffset, HdrData: p.HdrData,
		}
		sent = spin.PutFromDevice(&op)
	}
	spin.Release(&s.Free, i)
	if failed || sent.Failed() {
		return spin.Fail
	}
	return spin.Success
}

// apply changes parity by a difference, and answers the data server.
//
//go:wasmexport apply
func apply(p *spin.Payload, s *raid5.State) spin.Code {
	if p.Length > s.BufferSize {
		return spin.Fail
	}
	i, buffer := acquire(s, p.Length)
	lock(s, p.HostOffset, p.Length)
	failed := spin.DMAFromHost(spin.MEHostMem, p.HostOffset, buffer).Failed()
	if !failed {
		xor(buffer, p.Bytes())
		failed = spin.DMAToHost(spin.MEHostMem, p.HostOffset, buffer).Failed()
	}
	unlock(s, p.HostOffset, p.Length)
	spin.Release(&s.Free, i)
	op := spin.Op{TargetNID: p.SourceNID, TargetPID: p.SourcePID, PTIndex: s.PT, MatchBits: raid5.DoneBits, HdrData: p.HdrData}
	if failed {
		spin.FAdd(&s.Counts.Failed, 1)
		op.MatchBits = raid5.FailedBits
	} else {
		spin.FAdd(&s.Counts.Applied, 1)
	}
	if spin.PutFromDevice(&op).Failed() || failed {
		return spin.Fail
	}
	return spin.Success
}

// done counts a difference that the parity server has applied. After the last
// one of a write it answers the client.
//
//go:wasmexport done
func done(h *spin.Header, s *raid5.State) spin.Code {
	if settle(s, raid5.Ticket(h.HdrData), h.MatchBits == raid5.FailedBits).Failed() {
		return spin.Fail
	}
	return spin.Drop
}

// settle counts a packet of a write. The upper half of its slot counts failed
// packets, the lower half all.
func settle(s *raid5.State, t raid5.Ticket, failed bool) spin.Result {
	if t.Slot() >= s.Slots {
		return spin.Invalid
	}
	slot := spin.At[uint64](spin.After(s) + spin.Ptr(t.Slot()*raid5.SlotSize))
	one := uint64(1)
	if failed {
		one |= 1 << 32
	}
	count := spin.FAdd(slot, one) + one
	if uint32(count) != t.Packets() {
		return spin.OK
	}
	*slot = 0
	spin.FAdd(&s.Counts.Settled, 1)
	status := uint64(raid5.OK)
	if count>>32 != 0 {
		status = raid5.Failed
	}
	return answer(s, t, status)
}

// answer answers a client's write.
func answer(s *raid5.State, t raid5.Ticket, status uint64) spin.Result {
	op := spin.Op{TargetNID: t.NID(), TargetPID: t.PID(), PTIndex: s.ReplyPT, MatchBits: raid5.ReplyBits | uint64(t.Slot()), HdrData: status}
	return spin.PutFromDevice(&op)
}

// locks are behind the slots, tables behind the locks, buffers behind the tables.
func locks(s *raid5.State) spin.Ptr { return spin.After(s) + spin.Ptr(s.Slots*raid5.SlotSize) }

// lock keeps other handlers from the memory of a packet. It takes the packet's
// locks in ascending order, and handlers get each lock in the order of arrival.
func lock(s *raid5.State, offset uint64, length uint32) {
	for i := range span(offset, length) {
		l := spin.At[raid5.Lock](locks(s) + spin.Ptr(lockAt(offset, length, i)*raid5.LockSize))
		ticket := spin.FAdd(&l.Next, 1)
		waits := uint64(0)
		for l.Serving != ticket {
			waits++
			spin.Yield()
		}
		if waits != 0 {
			spin.FAdd(&s.Counts.Waits, waits) // handlers that have other locks count at the same time
		}
	}
}

// unlock lets the next handler continue.
func unlock(s *raid5.State, offset uint64, length uint32) {
	for i := range span(offset, length) {
		l := spin.At[raid5.Lock](locks(s) + spin.Ptr(lockAt(offset, length, i)*raid5.LockSize))
		spin.FAdd(&l.Serving, 1)
	}
}

// span returns how many locks a packet needs.
func span(offset uint64, length uint32) uint32 {
	return uint32((offset+uint64(length)-1)/raid5.LockBytes-offset/raid5.LockBytes) + 1
}

// lockAt returns the packet's i-th lock in ascending order. If the locks wrap
// around, those at the beginning come first.
func lockAt(offset uint64, length, i uint32) uint32 {
	first := uint32(offset/raid5.LockBytes) % raid5.Locks
	if n := span(offset, length); first+n > raid5.Locks {
		if wrapped := first + n - raid5.Locks; i < wrapped {
			return i
		} else {
			return first + i - wrapped
		}
	}
	return first + i
}

// acquire takes a buffer from the pool, which has as many as handlers can run.
func acquire(s *raid5.State, length uint32) (uint32, []byte) {
	i := spin.Acquire(&s.Free)
	at := locks(s) + raid5.Locks*raid5.LockSize + raid5.MaxBuffers*raid5.TableSize + spin.Ptr(i*((s.BufferSize+7)&^7))
	return i, at.Bytes(length)
}

// xor adds from to to, which is as long: eight words of 8 bytes at a time, then
// single words, then bytes.
func xor(to, from []byte) {
	a, b, n := unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(unsafe.SliceData(from)), len(to)
	for ; n > 64; n -= 64 { // no pointer gets behind the bytes
		x, y := (*[8]uint64)(a), (*[8]uint64)(b)
		x[0] ^= y[0]
		x[1] ^= y[1]
		x[2] ^= y[2]
		x[3] ^= y[3]
		x[4] ^= y[4]
		x[5] ^= y[5]
		x[6] ^= y[6]
		x[7] ^= y[7]
		a, b = unsafe.Add(a, 64), unsafe.Add(b, 64)
	}
	to, from = to[len(to)-n:], from[len(from)-n:]
	if n >= 8 {
		words := spin.View[uint64](from)
		into := spin.View[uint64](to)[:len(words)]
		for i := range into {
			into[i] ^= words[i]
		}
		to, from = to[n&^7:], from[n&^7:]
	}
	for i := range to {
		to[i] ^= from[i]
	}
}

func main() {}
