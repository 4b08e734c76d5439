package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// senders is nodes that put messages, each a number of them at once, to a node
// with handlers.
type senders struct {
	c       *runtime.Cluster
	bytes   int
	flights int // messages of a sender that are not acknowledged
	done    int // messages that are
}

// loads are what BenchmarkLoad measures.
var loads = []struct {
	name             string
	nodes            int
	packets, flights int
	library          string
	options          handlers.Options
	to               func(rank, nodes int) int // -1: the rank sends nothing
}{
	{"flows", 65, 16, 16, "count", handlers.Options{}, func(rank, _ int) int { return min(rank, 1) - 1 }},
	{"nodes", 1024, 16, 1, "count", handlers.Options{}, func(rank, nodes int) int { return (rank + nodes/2) % nodes }},
	{"dma", 2, 1024, 1, "accumulate", handlers.Options{}, fromSecond},
	{"completion", 2, 1, 64, "count", handlers.Options{}, fromSecond},
	{"forward", 2, 1024, 1, "pingpong", handlers.Options{Payload: "stream_payload"}, fromSecond},
}

func fromSecond(rank, _ int) int { return rank - 1 }

// BenchmarkLoad is a packet of 256 bytes under other loads than
// [BenchmarkPacket]: of a thousand messages that one node receives at once,
// from each of a thousand nodes to another, with a handler that reads and
// writes host memory, in a message of its own with a completion handler, and
// with a handler that sends it back.
func BenchmarkLoad(b *testing.B) {
	for _, x := range loads {
		b.Run(x.name, func(b *testing.B) {
			overrides := []string{"fabric.mtu=256", "hpu.cores=32"}
			if x.nodes < 1024 {
				overrides = append(overrides, "fabric.kind=crossbar", "fabric.radix=0")
			}
			p, err := profile.Load("spin-int", overrides...)
			require.NoError(b, err)
			c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: x.nodes})
			require.NoError(b, err)
			defer func() { require.NoError(b, c.Close()) }()
			module, err := handlers.Must(x.library).Load(c)
			require.NoError(b, err)
			w := &senders{c: c, bytes: 256 * x.packets, flights: x.flights}
			for rank := range x.nodes {
				to := x.to(rank, x.nodes)
				require.NoError(b, c.Spawn(rank, fmt.Sprint(rank), func(p *runtime.Proc) error {
					if err := w.entry(p, module, x.options, to < 0 || x.nodes == 1024); err != nil || to < 0 {
						return err
					}
					return w.send(p, uint32(to))
				}))
			}
			w.run(b, 4*x.nodes*x.flights)
			before := w.done
			b.ReportAllocs()
			for b.Loop() {
				w.run(b, max(4096/x.packets, x.nodes))
			}
			_, failures := c.Failures()
			require.Zero(b, failures)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64((w.done-before)*x.packets), "ns/packet")
		})
	}
}

// entry appends the entry of a node, with handlers or not.
func (w *senders) entry(p *runtime.Proc, module *handlers.Module, options handlers.Options, handled bool) error {
	ni := p.NI()
	if _, err := ni.Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	me := portals.ME{Start: p.Alloc(w.bytes).Addr(), Length: uint64(w.bytes), UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut}
	if handled {
		in, err := module.Install(p, options)
		if err != nil {
			return err
		}
		in.Attach(&me)
	}
	_, err := ni.MEAppend(0, &me, portals.PriorityList, 0)
	return err
}

// send puts messages without end.
func (w *senders) send(p *runtime.Proc, to uint32) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(uint64(4 * w.flights))
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: p.Alloc(w.bytes).Addr(), Length: uint64(w.bytes), EQ: eq})
	if err != nil {
		return err
	}
	for under := 0; ; {
		for ; under < w.flights; under++ {
			if err := ni.Put(portals.Put{MD: md, Length: uint64(w.bytes), Ack: portals.Ack, Target: portals.PhysID(to, 0)}); err != nil {
				return err
			}
		}
		ev, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		if ev.Type == portals.EventAck {
			under--
			w.done++
		}
	}
}

// run goes on until that many messages more are acknowledged.
func (w *senders) run(tb testing.TB, messages int) {
	for target := w.done + messages; w.done < target; {
		if err := w.c.RunUntil(w.c.Engine().Now() + 100*sim.Nanosecond); err != nil {
			tb.Fatal(err)
		}
	}
}
