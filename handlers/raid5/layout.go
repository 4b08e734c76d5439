//go:build !tinygo

package raid5

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/portals"
)

// Layout maps the bytes of an array to servers. Byte x of the array is in unit
// x / Unit; units go round the data servers. Parity byte y is the exclusive or
// of byte y of each data server. The publication writes "strided across the
// four data nodes" without a unit: the unit is our choice.
type Layout struct {
	Data int   // data servers, 1 to MaxData
	Unit int64 // bytes of a stripe unit, a multiple of 8 of at least 512
	Rows int64 // units of each server
}

// Limits of layouts.
const (
	MaxData   = 31
	LeastUnit = 512
	maxBytes  = 1 << 40 // of a server
)

// Chunk is the largest part of a server's memory in a message, and the part
// that one core of a host server serves, in bytes. Messages end at its
// multiples.
const Chunk = 64 << 10

// ErrRange is the error for a range beyond the array.
var ErrRange = errors.New("raid5: beyond the end of the array")

// Validate checks every field.
func (l *Layout) Validate() error {
	switch {
	case l.Data < 1 || l.Data > MaxData:
		return fmt.Errorf("raid5: %d data servers, expected 1 to %d", l.Data, MaxData)
	case l.Unit < LeastUnit || l.Unit%8 != 0 || l.Unit > maxBytes:
		return fmt.Errorf("raid5: stripe unit of %d B, expected a multiple of 8 of at least %d", l.Unit, LeastUnit)
	case l.Rows < 1 || l.Rows > maxBytes/l.Unit:
		return fmt.Errorf("raid5: %d units for each server, expected at least 1 and no more than %d B of them", l.Rows, int64(maxBytes))
	}
	return nil
}

// Bytes returns the size of the array.
func (l *Layout) Bytes() int64 { return l.ServerBytes() * int64(l.Data) }

// ServerBytes returns the size of each server's part.
func (l *Layout) ServerBytes() int64 { return l.Rows * l.Unit }

// within checks that a range is in the array.
func (l *Layout) within(offset, length int64) error {
	if offset < 0 || length < 0 || offset > l.Bytes() || length > l.Bytes()-offset {
		return fmt.Errorf("%w: %d B at %d of %d", ErrRange, length, offset, l.Bytes())
	}
	return nil
}

// Place returns the place of byte x of the array.
func (l *Layout) Place(x int64) (server int, at int64) {
	unit := x / l.Unit
	return int(unit % int64(l.Data)), unit/int64(l.Data)*l.Unit + x%l.Unit
}

// Byte returns the byte of the array that is byte at of a data server.
func (l *Layout) Byte(server int, at int64) int64 {
	return (at/l.Unit*int64(l.Data)+int64(server))*l.Unit + at%l.Unit
}

// Span returns the part of a non-empty range that is on a data server: its
// bytes from low up to high.
func (l *Layout) Span(server int, offset, length int64) (low, high int64) {
	bound := func(x int64) int64 { // of the server, of those before byte x of the array
		unit := x / l.Unit
		row, d := unit/int64(l.Data), int(unit%int64(l.Data))
		switch {
		case d > server:
			return (row + 1) * l.Unit
		case d < server:
			return row * l.Unit
		}
		return row*l.Unit + x%l.Unit
	}
	return bound(offset), bound(offset + length)
}

// Piece is a part of a range for one message: consecutive bytes of a server.
type Piece struct {
	Server     int
	At, Length int64
}

// Pieces calls f for the pieces of a range, chunk by chunk, and server by
// server in each chunk, so that all servers work from the beginning.
func (l *Layout) Pieces(offset, length int64, f func(Piece) error) error {
	if length == 0 {
		return nil
	}
	first, last := l.chunks(offset, length)
	for chunk := first; chunk <= last; chunk++ {
		for d := range l.Data {
			low, high := l.Span(d, offset, length)
			low, high = max(low, chunk*Chunk), min(high, (chunk+1)*Chunk)
			if low >= high {
				continue
			}
			if err := f(Piece{d, low, high - low}); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunks returns the first and the last chunk of the servers in which a
// non-empty range lies.
func (l *Layout) chunks(offset, length int64) (first, last int64) {
	first = maxBytes
	for d := range l.Data {
		if low, high := l.Span(d, offset, length); low < high {
			first, last = min(first, low/Chunk), max(last, (high-1)/Chunk)
		}
	}
	return first, last
}

// vectors returns the places of a piece in memory, where the range from offset
// on begins at address start.
func (l *Layout) vectors(p Piece, start uint64, offset int64) (list []portals.IOVec) {
	for at := p.At; at < p.At+p.Length; {
		n := min(l.Unit-at%l.Unit, p.At+p.Length-at)
		list = append(list, portals.IOVec{Base: start + uint64(l.Byte(p.Server, at)-offset), Length: uint64(n)})
		at += n
	}
	return list
}
