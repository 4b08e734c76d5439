package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The source, as native Go: tokens that were missed count, no more than the
// bucket holds, and the timer rests while the bucket is full.
func TestTicks(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 64})
	s := State{Period: 500, Bytes: 8, Depth: 4, Target: 3}
	d.Now = 77
	handle := func(h spin.Header) { require.Equal(t, spin.Drop, spintest.Run(d, header, &h, &s)) }
	tick := func(expiries uint64) {
		d.Expiries = expiries
		handle(spin.Header{Type: spin.MsgSelf})
	}
	handle(spin.Header{HdrData: 6})
	handle(spin.Header{HdrData: 1})
	set := d.Named("timer_at")
	require.Len(t, set, 1)
	require.Equal(t, []uint64{577, 500}, []uint64{set[0].A, set[0].B})
	tick(1)
	require.Len(t, d.Puts(), 1)
	tick(9) // the bucket has room for 4
	require.Len(t, d.Puts(), 5)
	d.Fail("put_from_host", spin.NoSpace, 1)
	tick(1)
	tick(1) // its token, and the one before
	require.Equal(t, uint64(7), s.Sent)
	tick(3)
	require.Empty(t, d.Named("timer_cancel"), "a token is missing")
	tick(1)
	require.Len(t, d.Named("timer_cancel"), 1)
	d.Fail("timer_at", spin.NoSpace, 1)
	require.Equal(t, spin.Fail, spintest.Run(d, header, &spin.Header{HdrData: 1}, &s))
	require.Zero(t, s.Timer)
}

// arrivals are the times at which packets come to rank 0.
type arrivals struct {
	c  *runtime.Cluster
	at []sim.Time
}

func (r *arrivals) Trace(ni *portals.NI, x *portals.TraceRecord) {
	if id, err := ni.PhysID(); err == nil && id.NID == 0 && x.What == portals.TraceEvent && x.Event.Type == portals.EventPut {
		r.at = append(r.at, r.c.Engine().Now())
	}
}

// pace lets rank 0 ask the bucket of rank 1 for packets twice, and returns when
// they came and how many expiries had no message.
func pace(t *testing.T, state map[string]any, ask [2]uint64, overrides ...string) ([]sim.Time, int64) {
	device, err := profile.Load("spin-dis", append([]string{"fabric.kind=crossbar", "fabric.radix=0"}, overrides...)...)
	require.NoError(t, err)
	r := &arrivals{}
	r.c, err = runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Explain: r})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.c.Close()) }()
	module, err := handlers.Open("token-bucket.wasm")
	require.NoError(t, err)
	loaded, err := module.Load(r.c)
	require.NoError(t, err)
	entry := func(p *runtime.Proc, in *handlers.Installed, eq portals.Handle) error {
		e := portals.ME{Start: p.Alloc(4096).Addr(), Length: 4096, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable}
		if in != nil {
			in.Attach(&e)
		}
		_, err := p.NI().Objects().PTAlloc(0, eq, 0)
		if err == nil {
			_, err = p.NI().MEAppend(0, &e, portals.PriorityList, 0)
		}
		return err
	}
	require.NoError(t, r.c.Spawn(1, "bucket", func(p *runtime.Proc) error {
		in, err := loaded.Install(p, handlers.Options{State: state})
		if err != nil {
			return err
		}
		return entry(p, in, portals.EQNone)
	}))
	require.NoError(t, r.c.Spawn(0, "sink", func(p *runtime.Proc) error {
		eq, err := p.NI().Objects().EQAlloc(ask[0] + ask[1] + 8)
		if err != nil {
			return err
		}
		if err := entry(p, nil, eq); err != nil {
			return err
		}
		md, err := p.NI().Objects().MDBind(&portals.MD{})
		for i := 0; i < 2 && err == nil; i++ {
			p.SleepUntil(10*sim.Microsecond + sim.Time(i)*5*sim.Millisecond)
			err = p.NI().Put(portals.Put{MD: md, Target: portals.PhysID(1, 0), HdrData: ask[i]})
		}
		return err
	}))
	require.NoError(t, r.c.Run(t.Context()), "the timer rests, so the run ends")
	_, failures := r.c.Failures()
	require.Zero(t, failures)
	require.Len(t, r.at, int(ask[0]+ask[1]))
	return r.at, r.c.Node(1).Stats().MissedExpiries
}

