package networks

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	incast      = "incast"
	permutation = "permutation"
	victim      = "victim"
)

var traffic = &experiment.Experiment{
	Name:  "traffic",
	Short: "messages that meet in the network, under a congestion control",
	Long: `Nodes put messages of one size to others, all at the same time.
  incast       senders, spread over the network, to node 0
  permutation  senders, spread over the network, in a cycle by chance: each sends to the next
  victim       the incast, and a message from the last node to node 1, beside node 0
A message has ended when its sender knows that all of it has arrived. The bound is the time that the busiest link of a node takes
for its bytes, and the shortest round trip to it: no congestion control is faster.`,
	Source:   source,
	Profiles: []string{"uec"},
	Smoke:    []experiment.Values{{"nodes": 8, "senders": 4, "size": 64 << 10, "pattern": victim}},
	Axes: []experiment.Axis{
		{Name: "pattern", Kind: report.Text, Of: []string{incast, permutation, victim}, Help: "who sends to whom: incast, permutation, victim"},
		{Name: "nodes", Kind: report.Count, Least: "4", Most: "131072", Default: "256", Help: "of the network"},
		{Name: "senders", Kind: report.Count, Least: "1", Most: "131072", Default: "8,32", Help: "of the incast, or nodes of the permutation: at most all"},
		experiment.SizeAxis("1MiB"),
		{Name: "law", Kind: report.Text, Of: laws.Names(laws.Rates), Default: "nscc,rccc,dctcp,dcqcn", Field: "transport.law", Help: "rate law: " + strings.Join(laws.Names(laws.Rates), ", ") + " (docs/networks.md)"},
	},
	Slots:       experiment.Always(lawSlot, waySlot),
	Points:      points,
	Run:         run,
	Independent: true,
	Followed:    "last",
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(p.Int("nodes")) + int64(len(flows(p)))*int64(p.Int("size"))
	},
	Columns: append([]report.Column{
		{Name: "last", Unit: "us", Kind: report.Duration, Help: "until the last message has ended"},
		{Name: "first", Unit: "us", Kind: report.Duration, Help: "until the first one has"},
		{Name: "bound", Unit: "us", Kind: report.Duration, Help: "no congestion control is faster"},
		{Name: "efficiency", Kind: report.Share, Help: "bound / last"},
		{Name: "victim", Unit: "us", Kind: report.Duration, Help: "until the victim's message has ended"},
		{Name: "slowdown", Kind: report.Ratio, Help: "the victim's time, in times of its bound"},
		{Name: "trimmed", Kind: report.Count, Help: "packets whose payload a switch has cut off"},
		{Name: "dropped", Kind: report.Count, Help: "packets that a switch has dropped"},
	}, experiment.ClusterColumns()...),
	View: experiment.View{
		Value: "efficiency", Series: []string{"law"}, X: "senders", Answer: answer,
		Summary: []string{experiment.ProfileColumn, "pattern", "nodes", "senders", "bytes", "law", "efficiency", "last_us", "bound_us", "first_us", "slowdown", "trimmed", "dropped", "retransmitted"},
	},
	Notes: []string{experiment.Compared},
}

// The slots of the transport. Without a module of the user's, laws of package
// laws run in them.
var (
	lawSlot = handlers.New("transport", laws.NSCCModule).Slot(handlers.Slot{
		Name: "law", Short: "a rate law in place of transport.law", Handlers: []string{laws.Export}, Free: true,
		Expects: []string{"The module's function law gets the record Flow and 64 words of state, at every event of the packets to a node, and sets what may be on its way (docs/networks.md)."},
	})
	waySlot = handlers.New("transport", laws.RecycleModule).Slot(handlers.Slot{
		Name: "way", Short: "a path choice in place of transport.way", Handlers: []string{laws.Export}, Free: true,
		Expects: []string{"Likewise; it sets the path of each packet."},
	})
)

