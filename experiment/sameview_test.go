package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// Memory that a device has written compares as what it is, before and after a
// program has read or changed it, and so do its parts.
func TestSameView(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	sent := make([]byte, 20_000)
	Pattern(sent, 3)
	for range 5 { // one of them may be guarded
		cfg := runtime.Config{Profile: device, Nodes: 2}
		_, err = Simulate(context.Background(), cfg, func(c *runtime.Cluster) error {
			require.NoError(t, c.Spawn(0, "sender", func(p *runtime.Proc) error {
				v := p.Alloc(len(sent))
				copy(v.Raw(), sent)
				md, err := p.NI().Objects().MDBind(&portals.MD{Start: v.Addr(), Length: uint64(v.Len())})
				require.NoError(t, err)
				return p.NI().Put(portals.Put{MD: md, Length: uint64(v.Len()), Target: Peer(1), PT: RequestPT, MatchBits: RequestBits})
			}))
			return c.Spawn(1, "receiver", func(p *runtime.Proc) error {
				v := p.Alloc(len(sent) + 1)
				in, err := AppendEntry(p.NI(), RequestPT, RequestBits, v, nil)
				require.NoError(t, err)
				require.NoError(t, in.Wait(len(sent)))
				require.ErrorContains(t, SameView("all", v, sent), "all: 20001 bytes arrived, 20000 were sent")
				require.NoError(t, SameView("all", v.Slice(0, len(sent)), sent))
				require.NoError(t, SameView("the middle", v.Slice(4000, 9000), sent[4000:9000]))
				require.NoError(t, SameView("the rest", v.Slice(len(sent), v.Len()), []byte{0}))
				require.ErrorContains(t, SameView("a part", v.Slice(5000, 9001), sent[4999:9000]), "a part: byte ")
				other := append([]byte{}, sent...)
				other[12_345] ^= 1
				require.ErrorContains(t, SameView("all", v.Slice(0, len(sent)), other), "all: byte 12345 of 20000 is ")
				require.Equal(t, sent, v.Slice(0, len(sent)).Read())
				v.Write()[12_345] ^= 1
				require.NoError(t, SameView("all", v.Slice(0, len(sent)), other))
				require.Equal(t, -1, v.Slice(7, 7).Differs(nil))
				runtime.View{}.Discard()
				runtime.View{}.Fill(func(int, []byte) { t.Error("there is nothing to fill") })
				filled := p.Alloc(10_000)
				filled.Fill(func(at int, piece []byte) { copy(piece, sent[at:]) })
				require.NoError(t, SameView("filled", filled, sent[:10_000]))
				filled.Slice(8192, 10_000).Discard()
				require.NoError(t, SameView("kept", filled.Slice(0, 8192), sent[:8192]))
				require.Panics(t, func() { v.Slice(2, 1) })
				require.Panics(t, func() { v.Slice(0, v.Len()+1) })
				return nil
			})
		}, func() error { return nil })
		require.NoError(t, err)
	}
}
