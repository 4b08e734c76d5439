package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	network "github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Expected parts, by hand from the profile, for experiments that no other test
// covers.

// zero requires that parts are 0.
func zero(t *testing.T, r *Result, parts ...string) {
	t.Helper()
	for _, name := range parts {
		require.Zero(t, r.Time("in_"+name), "%s: %v", name, r.Values)
	}
}

// ExaNeSt: a message of the mailbox is posted once. It is matched as a store to
// the packetizer and as a cell, and takes the latency of the mailbox. A look
// finds it in the cache.
func TestPartsOfExaNeStMessages(t *testing.T) {
	add := broken(t, "gsas", "exanest-qfdb", Values{"op": "fetch-add", "path": "intra-fpga", "size": 8})
	p := add.Point.Profile
	require.Equal(t, 2*p.NIC.Overhead, add.Time("in_post"), "a request and an answer")
	require.Equal(t, 4*p.NIC.MatchHeader, add.Time("in_match"))
	require.Equal(t, 2*p.Pools["mailbox"].Latency, add.Time("in_handler"))
	zero(t, add, "fetch", "wait", "os", "disk", "timer", "other")

	latency := broken(t, "osu", "exanest", Values{"benchmark": "latency", "path": "intra-qfdb", "size": 0, "iterations": 4})
	require.Equal(t, latency.Time(LatencyColumn), latency.Time(meanColumn))
	require.Equal(t, p.NIC.Overhead, latency.Time("in_post"))
	require.InDelta(t, float64(2*p.NIC.MatchHeader), float64(latency.Time("in_match")), 1)
	require.InDelta(t, float64(p.Pools["mailbox"].Latency), float64(latency.Time("in_handler")), 1)
	require.InDelta(t, float64(p.Host.LookCached()), float64(latency.Time("in_look")), 1)
	zero(t, latency, "fetch", "wait", "os", "disk", "timer", "other")

	all := broken(t, "osu-ranks", "exanest", Values{"benchmark": "allreduce", "ranks": 4, "size": 4, "iterations": 3})
	require.Equal(t, 2*p.NIC.Overhead, all.Time("in_post"), "recursive doubling of 4 ranks: each sends twice")
	require.InDelta(t, float64(all.Time(LatencyColumn)), float64(all.Time(meanColumn)), 2, "a mean of means, rounded")
}

// For a bandwidth, a message takes the time that the other messages leave to
// it.
func TestMeanIsOfBandwidth(t *testing.T) {
	for name, values := range map[string]Values{
		"osu":     {"benchmark": "bw", "path": "intra-qfdb", "size": 4096, "window": 8, "iterations": 2},
		"credits": {"benchmark": "mbw_mr", "ranks": 8, "size": 4096, "window": 4},
	} {
		r := broken(t, name, "exanest", values)
		pairs := 1.0
		if name == "credits" {
			pairs = 4
		}
		require.InEpsilon(t, pairs*4096/1e6/r.Time(meanColumn).Seconds(), r.Float("bandwidth"), 1e-4, name)
	}
}

// An MPI_Isend posts once. Touching takes a line of memory for each page.
func TestPartsOfIsend(t *testing.T) {
	never, touch := broken(t, "isend", "exanest-qfdb", Values{"mode": "never", "sample": 3}), broken(t, "isend", "exanest-qfdb", Values{"mode": "touch", "sample": 3})
	p := never.Point.Profile
	require.Equal(t, p.NIC.Overhead, never.Time("in_post"))
	require.Equal(t, never.Time("in_post"), touch.Time("in_post"))
	pages := never.Values["pages"].(int)
	require.Equal(t, sim.Time(pages)*p.Host.MemoryLatency, touch.Time("in_compute")-never.Time("in_compute"))
}

// The computation of applications is in no other part, with any waits.
func TestPartsOfApplications(t *testing.T) {
	values := Values{"app": "hpl", "mode": "present", "ranks": 3, "rounds": 2, "fresh": 0.0}
	without := broken(t, "apps", "exanest-qfdb", values)
	values["compute"] = sim.Millisecond
	with := broken(t, "apps", "exanest-qfdb", values)
	require.InDelta(t, float64(sim.Millisecond), float64(with.Time("in_compute")-without.Time("in_compute")), float64(without.Time(LatencyColumn)))
	zero(t, with, "os", "disk", "timer", "other")

	alone := broken(t, "scaling", "exanest", Values{"ranks": 1, "app": "minife"})
	require.Greater(t, alone.Time("in_compute"), alone.Time("time")*99/100)
	zero(t, alone, "wire", "fetch", "deposit", "handler", "timer")
}

