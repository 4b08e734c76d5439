// The Allreduce accelerator of ExaNeSt (TR-488 §4.7): modules that combine the
// vectors of a group of processes and give all of them the result; and beyond
// it recursive doubling and a ring.
//
//spin:library allreduce 1.0
//spin:needs memory=0 spaces=entry,handler host_memory=8 entry_options=op_put
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/allreduce/combine"
	"github.com/spinsim/spinsim/spin"
)

// atOnce is how many accesses to host memory a handler begins before it waits for the first.
const atOnce = 8

// module handles a message to the module: a descriptor of the own process, or a
// vector of another module.
//
//go:wasmexport module
func module(p *spin.Payload, s *allreduce.State) spin.Code {
	if s.Ready == 0 {
		s.Ready = 1
		for i := range 2 * s.Window {
			slot(s, i).Run = s.Next + i
		}
	}
	if p.MatchBits>>allreduce.HeaderBits != s.MatchBits>>allreduce.HeaderBits {
		s.Counts.Foreign++
		return spin.Success
	}
	switch p.MatchBits & 0xf {
	case allreduce.KindBegin:
		if p.SourceNID == s.NID && p.SourcePID == s.PID && p.Length == uint32(unsafe.Sizeof(allreduce.Descriptor{})) {
			begin(s, spin.At[allreduce.Descriptor](p.Base))
			return spin.Success
		}
	case allreduce.KindVector:
		if level := uint32(p.MatchBits>>4) & 0x3f; level < s.Levels && p.Length <= s.Block {
			vector(s, p, level)
			return spin.Success
		}
	}
	s.Counts.Strange++
	return spin.Success
}

func slot(s *allreduce.State, run uint32) *allreduce.Slot {
	return spin.At[allreduce.Slot](spin.After(s) + spin.Ptr(run%(2*s.Window)*s.SlotBytes()))
}

// own returns where a slot has the vector of its run, and place where it keeps
// a vector that arrives at a level.
func own(l *allreduce.Slot) spin.Ptr { return spin.After(l) }

func place(s *allreduce.State, l *allreduce.Slot, level uint32) spin.Ptr {
	return spin.After(l) + spin.Ptr((1+level)*s.Block)
}

// begin begins a call. It reads the peers from the table, then begins the first
// runs.
func begin(s *allreduce.State, d *allreduce.Descriptor) {
	if s.Active != 0 {
		s.Counts.Busy++
		return
	}
	s.Call = *d
	s.Active, s.Status = 1, allreduce.OK
	s.Counts.Calls++
	if !s.Legal(d) || d.First != s.Next {
		fail(s, allreduce.Illegal)
		return
	}
	s.Plan()
	if !peers(s) {
		return
	}
	// not before the peers are there: a vector that has come meanwhile would
	// begin runs
	s.Last = s.Next + (d.Bytes+s.Block-1)/s.Block
	more(s)
}

// peers reads the entries of the ranks to which vectors go.
func peers(s *allreduce.State) bool {
	var under [atOnce]spin.Handle
	for from := uint32(0); from < s.Links; from += atOnce {
		n := min(atOnce, s.Links-from)
		for i := range n {
			e := spin.AddrOf(&s.Peers[from+i]).Bytes(uint32(unsafe.Sizeof(allreduce.Entry{})))
			under[i] = spin.DMAFromHostNB(spin.MEHostMem, s.Call.Table+uint64(s.Expected[from+i])*uint64(len(e)), e)
		}
		failed := false
		for i := range n {
			failed = under[i].Wait().Failed() || failed
		}
		if failed {
			fail(s, allreduce.Denied)
			return false
		}
	}
	for i := range s.Links {
		if s.Peers[i].Rank != s.Expected[i] {
			fail(s, allreduce.BadTable)
			return false
		}
	}
	return true
}

// more begins the runs for which there is room in the window. It reads their
// vectors, some at once, and begins their steps in order. A run that ends makes
// room for another.
func more(s *allreduce.State) {
	var under [atOnce]spin.Handle
	for s.Active != 0 {
		first, n := s.Next, uint32(0)
		for n < atOnce && s.Next != s.Last && s.Next-s.Oldest < s.Window {
			l := slot(s, s.Next)
			block := s.Next - s.Call.First
			l.Offset = uint64(block) * uint64(s.Block)
			l.Bytes = uint32(min(uint64(s.Block), uint64(s.Call.Bytes)-l.Offset))
			l.Step, l.End = s.Span(block)
			l.Busy = 1
			under[n] = spin.DMAFromHostNB(spin.MEHostMem, s.Call.Source+l.Offset, own(l).Bytes(l.Bytes))
			s.Next++
			n++
			s.Counts.Runs++
		}
		if n == 0 {
			return
		}
		for i := range n {
			if under[i].Wait().Failed() {
				fail(s, allreduce.Denied)
				return
			}
			l := slot(s, first+i)
			l.Busy, l.Live = 0, 1
			advance(s, l)
		}
	}
}

