//go:build !tinygo

package raid5

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/portals"
)

// Layout says where the bytes of an array lie. Byte x of the array is in unit x
// / Unit; units go round the data servers. Parity byte y is the exclusive or of
// byte y of each data server. The publication writes "strided across the four
// data nodes" and gives no unit: it is ours.
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

// Chunk is how many bytes of a server a message has at most, and what one core
// of a host server serves; messages end at its multiples.
const Chunk = 64 << 10

// ErrRange is a range of an array that it does not have.
var ErrRange = errors.New("raid5: beyond the end of the array")

// Validate says what is wrong.
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

// Bytes is what the array has.
func (l *Layout) Bytes() int64 { return l.ServerBytes() * int64(l.Data) }

// ServerBytes is what each server has of it.
func (l *Layout) ServerBytes() int64 { return l.Rows * l.Unit }

// within says whether a range is in the array.
func (l *Layout) within(offset, length int64) error {
	if offset < 0 || length < 0 || offset > l.Bytes() || length > l.Bytes()-offset {
		return fmt.Errorf("%w: %d B at %d of %d", ErrRange, length, offset, l.Bytes())
	}
	return nil
}

// Place is where byte x of the array lies.
func (l *Layout) Place(x int64) (server int, at int64) {
	unit := x / l.Unit
	return int(unit % int64(l.Data)), unit/int64(l.Data)*l.Unit + x%l.Unit
}

// Byte is the byte of the array that is byte at of a data server.
func (l *Layout) Byte(server int, at int64) int64 {
	return (at/l.Unit*int64(l.Data)+int64(server))*l.Unit + at%l.Unit
}

// Span is what a data server has of a range that is not empty: its bytes from low up to high.
func (l *Layout) Span(server int, offset, length int64) (low, high int64) {
	bound := func(x int64) int64 { // of the server, before byte x of the array
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

// Piece is a part of a range that goes in one message: consecutive bytes of a server.
type Piece struct {
	Server     int
	At, Length int64
}

// Pieces calls f for the pieces of a range: chunk by chunk, in each server by
// server, so that all servers work from the beginning.
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

// chunks are those of the servers in which a range that is not empty lies, from
// the first to the last.
func (l *Layout) chunks(offset, length int64) (first, last int64) {
	first = maxBytes
	for d := range l.Data {
		if low, high := l.Span(d, offset, length); low < high {
			first, last = min(first, low/Chunk), max(last, (high-1)/Chunk)
		}
	}
	return first, last
}

// vectors are where a piece lies in the memory at address start that has the range from offset on.
func (l *Layout) vectors(p Piece, start uint64, offset int64) (list []portals.IOVec) {
	for at := p.At; at < p.At+p.Length; {
		n := min(l.Unit-at%l.Unit, p.At+p.Length-at)
		list = append(list, portals.IOVec{Base: start + uint64(l.Byte(p.Server, at)-offset), Length: uint64(n)})
		at += n
	}
	return list
}
