package nic_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// span is one run of a payload handler.
type span struct {
	pool       string
	processor  int
	began, end sim.Time
}

// payloads puts a message of so many packets of 64 B to an entry whose payload
// handler sums them up, and returns where and when each handler ran. All
// packets come at once: the link is fast.
func payloads(t *testing.T, packets int, overrides ...string) (spans []span) {
	p, err := profile.Load("spin-int", append([]string{"fabric.mtu=64", "fabric.rate=1ps/B", "fabric.gap=0ns"}, overrides...)...)
	require.NoError(t, err)
	running := map[string]int{}
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2, Watch: func(s *nic.HandlerStep) {
		key := fmt.Sprint(s.Pool, s.HPU)
		switch s.What {
		case nic.StepBegan:
			running[key] = len(spans)
			spans = append(spans, span{s.Pool, s.HPU, s.At, 0})
		case nic.StepEnded:
			require.NoError(t, asError(s.Err))
			spans[running[key]].end = s.At
		}
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	module, err := c.LoadModule("sum", sum.Library.Wasm)
	require.NoError(t, err)
	length := uint64(64 * packets)
	require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
		memory, err := p.HPUAllocMem(module, len(spin.EncodeState(new(sum.State))))
		if err != nil {
			return err
		}
		handlers, err := memory.Spin("", sum.Payload, "")
		if err != nil {
			return err
		}
		if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
			return err
		}
		to := p.Alloc(int(length)).Addr()
		_, err = p.NI().MEAppend(0, &portals.ME{
			Start: to, Length: length, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut, Spin: handlers,
		}, portals.PriorityList, 0)
		return err
	}))
	require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
		p.Sleep(sim.Microsecond)
		from := p.Alloc(int(length)).Addr()
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: from, Length: length})
		if err != nil {
			return err
		}
		return p.NI().Put(portals.Put{MD: md, Length: length, Target: portals.PhysID(1, 0)})
	}))
	require.NoError(t, c.Run(context.Background()))
	_, failures := c.Failures()
	require.Zero(t, failures)
	require.Len(t, spans, packets)
	return spans
}

func asError(t *hpu.Trap) error {
	if t == nil {
		return nil
	}
	return t
}

// A handler on firmware takes the invocation, whatever it computes, and as many
// run at a time as there are cores.
func TestFirmwareTakesItsTimePerInvocation(t *testing.T) {
	const packets = 10
	spans := payloads(t, packets, "pools.r5={kind: firmware, cores: 2, contexts: 1, invocation: 3us}", "serve.sum={payload: r5}")
	for i, s := range spans {
		require.Equal(t, "r5", s.pool)
		require.Equal(t, 3*sim.Microsecond, s.end-s.began)
		if i >= 2 { // when one of the two cores is free
			require.Equal(t, spans[i-2].end, s.began)
		}
	}
}

// Hardware takes its latency for a handler, and another begins every latency / depth.
func TestHardwareIsPipelined(t *testing.T) {
	const packets = 10
	spans := payloads(t, packets, "pools.cells={kind: hardware, latency: 80ns, depth: 4}", "serve.sum={payload: cells}")
	for i, s := range spans {
		require.Equal(t, "cells", s.pool)
		require.Equal(t, 80*sim.Nanosecond, s.end-s.began)
		if i > 0 {
			require.GreaterOrEqual(t, s.began-spans[i-1].began, 20*sim.Nanosecond)
		}
	}
	require.Equal(t, 9*20*sim.Nanosecond, spans[packets-1].began-spans[0].began, "all were there before the first began")
}

// Hardware with a rate takes the bytes of a packet, too.
func TestHardwareTakesBytes(t *testing.T) {
	spans := payloads(t, 3, "pools.cells={kind: hardware, latency: 80ns, depth: 1, rate: 0.64GB/s}", "serve.sum={payload: cells}")
	for i, s := range spans {
		require.Equal(t, 180*sim.Nanosecond, s.end-s.began, "64 B and 80 ns")
		if i > 0 {
			require.Equal(t, spans[i-1].end, s.began)
		}
	}
}

// Pools that serve no handler change nothing, not even for handlers that run at the same time.
func TestIdlePoolsChangeNothing(t *testing.T) {
	alone := payloads(t, 20)
	beside := payloads(t, 20, "pools.r5={kind: firmware, cores: 2, contexts: 3, invocation: 3us}", "serve.other={payload: r5}", "serve.sum={header: r5, payload: hpu}")
	require.Equal(t, alone, beside)
	require.Equal(t, "HPU", alone[0].pool)
}

