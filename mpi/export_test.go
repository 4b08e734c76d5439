package mpi

import "github.com/spinsim/spinsim/runtime"

// StatusOf is what the tests read messages on the wire with.
var StatusOf = layoutFor(2).statusOf

// ProcOf is the process below a rank, whose memory is not all the library's.
func ProcOf(r *Rank) *runtime.Proc { return r.p }