// A frame of the management Ethernet takes two links and a switch that stores
// it, in both directions.
func TestPartsOfEthernet(t *testing.T) {
	r := broken(t, "ip", "exanest", Values{"over": "ethernet", "traffic": "rtt", "path": "1-hop", "streams": 1, "mtu": 1500, "rounds": 5})
	s, err := network.Load()
	require.NoError(t, err)
	m := &s.Management
	const datagram = 64 + 8 + 20 // headers of UDP and IPv4
	link := m.Rate.Time(datagram+int64(m.Header)) + m.Wire
	require.Equal(t, 2*(2*link+m.Switch), r.Time("in_wire"))
	zero(t, r, "post", "handler", "timer", "other")
	sleeps := broken(t, "ip", "exanest", Values{"over": "sleeping", "traffic": "rtt", "path": "1-hop", "streams": 1, "mtu": 1500, "rounds": 5})
	require.Greater(t, sleeps.Time("in_timer"), sleeps.Time(meanColumn)/2)
}

// Accesses in a row take the time of posting. A search begins with one message
// of the root's host, and every host sees the end.
func TestPartsOfTransactionsAndGraphs(t *testing.T) {
	r := broken(t, "txlog", "spin-int", Values{"mode": ModeRDMA, "op": "read", "ranks": 2, "size": 8, "count": 50})
	require.Equal(t, r.Point.Profile.NIC.Overhead, r.Time("in_post"))
	require.Greater(t, r.Time("in_post"), r.Time(meanColumn)*8/10)
	g := broken(t, "graph", "spin-int", Values{"mode": ModeSpin, "scale": 5, "ranks": 3})
	require.Equal(t, g.Point.Profile.NIC.Overhead, g.Time("in_post"))
	require.Equal(t, g.Point.Profile.Host.Poll, g.Time("in_look"))
	zero(t, g, "compute", "os", "disk", "timer")
}

// In a run whose rank never waits, only its core works. Both kinds of matching
// post and look whole numbers of times, and only one of them copies.
func TestPartsOfMatching(t *testing.T) {
	for _, side := range []string{"host", "offload"} {
		r := broken(t, "matching", "spin-int", Values{"ranks": 64, "app": "milc", "iterations": 1, "matched-by": side})
		p := r.Point.Profile
		require.Zero(t, r.Time("in_post")%p.NIC.Overhead)
		require.Zero(t, r.Time("in_look")%p.Host.Poll)
		require.Equal(t, side == "host", r.Values["copies"].(int64) > 0)
	}
}

// With one page at a time, firmware and kernel take the same time for each of
// 64 pages.
func TestPartsOfPageFaults(t *testing.T) {
	at := func(mode string, size int) *Result {
		return broken(t, "npf-latency", "ib-npf", Values{"mode": mode, "noise": "none", "size": size})
	}
	one, many, batched := at("one-page", 4096), at("one-page", 64*4096), at("batched", 64*4096)
	require.Equal(t, 64*one.Time("in_os"), many.Time("in_os"))
	fault := one.Point.Profile.Pools["firmware"].Invocation
	require.InDelta(t, float64(63*fault), float64(many.Time("in_handler")-one.Time("in_handler")), float64(64*5*sim.Microsecond), "and a few steps of hardware")
	require.Less(t, batched.Time("in_os"), many.Time("in_os")/10)
	zero(t, batched, "disk", "timer", "other")
}

// If memory is absent at the receiver of a write, the sender waits for the time
// of an RNR NACK, 240 us with code 9 (InfiniBand, table 45): once if all pages
// come, or for each of 16. PART's engine waits for its time-out of 1 ms.
func TestPartsOfPauses(t *testing.T) {
	const pause = 240 * sim.Microsecond
	for mode, times := range map[string]sim.Time{"npf": 1, "npf-one-page": 16} { //lint:maporder each stands for itself
		r := broken(t, "npf-versus-part", "ib-npf", Values{"mode": mode, "side": "destination", "firmware": "firmware", "size": 64 << 10})
		require.Equal(t, times*pause, r.Time("in_timer"), mode)
	}
	r := broken(t, "npf-versus-part", "ib-npf", Values{"mode": "part-pia", "side": "source", "firmware": "hpu", "size": 64 << 10})
	require.InEpsilon(t, float64(sim.Millisecond), float64(r.Time("in_timer")), 0.001)

	pins := broken(t, "npf-pinning", "ib-npf", Values{"strategy": pinning.NoneKind, "pass": "first", "messages": 4, "size": 8192})
	require.Zero(t, 4*pins.Time("in_timer")%pause, "whole pauses: %v", pins.Time("in_timer"))
	require.Positive(t, pins.Time("in_timer"))
	later := broken(t, "npf-pinning", "ib-npf", Values{"strategy": pinning.NoneKind, "pass": "later", "messages": 4, "size": 8192})
	zero(t, later, "os", "timer", "other")
	cached := broken(t, "npf-imb", "ib-npf", Values{"strategy": pinning.CacheKind, "benchmark": "sendrecv", "ranks": 2, "iterations": 2, "size": 20000})
	zero(t, cached, "os", "timer", "other")

	stream := broken(t, "npf-synthetic-ib", "ib-npf", Values{"mode": "rnr", "fault": "minor", "messages": 50, "frequency": 0.2, "size": 8192})
	pauses := stream.Values["pauses"].(int)
	require.Positive(t, pauses)
	require.InEpsilon(t, float64(pauses)*float64(pause)/50, float64(stream.Time("in_timer")), 0.02)
}

