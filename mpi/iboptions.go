package mpi

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
)

// InfiniBandOptions are the options of transport InfiniBand. With the zero
// value no memory of programs is pinned, and the interface has page faults.
type InfiniBandOptions struct {
	// Pinning is the strategy that makes the memory of large messages ready for
	// the interface; Kind "": none. The library sets Copy. A bound applies to
	// each rank and is at least 4 pages, or 4 buckets. Buffer, for bounce
	// buffers, is at least 4 times Piece plus a page; 0: 4 MiB.
	Pinning Pinning
	// Piece is the number of bytes of a message that are made ready and
	// transferred at a time, a multiple of 4 KiB. 0: the whole message; with a
	// bound, only so much that a rank can receive two messages and send two at
	// a time. With bounce buffers 0 stands for 64 KiB, so that copies and
	// transfers overlap (Open MPI 1.x: btl_openib_max_send_size).
	Piece int
	// Connections are the options of handlers/rnr.
	Connections rnr.Options
}

// Pinning is a strategy for memory that the interface will access. Kind is
// "static", "fine", "cache", "firehose", "bounce" or "none"; `spinsim
// npf-pinning --help` describes each.
type Pinning = pinning.Options

// PinningStats are the counts of a strategy.
type PinningStats = pinning.Stats

// Defaults of InfiniBandOptions.
const (
	bouncePiece  = 64 << 10
	bounceBuffer = 4 << 20
	ibEager      = 12 << 10 // Open MPI 1.x: btl_openib_eager_limit
	ibBuffers    = 32
	maxLeases    = 16 // pieces a rank sends, and receives, at a time: our choice
)

// DefaultInfiniBandOptions returns the options of MPI over reliable
// connections. Messages of up to 12 KiB are eager, and each connection has 32
// buffers for them.
func DefaultInfiniBandOptions() Options {
	return Options{Transport: InfiniBand, Matching: Host, Eager: ibEager, Buffers: ibBuffers, BufferBytes: ibEager + frameBytes}
}

func (o *InfiniBandOptions) kind() string { return cmp.Or(o.Pinning.Kind, pinning.NoneKind) }

func (o *InfiniBandOptions) strategy() Pinning {
	p := o.Pinning
	if p.Kind = o.kind(); p.Kind == pinning.BounceKind {
		p.Buffer = cmp.Or(p.Buffer, bounceBuffer)
	}
	return p
}

// grain returns the unit of pinning.
func (o *InfiniBandOptions) grain() uint64 { return max(o.Pinning.Bucket, host.PageBytes) }

// room returns the most bytes that are pinned for messages at a time; false:
// there is no bound.
func (o *InfiniBandOptions) room() (bytes uint64, ok bool) {
	p := o.strategy()
	switch p.Kind {
	case pinning.CacheKind, pinning.FirehoseKind:
		return p.Bound, p.Bound > 0
	// Pieces have any length and place. If half of the buffer is free, some
	// hole in it is large enough.
	case pinning.BounceKind:
		return p.Buffer / 2, true
	}
	return 0, false
}

// piece returns the number of bytes of a message that are made ready at a time.
// leases is the number of pieces that a rank may send, and also receive, at a
// time. A piece may begin anywhere, so it takes one page, or bucket, more.
// Received pieces can thus never take the room of sent pieces, for which other
// ranks wait.
func (o *InfiniBandOptions) piece() (bytes uint64, leases int) {
	room, bounded := o.room()
	bytes = uint64(o.Piece)
	if bytes == 0 {
		switch {
		case o.kind() == pinning.BounceKind:
			bytes = bouncePiece
		case bounded:
			bytes = max(room/4/o.grain(), 2)*o.grain() - o.grain()
		default:
			bytes = maxMessage
		}
	}
	if !bounded {
		return bytes, maxLeases
	}
	return bytes, int(min(room/2/o.most(bytes), maxLeases))
}

// most returns the most memory that a piece takes of the room.
func (o *InfiniBandOptions) most(piece uint64) uint64 {
	grain := o.grain()
	return (piece+grain-1)/grain*grain + grain
}

// validate reports options that the transport cannot have.
func (o *InfiniBandOptions) validate(all *Options, wrong func(option, format string, args ...any)) {
	if all.transport() != InfiniBand {
		return
	}
	if all.Matching == Offload {
		wrong("matching", "%q, expected %s: over InfiniBand the process matches", all.Matching, Host)
	}
	if all.allreduce() != ModeHost {
		wrong("allreduce", "%q, expected %s: over InfiniBand processes compute it", all.Allreduce, ModeHost)
	}
	if all.Buffers > rnr.MaxWork {
		wrong("buffers", "%d, expected 1 to %d: receives of a connection", all.Buffers, rnr.MaxWork)
	}
	if o.Piece < 0 || o.Piece%host.PageBytes != 0 {
		wrong("piece of a message", "%d B, expected a multiple of %d B", o.Piece, host.PageBytes)
		return
	}
	p := o.strategy()
	if p.Kind == pinning.BounceKind {
		// attach sets the rank's own Copy later
		p.Copy = func(*host.Thread, uint64, uint64, uint64) error { return errors.ErrUnsupported }
	}
	if err := p.Validate(); err != nil {
		wrong("pinning", "%w", err)
		return
	}
	if piece, leases := o.piece(); leases < 1 {
		wrong("pinning", "%s, expected room for four pieces of %d B and what they begin and end in", fmt.Sprintf("%d B", max(p.Bound, p.Buffer)), piece)
	}
}