// What is wrong with pools is said with the field's path.
func TestPoolErrors(t *testing.T) {
	for override, want := range map[string]string{
		"pools.r5={kind: firmware, cores: 0, contexts: 1}":                                  "pools.r5.cores: 0, expected 1 to 4096",
		"pools.r5={kind: gpu}":                                                              `pools.r5.kind: "gpu", expected firmware or hardware`,
		"pools.r5={kind: firmware, cores: 1, contexts: 1, depth: 3}":                        "pools.r5.depth: given, expected none for a pool of firmware",
		"pools.p={kind: hardware, latency: 2s, depth: 4}":                                   "pools.p.latency: 2 s, expected 0 s to 1 s",
		"pools.hpu={kind: hardware, latency: 2ns, depth: 4}":                                "pools.hpu: the pool of section hpu, expected another name",
		"pools.r5={kind: firmware, cores: 4096, contexts: 4096}":                            "65536",
		"pools.r5={kind: firmware, cores: 1, contexts: 1, invocations: 1us}":                "unknown field, expected one of",
		"pools.r5={kind: firmware, cores: 1, contexts: 1, other_share: 0.1}":                "pools.r5.other_share: 0.1 with other_time 0 s, expected both or none",
		"pools.r5={kind: firmware, cores: 1, contexts: 1, other_time: 1us}":                 "pools.r5.other_share: 0 with other_time 1 µs, expected both or none",
		"pools.r5={kind: firmware, cores: 1, contexts: 1, other_share: 1, other_time: 1us}": "pools.r5.other_share: 1, expected 0 to 0.99",
		"pools.r5={kind: hardware, latency: 1us, depth: 1, other_share: 0.1}":               "pools.r5.other_share: given, expected none",
		"serve.sum={payload: r5}":                                                           `serve.sum.payload: no pool "r5", expected one of hpu`,
		"serve.sum={handler: hpu}":                                                          "serve.sum.handler: no kind of handlers, expected one of header, payload, completion",
		"pools.p={kind: hardware, latency: 1us, depth: 1, ports: 65, port_rate: 1GB/s}":     "pools.p.ports: 65, expected 0 to 64",
		"pools.p={kind: hardware, latency: 1us, depth: 1, ports: 1}":                        "pools.p.port_rate: 0ps/B with 1 ports, expected both or none",
		"pools.r5={kind: firmware, cores: 1, contexts: 1, ports: 1}":                        "pools.r5.ports: given, expected none for a pool of firmware",
		"pools.r5={kind: firmware, cores: 1, contexts: 1, rate: 1GB/s}":                     "pools.r5.rate: given, expected none for a pool of firmware",
	} {
		_, err := profile.Load("spin-int", override)
		require.ErrorContains(t, err, want, override)
	}
}

// A core with other work half of the time begins half of the handlers at once,
// and the others after a time that is uniform up to a piece of that work. It
// would catch a delay that is drawn once, or not from the seed.
func TestOtherWorkDelaysHandlers(t *testing.T) {
	const packets = 1000
	run := func() []span {
		return payloads(t, packets, "pools={r5: {kind: firmware, cores: 1, contexts: 1, invocation: 2us, other_share: 0.5, other_time: 10us}}", "serve.sum.payload=r5")
	}
	spans := run()
	require.Equal(t, spans, run())
	require.Len(t, spans, packets)
	atOnce, late := 0, sim.Time(0)
	for i := 1; i < packets; i++ {
		require.Equal(t, 2*sim.Microsecond, spans[i].end-spans[i].began)
		wait := spans[i].began - spans[i-1].end
		require.True(t, wait >= 0 && wait < 10*sim.Microsecond)
		if late += wait; wait == 0 {
			atOnce++
		}
	}
	require.InDelta(t, packets/2, atOnce, 50)
	require.InDelta(t, 5, late.Microseconds()/float64(packets-atOnce), 0.5)
}

// An override reaches the field of one pool, and the pool of one kind of handlers.
func TestPoolOverrides(t *testing.T) {
	p, err := profile.Load("spin-int", "pools={r5: {kind: firmware, cores: 1, contexts: 2, invocation: 3us}, c: {kind: hardware, latency: 1ns, depth: 1}}",
		"pools.r5.cores=2", "serve.sum={header: r5}", "serve.sum.payload=c", "serve.sum.header=hpu")
	require.NoError(t, err)
	require.Equal(t, nic.PoolSpec{Kind: nic.Firmware, Cores: 2, Contexts: 2, Invocation: 3 * sim.Microsecond}, p.Pools["r5"])
	require.Equal(t, []string{"c", "r5"}, p.Pools.Names())
	require.Equal(t, nic.HPUs, p.Serve.Pool("sum", "header"))
	require.Equal(t, "c", p.Serve.Pool("sum", "payload"))
	require.Equal(t, nic.HPUs, p.Serve.Pool("other", "payload"))
	_, err = profile.Load("spin-int", "pools.r5={kind: firmware, cores: 1, contexts: 1}", "pools.r5.core=2")
	require.ErrorContains(t, err, `pools.r5.core: no field "core", expected one of kind, cores, contexts`)
	_, err = profile.Load("spin-int", "pools.r5.cores=2")
	require.ErrorContains(t, err, `pools.r5.kind: "", expected firmware or hardware`)
}

// Handlers that send nothing take Quiet in place of Invocation, and those that
// waited for their core Follow. Without them all take the same time.
func TestFirmwareThatSendsNothing(t *testing.T) {
	const packets = 6
	r5 := func(more string) string {
		return "pools.r5={kind: firmware, cores: 1, contexts: 1, invocation: 3us" + more + "}"
	}
	for _, c := range []struct {
		more        string
		first, rest sim.Time
	}{
		{"", 3 * sim.Microsecond, 3 * sim.Microsecond},
		{", quiet: 2us", 2 * sim.Microsecond, 2 * sim.Microsecond},
		{", follow: 1us", 3 * sim.Microsecond, sim.Microsecond},
		{", quiet: 2us, follow: 1us", 2 * sim.Microsecond, sim.Microsecond},
	} {
		for i, s := range payloads(t, packets, r5(c.more), "serve.sum={payload: r5}") {
			want := c.rest
			if i == 0 {
				want = c.first
			}
			require.Equal(t, want, s.end-s.began, "%s, handler %d", c.more, i)
		}
	}
}
