package mpi

import (
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host/pinning"
	"github.com/spinsim/spinsim/runtime"
)

// StatusOf is what the tests read messages on the wire with.
func StatusOf(match, data uint64) Status { return statusOf(envelopeOf(match), data) }

// ProcOf is the process below a rank, whose memory is not all the library's.
func ProcOf(r *Rank) *runtime.Proc { return r.p }

// Observe has a rank of transport ExaNet or InfiniBand tell of each message and
// its context as its turn comes.
func Observe(r *Rank, f func(s Status, context int)) {
	observe := func(e envelope, s Status) { f(s, int(e.context)) }
	switch t := r.transport.(type) {
	case *overExaNet:
		t.observe = observe
	case *overInfiniBand:
		t.observe = observe
	}
}

// StrategyOf is what a rank of transport InfiniBand pins memory with; it may be replaced.
func StrategyOf(r *Rank) *pinning.Strategy { return &r.transport.(*overInfiniBand).strategy }

// ConnectionsOf are what connects the ranks of a world.
func ConnectionsOf(w *World) *rnr.Loaded { return w.carrier.(*infiniBandCarrier).library }

// ContextOf is the context of a message on the wire.
func ContextOf(match uint64) int { return int(envelopeOf(match).context) }
