package part

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/profile"
)

// A transfer has a block for each piece of 16 KiB, on either side and within a
// process.
func TestPagefaultBlocks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := drawFaulted(r)
		if p.Text("policy") == policyNaive {
			r.Skip("no blocks")
		}
		w := newFaulting(p)
		var sent uint64
		require.NoError(r, w.run(context.Background(), nil, func() error {
			sent = w.way.(*engineWay).pages[0].Counts().Sent.Blocks
			return nil
		}))
		before := 0 // of the first block
		if p.Text("align") == alignPage {
			before = pageBytes
		}
		blocks := uint64((before + w.bytes + rdma.MaxBlock - 1) / rdma.MaxBlock)
		require.Equal(r, blocks*uint64(len(w.exchanges)), sent, "%s", p)
	})
}

// The thesis' Touch-A-Page is a thread that touches, its Touch-Ahead is
// get_user_pages. With another method there is no point, and the user gets an
// error.
func TestMethodsOfTheThesis(t *testing.T) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	for policy, is := range thesisBy { //lint:maporder each by itself
		for _, by := range pagefault.Axis("by").Of {
			_, err := pagefault.At(device, experiment.Values{"policy": policy, "by": by, "size": 4096})
			if by == is {
				require.NoError(t, err)
				continue
			}
			require.EqualError(t, err, "Psistakis'19 has "+policy+" --by "+is)
		}
	}
	touched := faulted(t, experiment.Values{"policy": policyTouchAPage, "by": byTouch, "size": 16384, "side": SideSource, "nodes": 1})
	ahead := faulted(t, experiment.Values{"policy": policyTouchAhead, "size": 16384, "side": SideSource, "nodes": 1})
	require.Zero(t, touched.Time("get_user_pages"))
	require.Positive(t, touched.Time("netlink"))
	require.Positive(t, ahead.Time("get_user_pages"))
	require.Zero(t, ahead.Time("netlink"))
}
