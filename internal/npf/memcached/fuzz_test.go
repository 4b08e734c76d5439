package memcached_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/npf/memcached"
)

// For any input, in any pieces, the answers are the same. Each is a line of the
// protocol or a value.
func FuzzSession(f *testing.F) {
	scripts, err := filepath.Glob("testdata/protocol/*")
	require.NoError(f, err)
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		for _, part := range strings.Split(string(text), "\nsend\n")[1:] {
			send, _, _ := strings.Cut(part, "\n----")
			f.Add([]byte(strings.ReplaceAll(send, "\n", "\r\n")+"\r\n"), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		talk := func(n int) (string, *memcached.Store) {
			s := newStore(t, memcached.Config{Limit: 1 << 20})
			x := memcached.NewSession(s)
			var out strings.Builder
			for rest := b; len(rest) > 0; {
				n := min(n, len(rest))
				x.Feed(rest[:n])
				rest = rest[n:]
				for x.Step(0) {
				}
				out.Write(x.Output())
				x.Sent(len(x.Output()))
			}
			return out.String(), s
		}
		whole, s := talk(max(1, len(b)))
		pieces, _ := talk(int(piece) + 1)
		if len(b) <= 2048 { // a longer line ends where the server notices its length
			require.Equal(t, whole, pieces)
		}
		require.True(t, sane(whole), "%q", whole)
		require.GreaterOrEqual(t, s.Stats.Items, int64(0))
		require.GreaterOrEqual(t, s.Stats.Bytes, 56*s.Stats.Items)
	})
}

// sane reports whether a text consists of answers of the protocol.
func sane(text string) bool {
	for len(text) > 0 {
		line, rest, ok := strings.Cut(text, "\r\n")
		if !ok {
			return false
		}
		words := strings.Split(line, " ")
		switch words[0] {
		case "VALUE":
			n, err := strconv.Atoi(words[3])
			if err != nil || len(rest) < n+2 || rest[n:n+2] != "\r\n" {
				return false
			}
			rest = rest[n+2:]
		case "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND", "DELETED", "TOUCHED", "OK", "END", "ERROR", "CLIENT_ERROR", "SERVER_ERROR", "VERSION", "STAT":
		default:
			if len(bytes.Trim([]byte(line), "0123456789")) > 0 || line == "" {
				return false
			}
		}
		text = rest
	}
	return true
}