// Three million packets a second, or one each 333,333 ps: after 10,000 packets
// not a picosecond is lost or won.
func TestRateIsExact(t *testing.T) {
	const period = 333_333
	at, missed := pace(t, map[string]any{"period": uint64(period), "bytes": uint64(256), "depth": uint64(1)}, [2]uint64{10_000, 0})
	for k := range at {
		require.Equal(t, sim.Time(k)*period, at[k]-at[0], "packet %d", k)
	}
	require.Zero(t, missed)
}

// A processor of 100 MHz is too slow for the ticks: messages of the timer stand
// for several, and the rate stays.
func TestLateHandlersKeepTheRate(t *testing.T) {
	const period, n = 333_333, 10_000
	at, missed := pace(t, map[string]any{"period": uint64(period), "bytes": uint64(64), "depth": uint64(50)}, [2]uint64{n, 0}, "hpu.clock=100MHz")
	require.Greater(t, missed, int64(n/2))
	// the bucket is empty once a tick has sent what had collected
	const slack = 30 * sim.Microsecond
	require.InDelta(t, float64(n-1)*period, float64(at[n-1]-at[0]), float64(slack))
}

// Tokens collect while nothing is sent: after a pause a burst leaves at once,
// as deep as the bucket, then a packet each period.
func TestBurst(t *testing.T) {
	const period, depth = 2_000_000, 4
	at, missed := pace(t, map[string]any{"period": uint64(period), "bytes": uint64(64), "depth": uint64(depth)}, [2]uint64{1, 10})
	at = at[1:]
	require.Zero(t, missed)
	require.Less(t, at[depth-1]-at[0], sim.Time(period/2))
	for k := depth + 1; k < len(at); k++ {
		require.Equal(t, sim.Time(period), at[k]-at[k-1], "packet %d", k)
	}
}

// Six buckets that send to each other, with processors too slow for their
// ticks, do the same on any number of cores.
func TestCoresChangeNothing(t *testing.T) {
	const nodes = 6
	var want string
	for _, cores := range []int{1, 2, 3, 8} {
		device, err := profile.Load("spin-dis", "fabric.radix=4", "hpu.clock=100MHz", "hpu.cores=1")
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: nodes, Cores: cores})
		require.NoError(t, err)
		module, err := handlers.Open("token-bucket.wasm")
		require.NoError(t, err)
		loaded, err := module.Load(c)
		require.NoError(t, err)
		for rank := range nodes {
			require.NoError(t, c.Spawn(rank, "node", func(p *runtime.Proc) error {
				in, err := loaded.Install(p, handlers.Options{State: map[string]any{
					"period": uint64(200_000 + 777*rank), "bytes": uint64(64), "depth": uint64(3), "target": uint32((rank + 1) % nodes), "pt": uint32(1),
				}})
				if err != nil {
					return err
				}
				e := portals.ME{Start: p.Alloc(4096).Addr(), Length: 4096, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut}
				for pt := range uint32(2) {
					if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 1-pt); err != nil {
						return err
					}
					if _, err := p.NI().MEAppend(1-pt, &e, portals.PriorityList, 0); err != nil {
						return err
					}
					in.Attach(&e)
				}
				md, err := p.NI().Objects().MDBind(&portals.MD{})
				if err != nil {
					return err
				}
				p.SleepUntil(10 * sim.Microsecond)
				return p.NI().Put(portals.Put{MD: md, Target: portals.PhysID(uint32(rank+2)%nodes, 0), HdrData: uint64(100 + rank)})
			}))
		}
		require.NoError(t, c.Run(t.Context()))
		stats := c.Stats()
		require.Positive(t, stats.MissedExpiries)
		seen := fmt.Sprintf("%v %+v", c.Engine().Now(), stats)
		if require.NoError(t, c.Close()); want == "" {
			want = seen
		}
		require.Equal(t, want, seen, "%d cores", cores)
	}
}

// What README.md says of the scenario: exact intervals, and what a bucket of
// which depth loses to ticks that are too fast.
func TestScenario(t *testing.T) {
	for _, x := range []struct{ period, depth, fails string }{
		{"150000", "1", ""},
		{"333333", "1", ""},
		{"1000000", "1", ""},
		{"50000", "1", "interval is 100 ns, expected 50 ns"},
		{"50000", "10", "interval is 50.01 ns, expected 50 ns"},
	} {
		p, err := scenario.Load("scenario.yaml", scenario.Options{Parameters: map[string]string{"period": x.period, "depth": x.depth}})
		require.NoError(t, err)
		_, err = p.Run(t.Context(), runtime.Config{})
		if x.fails == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, x.fails)
		}
	}
}

// It has the handler in less than 60 lines.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("handler.go")
	require.NoError(t, err)
	require.Less(t, bytes.Count(source, []byte("\n")), 60)
}
