package histogram

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The scenario holds what it expects, however many clusters the HPUs form.
func TestScenario(t *testing.T) {
	for _, set := range [][]string{nil, {"hpu.clusters=1"}, {"hpu.clusters=8"}, {"dma.latency=77ns", "hpu.contexts=1", "fabric.mtu=1024"}} {
		p, err := scenario.Load("histogram.yaml", scenario.Options{Set: set})
		require.NoError(t, err)
		result, err := p.Run(context.Background(), runtime.Config{})
		require.NoError(t, err, set)
		require.Equal(t, 4, result.Checked)
	}
}

// The same in Go: a host that sets the state and waits for it across the bus.
func TestHost(t *testing.T) {
	device, err := profile.Load("spin-dis", "hpu.clusters=4", "fabric.kind=crossbar", "fabric.radix=0")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	module, err := handlers.New("histogram", Module).Load(c)
	require.NoError(t, err)
	require.NoError(t, c.Spawn(1, "host", func(p *runtime.Proc) error {
		in, err := module.Install(p, handlers.Options{})
		if err != nil {
			return err
		}
		memory := p.Alloc(4096)
		entry := portals.ME{Start: memory.Addr(), Length: 4096, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut}
		in.Attach(&entry)
		if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
			return err
		}
		if _, err := p.NI().MEAppend(0, &entry, portals.PriorityList, 0); err != nil {
			return err
		}
		p.SleepUntil(5 * sim.Microsecond)
		for _, x := range []struct {
			field string
			value uint64
		}{{"shift", 1}, {"ready", 1}} {
			if err := in.Store(p, x.field, x.value); err != nil {
				return err
			}
		}
		if _, err := in.Await(p, "messages", func(v any) bool { return v.(uint64) == 3 }); err != nil {
			return err
		}
		p.Sleep(sim.Microsecond) // the sums are on the bus
		b := memory.Read()
		require.Equal(t, uint64(3), binary.LittleEndian.Uint64(b))
		require.Equal(t, uint32(3*4096), binary.LittleEndian.Uint32(b[8+4*(0x21>>1):]))
		require.ErrorContains(t, in.Store(p, "shifts", 1), "no field shifts")
		return nil
	}))
	require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
		data := p.Alloc(6000)
		for i, b := 0, data.Raw(); i < len(b); i++ {
			b[i] = 0x21
		}
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 6000})
		for range 3 {
			if err == nil {
				err = p.NI().Put(portals.Put{MD: md, Length: 4096, Target: portals.PhysID(1, 0)})
			}
		}
		return err
	}))
	require.NoError(t, c.Run(t.Context()))
	_, failures := c.Failures()
	require.Zero(t, failures)
}
