package npf

import (
	"context"
	"errors"
	"strconv"

	"github.com/spinsim/spinsim/experiment"
	pagefault "github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var npfVersus = &experiment.Experiment{
	Name:  "npf-versus-part",
	Short: "a write between memory whose pages are absent, by reliable connections of InfiniBand with NPF'17's page faults, and by the RDMA engine with PART's, on the same network and kernel",
	Long: `A process writes to memory of another node. The pages of one side are absent, or none are. The latency is from the call until the process knows that all data has arrived.
  npf           handlers/rnr: the kernel brings in all pages of the write
  npf-one-page  it brings in the reported page
  part-pio      handlers/part, PART'22: the failing page comes, and its block is requested again
  part-pia      all pages from that one to the end of the buffer come
Network, bus, kernel and the costs of a page are the profile's, and the same for all modes; packets have the same size. Only the engine differs. A connection acknowledges a message, and waits 67 ms for that. PART's engine has blocks of 16 KiB, each of which is acknowledged, or sent again after 1 ms. Firmware reports NPF's faults (--firmware firmware) or, as a what-if, HPUs do. PART runs on HPUs: its faults interrupt the kernel at once, and its
firmware sends the block again.`,
	Source:   npfVersusSource,
	Smoke:    []experiment.Values{{"mode": versusPIA, "side": pagefault.SideSource, "firmware": "hpu", "size": 40000}},
	Profiles: []string{"ib-npf"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{versusNPF, versusOnePage, versusPIO, versusPIA}, Help: "treatment of absent pages; the command's help describes each"},
		{Name: "side", Kind: report.Text, Of: []string{pagefault.SideNone, pagefault.SideDestination, pagefault.SideSource}, Help: "whose pages are absent"},
		{Name: "firmware", Kind: report.Text, Default: "firmware,hpu", Field: "serve.rnr.header", Help: "processors of the profile that run the firmware of connections, hpu for sPIN's"},
		{Name: "pause", Kind: report.Count, Least: "1", Most: "31", Default: strconv.Itoa(rnr.DefaultPause), Help: "npf: code of the RNR NACK's time in InfiniBand's table: 1 is 10 us, 9 is 240 us"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "64MiB", Default: "4KiB,64KiB,1MiB", Help: "of the write"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		npf := p.Text("mode") == versusNPF || p.Text("mode") == versusOnePage
		return npf || p.Text("firmware") == "hpu", hasNPF(p)
	},
	Run: runVersus,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "from the call until the process knows that all is there"},
		{Name: "again", Kind: report.Size, Help: "bytes that were sent more than once: in packets by connections, in blocks of up to 16 KiB by PART's engine"},
		{Name: "reports", Kind: report.Count, Help: "of absent pages that kernels were given: faults of connections, entries of PART's FIFO"},
	}, experiment.ClusterColumns()...),
	Slots: func(p *experiment.Point) []*handlers.Slot {
		if p.Text("mode") == versusNPF || p.Text("mode") == versusOnePage {
			return []*handlers.Slot{rnr.EngineSlot}
		}
		return []*handlers.Slot{part.EngineSlot}
	},
	Ledger: []experiment.LedgerRow{{
		ID: "npf17-4-25", Of: "mode=npf side=destination firmware=firmware size=64KiB,1MiB",
		How: "more than the packet that found its page absent is sent again, of 64 KiB and of 1 MiB, and all data arrives",
		Holds: func(m *experiment.Measured) bool {
			return m.At("again", "size=64KiB") > host4K && m.At("again", "size=1MiB") > host4K
		},
	}},
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, X: "bytes", Quiet: []string{"pause"},
		Summary: []string{"side", "firmware", "bytes", "mode", experiment.LatencyColumn, "reports", "again"},
	},
	Notes: []string{
		experiment.Compared,
		"Beyond the papers: PART'22 has measured another network, NPF'17 no PART.",
	},
}

const npfVersusSource = "ours, of NPF'17 §4 and PART'22 §4"

const (
	versusNPF     = "npf"
	versusOnePage = "npf-one-page"
	versusPIO     = "part-pio"
	versusPIA     = "part-pia"
)

