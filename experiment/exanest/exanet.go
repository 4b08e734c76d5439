package exanest

import (
	"context"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"

	interfaces "github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var exanet = &experiment.Experiment{
	Name:  "exanet",
	Short: "half of a round trip between two processes of the ExaNeSt prototype",
	Long: `Two processes send a message back and forth: first some rounds that are not measured, then the measured ones. The latency is half of the mean round trip.
  mailbox      packetizer and mailbox only, up to 64 B
  mpi          ExaNet-MPI: up to 32 B by packetizer and mailbox, more by RDMA, which the unit at the data starts
  mpi-process  the same, but the sending process starts the transfer
  mpi-touch    as mpi, but both sides touch each page of the buffer before a transfer (PART'22's baseline)
  mpi-part     as mpi, with PART's driver for page faults
  mpi-portals  MPI over Portals on the same network, with matching by the process; it charges no library code (host.message)
Paths have the names of TR-488's Table 1: within an MPSoC (intra-fpga), to another one on the board (intra-qfdb, a), and to the next board: between
the network MPSoCs (b), to another MPSoC of the board (c), and from another one as well (d).
The firmware of the RDMA engine runs on the R5, which charges a time for each invocation (pools.r5.invocation). --firmware runs it on HPUs.`,
	Source:   "TR-488",
	Smoke:    []experiment.Values{{"rounds": 2, "size": 5000, "mode": exanetMPI}},
	Profiles: []string{"exanest-qfdb"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{exanetMailbox, exanetMPI, exanetProcess, exanetTouch, exanetPART, exanetPortals}, Default: "mailbox,mpi,mpi-process,mpi-portals", Help: "what carries the messages; the command's help describes each"},
		{Name: "path", Kind: report.Text, Of: exanetPaths(), Default: "intra-qfdb", Help: "where the processes are"},
		{Name: "firmware", Kind: report.Text, Of: []string{poolOfProfile, "hpu", "150MHz", "1GHz", "2.5GHz"}, Default: poolOfProfile, Help: "processors that run the RDMA engine's firmware: those of the profile (the R5), or HPUs with the profile's clock or another"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "10", Help: "number that is measured, after two that are not"},
		{Name: "size", Column: "bytes", Kind: report.Size, Most: "64MiB", Default: "0,1,32,33,64,256,4KiB,64KiB,4MiB", Help: "size of the message"},
	},
	Points: hasExanet,
	Run:    runExanet,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "half of the mean round trip"},
	}, experiment.ClusterColumns()...),
	Ledger: ledgerExanet(),
	Slots: func(p *experiment.Point) []*handlers.Slot {
		switch p.Text("mode") {
		case exanetMailbox:
			return []*handlers.Slot{mailbox.EngineSlot}
		case exanetPART:
			return []*handlers.Slot{mailbox.EngineSlot, part.EngineSlot}
		case exanetPortals:
			return nil
		}
		return []*handlers.Slot{mailbox.EngineSlot, rdma.EngineSlot}
	},
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: experiment.LatencyColumn, Series: []string{"mode"}, X: "bytes", Quiet: []string{"path", "firmware", "rounds"}},
	Presets: []experiment.Preset{{
		Name: "firmware", Short: "MPI with the RDMA engine's firmware on the R5, and on HPUs", Source: "ours",
		Values: map[string]string{"mode": exanetMPI, "firmware": "profile,150MHz,1GHz,2.5GHz", "size": "64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB"},
		View:   &experiment.View{Value: experiment.LatencyColumn, Series: []string{"firmware"}, Base: poolOfProfile, X: "bytes", Quiet: []string{"mode", "path", "rounds"}},
	}},
	Notes: []string{experiment.Compared},
}

// Values of the axis mode.
const (
	exanetMailbox = "mailbox"
	exanetMPI     = "mpi"
	exanetProcess = "mpi-process"
	exanetTouch   = "mpi-touch"
	exanetPART    = "mpi-part"
	exanetPortals = "mpi-portals"
)

func exanetPaths() []string { return []string{"intra-fpga", "intra-qfdb", "b", "c", "d"} }

// exanetPath returns the nodes of the two processes: node 4q + i is MPSoC
// F(i+1) of board q.
func exanetPath(p *experiment.Point) []int {
	return [][]int{{0, 0}, {0, 1}, {0, 4}, {0, 5}, {1, 6}}[slices.Index(exanetPaths(), p.Text("path"))]
}

// hasExanet reports which points exist. A packet holds at most 64 B, and the
// driver of PART needs pages that can be absent.
func hasExanet(p *experiment.Point) (bool, error) {
	mode := p.Text("mode")
	if mode != exanetPortals && p.Profile.HPU.DMAWrite != nic.Landed {
		return false, fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s: what is acknowledged must be in the mailbox", p.Profile.Origin.Name, p.Profile.HPU.DMAWrite, nic.Landed)
	}
	if mode == exanetPART && (!p.Profile.OS.On() || !p.Profile.SMMU.On()) {
		return false, fmt.Errorf("profile %s: no pages that could be absent (os.kind, smmu.kind)", p.Profile.Origin.Name)
	}
	if mode == exanetMailbox && p.Int("size") > interfaces.MaxPayload {
		return false, &experiment.NoPoint{Why: fmt.Errorf("a message of the mailbox has up to %d B", interfaces.MaxPayload)}
	}
	if p.Text("firmware") != poolOfProfile && (mode == exanetMailbox || mode == exanetPortals) {
		return false, &experiment.NoPoint{Why: fmt.Errorf("with mode %s no firmware runs", mode)}
	}
	return true, nil
}

