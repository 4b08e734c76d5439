// Package blocktest is a random test of libraries that are a block device.
// Clients write and read at random at the same time, some of them the same
// bytes. Afterwards each byte must come from the last write, or from one that
// overlapped it in time.
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

// Storm is the actions of clients, and their results.
type Storm struct {
	Clients int
	Rounds  int    // transfers of a client; all clients have fewer than 128
	Seed    uint64 // of the transfers
	start   []byte
	writes  [][]written // by client
}

// written is a write of a client: bytes of one value.
type written struct {
	at, n      int64
	value      byte
	begun, end sim.Time
}

// forever is the end of a write that has not ended.
const forever = sim.Time(1<<63 - 1)

// Start returns the initial content of a device with this many bytes. It has no
// value that a client writes.
func (s *Storm) Start(bytes int64) []byte {
	s.start, s.writes = make([]byte, bytes), make([][]written, s.Clients)
	for i := range s.start {
		s.start[i] = byte(i) | 0x80
	}
	return s.start
}

// Client does all transfers of a client. Each transfer draws one of most as its
// largest number of bytes.
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

// Check fails a test if a byte of the device's content is impossible.
func (s *Storm) Check(t require.TestingT, held []byte) {
	for i, b := range held {
		if !s.possible(int64(i), b) {
			require.Fail(t, "a byte that nobody may find", "seed %d: byte %d is %#02x", s.Seed, i, b)
		}
	}
}

// possible reports whether a byte may have its final value. It must come from a
// write after which no other write of the byte began and ended. If no write has
// ended, it may also be the initial value.
func (s *Storm) possible(at int64, b byte) bool {
	last := sim.Time(-1) // beginning of its last write, among those that have ended
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

// over returns the writes that wrote a byte.
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

// Ended returns how many writes have ended.
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
