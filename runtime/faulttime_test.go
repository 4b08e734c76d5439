package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// onRank answers for the accesses of one rank; all others are let pass.
func onRank(rank int, f func(a *host.Access, off int) host.Status) func(cfg *runtime.Config) {
	return func(cfg *runtime.Config) {
		cfg.Translator = func(_ *sim.Engine, r int, _ *host.Bus) host.Translator {
			return hosttest.Func(func(a *host.Access, off, _ int) host.Status {
				if r != rank {
					return host.OK
				}
				return f(a, off)
			})
		}
	}
}

// failing lets the accesses that which chooses end so the first times that they are made.
func failing(times int, s host.Status, which func(a *host.Access, off int) bool) func(a *host.Access, off int) host.Status {
	return func(a *host.Access, off int) host.Status {
		if times > 0 && which(a, off) {
			times--
			return s
		}
		return host.OK
	}
}

// A put of n packets of which packet k, after the first, faults so many times
// takes as much longer as docs/model.md says ("Memory that is absent"): every
// fault the round trip of the bus and the pause, less what the wire, or the
// packets behind, were behind anyway.
func TestAFaultCostsWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(rt, "packets")
		k := rapid.IntRange(2, n).Draw(rt, "faulting packet")
		times := rapid.IntRange(1, 3).Draw(rt, "faults")
		rank := rapid.IntRange(0, 1).Draw(rt, "rank")
		s := setup{
			profile:   rapid.SampledFrom(profiles).Draw(rt, "profile"),
			overrides: []string{"fabric.mtu=2048", fmt.Sprintf("nic.fault_pause=%dns", rapid.SampledFrom([]int{0, 50, 1000, 20000}).Draw(rt, "pause"))},
			length:    2048 * n, cleanup: rt.Cleanup,
		}
		without := conduct(t, s)
		s.cfg = onRank(rank, failing(times, host.Fault, func(a *host.Access, off int) bool {
			if rank == 0 {
				return off == 2048*(k-1)
			}
			addr, _ := a.At(0)
			return a.Direction() == host.ToMemory && addr%(1<<16) == without.addr%(1<<16)+2048*uint64(k-1)
		}))
		with := conduct(t, s)
		p := with.prof
		G, D := p.Fabric.Rate.Time(2048), p.DMA.Bandwidth.Time(2048)
		require.Greater(t, G, D)
		behind := sim.Time(k - 1)
		if rank == 1 {
			behind = sim.Time(n - k)
		}
		found := max(p.NIC.MatchPacket, p.NIC.MatchHeader-sim.Time(n-1)*(G-D)) // F(n)
		costs := max(0, sim.Time(times)*(2*p.DMA.Latency+p.NIC.FaultPause)-behind*(G-D)-(found-p.NIC.MatchPacket))
		took := func(r *rig) sim.Time { return only(t, r.targets, portals.EventPut).at }
		require.Equal(t, costs, took(with)-took(without))
		require.Equal(t, without.host, with.host)
		_, failures := with.c.Failures()
		require.Zero(t, failures)
	})
}

// Packets that are absent at the same time wait at the same time: the deposit
// of a message to memory that is all absent takes one round trip and one pause
// more. The last packet waits with that before it, whose page it is in, and
// goes right behind it.
func TestAbsentPacketsWaitTogether(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		const n, bytes = 16, 2048
		s := setup{profile: profile, overrides: []string{"fabric.mtu=2048", "nic.fault_pause=20us"}, length: n * bytes}
		without := conduct(t, s)
		seen := map[uint64]bool{}
		s.cfg = onRank(1, func(a *host.Access, _ int) host.Status {
			if addr, _ := a.At(0); !seen[addr] {
				seen[addr] = true
				return host.Fault
			}
			return host.OK
		})
		with := conduct(t, s)
		require.Len(t, seen, n)
		p := with.prof
		G, D := p.Fabric.Rate.Time(bytes), p.DMA.Bandwidth.Time(bytes)
		last := only(t, without.targets, portals.EventPut).at
		// The packet before it came G earlier, and is tried again when all
		// before that have their pages and have left the bus.
		require.Greater(t, G, D)
		require.Equal(t, last-G+2*p.DMA.Latency+p.NIC.FaultPause+D, only(t, with.targets, portals.EventPut).at)
		require.Equal(t, without.host, with.host)
	})
}

// Of the packets of a message that wait for a page the first looks again,
// whatever their number. When it has given up so have the others, after one
// more look each.
func TestOnePacketLooksForThePage(t *testing.T) {
	// packets of a page; how often the page is absent when the first looks
	const n, bytes, absent = 16, 256, 7
	for _, tries := range []int{100, 3} {
		asked := map[uint64]int{}
		looks := 0
		r := conduct(t, setup{
			overrides: []string{fmt.Sprint("fabric.mtu=", bytes), "nic.fault_pause=20us", fmt.Sprint("nic.fault_tries=", tries)}, length: n * bytes,
			cfg: onRank(1, func(a *host.Access, _ int) host.Status {
				addr, _ := a.At(0)
				if asked[addr]++; addr%host.PageBytes == 0 {
					looks++
				}
				if looks <= absent {
					return host.Fault
				}
				return host.OK
			}),
		})
		gaveUp := tries < absent
		first := min(absent, tries) + 1
		for addr, k := range asked { //lint:maporder each by itself
			if addr%host.PageBytes == 0 {
				require.Equal(t, first, k)
			} else {
				require.Equal(t, 2, k, "when it came, and behind the first")
			}
		}
		require.Len(t, asked, n)
		put := only(t, r.targets, portals.EventPut)
		require.Equal(t, gaveUp, put.Fail != portals.NIOK)
		if gaveUp {
			require.Contains(t, r.failure(), "FAULT, 4 times (nic.fault_tries, 3)")
			require.Less(t, put.at, sim.Time(tries+1)*(20*sim.Microsecond+2*r.prof.DMA.Latency), "they do not wait one after the other")
			continue
		}
		require.Equal(t, r.message, r.host[:n*bytes])
	}
}

// Memory that is always there costs nothing: no time, and no event, with and
// without somebody who says so. A put of n packets is, for each: a piece of the
// fetch and its turn on the bus, the packet on the network (an event a switch
// and one at the end), its match, and its landing; and for the message: the
// call, the request of the fetch, the records of its two ends, and the
// acknowledgement with its record.
func TestEventsOfAPacket(t *testing.T) {
	events := func(n int, cfg func(*runtime.Config)) uint64 {
		r := conduct(t, setup{overrides: []string{"fabric.kind=crossbar", "fabric.radix=0", "fabric.mtu=256"}, length: 256 * n, cfg: cfg})
		return r.c.Engine().Handled()
	}
	present := onRank(-1, nil)
	for n := 1; n < 40; n += 7 {
		require.Equal(t, events(n, nil), events(n, present), "%d packets", n)
		require.Equal(t, events(1, nil)+uint64(n-1)*6, events(n, nil), "%d packets", n)
	}
}
