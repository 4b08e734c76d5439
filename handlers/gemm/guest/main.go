// The matrix multiplication accelerator of ExaNeSt (TR-488 §7): C += A B of
// float32, in tiles of 128 x 128.
//
//spin:library gemm 1.0
//spin:needs memory=6*65536 spaces=entry,handler host_memory=8 entry_options=op_put
//spin:needs handler=load user_header=48
package main

import (
	"github.com/spinsim/spinsim/handlers/gemm"
	"github.com/spinsim/spinsim/spin"
)

// load begins a call, and loads the tiles of a product: A and B, and C with the
// first product of its tile.
//
//go:wasmexport load
func load(h *spin.Header, s *gemm.State) spin.Code {
	n, ours := accept(h, s)
	if !ours {
		return spin.Drop
	}
	// the product before the last still needs its tiles
	for s.Active != 0 && int32(s.Done-uint32(n)) < -1 {
		spin.Wait32(&s.Done, s.Done)
	}
	if s.Active != 0 && n+1 < s.Call.Products() {
		next(s, n+1) // it begins as soon as these tiles are there
	}
	p := s.Call.Product(n)
	a := spin.DMAFromHostNB(spin.MEHostMem, p.A, bytes(&tiles(s).A[n%2]))
	b := spin.DMAFromHostNB(spin.MEHostMem, p.B, bytes(&tiles(s).B[n%2]))
	failed := false
	if p.First {
		// the tile before the last still lies in its place
		for s.Active != 0 && s.Stored+1 < p.Of {
			spin.Wait32(&s.Stored, s.Stored)
		}
		failed = spin.DMAFromHostNB(spin.MEHostMem, p.C, bytes(&tiles(s).C[p.Of%2])).Wait().Failed()
	}
	failed = a.Wait().Failed() || failed
	if b.Wait().Failed() || failed {
		fail(s)
	}
	if s.Active == 0 {
		return spin.Drop
	}
	return spin.ProcessData
}

// accept returns the number of the product that a message is for.
func accept(h *spin.Header, s *gemm.State) (n uint64, ours bool) {
	own := h.SourceNID == s.NID && h.SourcePID == s.PID
	switch {
	case h.MatchBits>>1 != s.MatchBits>>1:
		s.Counts.Foreign++
	case h.UserHdrLen != gemm.DescriptorBytes || h.MLength <= gemm.DescriptorBytes || h.MLength != h.Length:
		s.Counts.Strange++
	case h.MatchBits&1 == gemm.KindBegin:
		return 0, begin(s, spin.At[gemm.Descriptor](h.UserHdr))
	case !own || s.Active != 0 && h.HdrData >= s.Call.Products():
		s.Counts.Strange++
	default:
		return h.HdrData, s.Active != 0
	}
	return 0, false
}

func begin(s *gemm.State, d *gemm.Descriptor) bool {
	if s.Active != 0 || s.Status != gemm.OK {
		s.Counts.Busy++
		return false
	}
	s.Call = *d
	s.Active, s.Done, s.Stored = 1, 0, 0
	s.Counts.Calls++
	if !d.Legal() {
		s.Status = gemm.Illegal
		report(s)
		return false
	}
	return true
}

// next begins a product.
func next(s *gemm.State, n uint64) {
	d := spin.AddrOf(&s.Call)
	if spin.ToSelf(&spin.Op{
		TargetNID: s.NID, TargetPID: s.PID, PTIndex: s.PT, MatchBits: s.MatchBits | gemm.KindNext, HdrData: n,
		UserHdr: d, UserHdrLen: gemm.DescriptorBytes, Local: d, Length: 1,
	}).Failed() {
		fail(s)
	}
}

// multiply computes a product.
//
//go:wasmexport multiply
func multiply(h *spin.Payload, s *gemm.State) spin.Code {
	n := number(h.MatchBits, h.HdrData)
	for s.Active != 0 && s.Done != uint32(n) { // where several processors multiply
		spin.Wait32(&s.Done, s.Done)
	}
	if s.Active == 0 {
		return spin.Drop
	}
	if s.Call.Times == 0 {
		gemm.Multiply(&tiles(s).A[n%2], &tiles(s).B[n%2], &tiles(s).C[s.Call.Product(n).Of%2])
	}
	s.Counts.Products++
	spin.FAdd32(&s.Done, 1) // at the time when the product is there
	return spin.Success
}

// store stores a tile of C after its last product, and reports the end of the
// call after the last tile.
//
//go:wasmexport store
func store(h *spin.Completion, s *gemm.State) spin.Code {
	n := number(h.MatchBits, h.HdrData)
	p := s.Call.Product(n)
	if s.Active == 0 || !p.Last {
		return spin.Success
	}
	if spin.DMAToHost(spin.MEHostMem, p.C, bytes(&tiles(s).C[p.Of%2])).Failed() {
		fail(s)
		return spin.Success
	}
	for s.Active != 0 && s.Stored != p.Of {
		spin.Wait32(&s.Stored, s.Stored)
	}
	s.Stored++
	if n+1 == s.Call.Products() {
		report(s)
	}
	return spin.Success
}

// number returns which product a message is for: a call begins with the first.
func number(bits, n uint64) uint64 {
	if bits&1 == gemm.KindBegin {
		return 0
	}
	return n
}

// tiles is where the tiles are.
func tiles(s *gemm.State) *gemm.Tiles { return spin.At[gemm.Tiles](spin.After(s)) }

func bytes(t *gemm.Tile) []byte { return spin.AddrOf(t).Bytes(gemm.TileBytes) }

// fail ends a call whose memory is not there.
func fail(s *gemm.State) {
	if s.Active == 0 {
		return
	}
	s.Status = gemm.Denied
	s.Done, s.Stored = ^s.Done, ^s.Stored // wakes all who wait
	report(s)
}

// report reports the end of a call to the host. It suspends.
func report(s *gemm.State) {
	s.Active = 0
	s.Reports = uint64(s.Status) | uint64(s.Call.Tag)<<32
	spin.StoreHost(spin.HandlerHostMem, 0, s.Reports)
	if s.DoneCT != 0 {
		spin.Counter(s.DoneCT).Inc(1, 0)
	}
}

func main() {}