func points(p *experiment.Point) (bool, error) {
	nodes, senders := p.Int("nodes"), p.Int("senders")
	most := map[string]int{
		incast: nodes - 1, permutation: nodes,
		victim: nodes - 3, // not node 0, and neither end of the victim's message
	}[p.Text("pattern")]
	switch {
	case p.Profile.Transport.Law == "":
		return false, fmt.Errorf("profile %s: transport.law: there is none, so nothing controls congestion", p.Profile.Origin.Name)
	case senders > most:
		return false, &experiment.NoPoint{Why: fmt.Errorf("--senders: %d, of %d nodes at most %d send", senders, nodes, most)}
	}
	return true, nil
}

// answer says of each pattern how near to the bound each law comes, with the most
// senders, and what the incast does to the victim.
func answer(results []*experiment.Result) (lines []string) {
	if !experiment.Apart(results, "pattern", "senders", "law") {
		return nil
	}
	most := 0
	for _, r := range results {
		most = max(most, r.Point.Int("senders"))
	}
	for _, pattern := range []string{incast, permutation, victim} {
		var parts []string
		for _, r := range results {
			switch law := r.Point.Text("law"); {
			case r.Point.Text("pattern") != pattern || r.Point.Int("senders") != most:
			case pattern == victim:
				parts = append(parts, fmt.Sprintf("%s %.2f", law, r.Float("slowdown")))
			default:
				parts = append(parts, fmt.Sprintf("%s %.1f%%", law, 100*r.Float("efficiency")))
			}
		}
		what := fmt.Sprintf("Efficiency of the %s of %s", pattern, experiment.Counted(most, "sender"))
		if pattern == victim {
			what = fmt.Sprintf("Slowdown of a message beside an incast of %s", experiment.Counted(most, "sender"))
		}
		if len(parts) > 0 {
			lines = append(lines, what+": "+strings.Join(parts, ", ")+".")
		}
	}
	return lines
}

// flow is a message.
type flow struct{ from, to int }

// flows are the messages of a point; the victim's is the last.
func flows(p *experiment.Point) (list []flow) {
	nodes, senders := p.Int("nodes"), p.Int("senders")
	switch p.Text("pattern") {
	case permutation:
		order := rand.New(rand.NewPCG(p.Seed, uint64(nodes))).Perm(senders)
		for i, from := range order {
			list = append(list, flow{from * nodes / senders, order[(i+1)%senders] * nodes / senders})
		}
	case victim:
		for i := range senders {
			list = append(list, flow{2 + i*(nodes-3)/senders, 0})
		}
		list = append(list, flow{nodes - 1, 1})
	default:
		for i := range senders {
			list = append(list, flow{1 + i*(nodes-1)/senders, 0})
		}
	}
	return list
}

const (
	table = 1
	bits  = 7
)

