package fields

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDidYouMean(t *testing.T) {
	there := []string{"cores", "contexts", "clock", "dma_write", "at"}
	for name, want := range map[string]string{
		"coers": "cores", "core": "cores", "Cores": "cores", "contxets": "contexts", "dma-write": "dma_write", "clok": "clock", "att": "at",
		"": "", "x": "", "ct": "", "memory": "", "cost": "",
	} {
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		require.Equal(t, want, DidYouMean(name, there), name)
	}
}

// The distance agrees with the textbook's recursion.
func TestDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		m, n := len(a)-1, len(b)-1
		d := min(slow(a[:m], b), slow(a, b[:n])) + 1
		if a[m] == b[n] {
			d = min(d, slow(a[:m], b[:n]))
		}
		d = min(d, slow(a[:m], b[:n])+1)
		if m > 0 && n > 0 && a[m] == b[n-1] && a[m-1] == b[n] {
			d = min(d, slow(a[:m-1], b[:n-1])+1)
		}
		return d
	}
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		require.Equal(t, slow(a, b), distance(a, b))
	})
}
