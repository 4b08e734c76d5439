package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// TestPackageVariables installs the same module in three entries, two of which
// use the same HPU memory. Its handler increments a variable of its own:
// entries share it if they share the HPU memory, and it stays from one message
// to the next.
func TestPackageVariables(t *testing.T) {
	const variable = 4096
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2, Engine: labEngine})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	var memories [2]*nic.Memory
	require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
		m, err := c.LoadModule("calling", calling(hpu.OpFAdd, "iI", "I", []int64{variable, 1}, 1))
		if err != nil {
			return err
		}
		for i := range memories {
			if memories[i], err = p.HPUAllocMem(m, 64); err != nil {
				return err
			}
		}
		if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
			return err
		}
		addr := p.Alloc(8).Addr()
		for bits, memory := range []int{0, 0, 1} {
			spin, err := memories[memory].Spin("", "payload", "")
			if err != nil {
				return err
			}
			spin.HPUMemOffset = uint64(8 * bits) // a state of its own
			if _, err := p.NI().MEAppend(0, &portals.ME{
				Start: addr, Length: 8, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: uint64(bits), Options: portals.OptMEOpPut, Spin: spin,
			}, portals.PriorityList, 0); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
		addr := p.Alloc(8).Addr()
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: 8})
		if err != nil {
			return err
		}
		p.Sleep(10 * sim.Microsecond)
		for _, bits := range []uint64{0, 1, 1, 2, 2, 2, 2} {
			if err := p.NI().Put(portals.Put{MD: md, Length: 8, Target: portals.PhysID(1, 0), MatchBits: bits}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
	require.Equal(t, byte(3), memories[0].Program().Memory()[variable])
	require.Equal(t, byte(4), memories[1].Program().Memory()[variable])
}
