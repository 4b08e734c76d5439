package exanest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"

	network "github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var ipExperiment = &experiment.Experiment{
	Name:  "ip",
	Short: "IP over ExaNet, beside the management Ethernet",
	Long: `Programs of two MPSoCs communicate by sockets (TR-488 §5.3, §6; the report measures iperf3 and the mean round trip, and prints five figures, which are not compared here). Each MPSoC has the
service that carries packets, and the programs.
  tcp   streams of TCP in one direction, each of size bytes; the throughput is from the first write to the last byte read
  udp   datagrams of the largest packet size, as fast as the program sends, size bytes from each stream; the throughput excludes lost datagrams
  rtt   datagrams of 64 B there and back, one after the other, with a pause before each: the mean round trip
  over  polling: services poll continuously; sleeping: they sleep for longer and longer times; ethernet: 10 Gb/s management Ethernet
The nodes are five links of 10 Gb/s apart (5-hops, M1QAF1 and M7QCF1; the report does not name its nodes), neighbours on a ring (1-hop), or on one board (intra-qfdb).`,
	Source:   "TR-488 §6",
	Smoke:    []experiment.Values{{"traffic": ipTCP, "over": "sleeping", "size": 20000, "streams": 2, "mtu": 1500}},
	Profiles: []string{"exanest"},
	Axes: append([]experiment.Axis{
		{Name: "over", Kind: report.Text, Of: []string{string(network.Polling), string(network.Sleeping), ipEthernet}, Default: "polling,sleeping,ethernet", Help: "what carries the packets; the command's help describes each"},
		{Name: "traffic", Kind: report.Text, Of: ipTraffics(), Default: "tcp,udp,rtt", Help: "kind of traffic; the command's help describes each"},
		{Name: "path", Kind: report.Text, Of: ipPaths(), Default: "5-hops", Help: "where the programs are"},
		{Name: "streams", Kind: report.Count, Least: "1", Most: "32", Default: "1,4", Help: "streams of tcp and udp; rtt has one"},
		{Name: "mtu", Column: "mtu", Kind: report.Size, Least: "576", Most: "65535", Default: "1500,9000", Help: "MTU of packets over ExaNet; the Ethernet's is 1,500 B, and at most 9,000 B"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "1GiB", Default: "4MiB", Help: "of each stream"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "50", Help: "of rtt"},
		{Name: "pause", Kind: report.Duration, Most: "1s", Default: "100us", Help: "before each round of rtt"},
		{Name: "ethernet-mtu", Kind: report.Text, Of: []string{asMTU, "1500", "9000"}, Default: asMTU, Help: "MTU of the Ethernet: that of --mtu, or another"},
	}, ipSpecAxes()...),
	Points: hasIP,
	Run:    runIP,
	Columns: append([]report.Column{
		{Name: "throughput", Unit: "Gbps", Kind: report.Number, Help: "of tcp and udp: bytes of programs, without headers"},
		{Name: "round_trip", Unit: "us", Kind: report.Duration, Help: "of rtt: mean"},
		{Name: "lost", Kind: report.Share, Help: "of udp: share of the datagrams that did not arrive"},
		{Name: "resent", Kind: report.Count, Help: "of tcp: segments that were sent again"},
		{Name: "per_transfer", Kind: report.Number, Help: "packets in a transfer by RDMA"},
		{Name: "asleep", Kind: report.Share, Help: "share of the time that services slept, mean of the two"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerIP(),
	Operation: "of rtt the mean round trip; of tcp and udp the time from the first write to the last byte that is read, of all streams",
	Slots: func(*experiment.Point) []*handlers.Slot {
		return []*handlers.Slot{mailbox.EngineSlot, rdma.EngineSlot}
	},
	View: experiment.View{
		Value: "throughput", Series: []string{"over"}, X: "mtu", Quiet: append([]string{"path", "size", "rounds", "pause", "ethernet-mtu"}, ipSpecNames()...),
		Answer:  ipAnswer,
		Summary: []string{"traffic", "over", "streams", "mtu", "throughput", "round_trip", "lost", "resent", "per_transfer", "asleep"},
	},
	Notes: []string{
		"Every byte of a stream that arrived was compared with what was sent.",
		"The report prints five figures (§5.3); they are not compared here. Sizes of rings, the rule for sleeping and the times of the kernel are ours: exanet/ip/ip.yaml.",
	},
}

// Values of the axes.
const (
	ipEthernet = "ethernet"
	ipTCP      = "tcp"
	ipUDP      = "udp"
	ipRTT      = "rtt"
)

func ipTraffics() []string { return []string{ipTCP, ipUDP, ipRTT} }
func ipPaths() []string    { return []string{"5-hops", "1-hop", "intra-qfdb"} }

// asMTU is the value of the axis ethernet-mtu for that of packets over ExaNet.
const asMTU = "mtu"

func ethernetMTU(p *experiment.Point) int {
	switch p.Text("ethernet-mtu") {
	case asMTU:
		return p.Int("mtu")
	case "1500":
		return 1500
	}
	return 9000
}

// ipPath returns the nodes of the two programs. On the prototype's torus of 4 x
// 4 x 2 boards, MPSoC F1 of board (x, y, z) is node 4(x + 4y + 16z). For
// example, two boards on in X, two in Y and one in Z are five links.
func ipPath(p *experiment.Point) []int {
	return [][]int{{0, 4 * (2 + 4*2 + 16)}, {0, 4}, {0, 1}}[slices.Index(ipPaths(), p.Text("path"))]
}

// hasIP returns an error if the device cannot have the experiment.
func hasIP(p *experiment.Point) (bool, error) {
	if p.Profile.HPU.DMAWrite != nic.Landed {
		return false, fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s: what is acknowledged must be in the mailbox", p.Profile.Origin.Name, p.Profile.HPU.DMAWrite, nic.Landed)
	}
	mtu := p.Int("mtu")
	if p.Text("over") == ipEthernet && ethernetMTU(p) != 1500 && ethernetMTU(p) != 9000 {
		return false, &experiment.NoPoint{Why: errors.New("frames of the Ethernet have 1500 or 9000 B")}
	}
	if p.Text("traffic") == ipRTT && (p.Int("streams") != 1 || mtu != 1500) {
		return false, &experiment.NoPoint{Why: errors.New("rtt is measured with 1 stream and packets of up to 1500 B")}
	}
	return true, nil
}

// talk is a running measurement.
type talk struct {
	*experiment.Point
	net          *network.Network
	spec         *network.Spec
	to           inet.Addr
	streams      int
	bytes        int
	data         []byte // of a stream
	begun, ended sim.Time
	got, sent    int // bytes that programs received and sent
	resent       int64
	roundTrip    sim.Time
	all          bool    // all datagrams were sent
	left         int     // programs that still run
	asleep       float64 // share of the time that services sleep, summed over the services
	counts       network.Counts
}

func runIP(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &talk{Point: p, streams: p.Int("streams"), bytes: p.Int("size"), left: 2}
	w.data = memory.Make[byte](w.bytes)
	experiment.Pattern(w.data, p.Seed)
	path := ipPath(p)
	w.to = network.AddrOf(path[1])
	spec := append(ipSpecSet(p), fmt.Sprintf("mtu=%dB", p.Int("mtu")), fmt.Sprintf("batch=%dB", max(64<<10, p.Int("mtu")+64)))
	idle := network.Idle(p.Text("over"))
	if p.Text("over") == ipEthernet {
		w.to, idle = network.ManagementAddrOf(path[1]), network.Polling
		spec = append(ipSpecSet(p), fmt.Sprintf("management.mtu=%dB", ethernetMTU(p)))
	}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 1+slices.Max(path)), func(c *runtime.Cluster) error {
		var err error
		if w.spec, err = network.Load(spec...); err != nil {
			return err
		}
		if w.net, err = network.New(c, network.Options{Spec: w.spec, Idle: idle, Nodes: path}); err != nil {
			return err
		}
		for side, node := range path {
			if err := c.Spawn(node, fmt.Sprintf("program %d", side), func(p *runtime.Proc) error { return w.program(p, side, node) }); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil })
	if err != nil {
		return nil, err
	}
	return w.values(&stats), nil
}

// values are the values of the columns.
func (w *talk) values(stats *runtime.Stats) experiment.Values {
	v := experiment.ClusterValues(stats)
	for _, column := range []string{"throughput", "round_trip", "lost", "resent", "per_transfer", "asleep"} {
		v[column] = nil
	}
	if w.Text("traffic") == ipRTT {
		v["round_trip"] = w.roundTrip
	} else {
		w.NoteOperation(ipPath(w.Point)[1], "program 1", w.begun, w.ended)
		v["throughput"] = float64(8*w.got) / (w.ended - w.begun).Seconds() / 1e9
	}
	switch w.Text("traffic") {
	case ipUDP:
		v["lost"] = float64(w.sent-w.got) / float64(w.sent)
	case ipTCP:
		v["resent"] = int(w.resent)
	}
	if c := &w.counts; c.Batches > 0 {
		v["per_transfer"] = float64(c.Sent) / float64(c.Batches)
	}
	if w.Text("over") != ipEthernet {
		v["asleep"] = w.asleep / 2
	}
	return v
}

// program is the program of a side. When both have ended, their services stop.
func (w *talk) program(p *runtime.Proc, side, node int) error {
	s, err := w.net.Open(p)
	if err != nil {
		return err
	}
	if err := w.meet(p); err != nil {
		return err
	}
	begun, before := p.Now(), w.net.Counts(node).Slept
	switch {
	case w.Text("traffic") == ipTCP && side == 0:
		err = w.send(p, s)
	case w.Text("traffic") == ipTCP:
		err = w.receive(p, s)
	case w.Text("traffic") == ipUDP:
		err = w.datagrams(p, s, side)
	default:
		err = w.echo(p, s, side)
	}
	counts := w.net.Counts(node)
	w.asleep += (counts.Slept - before).Seconds() / (p.Now() - begun).Seconds()
	if side == 0 {
		w.counts = counts
	}
	if w.left--; w.left == 0 {
		for _, node := range ipPath(w.Point) {
			w.net.Stop(node)
		}
	}
	return err
}

// ipAnswer compares the throughput of services with the Ethernet, at the
// largest measured packets and numbers of streams.
func ipAnswer(results []*experiment.Result) (lines []string) {
	if !experiment.Apart(results, "over", "traffic", "mtu", "streams") {
		return nil
	}
	for _, traffic := range ipTraffics() {
		most := &experiment.Result{}
		var parts []string
		for _, r := range results {
			p := r.Point
			if p.Text("traffic") != traffic {
				continue
			}
			if q := most.Point; q == nil || p.Int("mtu") > q.Int("mtu") || p.Int("mtu") == q.Int("mtu") && p.Int("streams") > q.Int("streams") {
				most, parts = r, nil
			}
			if q := most.Point; p.Int("mtu") != q.Int("mtu") || p.Int("streams") != q.Int("streams") {
				continue
			}
			if traffic == ipRTT {
				parts = append(parts, fmt.Sprintf("%s %s", p.Text("over"), experiment.ShortTime(r.Time("round_trip"))))
			} else {
				parts = append(parts, fmt.Sprintf("%s %.2f Gb/s", p.Text("over"), r.Float("throughput")))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s, packets of %d B, %s: %s.", traffic, most.Point.Int("mtu"), experiment.Counted(most.Point.Int("streams"), "stream"), strings.Join(parts, ", ")))
		}
	}
	return lines
}
