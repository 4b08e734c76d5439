package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// onLinux runs programs on two nodes of exanest-qfdb with changes, and returns
// the cluster behind the run. All books balance then, and nothing was stale.
func onLinux(t require.TestingT, source, target func(p *runtime.Proc) error, overrides ...string) *runtime.Cluster {
	device, err := profile.Load("exanest-qfdb", append([]string{"smmu.stale=poison"}, overrides...)...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2})
	require.NoError(t, err)
	require.NoError(t, c.Spawn(1, "target", target))
	require.NoError(t, c.Spawn(0, "source", source))
	require.NoError(t, c.Run(context.Background()))
	for i := range 2 {
		require.NoError(t, c.Node(i).Kernel().Audit())
	}
	_, stale := c.StaleAccesses()
	require.Zero(t, stale)
	return c
}

// entry makes an entry of the target for all of a view, and returns its queue.
func entry(p *runtime.Proc, v runtime.View) (eq portals.Handle, err error) {
	ni := p.NI()
	if eq, err = ni.Objects().EQAlloc(64); err != nil {
		return eq, err
	}
	if _, err = ni.Objects().PTAlloc(0, eq, 0); err != nil {
		return eq, err
	}
	_, err = ni.MEAppend(0, &portals.ME{Start: v.Addr(), Length: uint64(v.Len()), Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable, IgnoreBits: ^uint64(0), MatchID: portals.ID{NID: portals.NIDAny, PID: portals.PIDAny}}, portals.PriorityList, 0)
	return eq, err
}

// transfer puts the bytes of a view to rank 1 and waits for the acknowledgement.
func transfer(p *runtime.Proc, v runtime.View, length int) (portals.Event, error) {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(16)
	if err != nil {
		return portals.Event{}, err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: v.Addr(), Length: uint64(v.Len()), EQ: eq})
	if err != nil {
		return portals.Event{}, err
	}
	if err := ni.Put(portals.Put{MD: md, Length: uint64(length), Ack: portals.Ack, Target: portals.ID{NID: 1}}); err != nil {
		return portals.Event{}, err
	}
	for {
		e, err := ni.EQWait(eq)
		if err != nil || e.Type == portals.EventAck || e.Fail != portals.NIOK {
			return e, err
		}
	}
}

// A put into memory that nobody has touched takes as much longer as the
// interrupt, the system's work and the NIC's next look take: the closed form of
// docs/memory.md, to the picosecond.
func TestAFaultOfTheNICCostsWhatTheSystemCharges(t *testing.T) {
	took := func(touch, pin bool, pause sim.Time) (sim.Time, *profile.Profile) {
		var arrived sim.Time
		c := onLinux(t, func(p *runtime.Proc) error {
			v := p.Alloc(256)
			v.CopyFrom(bytes.Repeat([]byte{5}, 256))
			p.SleepUntil(sim.Millisecond)
			_, err := transfer(p, v, 256)
			return err
		}, func(p *runtime.Proc) error {
			v := p.Alloc(3 * 4096)
			if touch {
				v.Write()
			}
			// So that the SMMU knows the way in both cases: the page before.
			v.Slice(0, 1).Write()
			w := v.Slice(4096, 2*4096)
			eq, err := entry(p, w)
			if err != nil {
				return err
			}
			e, err := p.NI().EQWait(eq)
			require.Equal(t, portals.NIOK, e.Fail)
			arrived = p.Now()
			require.Equal(t, bytes.Repeat([]byte{5}, 256), w.Slice(0, 256).Read())
			return err
		}, fmt.Sprintf("nic.fault_pause=%dns", pause/sim.Nanosecond))
		return arrived, c.Profile()
	}
	for _, pause := range []sim.Time{0, 300 * sim.Nanosecond, sim.Microsecond, 50 * sim.Microsecond} {
		present, p := took(true, false, pause)
		absent, _ := took(false, false, pause)
		s, l := &p.OS, p.DMA.Latency
		// From the SMMU's finding until the page is there.
		work := s.Interrupt + s.FaultInterrupt + s.Softirq + s.GupCall + s.GupAbsent
		// The NIC learns of the fault 2L later, and looks again until a look
		// finds the page: it asks the second TLB, and reads the last descriptor
		// by the walk cache.
		look := p.SMMU.WalkTime(1, p.Host.MemoryLatency+p.Host.MemoryBandwidth.Time(int64(p.SMMU.WalkBytes)))
		n := sim.Time(1)
		for n*(2*l+pause)+(n-1)*look < work {
			n++
		}
		require.Equal(t, n*(2*l+pause+look), absent-present, "pause %v", pause)
	}
}

