package spin17

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	handler "github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

var bcast = &experiment.Experiment{
	Name:  "bcast",
	Short: "broadcast down a binomial tree",
	Long: `Rank 0 broadcasts a message to all ranks down a binomial tree. The latency is the time from the call at rank 0
until the last rank's host has seen the whole message in its memory.
  rdma         the host of every rank polls, matches and posts the puts to its children
  p4           the puts to the children are triggered operations; their data is fetched from host memory
  spin-store   a single packet is put to the children from the device; a larger message by the completion handler from host memory
  spin-stream  the payload handler puts each packet to the children from the device, and deposits it at the same time`,
	Source: "sPIN'17 §4.4.3",
	Smoke:  []experiment.Values{{"ranks": 13, "size": 9000}, {"ranks": 5, "size": 8}},
	Axes: []experiment.Axis{
		experiment.ModeAxis(experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpinStore, experiment.ModeSpinStream),
		experiment.RanksAxis(experiment.MaxRanks, "4,16,..,1024"),
		experiment.SizeAxis("8,64KiB"),
	},
	Independent: true,
	Run:         experiment.Benchmark(runBcast),
	Memory:      experiment.BroadcastMemory,
	Columns:     experiment.BenchColumns(),
	Relative:    experiment.AgainstModes(experiment.ModeRDMA, experiment.ModeP4),
	Ledger:      ledgerBcast(),
	Slots:       experiment.SpinSlots(handler.StoreSlot, handler.StreamSlot),
	Followed:    experiment.LatencyColumn,
	View:        experiment.ModeView,
	Notes:       []string{experiment.Compared},
}

func runBcast(b *experiment.Bench) error {
	w := bench{b}
	if w.Mode == experiment.ModeSpinStore || w.Mode == experiment.ModeSpinStream {
		if err := w.LoadHandlers(); err != nil {
			return err
		}
	}
	message := memory.Make[byte](w.Bytes)
	experiment.Pattern(message, w.Seed)
	root := uint32(w.First())
	for rank := range w.Ranks {
		if err := w.Spawn(rank, "bcast", func(p *runtime.Proc) error { return w.bcastRank(p, root, message) }); err != nil {
			return err
		}
	}
	return nil
}

func (w bench) bcastRank(p *runtime.Proc, root uint32, message []byte) error {
	tree := handler.State{
		MatchBits: experiment.RequestBits, PT: experiment.RequestPT, Rank: uint32(p.Rank()), Ranks: uint32(w.Ranks), Root: root, MaxPayload: uint32(w.Profile.Fabric.MTU),
	}
	buffer := p.Alloc(w.Bytes)
	if tree.Rank == root {
		copy(buffer.Raw(), message)
		return w.bcastPuts(p, &tree, buffer)
	}
	arrived, err := w.bcastEntry(p, &tree, buffer)
	if err != nil {
		return err
	}
	if err := arrived.Wait(w.Bytes); err != nil {
		return err
	}
	if w.Mode == experiment.ModeRDMA {
		p.Compute(p.Reads(used.Match).Host.Match)
	}
	w.Ended(p.Now())
	w.LastOperation(p, 0)
	if err := w.Complete(fmt.Sprintf("rank %d", p.Rank()), arrived, buffer, message); err != nil {
		return err
	}
	if w.Mode == experiment.ModeRDMA {
		return w.bcastPuts(p, &tree, buffer)
	}
	return nil
}

// bcastEntry makes a rank ready to receive, and to forward if the NIC does
// that.
func (w bench) bcastEntry(p *runtime.Proc, tree *handler.State, buffer runtime.View) (*experiment.Entry, error) {
	ni := p.NI()
	var in *handlers.Installed
	if w.Mode == experiment.ModeSpinStore || w.Mode == experiment.ModeSpinStream {
		var err error
		in, err = w.Handlers.Install(p, experiment.Values{
			"match_bits": tree.MatchBits, "pt": tree.PT, "rank": tree.Rank, "ranks": tree.Ranks, "root": tree.Root, "max_payload": tree.MaxPayload,
		})
		if err != nil {
			return nil, err
		}
	}
	arrived, err := experiment.AppendEntry(ni, experiment.RequestPT, experiment.RequestBits, buffer, in)
	if err != nil || w.Mode != experiment.ModeP4 {
		return arrived, err
	}
	size := uint64(w.Bytes)
	md, err := ni.Objects().MDBind(&portals.MD{Start: buffer.Addr(), Length: size})
	if err != nil {
		return nil, err
	}
	for _, child := range tree.Children() {
		err := ni.Objects().Triggered(portals.Put{MD: md, Length: size, Target: experiment.Peer(int(child)), PT: experiment.RequestPT, MatchBits: experiment.RequestBits}, arrived.CT, arrived.Target(w.Bytes))
		if err != nil {
			return nil, err
		}
	}
	return arrived, nil
}

