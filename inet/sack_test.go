package inet

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// octets is the scoreboard in the form of RFC 6675 §2 and §4: a mark for each
// byte.
type octets struct {
	una, top, again, mss int
	told                 []bool
}

// lost is IsLost.
func (o *octets) lost(seq int) bool {
	ranges, bytes := 0, 0
	for i := seq; i < o.top; i++ {
		if o.told[i] {
			bytes++
			if i == seq || !o.told[i-1] {
				ranges++
			}
		}
	}
	return ranges >= 3 || bytes > 2*o.mss
}

// pipe is SetPipe.
func (o *octets) pipe() (n int) {
	for i := o.una; i < o.top; i++ {
		if o.told[i] {
			continue
		}
		if !o.lost(i) {
			n++
		}
		if i < o.again {
			n++
		}
	}
	return n
}

// hole is rules (1) and (3) of NextSeg: the first byte to send again, -1 if
// there is none.
func (o *octets) hole(whatever bool) int {
	highest := o.top - 1
	for highest >= o.una && !o.told[highest] {
		highest--
	}
	for i := max(o.una, o.again); i < highest; i++ {
		if !o.told[i] && (whatever || o.lost(i)) {
			return i
		}
	}
	return -1
}

// last is rule (4): the highest byte without a mark.
func (o *octets) last() int {
	for i := o.top - 1; i >= o.una; i-- {
		if !o.told[i] {
			return i
		}
	}
	return -1
}

// The scoreboard keeps ranges and counts from one end. It agrees with a mark
// for each byte, for any blocks and acknowledgements in any order.
func TestScoreboardAgainstOctets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const first = 1<<32 - 40 // sequence numbers wrap
		o := octets{top: rapid.IntRange(1, 100).Draw(t, "top"), mss: rapid.IntRange(1, 12).Draw(t, "mss")}
		o.told = make([]bool, o.top+1)
		b := scoreboard{on: true, again: first}
		seq := func(i int) uint32 { return first + uint32(i) }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "ack") == 0 {
				o.una = rapid.IntRange(o.una, o.top).Draw(t, "una")
				o.again = max(o.again, o.una)
				b.forget(seq(o.una))
			} else {
				from := rapid.IntRange(0, o.top).Draw(t, "from")
				to := rapid.IntRange(0, o.top+3).Draw(t, "to")
				news := false
				for i := max(from, o.una); to <= o.top && i < to; i++ {
					news = news || !o.told[i]
					o.told[i] = true
				}
				s := &Segment{Told: 1}
				s.Blocks[0] = Block{seq(from), seq(to)}
				require.Equal(t, news, b.update(s, seq(o.una), seq(o.top)))
			}
			if rapid.Bool().Draw(t, "repeat") {
				o.again = rapid.IntRange(o.again, o.top).Draw(t, "again")
			}
			b.again = seq(o.again)
			o.same(t, &b, seq)
		}
	})
}

func (o *octets) same(t *rapid.T, b *scoreboard, seq func(int) uint32) {
	una, top, mss := seq(o.una), seq(o.top), uint32(o.mss)
	require.EqualValues(t, o.pipe(), b.pipe(una, top, mss))
	for i := o.una; i < o.top; i++ {
		if !o.told[i] {
			require.Equal(t, o.lost(i), b.lost(seq(i), mss), i)
		}
	}
	for _, whatever := range []bool{false, true} {
		want := o.hole(whatever)
		k, is := b.hole(una, mss, whatever)
		require.Equal(t, want >= 0, is)
		if is {
			require.Equal(t, seq(want), k.From)
		}
	}
	want := o.last()
	k, is := b.last(una, top)
	require.Equal(t, want >= 0, is)
	if is {
		require.Equal(t, seq(want)+1, k.To)
	}
}