func run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	list, size := flows(p), p.Int("size")
	ends := make([]sim.Time, len(list))
	into := map[int][]int{} // messages to a node
	for i, f := range list {
		into[f.to] = append(into[f.to], i)
	}
	values := experiment.Values{}
	var cluster *runtime.Cluster
	stats, err := experiment.Simulate(ctx, p.Config(ctx, p.Int("nodes")), func(c *runtime.Cluster) error {
		cluster = c
		for node := range p.Int("nodes") {
			if of := into[node]; of != nil {
				if err := c.Spawn(node, "receiver", func(r *runtime.Proc) error { return receive(r, of, size) }); err != nil {
					return err
				}
			}
		}
		for i, f := range list {
			if err := c.Spawn(f.from, "sender", func(s *runtime.Proc) (err error) {
				if ends[i], err = send(s, i, f.to, size); err == nil {
					p.LastOperation(s, 0)
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return measure(p, cluster, list, ends, values) })
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	return values, nil
}

// receive takes the messages of a node, and compares them.
func receive(r *runtime.Proc, of []int, size int) error {
	in := &expected{of: of, size: uint64(size)}
	addr, err := runtime.Adopt(r, uint64(len(of)*size), in)
	if err != nil {
		return err
	}
	ct, err := r.NI().Objects().CTAlloc()
	if err != nil {
		return err
	}
	if _, err := r.NI().Objects().PTAlloc(0, portals.EQNone, table); err != nil {
		return err
	}
	for k, i := range of {
		_, err := r.NI().MEAppend(table, &portals.ME{
			Start: addr + uint64(k*size), Length: uint64(size), CT: ct, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: uint64(i),
			Options: portals.OptMEOpPut | portals.OptMEEventCTComm,
		}, portals.PriorityList, 0)
		if err != nil {
			return err
		}
	}
	if _, err := r.NI().CTWait(ct, uint64(len(of))); err != nil {
		return err
	}
	return in.wrong
}

// send puts a message and returns when all of it has arrived.
func send(s *runtime.Proc, i, to, size int) (sim.Time, error) {
	addr, err := runtime.Adopt(s, uint64(size), &expected{of: []int{i}, size: uint64(size)})
	if err != nil {
		return 0, err
	}
	ct, err := s.NI().Objects().CTAlloc()
	if err != nil {
		return 0, err
	}
	md, err := s.NI().Objects().MDBind(&portals.MD{Start: addr, Length: uint64(size), CT: ct, Options: portals.OptMDEventCTSend})
	if err != nil {
		return 0, err
	}
	if err := s.NI().Put(portals.Put{MD: md, Length: uint64(size), Target: experiment.Peer(to), PT: table, MatchBits: uint64(i)}); err != nil {
		return 0, err
	}
	_, err = s.NI().CTWait(ct, 1)
	return s.Now(), err
}

// expected is the memory of messages one behind the other: their bytes follow
// from number and offset, so nobody keeps them. What is stored is compared.
type expected struct {
	of    []int
	size  uint64
	want  []byte
	wrong error
}

// word is eight bytes of a message.
func word(message int, at uint64) uint64 {
	x := (uint64(message)<<40 ^ at/8) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// Load implements host.Elsewhere.
func (e *expected) Load(off uint64, b []byte) bool {
	var eight [8]byte
	for len(b) > 0 {
		at := off % e.size
		binary.LittleEndian.PutUint64(eight[:], word(e.of[off/e.size], at))
		n := copy(b[:min(uint64(len(b)), e.size-at)], eight[at%8:])
		b, off = b[n:], off+uint64(n)
	}
	return true
}

// Store implements host.Elsewhere.
func (e *expected) Store(off uint64, b []byte) bool {
	e.want = slices.Grow(e.want[:0], len(b))[:len(b)]
	if e.Load(off, e.want); !bytes.Equal(e.want, b) && e.wrong == nil {
		e.wrong = fmt.Errorf("message %d: bytes from %d to %d are not those that were sent", e.of[off/e.size], off%e.size, off%e.size+uint64(len(b)))
	}
	return true
}

// measure fills in the values of a point.
func measure(p *experiment.Point, c *runtime.Cluster, list []flow, ends []sim.Time, values experiment.Values) error {
	spec, size := &p.Profile.Fabric, p.Int("size")
	var one sim.Time // of the wire, for a message
	for at := 0; at < max(size, 1); at += int(spec.MTU) {
		one += spec.Serial(min(int(spec.MTU), size-at))
	}
	last := int32(min(int(spec.MTU), size))
	trip := func(f flow) sim.Time {
		return c.Fabric().Latency(f.from, f.to, last) + c.Fabric().Latency(f.to, f.from, int32(p.Profile.Transport.AckBytes))
	}
	into, nearest := map[int]int{}, map[int]sim.Time{}
	for _, f := range list {
		if at, known := nearest[f.to]; !known || trip(f) < at {
			nearest[f.to] = trip(f)
		}
		into[f.to]++
	}
	bound := func(f flow) sim.Time { return one - spec.Serial(int(last)) + trip(f) }
	var most sim.Time
	for _, f := range list {
		// the last message of a node may have the nearest sender
		all := sim.Time(into[f.to])*one - spec.Serial(int(last)) + nearest[f.to]
		most = max(most, all, bound(f))
	}
	values["last"], values["first"], values["bound"] = slices.Max(ends), slices.Min(ends), most
	values["efficiency"] = float64(most) / float64(slices.Max(ends))
	values["victim"], values["slowdown"] = nil, nil
	if v := len(list) - 1; p.Text("pattern") == victim {
		values["victim"] = ends[v]
		values["slowdown"] = float64(ends[v]) / float64(bound(list[v]))
	}
	b, _ := fabric.BalanceOf(c.Fabric())
	values["trimmed"], values["dropped"] = b.Trimmed, b.Lost.Packets
	return nil
}
