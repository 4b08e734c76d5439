package networks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ratedProfile is the profile uec with the law maxmin.
func ratedProfile(t require.TestingT, set ...string) *profile.Profile {
	p, err := profile.Load("uec", append([]string{
		"fabric.rates=40us", "fabric.paths=flow", `transport.way=""`, "transport.paths=0", "transport.first_window=0", "transport.law=maxmin",
	}, set...)...)
	require.NoError(t, err)
	return p
}

// meeting is packets that arrive late in a run, by flow.
type meeting struct {
	from  sim.Time
	flows map[flow]*arrivals
}

type arrivals struct {
	packets     int
	first, last sim.Time
}

func (m *meeting) Sent(sim.Time, fabric.Packet) {}

func (m *meeting) Arrived(at sim.Time, p fabric.Packet, _ bool) {
	a := m.flows[flow{int(p.Src), int(p.Dst)}]
	if p.Class != fabric.Requests || p.Bytes == 0 || at < m.from || a == nil {
		return
	}
	if a.packets++; a.packets == 1 {
		a.first = at
	}
	a.last = at
}

// ratesOf lets flows send without end, and returns how many packets of each
// arrive in a second, from a time on.
func ratesOf(t require.TestingT, p *profile.Profile, nodes int, list []flow, from, until sim.Time) (rates []float64, net fabric.Fabric) {
	m := &meeting{from, map[flow]*arrivals{}}
	cfg := runtime.Config{Profile: p, Nodes: nodes, Seed: 1, Limits: sim.Limits{Until: until}, Stop: func() error { return nil }}
	cfg.Fabric = func(eng *sim.Engine, spec fabric.Spec, nodes int) (fabric.Fabric, error) {
		f, err := fabric.New(eng, spec, nodes)
		return fabric.Tap(eng, f, m), err
	}
	size := int(p.Fabric.Rate.Bytes(until))
	_, err := experiment.Simulate(context.Background(), cfg, func(c *runtime.Cluster) error {
		net = c.Fabric()
		for i, f := range list {
			m.flows[f] = &arrivals{}
			into := slices.IndexFunc(list, func(g flow) bool { return g.to == f.to })
			if into == i {
				of := []int{}
				for k, g := range list {
					if g.to == f.to {
						of = append(of, k)
					}
				}
				if err := c.Spawn(f.to, "receiver", func(r *runtime.Proc) error { return receive(r, of, size) }); err != nil {
					return err
				}
			}
			if err := c.Spawn(f.from, fmt.Sprint("sender", i), func(s *runtime.Proc) error {
				_, err := send(s, i, f.to, size)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil })
	var limit *sim.LimitError
	require.ErrorAs(t, err, &limit)
	for _, f := range list {
		a := m.flows[f]
		rates = append(rates, float64(a.packets-1)/(a.last-a.first).Seconds())
	}
	return rates, net
}

// maxMin fills the network: all flows grow together, and those over a link that
// is full stay as they are. Acknowledgements take a part of the links back, and
// nobody slows them down; so it fills the network some times, with what
// the last time leaves.
func maxMin(net fabric.Fabric, p *profile.Profile, list []flow) []float64 {
	full := float64(p.Fabric.MTU + p.Fabric.Header)
	ack := float64(int32(p.Transport.AckBytes) + p.Fabric.Header)
	rates := make([]float64, len(list))
	for range 20 {
		room, over := map[string]float64{}, map[string][]int{}
		for i, f := range list {
			for _, h := range net.Path(f.from, f.to) {
				over[h.Link] = append(over[h.Link], i)
				if len(over[h.Link]) == 1 {
					room[h.Link] = float64(h.Rate.Bytes(sim.Second))
				}
			}
		}
		for i, f := range list {
			for _, h := range net.Path(f.to, f.from) {
				room[h.Link] -= rates[i] * ack // of a link of acknowledgements alone nobody asks
			}
		}
		rates = fill(room, over, full, len(list))
	}
	return rates
}

// fill is one filling, in packets a second.
func fill(room map[string]float64, over map[string][]int, full float64, flows int) []float64 {
	rates := make([]float64, flows)
	for i := range rates {
		rates[i] = math.NaN()
	}
	for slices.ContainsFunc(rates, math.IsNaN) {
		least, at := math.Inf(1), ""
		for link, of := range over {
			left, growing := room[link], 0
			for _, i := range of {
				if math.IsNaN(rates[i]) {
					growing++
				} else {
					left -= rates[i] * full
				}
			}
			if share := left / full / float64(growing); growing > 0 && cmp.Or(cmp.Compare(share, least), cmp.Compare(link, at)) < 0 {
				least, at = share, link
			}
		}
		for _, i := range over[at] {
			if math.IsNaN(rates[i]) {
				rates[i] = least
			}
		}
	}
	return rates
}

// drawRated draws a network with rates, and flows of different pairs.
func drawRated(t require.TestingT, r *rand.Rand) (p *profile.Profile, list []flow) {
	p = ratedProfile(t)
	f := &p.Fabric
	f.Kind, f.LeafNodes, f.Spines, f.Paths = []string{fabric.LeafSpine, fabric.FatTree, fabric.Torus}[r.IntN(3)], 0, 0, ""
	switch f.Kind {
	case fabric.LeafSpine:
		f.LeafNodes, f.Spines = 1+r.IntN(8), 1+r.IntN(4)
	case fabric.FatTree:
		f.Radix = 4
	default:
		f.Dims = [][]int{{ratedNodes}, {4, 4}, {2, 2, 4}}[r.IntN(3)]
	}
	if f.Kind != fabric.Torus {
		f.Paths = []string{fabric.ByDestination, fabric.ByFlow}[r.IntN(2)]
	}
	f.SwitchRate = []sim.Rate{{}, sim.NewRate(20, 1), sim.NewRate(80, 1)}[r.IntN(3)]
	f.StoreAndForward = r.IntN(2) == 0
	require.NoError(t, p.Validate())
	known := map[flow]bool{}
	for range 1 + r.IntN(40) {
		g := flow{r.IntN(ratedNodes), r.IntN(ratedNodes)}
		if g.from != g.to && !known[g] {
			known[g] = true
			list = append(list, g)
		}
	}
	if list == nil {
		list = []flow{{0, 1}}
	}
	return p, list
}

const ratedNodes = 16

// On random networks every flow comes to the rate that progressive filling gives
// it, within 1%.
func TestRatesAreMaxMinFair(t *testing.T) {
	for i := range *campaignRuns / 30 {
		i += *campaignFrom
		p, list := drawRated(t, rand.New(rand.NewPCG(*campaignSeed, uint64(i))))
		got, net := ratesOf(t, p, ratedNodes, list, 500*sim.Microsecond, sim.Millisecond)
		want := maxMin(net, p, list)
		for k := range list {
			require.InEpsilon(t, want[k], got[k], 0.01, "network %d: flow %v of %v: %+v", i, list[k], list, p.Fabric)
		}
	}
}

// Rates do not depend on the cores of the simulating machine.
func TestRatesOnCores(t *testing.T) {
	p, list := drawRated(t, rand.New(rand.NewPCG(3, 3)))
	var want []sim.Time
	for _, cores := range []int{1, 2, 3, 8} {
		ends, err := play(p, ratedNodes, cores, list, nil, 200_000, nil)
		require.NoError(t, err)
		if want == nil {
			want = ends
		}
		require.Equal(t, want, ends, "%d cores", cores)
	}
}

// No queue is a quarter as long as with other laws, and a flow beside an incast
// soon has its fair rate.
func TestRatesKeepQueuesShort(t *testing.T) {
	const maxmin = "maxmin"
	list := []flow{{15, 1}}
	for from := 2; from < 14; from++ {
		list = append(list, flow{from, 0})
	}
	set := []string{"fabric.queue=64MiB", `fabric.trim=""`, "fabric.leaf_nodes=4", "fabric.spines=4", "fabric.rates=10us"}
	queues := map[string]int64{}
	victims := map[string]float64{}
	for _, law := range laws.Names(laws.Rates) {
		p := ratedProfile(t, append(set, "transport.law="+law)...)
		rates, net := ratesOf(t, p, ratedNodes, list, 200*sim.Microsecond, 400*sim.Microsecond)
		victims[law] = rates[0] / maxMin(net, p, list)[0]
		for _, l := range net.Links() {
			queues[law] = max(queues[law], l.MaxQueue)
		}
	}
	require.InEpsilon(t, 1, victims[maxmin], 0.01)
	for law, queue := range queues {
		if law != maxmin {
			require.Less(t, 4*queues[maxmin], queue, law)
		}
	}
}