// player is one side of the ping-pong.
type player struct {
	send, receive func() error
	now           func() sim.Time
	// called after each measured round; nil: not called
	round func(from sim.Time)
}

// exanetWarmup is how many rounds are not measured.
const exanetWarmup = 2

// play sends the message back and forth, side 0 first. It returns half of the
// mean round trip of side 0.
func (s *player) play(side, rounds int) (sim.Time, error) {
	var begin sim.Time
	for i := range rounds + exanetWarmup {
		if i == exanetWarmup {
			begin = s.now()
		}
		from := s.now()
		turns := []func() error{s.send, s.receive}
		for k := range turns {
			if err := turns[(k+side)%2](); err != nil {
				return 0, err
			}
		}
		if i >= exanetWarmup && s.round != nil {
			s.round(from)
		}
	}
	return (s.now() - begin) / sim.Time(2*rounds), nil
}

// game is a running measurement.
type game struct {
	*experiment.Point
	nodes   []int
	bytes   int
	rounds  int
	sent    []byte
	latency sim.Time
}

func runExanet(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	library := "rdma"
	if p.Text("mode") == exanetPART {
		library = "part"
	}
	p, err := served(p, "serve."+library+".header", p.Text("firmware"))
	if err != nil {
		return nil, err
	}
	g := &game{Point: p, nodes: exanetPath(p), bytes: p.Int("size"), rounds: p.Int("rounds")}
	g.sent = memory.Make[byte](g.bytes)
	experiment.Pattern(g.sent, p.Seed)
	setup := g.ranks
	if p.Text("mode") == exanetMailbox {
		setup = g.mailboxes
	}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 1+slices.Max(g.nodes)), setup, func() error { return nil })
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&stats)
	values[experiment.LatencyColumn] = g.latency
	return values, nil
}

// mailboxes spawns two processes that use only their interfaces.
func (g *game) mailboxes(c *runtime.Cluster) error {
	system, err := interfaces.Load(c)
	if err != nil {
		return err
	}
	var pages [2]*interfaces.Interface
	for side, node := range g.nodes {
		program := func(p *runtime.Proc) (err error) {
			if err := system.Admit(p, 1); err != nil {
				return err
			}
			if pages[side], err = system.Open(p, interfaces.Options{}); err != nil {
				return err
			}
			p.Compute(sim.Nanosecond) // the other process opens its own
			message, got := slices.Clone(g.sent), make([]byte, interfaces.MaxPayload)
			s := player{
				now: p.Now,
				send: func() error {
					channel, free := pages[side].Free()
					for !free {
						pages[side].Look()
						channel, free = pages[side].Free()
					}
					if err := pages[side].Launch(channel, pages[1-side].Address(), message); err != nil {
						return err
					}
					pages[side].Look() // at earlier messages, while this one is under way
					return nil
				},
				receive: func() error {
					m, err := pages[side].Receive(got)
					if err != nil {
						return err
					}
					return experiment.SameBytes("message", got[:m.Bytes], g.sent)
				},
			}
			s.round = g.played(side, p)
			latency, err := s.play(side, g.rounds)
			if side == 0 {
				g.latency = latency
			}
			return err
		}
		if err := c.Spawn(node, fmt.Sprintf("side %d", side), program); err != nil {
			return err
		}
	}
	return nil
}

// played returns the player.round of side 0.
func (g *game) played(side int, p *runtime.Proc) func(from sim.Time) {
	if side != 0 {
		return nil
	}
	g.OperationOf(2)
	return func(from sim.Time) { g.Operation(p, from) }
}

// mpiOptions are the options of the mode.
func (g *game) mpiOptions() mpi.Options {
	o := mpi.DefaultExaNetOptions()
	switch g.Text("mode") {
	case exanetProcess:
		o.ExaNet.Start = mpi.StartByProcess
	case exanetTouch:
		o.ExaNet.Touch = true
	case exanetPART:
		o.ExaNet.Load = func(c *runtime.Cluster) (mpi.PageOpener, error) { return part.Load(c, part.Options{}) }
	case exanetPortals:
		o = mpi.DefaultOptions(mpi.Host)
	}
	if g.nodes[0] == g.nodes[1] {
		o.PerNode = 2
	}
	return o
}

// ranks spawns the ranks of a world. Two of them play.
func (g *game) ranks(c *runtime.Cluster) error {
	o := g.mpiOptions()
	w, err := mpi.New(c, o)
	if err != nil {
		return err
	}
	players := g.nodes
	if o.PerNode == 2 {
		players = []int{0, 1}
	}
	for rank := range w.Size() {
		side := slices.Index(players, rank)
		if err := w.Spawn(rank, func(r *mpi.Rank) error {
			if side < 0 {
				return nil
			}
			return g.rank(r, side, players[1-side])
		}); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) rank(r *mpi.Rank, side, other int) error {
	message, err := r.Alloc(g.bytes)
	if err != nil {
		return err
	}
	got, err := r.Alloc(g.bytes)
	if err != nil {
		return err
	}
	message.CopyFrom(g.sent)
	s := player{
		now:  r.Now,
		send: func() error { return r.World().Send(message, other, 0) },
		receive: func() error {
			_, err := r.World().Recv(got, other, 0)
			return err
		},
	}
	s.round = g.played(side, r.Proc())
	latency, err := s.play(side, g.rounds)
	if err != nil {
		return err
	}
	if side == 0 {
		g.latency = latency
	}
	return experiment.SameView("message", got, g.sent)
}