// versus is a running measurement.
type versus struct {
	*experiment.Point
	lib    *rnr.Loaded // nil: PART
	part   *part.Part
	conn   *rnr.Conn  // of the source
	page   *rdma.Page // of the source; PART
	target runtime.View
	took   sim.Time
	again  int // bytes
}

func runVersus(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &versus{Point: p}
	want := memory.Make[byte](p.Int("size"))
	if p.Text("side") != pagefault.SideSource { // memory that was given up is zeros
		experiment.Pattern(want, p.Seed)
	}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 2), func(c *runtime.Cluster) error {
		if err := w.load(c); err != nil {
			return err
		}
		return errors.Join(c.Spawn(0, "source", w.source), c.Spawn(1, "destination", w.destination))
	}, func() error {
		w.resent()
		return experiment.SameBytes("memory", w.target.Snapshot(), want)
	})
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&stats)
	values[experiment.LatencyColumn], values["reports"], values["again"] = w.took, w.reports(), w.again
	return values, nil
}

// resent counts the bytes that were sent more than once.
func (w *versus) resent() {
	size := w.Int("size")
	if w.conn != nil {
		mtu := int(w.Profile.Fabric.MTU)
		w.again = (int(w.conn.State().Stats.Packets) - (size+mtu-1)/mtu) * min(mtu, size)
		return
	}
	w.again = int(w.page.Counts().Sent.Retransmitted) * min(rdma.MaxBlock, size)
}

// reports is how many reports of absent pages both kernels got.
func (w *versus) reports() (n int) {
	for node := range 2 {
		if w.lib != nil {
			n += int(w.lib.Stats(node).Faults)
		} else {
			n += int(w.part.Driver(node).Stats().Entries)
		}
	}
	return n
}

func (w *versus) load(c *runtime.Cluster) (err error) {
	switch mode := w.Text("mode"); mode {
	case versusNPF, versusOnePage:
		w.lib, err = rnr.Load(c, rnr.Options{OnePage: mode == versusOnePage, Pause: w.Int("pause")})
	case versusPIO:
		w.part, err = part.Load(c, part.Options{Policy: part.PIO, Method: part.InKernel})
	default:
		w.part, err = part.Load(c, part.Options{Policy: part.PIA, Method: part.InKernel})
	}
	return err
}

// open opens the end of a process. Its memory is present unless its side is
// absent.
func (w *versus) open(p *runtime.Proc, side string) (conn *rnr.Conn, page *rdma.Page, v runtime.View, err error) {
	if w.lib != nil {
		conn, err = w.lib.Connect(p, "versus")
	} else {
		page, err = w.part.Open(p, rdma.Options{PDID: 1})
	}
	if err != nil {
		return nil, nil, v, err
	}
	v = p.AllocAligned(w.Int("size"), rdma.MaxBlock) // so 16 KiB are one block
	if w.Text("side") != side {
		experiment.Pattern(v.Raw(), w.Seed)
	}
	return conn, page, v, nil
}

// versusBegin is when both processes are ready.
const versusBegin = 100 * sim.Millisecond

func (w *versus) source(p *runtime.Proc) error {
	conn, page, v, err := w.open(p, pagefault.SideSource)
	if err != nil {
		return err
	}
	w.conn, w.page = conn, page
	p.SleepUntil(versusBegin)
	defer func() {
		w.took = p.Now() - versusBegin
		w.Operation(p, versusBegin)
	}()
	if conn != nil {
		work, err := conn.PostWrite(w.target.Addr(), v)
		if err != nil {
			return err
		}
		_, err = work.Wait()
		return err
	}
	t, err := page.Write(rdma.Transfer{NID: 1, Source: v.Addr(), Destination: w.target.Addr(), Length: uint64(v.Len())})
	if err != nil {
		return err
	}
	return t.Wait()
}

func (w *versus) destination(p *runtime.Proc) (err error) {
	if _, _, w.target, err = w.open(p, pagefault.SideDestination); err != nil {
		return err
	}
	p.SleepUntil(versusBegin)
	p.SleepUntil(versusBegin + sim.Second)
	return nil
}