// Random transfers between processes whose memory comes and goes: they write,
// map, unmap and pin, and the NIC reads and writes their pages, present or
// absent. Every byte equals the byte of a trivial memory.
func TestTransfersThroughPagesThatAreNotThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		overrides := []string{
			fmt.Sprintf("smmu.hit_under_fault=%t", rapid.Bool().Draw(rt, "HUPCF")),
			"smmu.on_fault=" + rapid.SampledFrom([]string{"terminate", "stall"}).Draw(rt, "on_fault"),
			fmt.Sprintf("smmu.stall_limit=%d", rapid.IntRange(1, 4).Draw(rt, "stall_limit")),
			fmt.Sprintf("nic.fault_pause=%dns", rapid.SampledFrom([]int{0, 200, 1000, 20_000}).Draw(rt, "pause")),
			"nic.fault_tries=1000000",
			"smmu.l1_entries=2", "smmu.l2_entries=4",
		}
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		w := &comings{t: rt, want: make([][]byte, rapid.IntRange(1, 6).Draw(rt, "rounds"))}
		for i := range w.want {
			w.want[i] = make([]byte, 1+draw.IntN(5*4096))
			for j := range w.want[i] {
				w.want[i][j] = byte(draw.Uint32())
			}
		}
		w.shift = rapid.IntRange(0, 4095).Draw(rt, "shift")
		w.locked = rapid.Bool().Draw(rt, "locked")
		onLinux(rt, w.source, w.target, overrides...)
	})
}

// comings is memory of two processes that comes and goes.
type comings struct {
	t      *rapid.T
	want   [][]byte // what is sent, in rounds
	shift  int      // of buffers, from the beginning of a page
	locked bool     // the target's pages
}

