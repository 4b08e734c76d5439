// Package blocktest is the random test of the libraries that are a block
// device: clients write and read what they like at the same time, some of it
// the same bytes. Afterwards each byte is one of the last write, or of one that
// was under way with it.
package blocktest

import (
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Device is a client's way to the blocks.
type Device interface {
	Read(offset int64, into runtime.View) error
	Write(offset int64, from runtime.View) error
}

// Storm is what clients do, and have done.
type Storm struct {
	Clients int
	Rounds  int    // transfers of a client; all clients have fewer than 128
	Seed    uint64 // of what they transfer
	start   []byte
	writes  [][]written // by client
}

// written is a write of a client: bytes of one value.
type written struct {
	at, n      int64
	value      byte
	begun, end sim.Time
}

// forever is when a write ends that has not.
const forever = sim.Time(1<<63 - 1)

// Start is what so many bytes of a device are to hold before: none of it is a
// value that a client writes.
func (s *Storm) Start(bytes int64) []byte {
	s.start, s.writes = make([]byte, bytes), make([][]written, s.Clients)
	for i := range s.start {
		s.start[i] = byte(i) | 0x80
	}
	return s.start
}

// Client does all transfers of a client. A transfer has at most as many bytes
// as one of most says, which is drawn.
func (s *Storm) Client(p *runtime.Proc, d Device, rank int, most ...int64) error {
	size := int64(len(s.start))
	rng := rand.New(rand.NewPCG(s.Seed, uint64(rank)))
	for round := range s.Rounds {
		n := rng.Int64N(min(size, most[rng.IntN(len(most))])) + 1
		at := rng.Int64N(size - n + 1)
		v := p.Alloc(int(n))
		if rng.IntN(3) == 0 {
			if err := d.Read(at, v); err != nil {
				return err
			}
			continue
		}
		w := written{at: at, n: n, value: byte(1 + rank*s.Rounds + round), begun: p.Now(), end: forever}
		b := v.Write()
		for i := range b {
			b[i] = w.value
		}
		s.writes[rank] = append(s.writes[rank], w)
		if err := d.Write(at, v); err != nil {
			return err
		}
		s.writes[rank][len(s.writes[rank])-1].end = p.Now()
	}
	return nil
}

// Check fails a test if a byte of what the device holds cannot be.
func (s *Storm) Check(t require.TestingT, held []byte) {
	for i, b := range held {
		if !s.possible(int64(i), b) {
			require.Fail(t, "a byte that nobody may find", "seed %d: byte %d is %#02x", s.Seed, i, b)
		}
	}
}

// possible reports whether a byte may be what it is at the end: of a write
// behind which no other began that wrote it, too, and has ended. If none has
// ended it may be what it was.
func (s *Storm) possible(at int64, b byte) bool {
	last := sim.Time(-1) // when the last of its writes began, of those that have ended
	for w := range s.over(at) {
		if w.end < forever {
			last = max(last, w.begun)
		}
	}
	if last < 0 && b == s.start[at] {
		return true
	}
	for w := range s.over(at) {
		if w.value == b && w.end >= last {
			return true
		}
	}
	return false
}

// over are the writes that wrote a byte.
func (s *Storm) over(at int64) func(func(written) bool) {
	return func(yield func(written) bool) {
		for _, list := range s.writes {
			for _, w := range list {
				if at >= w.at && at < w.at+w.n && !yield(w) {
					return
				}
			}
		}
	}
}

// Ended is how many writes have ended.
func (s *Storm) Ended() (n int) {
	for _, list := range s.writes {
		for _, w := range list {
			if w.end < forever {
				n++
			}
		}
	}
	return n
}
