package host

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/poison"
)

// A page has its bytes until its last user drops it, whatever others keep and
// drop meanwhile, and although bytes that differ may have the same print.
func TestPagesKeepTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Slab{}
		type user struct {
			page *Page
			want []byte
		}
		var users []user
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(users) > 0 && rapid.Bool().Draw(t, "drop") {
				i := rapid.IntRange(0, len(users)-1).Draw(t, "user")
				s.Drop(users[i].page)
				users[i] = users[len(users)-1]
				users = users[:len(users)-1]
			} else {
				b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "fill") % 3}, rapid.SampledFrom([]int{1, 7, 8, 9, 1024, 4096}).Draw(t, "length"))
				// where the print does not look
				b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte") % 3
				users = append(users, user{s.Keep(b), bytes.Clone(b)})
				clear(b) // the caller's own
			}
			for _, u := range users {
				require.Equal(t, u.want, u.page.Bytes())
			}
		}
		for _, u := range users {
			s.Drop(u.page)
		}
		require.Zero(t, s.live.Live())
	})
}

// Equal bytes take room once.
func TestEqualPagesAreOne(t *testing.T) {
	s := &Slab{}
	a, b := bytes.Repeat([]byte{5}, 4096), bytes.Repeat([]byte{5}, 4096)
	first := s.Keep(a)
	require.Same(t, first, s.Keep(b))
	b[100] = 6
	require.NotSame(t, first, s.Keep(b))
	require.Equal(t, a, first.Bytes())
}

// Keeping and dropping allocate nothing once there are pages.
func TestKeepAllocatesNothing(t *testing.T) {
	if poison.On { // pages are not used again
		return
	}
	s := &Slab{}
	b := make([]byte, 4096)
	round := func() {
		b[0]++
		p := s.Keep(b)
		s.Drop(s.Keep(b))
		s.Drop(p)
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

func BenchmarkKeep(b *testing.B) {
	for _, x := range []struct {
		name  string
		equal bool
	}{{"equal", true}, {"different", false}} {
		b.Run(x.name, func(b *testing.B) {
			s, bytes := &Slab{}, make([]byte, 4096)
			first := s.Keep(bytes)
			b.SetBytes(4096)
			for range b.N {
				if !x.equal {
					bytes[0]++
				}
				s.Drop(s.Keep(bytes))
			}
			s.Drop(first)
		})
	}
}
