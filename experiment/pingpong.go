package experiment

import (
	handler "github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

var pingpong = &Experiment{
	Name:  "pingpong",
	Short: "half of a round trip between two ranks",
	Long: `Rank 0 puts a message to rank 1, which puts it back. The latency is half the time from posting the ping to
the moment at which rank 0 has seen the whole pong in its memory.
  rdma         the host of rank 1 polls, matches and posts the pong
  p4           the pong is a triggered operation of rank 1's NIC; its data is fetched from host memory
  spin-store   a single packet is answered from the device; a larger message is deposited and sent by the completion handler
  spin-stream  every packet is answered from the device; the data never reaches rank 1's host memory`,
	Source: "sPIN'17 §4.4.1",
	Smoke:  []Values{{"size": 5000}},
	Axes: []Axis{
		modeAxis(ModeRDMA, ModeP4, ModeSpinStore, ModeSpinStream),
		twoRanks(),
		sizeAxis("4,..,256KiB"),
	},
	Run:         benchmark(runPingpong),
	Memory:      func(p *Point) int64 { return benchMemory(p, 2) + messages(p, 5) }, // what was sent, three buffers, the message under way
	Columns:     benchColumns(),
	Relative:    againstModes(ModeRDMA, ModeP4),
	Modules:     inSpinModes("pingpong"),
	Replaceable: true,
	Roles: []Role{
		storeRole(handler.StorePayload, handler.StoreCompletion, []string{"match_bits", "pt"}, []string{"max_payload"}),
		streamRole(handler.StreamPayload, handler.StreamCompletion, []string{"match_bits", "pt"}, []string{"max_payload"}),
	},
	Followed: latencyColumn,
	View:     modeView,
	Notes:    []string{compared},
}

func runPingpong(w *bench) error {
	if w.Mode == ModeSpinStore || w.Mode == ModeSpinStream {
		if err := w.load(); err != nil {
			return err
		}
	}
	if err := w.spawn(1, "server", w.pingpongServer); err != nil {
		return err
	}
	return w.spawn(0, "client", w.pingpongClient)
}

func (w *bench) pingpongClient(p *runtime.Proc) error {
	ni := p.NI()
	sent := make([]byte, w.Bytes)
	pattern(sent, w.Seed)
	ping, pong := p.Alloc(w.Bytes), p.Alloc(w.Bytes)
	copy(ping.Raw(), sent)
	arrived, err := receive(ni, replyPT, replyBits, pong, nil)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: ping.Addr(), Length: uint64(w.Bytes)})
	if err != nil {
		return err
	}
	start := p.Now()
	if err := ni.Put(portals.Put{MD: md, Length: uint64(w.Bytes), Target: peer(1), PT: requestPT, MatchBits: requestBits}); err != nil {
		return err
	}
	if err := arrived.wait(w.Bytes); err != nil {
		return err
	}
	if w.Mode == ModeRDMA {
		p.Compute(w.Profile.Host.Match)
	}
	w.latency = (p.Now() - start) / 2
	w.shares(2)
	w.Operation(p, start)
	return same("pong", pong.Read(), sent)
}

func (w *bench) pingpongServer(p *runtime.Proc) error {
	ni := p.NI()
	buffer := p.Alloc(w.Bytes)
	size := uint64(w.Bytes)
	if w.Mode == ModeSpinStore || w.Mode == ModeSpinStream {
		return w.pingpongHandlers(p, buffer)
	}
	arrived, err := receive(ni, requestPT, requestBits, buffer, nil)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: buffer.Addr(), Length: size})
	if err != nil {
		return err
	}
	if w.Mode == ModeP4 {
		return ni.Objects().Triggered(portals.Put{MD: md, Length: size, Target: peer(0), PT: replyPT, MatchBits: replyBits}, arrived.ct, arrived.target(w.Bytes))
	}
	if err := arrived.wait(w.Bytes); err != nil {
		return err
	}
	p.Compute(w.Profile.Host.Match)
	return ni.Put(portals.Put{MD: md, Length: size, Target: peer(0), PT: replyPT, MatchBits: replyBits})
}

// pingpongHandlers installs the handlers that answer; the process is then done.
func (w *bench) pingpongHandlers(p *runtime.Proc, buffer runtime.View) error {
	in, err := w.runs.Install(p, Values{"match_bits": replyBits, "pt": replyPT, "max_payload": int64(w.Profile.Fabric.MTU)})
	if err != nil {
		return err
	}
	_, err = receive(p.NI(), requestPT, requestBits, buffer, in)
	return err
}
