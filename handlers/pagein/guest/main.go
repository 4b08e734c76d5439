// A page-fault policy in the kernel: a number of pages from the absent one on
// (Psistakis et al., IEEE TPDS 2022, §4.4).
//
//spin:library pagein 1.0
//spin:needs handler=policy user_header=64
package main

import (
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/spin"
)

// policy answers what to bring in for a page fault.
//
//go:wasmexport policy
func policy(h *spin.Header, s *pagein.State) spin.Code {
	f := spin.At[pagein.Fault](h.UserHdr)
	s.Plan.First = pagein.Range{Start: f.Page, End: f.Page + uint64(s.Pages)*pagein.PageBytes}
	if s.Pages == 0 {
		s.Plan.First.End, s.Plan.Search = f.End, 1
	}
	return spin.Proceed
}

func main() {}