// vector handles a vector of another module. It uses the vector at once if it
// is its turn, and keeps it otherwise. At most one vector is on its way to each
// level of a run. None is on its way to a run beyond the slots: a module that
// ends a run has had a vector from every module that has begun it.
func vector(s *allreduce.State, p *spin.Payload, level uint32) {
	run := uint32(p.HdrData)
	l := slot(s, run)
	age := allreduce.After(run, l.Run)
	if age > 0 {
		s.Counts.Strange++
		return
	}
	if age < 0 || l.Arrived>>level&1 != 0 {
		s.Counts.Duplicates++
		return
	}
	s.Counts.Received++
	l.Arrived |= 1 << level
	l.Signs[level] = uint32(p.HdrData >> 32)
	if l.Live != 0 && l.Busy == 0 && l.Step < l.End {
		if next := s.Program[l.Step]; next.Do() != allreduce.Send && next.Level() == level {
			if absorb(s, l, next, p.Base) {
				l.Step++
				advance(s, l)
				more(s)
			}
			return
		}
	}
	s.Counts.Early++
	copy(place(s, l, level).Bytes(p.Length), p.Bytes())
	advance(s, l)
	more(s)
}

// absorb combines a run's vector with a received one, or replaces it.
func absorb(s *allreduce.State, l *allreduce.Slot, next allreduce.Step, from spin.Ptr) bool {
	if l.Signs[next.Level()] != allreduce.Sign(l.Bytes, s.Call.Op, s.Call.Type) {
		fail(s, allreduce.Differs)
		return false
	}
	acc, v := own(l).Bytes(l.Bytes), from.Bytes(l.Bytes)
	if next.Do() == allreduce.Take {
		copy(acc, v)
	} else {
		combine.Vectors(acc, v, s.Call.Op, s.Call.Type)
	}
	return true
}

// advance takes all possible steps of a run. While a handler waits in a step,
// others leave the run alone, and that handler checks again afterwards.
func advance(s *allreduce.State, l *allreduce.Slot) {
	if l.Busy != 0 || l.Live == 0 || s.Active == 0 {
		return
	}
	l.Busy = 1
	for l.Step < l.End {
		next := s.Program[l.Step]
		level := next.Level()
		switch {
		case next.Do() == allreduce.Send:
			if !send(s, l, next) {
				return
			}
		case l.Arrived>>level&1 == 0:
			l.Busy = 0
			return
		case !absorb(s, l, next, place(s, l, level)):
			return
		}
		l.Step++
	}
	end(s, l)
}

func send(s *allreduce.State, l *allreduce.Slot, next allreduce.Step) bool {
	to := s.Peers[next.Peer()].Address
	s.Counts.Sent++
	r := spin.PutFromDevice(&spin.Op{
		TargetNID: to & (1<<allreduce.NodeBits - 1), TargetPID: to >> allreduce.NodeBits, PTIndex: s.PT,
		MatchBits: s.MatchBits | allreduce.KindVector | uint64(next.Level())<<4,
		HdrData:   uint64(l.Run) | uint64(allreduce.Sign(l.Bytes, s.Call.Op, s.Call.Type))<<32,
		Local:     own(l), Length: uint64(l.Bytes),
	})
	if r.Failed() {
		fail(s, allreduce.Illegible)
		return false
	}
	return true
}

// end writes the result of a run, and gives its slot to the one that is two windows later.
func end(s *allreduce.State, l *allreduce.Slot) {
	if spin.DMAToHostNB(spin.MEHostMem, s.Call.Result+l.Offset, own(l).Bytes(l.Bytes)).Wait().Failed() {
		fail(s, allreduce.Denied)
		return
	}
	l.Run += 2 * s.Window
	l.Arrived, l.Live, l.Busy = 0, 0, 0
	for s.Oldest != s.Last && slot(s, s.Oldest).Run != s.Oldest {
		s.Oldest++
	}
	if s.Oldest == s.Last {
		report(s)
	}
}

// fail ends a call that cannot continue.
func fail(s *allreduce.State, status uint32) {
	if s.Status != allreduce.OK {
		return
	}
	s.Status = status
	report(s)
}

// report reports the end of a call to the host, after its last write. It
// suspends, so it is the last action of a handler.
func report(s *allreduce.State) {
	if s.Active == 0 {
		return
	}
	s.Active = 0
	s.Reports = uint64(s.Status) | uint64(s.Call.Tag)<<32
	spin.DMAToHostNB(spin.HandlerHostMem, 0, spin.AddrOf(&s.Reports).Bytes(8)).Wait()
	if s.DoneCT != 0 {
		spin.Counter(s.DoneCT).Inc(1, 0)
	}
}

func main() {}