// bcastPuts has the host post the puts to all children of its rank.
func (w bench) bcastPuts(p *runtime.Proc, tree *handler.State, buffer runtime.View) error {
	ni := p.NI()
	size := uint64(w.Bytes)
	md, err := ni.Objects().MDBind(&portals.MD{Start: buffer.Addr(), Length: size})
	if err != nil {
		return err
	}
	for _, child := range tree.Children() {
		if err := ni.Put(portals.Put{MD: md, Length: size, Target: experiment.Peer(int(child)), PT: experiment.RequestPT, MatchBits: experiment.RequestBits}); err != nil {
			return err
		}
	}
	return nil
}

// ledgerBcast are the rows of sPIN'17 §4.4.3 that bcast answers. The text gives
// no size for the gains. It cannot be 8 B: even a handler without cost would not
// give both numbers.
func ledgerBcast() []experiment.LedgerRow {
	const large = "ranks=1024 size=64KiB "
	return []experiment.LedgerRow{
		{ID: "spin17-4.4.3-05", Of: "profile=spin-int mode=rdma,spin-stream " + large, Column: experiment.SavedRDMA},
		{ID: "spin17-4.4.3-06", Of: "profile=spin-int mode=p4,spin-stream " + large, Column: experiment.SavedP4},
		{ID: "spin17-4.4.3-x01", Of: "profile=spin-int-sc17 mode=rdma,spin-stream " + large, Column: experiment.SavedRDMA},
		{ID: "spin17-4.4.3-x02", Of: "profile=spin-int-sc17 mode=p4,spin-stream " + large, Column: experiment.SavedP4},
		{
			ID: "spin17-4.4.3-03", Of: bothNICs + "mode=spin-store,spin-stream ranks=4,16,..,1024 size=8,512,4KiB", How: "by how much store is slower than stream, at most, 8 B to 4 KiB on 4 to 1024 ranks",
			Ours: func(m *experiment.Measured) []float64 {
				most := 0.0
				for _, r := range m.Results {
					if r.Point.Text("mode") == experiment.ModeSpinStore {
						most = max(most, m.Of(r, experiment.LatencyColumn)/m.Beside(r, experiment.LatencyColumn, "mode="+experiment.ModeSpinStream)-1)
					}
				}
				return []float64{100 * most}
			},
		},
		{
			ID: "spin17-4.4.3-11", Of: bothNICs + "mode=rdma,p4,spin-stream ranks=64 size=8 host.poll=10us", How: "if each host takes 10 µs to see a message, 64 ranks have a broadcast of 8 B after less than twice that with stream, as with Portals 4, and after at least six times that with RDMA, which adds up over the levels of the tree",
			Holds: func(m *experiment.Measured) bool {
				held := true
				for _, r := range m.Results {
					latency := m.Of(r, experiment.LatencyColumn)
					held = held && (r.Point.Text("mode") == experiment.ModeRDMA) == (latency >= 60) && (r.Point.Text("mode") != experiment.ModeRDMA) == (latency < 20)
				}
				return held
			},
		},
		{
			ID: "spin17-4.4.3-08", Of: "profile=spin-dis mode=rdma,p4,spin-stream ranks=4,16,..,1024 size=8", How: "stream takes less time than RDMA and Portals 4, 4 to 1024 ranks",
			Holds: func(m *experiment.Measured) bool {
				return below(m, experiment.LatencyColumn, experiment.ModeSpinStream, 1, experiment.ModeRDMA, experiment.ModeP4)
			},
		},
	}
}