// source sends each round from a mapping of its own.
func (w *comings) source(p *runtime.Proc) error {
	p.SleepUntil(sim.Millisecond)
	for _, want := range w.want {
		n := len(want) + w.shift
		addr, err := p.OS().Map(p.Thread(), n)
		if err != nil {
			return err
		}
		v, err := p.View(addr, n)
		if err != nil {
			return err
		}
		v = v.Slice(w.shift, n)
		v.CopyFrom(want)
		e, err := transfer(p, v, len(want))
		if err != nil {
			return err
		}
		require.Equal(w.t, portals.NIOK, e.Fail)
		if err := p.OS().Unmap(p.Thread(), addr, uint64(n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *comings) target(p *runtime.Proc) error {
	const size = 6 * 4096
	v := p.Alloc(w.shift + size)
	if w.locked {
		if err := p.OS().Lock(p.Thread(), v.Addr(), uint64(v.Len())); err != nil {
			return err
		}
	}
	v = v.Slice(w.shift, v.Len())
	eq, err := entry(p, v)
	if err != nil {
		return err
	}
	expect := make([]byte, size)
	for i, want := range w.want {
		e, err := p.NI().EQWait(eq)
		if err != nil {
			return err
		}
		require.Equal(w.t, portals.NIOK, e.Fail)
		copy(expect, want)
		if !bytes.Equal(expect, v.Read()) {
			return fmt.Errorf("round %d: other bytes", i)
		}
	}
	return nil
}

// A page that no mapping has, or that may not be written, ends the message with
// SEGV at its initiator: once, with the cause, and not in a loop.
func TestUnresolvableFaultsOfTheNICEndTheirMessage(t *testing.T) {
	for _, mode := range []string{"terminate", "stall"} {
		var ack portals.Event
		c := onLinux(t, func(p *runtime.Proc) error {
			v := p.Alloc(8192)
			v.Write()
			p.SleepUntil(sim.Millisecond)
			var err error
			ack, err = transfer(p, v, 8192)
			return err
		}, func(p *runtime.Proc) error {
			v := p.Alloc(8192)
			eq, err := entry(p, v)
			if err != nil {
				return err
			}
			if err := p.OS().Unmap(p.Thread(), (v.Addr()+4096)&^4095, 4096); err != nil {
				return err
			}
			e, err := p.NI().EQWait(eq)
			require.Equal(t, portals.NISegv, e.Fail)
			return err
		}, "smmu.on_fault="+mode)
		require.Equal(t, portals.NISegv, ack.Fail)
		failures, n := c.Failures()
		require.Equal(t, 1, n)
		require.ErrorContains(t, failures[0], "DENIED")
		require.Less(t, c.Engine().Now(), 2*sim.Millisecond)
	}
}

// More processes than banks share them: each gets its turn, and its bytes.
func TestMoreProcessesThanBanksTakeTurns(t *testing.T) {
	const processes = 5
	device, err := profile.Load("exanest-qfdb", "smmu.banks=2", "smmu.stale=poison", "os.bank_hold=30us")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2})
	require.NoError(t, err)
	for i := range processes {
		require.NoError(t, c.Spawn(1, fmt.Sprint("target ", i), func(p *runtime.Proc) error {
			v := p.Alloc(10_000)
			eq, err := entry(p, v)
			for range 3 {
				if err == nil {
					_, err = p.NI().EQWait(eq)
				}
			}
			require.Equal(t, bytes.Repeat([]byte{byte(i + 1)}, 10_000), v.Read())
			return err
		}))
		require.NoError(t, c.Spawn(0, fmt.Sprint("source ", i), func(p *runtime.Proc) error {
			v := p.Alloc(10_000)
			v.CopyFrom(bytes.Repeat([]byte{byte(i + 1)}, 10_000))
			p.SleepUntil(sim.Millisecond)
			ni := p.NI()
			md, err := ni.Objects().MDBind(&portals.MD{Start: v.Addr(), Length: uint64(v.Len())})
			for range 3 {
				if err == nil {
					err = ni.Put(portals.Put{MD: md, Length: 10_000, Target: portals.ID{NID: 1, PID: uint32(i)}})
				}
			}
			return err
		}))
	}
	err = c.Run(context.Background())
	failures, n := c.Failures()
	require.Zero(t, n, "%v", failures)
	require.NoError(t, err)
	require.Greater(t, c.Node(1).Driver().Stats().Rebound, int64(processes-2))
	require.NoError(t, c.Node(1).Kernel().Audit())
}

// Memory that is there, and in the TLB, costs no event more than without an SMMU and a system.
func TestMemoryInTheTLBCostsNoEvent(t *testing.T) {
	events := func(on bool, puts int) uint64 {
		overrides := []string{"os.kind=none", "smmu.kind=none"}
		if on {
			overrides = nil
		}
		device, err := profile.Load("exanest-qfdb", overrides...)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2})
		require.NoError(t, err)
		require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
			v := p.Alloc(8192)
			v.Write()
			eq, err := entry(p, v)
			for range puts {
				if err == nil {
					_, err = p.NI().EQWait(eq)
				}
			}
			return err
		}))
		require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
			v := p.Alloc(8192)
			v.Write()
			p.SleepUntil(sim.Millisecond)
			for range puts {
				if _, err := transfer(p, v, 8192); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, c.Run(context.Background()))
		return c.Engine().Handled()
	}
	require.Equal(t, events(false, 20)-events(false, 10), events(true, 20)-events(true, 10))
}
