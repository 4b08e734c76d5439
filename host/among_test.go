package host_test

import (
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
)

// line is the test's record of an Order.
type line struct {
	landed int // when its last write landed
	// when its last stream ended; true: of those Among others
	streamed map[bool]int
	streams  []*use // Among its accesses
}

func lineOf(lines map[*host.Order]*line, o *host.Order) *line {
	l := lines[o]
	if l == nil {
		l = &line{streamed: map[bool]int{}}
		lines[o] = l
	}
	return l
}

// among records a stream Among the accesses of the line.
func (l *line) among(t require.TestingT, u *use) {
	if len(u.ended) > 0 {
		require.Less(t, l.landed, u.ended[0], "a stream reads behind the writes before it")
	}
	l.streams = append(l.streams, u)
}

// unchanged checks that bytes changed by a write or an atomic at a moment were
// read before by the earlier streams.
func (l *line) unchanged(t require.TestingT, u *use, moment int) {
	changes := u.addresses(0, u.Length)
	for _, s := range l.streams {
		if s.Space != u.Space {
			continue
		}
		for i, p := range s.pieces {
			for _, r := range s.addresses(s.Span(p)) {
				for _, c := range changes {
					require.False(t, moment < s.ended[i] && c[0] < r[1] && r[0] < c[1], "%+v changes what piece %d of %+v is to read", u, p, s)
				}
			}
		}
	}
}

// addresses returns the ranges of bytes from one offset to another.
func (u *use) addresses(from, to int) (list [][2]uint64) {
	for from < to {
		at, n := u.At(from)
		n = min(n, to-from)
		list = append(list, [2]uint64{at, at + uint64(n)})
		from += n
	}
	return list
}

// strides are accesses of runs of so many bytes, with gaps of the same length.
type strides int

func (s strides) Place(a *host.Access, off int) (addr uint64, n int) {
	k := off / int(s)
	return a.Addr + uint64(off+k*int(s)), int(s) - off%int(s)
}
