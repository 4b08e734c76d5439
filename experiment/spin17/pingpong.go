package spin17

import (
	"github.com/spinsim/spinsim/experiment"
	handler "github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

var pingpong = &experiment.Experiment{
	Name:  "pingpong",
	Short: "half of a round trip between two ranks",
	Long: `Rank 0 puts a message to rank 1, which puts it back. The latency is half the time from posting the ping until
rank 0 has seen the whole pong in its memory.
  rdma         the host of rank 1 polls, matches and posts the pong
  p4           the pong is a triggered operation of rank 1's NIC; its data is fetched from host memory
  spin-store   a single packet is answered from the device; a larger message is deposited and sent by the completion handler
  spin-stream  every packet is answered from the device; the data never reaches rank 1's host memory`,
	Source: "sPIN'17 §4.4.1",
	Smoke:  []experiment.Values{{"size": 5000}},
	Axes: []experiment.Axis{
		experiment.ModeAxis(experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpinStore, experiment.ModeSpinStream),
		experiment.TwoRanks(),
		experiment.SizeAxis("4,..,256KiB"),
	},
	Run: experiment.Benchmark(runPingpong),
	// the message, three buffers, and the message under way
	Columns:  experiment.BenchColumns(),
	Relative: experiment.AgainstModes(experiment.ModeRDMA, experiment.ModeP4),
	Ledger:   ledgerPingpong(),
	Slots:    experiment.SpinSlots(handler.StoreSlot, handler.StreamSlot),
	Followed: experiment.LatencyColumn,
	View:     experiment.ModeView,
	Notes:    []string{experiment.Compared},
}

func runPingpong(b *experiment.Bench) error {
	w := bench{b}
	if w.Mode == experiment.ModeSpinStore || w.Mode == experiment.ModeSpinStream {
		if err := w.LoadHandlers(); err != nil {
			return err
		}
	}
	client := w.First()
	if err := w.Spawn(1-client, "server", w.pingpongServer); err != nil {
		return err
	}
	return w.Spawn(client, "client", w.pingpongClient)
}

func (w bench) pingpongClient(p *runtime.Proc) error {
	ni := p.NI()
	sent := memory.Make[byte](w.Bytes)
	experiment.Pattern(sent, w.Seed)
	ping, pong := p.Alloc(w.Bytes), p.Alloc(w.Bytes)
	copy(ping.Raw(), sent)
	arrived, err := experiment.AppendEntry(ni, experiment.ReplyPT, experiment.ReplyBits, pong, nil)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: ping.Addr(), Length: uint64(w.Bytes)})
	if err != nil {
		return err
	}
	start := p.Now()
	if err := ni.Put(portals.Put{MD: md, Length: uint64(w.Bytes), Target: experiment.Peer(1 - p.Rank()), PT: experiment.RequestPT, MatchBits: experiment.RequestBits}); err != nil {
		return err
	}
	if err := arrived.Wait(w.Bytes); err != nil {
		return err
	}
	if w.Mode == experiment.ModeRDMA {
		p.Compute(p.Reads(used.Match).Host.Match)
	}
	w.Latency = (p.Now() - start) / 2
	w.OperationOf(2)
	w.Operation(p, start)
	return w.Complete("pong", arrived, pong, sent)
}

func (w bench) pingpongServer(p *runtime.Proc) error {
	ni := p.NI()
	buffer := p.Alloc(w.Bytes)
	size := uint64(w.Bytes)
	if w.Mode == experiment.ModeSpinStore || w.Mode == experiment.ModeSpinStream {
		return w.pingpongHandlers(p, buffer)
	}
	arrived, err := experiment.AppendEntry(ni, experiment.RequestPT, experiment.RequestBits, buffer, nil)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: buffer.Addr(), Length: size})
	if err != nil {
		return err
	}
	if w.Mode == experiment.ModeP4 {
		return ni.Objects().Triggered(portals.Put{MD: md, Length: size, Target: experiment.Peer(1 - p.Rank()), PT: experiment.ReplyPT, MatchBits: experiment.ReplyBits}, arrived.CT, arrived.Target(w.Bytes))
	}
	if err := arrived.Wait(w.Bytes); err != nil {
		return err
	}
	p.Compute(p.Reads(used.Match).Host.Match)
	return ni.Put(portals.Put{MD: md, Length: size, Target: experiment.Peer(1 - p.Rank()), PT: experiment.ReplyPT, MatchBits: experiment.ReplyBits})
}

// pingpongHandlers installs the handlers that reply. Then the process has
// nothing to do.
func (w bench) pingpongHandlers(p *runtime.Proc, buffer runtime.View) error {
	in, err := w.Handlers.Install(p, experiment.Values{"match_bits": experiment.ReplyBits, "pt": experiment.ReplyPT, "max_payload": int64(w.Profile.Fabric.MTU)})
	if err != nil {
		return err
	}
	_, err = experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, buffer, in)
	return err
}

// ledgerPingpong are the rows of sPIN'17 that pingpong answers.
func ledgerPingpong() []experiment.LedgerRow {
	const all = bothNICs + "mode=rdma,p4,spin-store,spin-stream size=4,..,256KiB"
	return []experiment.LedgerRow{
		{
			ID: "spin17-4.4.1-02", Of: bothNICs + "mode=rdma size=4,..,256KiB", How: "both hosts compare every byte when they have seen the completion, and each fetch and each deposit has added its DMA latency: a round trip takes at least four, 4 B to 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				held := true
				for _, r := range m.Results {
					held = held && 2*m.Of(r, experiment.LatencyColumn) >= 4*r.Point.Profile.DMA.Latency.Microseconds()
				}
				return held
			},
		},
		{
			ID: "spin17-4.4.1-03", Of: all, How: "with p4 four times the message goes through the host memories (fetched and deposited at both ranks), as with RDMA, and with spin-stream twice, 4 B to 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				return moved(m, experiment.ModeP4, 4) && moved(m, experiment.ModeRDMA, 4) && moved(m, experiment.ModeSpinStream, 2)
			},
		},
		{
			ID: "spin17-4.4.1-05", Of: bothNICs + "mode=rdma,p4,spin-store,spin-stream size=4,..,4KiB", How: "store and stream take less time than RDMA and Portals 4, messages of a packet, 4 B to 4 KiB",
			Holds: func(m *experiment.Measured) bool {
				return below(m, experiment.LatencyColumn, experiment.ModeSpinStore, 1, experiment.ModeRDMA, experiment.ModeP4) &&
					below(m, experiment.LatencyColumn, experiment.ModeSpinStream, 1, experiment.ModeRDMA, experiment.ModeP4)
			},
		},
		{
			ID: "spin17-4.4.1-07", Of: bothNICs + "mode=rdma,p4,spin-store,spin-stream size=8KiB,..,256KiB", How: "stream takes less time than store, RDMA and Portals 4, messages of several packets, 8 KiB to 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				return below(m, experiment.LatencyColumn, experiment.ModeSpinStream, 1, experiment.ModeSpinStore, experiment.ModeRDMA, experiment.ModeP4)
			},
		},
		{
			ID: "spin17-C.3.1-06", Of: bothNICs + "mode=spin-stream size=256KiB", How: "the round trip of 256 KiB takes less than 1.5 times of what a link takes for the message in one direction",
			Holds: func(m *experiment.Measured) bool {
				held := true
				for _, r := range m.Results {
					once := r.Point.Profile.Fabric.Rate.Time(int64(r.Point.Int("size")))
					held = held && 2*m.Of(r, experiment.LatencyColumn) < 1.5*once.Microseconds()
				}
				return held
			},
		},
	}
}
