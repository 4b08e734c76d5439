package mpi

import "github.com/spinsim/spinsim/runtime"

// StatusOf is what the tests read messages on the wire with.
func StatusOf(match, data uint64) Status { return statusOf(envelopeOf(match), data) }

// ProcOf is the process below a rank, whose memory is not all the library's.
func ProcOf(r *Rank) *runtime.Proc { return r.p }

// Observe has a rank of transport ExaNet tell of each message and its context as its turn comes.
func Observe(r *Rank, f func(s Status, context int)) {
	r.transport.(*overExaNet).observe = func(e envelope, s Status) { f(s, int(e.context)) }
}

// ContextOf is the context of a message on the wire.
func ContextOf(match uint64) int { return int(envelopeOf(match).context) }
