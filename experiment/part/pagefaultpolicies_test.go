package part

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// A policy that remembers faults gives a point the same numbers alone and after
// other points of the same sweep.
func TestPoliciesWithMemory(t *testing.T) {
	type key struct {
		node    int
		process *host.Process
	}
	made := 0
	remembers := func() part.Policy {
		made++
		met := map[key]int{}
		return func(f part.Fault) part.Plan {
			k := key{f.Node, f.Process}
			if met[k]++; met[k] > 3 {
				return part.PIA(f)
			}
			return part.PIO(f)
		}
	}
	e, err := PageFault(map[string]func() part.Policy{"remembers": remembers})
	require.NoError(t, err)
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	measure := func(size int) experiment.Values {
		p, err := e.At(device, experiment.Values{"policy": "remembers", "size": size})
		require.NoError(t, err)
		r, err := e.Measure(context.Background(), p)
		require.NoError(t, err)
		return r.Values
	}
	alone := measure(256 << 10)
	measure(64 << 10)
	require.Equal(t, alone, measure(256<<10))
	require.Equal(t, 3, made)
}

// A fault names the owner of its page, the attempt, and the time. No page of a
// block is reported twice in one attempt, times never decrease, and the node is
// the destination.
func TestFaultsAreNamed(t *testing.T) {
	type asked struct {
		block part.Block
		page  uint64
	}
	seen, at := map[asked]bool{}, sim.Time(0)
	transactions := map[uint32]bool{}
	e, err := PageFault(map[string]func() part.Policy{"own": func() part.Policy {
		return func(f part.Fault) part.Plan {
			require.Equal(t, []any{1, "destination", uint32(0), true}, []any{f.Node, f.Process.Name(), f.Block.Node, f.Block.Known})
			require.GreaterOrEqual(t, f.At, at)
			at = f.At
			require.False(t, seen[asked{f.Block, f.Page}], "%+v", f)
			seen[asked{f.Block, f.Page}] = true
			transactions[f.Block.Transaction] = true
			return part.PIO(f)
		}
	}})
	require.NoError(t, err)
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	p, err := e.At(device, experiment.Values{"policy": "own", "size": 256 << 10})
	require.NoError(t, err)
	_, err = e.Measure(context.Background(), p)
	require.NoError(t, err)
	require.Len(t, seen, 64)
	require.Greater(t, len(transactions), 1)
}

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
