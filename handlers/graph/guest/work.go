package main

import (
	"math/bits"

	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/spin"
)

func worker(s *graph.State, n uint64) *graph.Worker {
	return spin.At[graph.Worker](at(s, n))
}

// at returns the address of a worker.
func at(s *graph.State, n uint64) spin.Ptr {
	return spin.After(s) + spin.Ptr(s.Workers+uint32(n)*s.Stride)
}

// work takes vertices and follows their edges, until there is a full packet for
// some node, or no vertex left. Then it sends all packets, and continues when
// all are acknowledged. So a worker has at most one packet on its way to each
// node.
func work(s *graph.State, n uint64) bool {
	w := worker(s, n)
	full, ok := w.Sending != 0, true
	for w.Turn = graph.Turn; w.Turn > 0; {
		found := true
		if !full && w.At == w.Have && w.Left == 0 {
			found, ok = next(s, w)
		}
		if ok && found && !full {
			full, ok = follow(s, n)
		}
		if ok && (full || !found) {
			var sent bool
			if sent, ok = send(s, n); sent {
				return ok
			}
			full = w.Sending != 0
		}
		if ok && !found && !full && int64(s.Pending) <= 0 {
			var rests bool
			if rests, ok = idle(s, n); rests {
				return ok
			}
		}
		if !ok {
			return false
		}
	}
	return again(s, n)
}

// idle makes a worker idle, unless there is something to do. It sees work that
// came before it was idle, and later work wakes it.
func idle(s *graph.State, n uint64) (rests, ok bool) {
	bit := uint64(1) << n
	spin.FAdd(&s.Idle, bit)
	for int64(s.Pending) > 0 && s.Idle&bit != 0 {
		if now := s.Idle; spin.CAS(&s.Idle, now, now&^bit) {
			return false, true
		}
	}
	return true, leave(s) // the handler that has woken it meanwhile has counted it again
}

// next begins with a vertex.
func next(s *graph.State, w *graph.Worker) (found, ok bool) {
	if w.Bits == 0 && !take(s, w) {
		return false, true
	}
	vertex := w.First + uint32(bits.TrailingZeros64(w.Bits))
	w.Bits &= w.Bits - 1
	if spin.DMAFromHost(spin.HandlerHostMem, place(vertex), spin.AddrOf(&w.Vertex).Bytes(graph.VertexSize)).Failed() {
		return false, false
	}
	w.Start, w.Left, w.At, w.Have = uint64(w.Vertex.Start), w.Vertex.Degree, 0, 0
	w.Distance, w.Parent = uint32(w.Vertex.Label>>32), vertex*s.Ranks+s.Rank
	spin.FAdd(&s.Counts.Taken, 1)
	w.Turn -= graph.TurnCost
	return true, true
}

// follow makes updates from the edges in Chunk, or in a new one. It stops at a
// full packet for another node.
func follow(s *graph.State, n uint64) (full, ok bool) {
	w := worker(s, n)
	if w.At == w.Have && !read(s, w) {
		return false, false
	}
	fills := spin.View[uint32]((at(s, n) + graph.WorkerSize).Bytes(4 * s.Ranks))
	list := spin.View[graph.Update](packets(s, n).Bytes(s.Ranks * s.Capacity * graph.UpdateSize))
	begin := w.At
	for w.At < w.Have && !full && w.Turn > 0 {
		target, weight := w.Chunk[w.At&(graph.ChunkWords-1)], uint32(1)
		if w.At++; s.Weighted != 0 {
			weight = w.Chunk[w.At&(graph.ChunkWords-1)]
			w.At++
		}
		distance := w.Distance + weight
		if distance < weight || distance == 1<<32-1 {
			continue // it is farther than any distance
		}
		to := target & (1<<s.Shift - 1)
		fill := fills[to]
		u := &list[to*s.Capacity+fill]
		u.Label, u.Vertex = graph.Label(distance, w.Parent), target>>s.Shift
		if fills[to] = fill + 1; fill+1 < s.Capacity {
			continue
		}
		if full = to != s.Rank; !full {
			fills[to] = 0
			w.Turn -= int32(s.Capacity * graph.TurnCost)
			if !relax(s, list[to*s.Capacity:][:s.Capacity]) {
				return false, false
			}
		}
	}
	w.Turn -= int32(w.At - begin)
	spin.FAdd(&s.Counts.Edges, uint64(w.At-begin)>>s.Weighted)
	return full, true
}

// read reads the next edges of a vertex.
func read(s *graph.State, w *graph.Worker) bool {
	some := uint32(graph.ChunkWords) >> s.Weighted
	if some > w.Left {
		some = w.Left
	}
	w.At, w.Have = 0, some<<s.Weighted
	if some == 0 {
		return true
	}
	from := s.Edges + w.Start<<(2+s.Weighted)
	w.Start, w.Left = w.Start+uint64(some), w.Left-some
	return !spin.DMAFromHost(spin.HandlerHostMem, from, spin.AddrOf(&w.Chunk).Bytes(4*w.Have)).Failed()
}

// packets returns the address of a worker's updates.
func packets(s *graph.State, n uint64) spin.Ptr {
	return at(s, n) + spin.Ptr(graph.WorkerSize+(4*s.Ranks+15)&^15)
}

// send sends a worker's updates for other nodes, and carries out its updates
// for its own. sent means that the last acknowledgement will let the worker
// continue. It is false if everything was acknowledged meanwhile, if there was
// nothing to send, or if the worker must go on sending in its next turn.
func send(s *graph.State, n uint64) (sent, ok bool) {
	w := worker(s, n)
	fills := spin.View[uint32]((at(s, n) + graph.WorkerSize).Bytes(4 * s.Ranks))
	if w.Sending == 0 {
		w.Unacked = 1
	}
	for w.Sending < s.Ranks {
		if w.Turn <= 0 && w.Sending > 0 {
			return false, true
		}
		w.Sending++
		to := s.Rank + w.Sending // the next node first, so that not all send to the same one
		if to >= s.Ranks {
			to -= s.Ranks
		}
		fill := fills[to]
		if fill == 0 {
			continue
		}
		fills[to] = 0
		op := spin.Op{
			Local: packets(s, n) + spin.Ptr(to*s.Capacity*graph.UpdateSize), Length: uint64(fill) * graph.UpdateSize,
			TargetNID: to, PTIndex: s.PT, MatchBits: graph.UpdateBits, HdrData: n,
		}
		if w.Turn -= graph.TurnCost; to == s.Rank {
			w.Turn -= int32(fill * graph.TurnCost)
			if !relax(s, spin.View[graph.Update](op.Local.Bytes(uint32(op.Length)))) {
				return false, false
			}
			continue
		}
		spin.FAdd(&s.Deficit, 1)
		spin.FAdd(&w.Unacked, 1)
		spin.FAdd(&s.Counts.Sent, uint64(fill))
		if spin.PutFromDevice(&op).Failed() {
			return false, false
		}
	}
	w.Sending = 0
	return spin.FAdd(&w.Unacked, minusOne) != 1, true
}
