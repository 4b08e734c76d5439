package mpi

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/host/pinning"
)

// InfiniBandOptions are the options of transport InfiniBand. With the zero
// value no memory of programs is pinned: the interface has page faults.
type InfiniBandOptions struct {
	// Pinning is how memory of large messages becomes ready for the interface;
	// Kind "" stands for none. Copy is the library's own. A bound holds for the
	// rank: at least 4 pages, or buckets. Buffer of bounce buffers: 0 stands
	// for 4 MiB; at least 4 times Piece and a page.
	Pinning pinning.Options
	// Piece is how many bytes of a message are made ready and transferred at a
	// time, a multiple of 4 KiB; 0: all of them, as far as the bound lets two
	// messages be received and two be sent, and 64 KiB of bounce buffers, so
	// that copies and transfers overlap (Open MPI 1.x:
	// btl_openib_max_send_size).
	Piece int
	// Connections are the options of handlers/rnr.
	Connections rnr.Options
}

// Defaults of InfiniBandOptions.
const (
	bouncePiece  = 64 << 10
	bounceBuffer = 4 << 20
	ibEager      = 12 << 10 // Open MPI 1.x: btl_openib_eager_limit
	ibBuffers    = 32
	maxLeases    = 16 // pieces that a rank sends, and receives, at a time: ours
)

// DefaultInfiniBandOptions returns the options of MPI over reliable
// connections: messages of up to 12 KiB are eager, each connection has 32
// buffers for them.
func DefaultInfiniBandOptions() Options {
	return Options{Transport: InfiniBand, Matching: Host, Eager: ibEager, Buffers: ibBuffers, BufferBytes: ibEager + frameBytes}
}

// kind is the strategy.
func (o *InfiniBandOptions) kind() string { return cmp.Or(o.Pinning.Kind, pinning.NoneKind) }

// strategy is what the strategy of a rank is made of.
func (o *InfiniBandOptions) strategy() pinning.Options {
	p := o.Pinning
	if p.Kind = o.kind(); p.Kind == pinning.BounceKind {
		p.Buffer = cmp.Or(p.Buffer, bounceBuffer)
	}
	return p
}

// grain is the unit of what is pinned.
func (o *InfiniBandOptions) grain() uint64 { return max(o.Pinning.Bucket, host.PageBytes) }

// room is how many bytes are pinned at most at a time for messages; no bound: ok is false.
func (o *InfiniBandOptions) room() (bytes uint64, ok bool) {
	p := o.strategy()
	switch p.Kind {
	case pinning.CacheKind, pinning.FirehoseKind:
		return p.Bound, p.Bound > 0
	// pieces are of any length, and lie anywhere: half of it has a hole that is
	// large enough
	case pinning.BounceKind:
		return p.Buffer / 2, true
	}
	return 0, false
}

// piece is how many bytes of a message are made ready at a time, and leases how
// many pieces a rank may send, and as many receive, at a time. A piece begins
// anywhere: it takes a page, or bucket, more. What is received can so never
// take the room of what is sent, which others wait for.
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

// most is what a piece takes at most of what may be pinned.
func (o *InfiniBandOptions) most(piece uint64) uint64 {
	grain := o.grain()
	return (piece+grain-1)/grain*grain + grain
}

// validate reports what does not fit the transport.
func (o *InfiniBandOptions) validate(all *Options, wrong func(option, format string, args ...any)) {
	if all.transport() != InfiniBand {
		return
	}
	if all.Matching == Offload {
		wrong("matching", "%q, expected %s: over InfiniBand the process matches", all.Matching, Host)
	}
	if all.allreduce() != ByHost {
		wrong("allreduce", "%q, expected %s: over InfiniBand processes compute it", all.Allreduce, ByHost)
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
		// the rank's own comes with the rank
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
