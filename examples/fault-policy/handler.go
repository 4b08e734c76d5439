// A page-fault policy: the block is asked for when the first 64 KiB of it are
// there, and the rest of the mapping comes while the block arrives.
//
//spin:library early 1.0
package main

import (
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o early.wasm .

// policy answers what to bring in for a page fault.
//
//go:wasmexport policy
func policy(h *spin.Header, s *pagein.State) spin.Code {
	f := spin.At[pagein.Fault](h.UserHdr)
	middle := f.Page + 64<<10
	s.Plan.First = pagein.Range{Start: f.Page, End: middle} // then the block is asked for
	s.Plan.Then = pagein.Range{Start: middle, End: f.End}   // and this part comes meanwhile
	return spin.Proceed
}

func main() {}
