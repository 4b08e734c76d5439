// Breadth-first search and shortest paths: updates of distances by
// compare-and-swap in host memory, and where they go on from there (sPIN'17,
// "Simple Graph Kernels").
//
//spin:library graph 1.0
//spin:needs spaces=handler host_memory=16
package main

import (
	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/spin"
)

// graphUpdate carries out the updates of a packet. It acknowledges them when
// they are in host memory and a worker will continue from there.
//
//go:wasmexport graph_update
func graphUpdate(p *spin.Payload, s *graph.State) spin.Code {
	engages := enter(s, p.SourceNID)
	if !relax(s, spin.View[graph.Update](p.Bytes())) {
		return spin.Fail
	}
	if p.HdrData == graph.NoWorker {
		return result(leave(s), spin.Success)
	}
	op := spin.Op{TargetNID: p.SourceNID, TargetPID: p.SourcePID, PTIndex: s.PT, MatchBits: graph.AckBits, HdrData: p.HdrData}
	if engages && !spin.CAS(&s.Deficit, uint64(p.SourceNID)<<32|1, 0) {
		op.MatchBits = graph.EngagedBits // there is more to do: the sender will hear when it is done
		return result(!spin.PutFromDevice(&op).Failed() && leave(s), spin.Success)
	}
	return result((engages || leave(s)) && !spin.PutFromDevice(&op).Failed(), spin.Success)
}

// graphControl handles all other messages between nodes, and messages to self.
//
//go:wasmexport graph_control
func graphControl(h *spin.Header, s *graph.State) spin.Code {
	ok := true
	switch h.MatchBits {
	case graph.WorkBits:
		ok = work(s, h.HdrData)
	case graph.AckBits, graph.EngagedBits:
		if h.MatchBits == graph.AckBits {
			spin.FAdd(&s.Deficit, minusOne) // not the last reason: the worker is one
		}
		if spin.FAdd(&worker(s, h.HdrData).Unacked, minusOne) == 1 {
			ok = work(s, h.HdrData)
		}
	case graph.DoneBits:
		ok = leave(s)
	case graph.EndBits:
		ok = end(s)
	}
	return result(ok, spin.Drop)
}

const minusOne = ^uint64(0)

func result(ok bool, code spin.Code) spin.Code {
	if !ok {
		return spin.Fail
	}
	return code
}

// The algorithm of Dijkstra and Scholten ("Termination Detection for Diffusing
// Computations", 1980) finds the end of the search. The first packet that finds
// a node with nothing to do engages it. The node is done when everything that
// it has sent is complete; then it tells the node that has engaged it. When the
// first node is done, all are.

// enter counts a reason why the node is not done, and reports whether the
// reason engages the node.
func enter(s *graph.State, from uint32) bool {
	for {
		now := s.Deficit
		next := now + 1
		if now == 0 {
			next = uint64(from)<<32 | 1
		}
		if spin.CAS(&s.Deficit, now, next) {
			return now == 0
		}
	}
}

// leave removes a reason.
func leave(s *graph.State) bool {
	for {
		now := s.Deficit
		next := now - 1
		if uint32(next) == 0 {
			next = 0
		}
		if !spin.CAS(&s.Deficit, now, next) {
			continue
		}
		if next != 0 {
			return true
		}
		if by := uint32(now >> 32); by != s.Rank {
			return tell(s, by, graph.DoneBits)
		}
		return end(s) // only the first engages itself
	}
}

// end passes the end of the search on, in a binomial tree, and counts it.
func end(s *graph.State) bool {
	relative := (s.Rank + s.Ranks - s.Root) % s.Ranks
	ok := true
	for d := uint32(1); d < s.Ranks && relative&d == 0; d <<= 1 {
		if relative+d < s.Ranks {
			ok = tell(s, (s.Rank+d)%s.Ranks, graph.EndBits) && ok
		}
	}
	return !spin.Counter(s.DoneCT).Inc(1, 0).Failed() && ok
}

func tell(s *graph.State, to uint32, what uint64) bool {
	op := spin.Op{TargetNID: to, PTIndex: s.PT, MatchBits: what}
	return !spin.PutFromDevice(&op).Failed()
}

func main() {}