// A lost SYN is sent again after 1 s. Later losses of the connection are sent
// again after 3 s (RFC 6298 §5.7), minus the kernel's work for pages in that
// time.
func TestPartsOfTimeouts(t *testing.T) {
	drop := broken(t, "npf-ring-size", "eth-npf", Values{"mode": "drop", "ring": 16, "operations": 1000})
	require.InEpsilon(t, (4 * sim.Second).Seconds(), drop.Time("in_timer").Seconds(), 1e-3)
	pinned := broken(t, "npf-ring-size", "eth-npf", Values{"mode": "pinned", "ring": 16, "operations": 100, "connections": 2})
	zero(t, pinned, "disk", "timer", "other")
	calm := broken(t, "npf-synthetic", "eth-npf", Values{"mode": "drop", "messages": 3, "size": 30000, "every": 0})
	zero(t, calm, "timer", "other")
	require.InEpsilon(t, 8*30000/calm.Float("throughput"), calm.Time(meanColumn).Nanoseconds(), 1e-6)
}

// The answer is about the last size. For a plot over time it is about the
// slowest moment, because that shows why a server is slow when it begins.
func TestAnswerOfBreakdown(t *testing.T) {
	answer := func(name, axis string, list ...sim.Time) string {
		e, err := Find(name)
		require.NoError(t, err)
		b, err := e.Broken()
		require.NoError(t, err)
		device, err := profile.Load(e.DefaultProfiles()[0])
		require.NoError(t, err)
		var results []*Result
		for i, took := range list {
			value := any(i + 1)
			if axis == "at" {
				value = sim.Time(i+1) * 5 * sim.Second
			}
			p, err := b.At(device, Values{axis: value})
			require.NoError(t, err)
			r := &Result{Point: p, Values: Values{}}
			for _, part := range breakdownParts() {
				r.Values[part] = sim.Time(0)
			}
			if r.Values[b.Followed] = nil; took > 0 {
				r.Values[b.Followed], r.Values["in_timer"] = took, took
			}
			results = append(results, r)
		}
		lines := b.View.Answer(results)
		require.Len(t, lines, 1)
		return lines[0]
	}
	require.Contains(t, answer("pingpong", "size", 30*sim.Second, 20*sim.Second, 10*sim.Second), ": 10.00 s, of which 100% timer.")
	require.Contains(t, answer("npf-cold-ring", "at", 0, 30*sim.Second, 10*sim.Second), "10 s: 30.00 s, of which 100% timer.")
}

// With c connections that have one operation under way each, an operation takes
// c / throughput: Little's law.
func TestMeanOperationIsLittlesLaw(t *testing.T) {
	cold := broken(t, "npf-cold-ring", "eth-npf", Values{"mode": "pinned", "connections": 3, "ring": 16, "at": sim.Second, "window": sim.Second})
	require.InEpsilon(t, 3/cold.Float("throughput"), cold.Time(meanColumn).Seconds(), 0.01)
	one := broken(t, "npf-instances", "eth-npf", Values{"mode": "npf", "instances": 1, "vm": 16 << 20, "working-set": 8 << 20, "connections": 2, "warm": 30 * sim.Millisecond, "time": 2 * sim.Millisecond})
	require.InEpsilon(t, 2/(1000*one.Float("throughput")), one.Time(meanColumn).Seconds(), 0.02)
	set := broken(t, "npf-working-set", "eth-npf", Values{"mode": "npf", "server": "shrinks", "horizon": 10 * sim.Second, "change": 10 * sim.Second, "window": sim.Second, "at": 10 * sim.Second})
	require.InEpsilon(t, 4/(1000*set.Float("operations")), set.Time(meanColumn).Seconds(), 0.02)
}

// A request waits for the disk if its block is not in the cache, one at a time.
// Frames behind an absent buffer wait until the kernel brings it in.
func TestPartsOfStorageAndRings(t *testing.T) {
	r := broken(t, "npf-storage", "ib-npf", Values{"strategy": pinning.StaticKind, "depth": 1, "requests": 30, "pool": 1 << 20, "disk": 256 << 20, "memory": 160 << 20, "size": 64 << 10})
	s := &r.Point.Profile.Storage
	missed := 1 - r.Float("hit_rate")
	require.Greater(t, missed, 0.1)
	require.InEpsilon(t, missed*(s.ReadLatency+s.Bandwidth.Time(64<<10)).Seconds(), r.Time("in_disk").Seconds(), 0.1)
	line := broken(t, "npf-line-rate", "eth-npf", Values{"rate": 100.0, "rings": 1, "frames": 1000, "hpus": 16})
	gup := line.Point.Profile.OS.GupFault
	require.GreaterOrEqual(t, line.Time("in_os"), sim.Time(line.Values["absent"].(int))*gup*9/10)
	require.Greater(t, line.Time("in_os"), line.Time("delivered")*9/10)
}
