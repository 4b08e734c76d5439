package mpi

import (
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/runtime"
)

// StatusOf decodes a message on the wire for the tests.
func StatusOf(match, data uint64) Status { return statusOf(envelopeOf(match), data) }

// ProcOf returns the process of a rank. Not all of its memory belongs to the
// library.
func ProcOf(r *Rank) *runtime.Proc { return r.p }

// Observe calls f for each message and its context, in the message's turn, on
// transports ExaNet and InfiniBand.
func Observe(r *Rank, f func(s Status, context int)) {
	observe := func(e envelope, s Status) { f(s, int(e.context)) }
	switch t := r.transport.(type) {
	case *overExaNet:
		t.observe = observe
	case *overInfiniBand:
		t.observe = observe
	}
}

// StrategyOf returns the pinning strategy of a rank on InfiniBand, which a test
// may replace.
func StrategyOf(r *Rank) *pinning.Strategy { return &r.transport.(*overInfiniBand).strategy }

// ConnectionsOf returns the library that connects the ranks of a world.
func ConnectionsOf(w *World) *rnr.Loaded { return w.carrier.(*infiniBandCarrier).library }

// ContextOf returns the context of a message on the wire.
func ContextOf(match uint64) int { return int(envelopeOf(match).context) }
