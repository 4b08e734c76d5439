package exanest

import (
	"context"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"

	memory "github.com/spinsim/spinsim/exanet/gsas"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var gsas = &experiment.Experiment{
	Name:  "gsas",
	Short: "an access to the global memory of ExaNeSt's GSAS",
	Long: `Processes of one MPSoC access memory of an MPSoC: first some accesses that are not measured, then the measured ones. The latency is the mean from
call to return. Reads and writes of up to ` + fmt.Sprint(memory.Inline) + ` B go in messages of packetizer and mailbox, larger ones by RDMA, which the memory's home starts.
  read, write    of size bytes; separate for each process
  fetch-add      of a word of 8 B, the same for all processes
  compare-swap   of the same word
  barrier        of all processes; no bytes
Paths have the names of TR-488's Table 1: memory of the same MPSoC (intra-fpga), of another one on the board (intra-qfdb, a), and of the next board: between
the network MPSoCs (b), to another MPSoC of the board (c), and from another one as well (d).`,
	Source:   "TR-488 §5.2.2",
	Smoke:    []experiment.Values{{"op": gsasCompare, "size": 8, "rounds": 2, "processes": 3}},
	Profiles: []string{"exanest-qfdb"},
	Axes: []experiment.Axis{
		{Name: "op", Kind: report.Text, Of: []string{gsasRead, gsasWrite, gsasAdd, gsasCompare, gsasBarrier}, Default: "read,write,fetch-add,compare-swap", Help: "operation; the command's help describes each"},
		{Name: "path", Kind: report.Text, Of: exanetPaths(), Default: "intra-fpga,intra-qfdb,d", Help: "where the memory is"},
		{Name: "processes", Kind: report.Count, Least: "1", Most: "12", Default: "1", Help: "processes of one MPSoC that do it at the same time"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "10", Help: "number that is measured, after two that are not"},
		{Name: "size", Column: "bytes", Kind: report.Size, Most: "64MiB", Default: "0,8,48,64,256,4KiB,64KiB,1MiB", Help: "bytes of a read or write; atomic operations are of 8 B, barriers of none"},
	},
	Points: hasGSAS,
	Run:    runGSAS,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "mean time from call to return"},
		{Name: "rate", Unit: "M_per_s", Kind: report.Number, Help: "millions of accesses of all processes in a second that they spend on nothing else"},
	}, experiment.ClusterColumns()...),
	Followed: experiment.LatencyColumn,
	Slots: func(*experiment.Point) []*handlers.Slot {
		return []*handlers.Slot{mailbox.EngineSlot, rdma.EngineSlot}
	},
	View: experiment.View{Value: experiment.LatencyColumn, Series: []string{"op"}, X: "bytes", Quiet: []string{"processes", "rounds"}},
	Notes: []string{
		"Every byte that was read was compared with what was written, and words with what the operations make of them.",
		"The report gives no figures. The home's code is charged as ExaNet-MPI's (host.message), and a look for the allocation as for a receive (host.match).",
	},
}

// Values of the axis op.
const (
	gsasRead    = "read"
	gsasWrite   = "write"
	gsasAdd     = "fetch-add"
	gsasCompare = "compare-swap"
	gsasBarrier = "barrier"
)

// hasGSAS returns an error if the device cannot have the experiment.
func hasGSAS(p *experiment.Point) (bool, error) {
	if p.Profile.HPU.DMAWrite != nic.Landed {
		return false, fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s: what is acknowledged must be in the mailbox", p.Profile.Origin.Name, p.Profile.HPU.DMAWrite, nic.Landed)
	}
	size, expected := p.Int("size"), ""
	switch p.Text("op") {
	case gsasRead, gsasWrite:
		if size == 0 {
			expected = "1 B or more"
		}
	case gsasBarrier:
		if size != 0 {
			expected = "0 B"
		}
	default:
		if size != 8 {
			expected = "8 B"
		}
	}
	if expected != "" {
		return false, &experiment.NoPoint{Why: fmt.Errorf("%s takes %s", p.Text("op"), expected)}
	}
	return true, nil
}

// sharing is a running measurement. All its processes are on one node.
type sharing struct {
	*experiment.Point
	bytes, rounds, all int
	space              *memory.Space
	word               memory.Pointer // that all processes change
	barrier            memory.Pointer
	changes            uint64   // of the word, that succeeded
	took               sim.Time // by all processes together
}

func runGSAS(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	path := exanetPath(p)
	s := &sharing{Point: p, bytes: p.Int("size"), rounds: p.Int("rounds"), all: p.Int("processes")}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 1+slices.Max(path)), func(c *runtime.Cluster) (err error) {
		heap := s.all*(s.bytes+16) + 64
		if s.space, err = memory.New(c, memory.Options{PDID: 1, Heap: heap, Nodes: path[1:]}); err != nil {
			return err
		}
		for i := range s.all {
			if err := c.Spawn(path[0], fmt.Sprintf("process %d", i), func(p *runtime.Proc) error { return s.program(p, path[1], i == 0) }); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil })
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&stats)
	latency := s.took / sim.Time(s.all*s.rounds)
	values[experiment.LatencyColumn] = latency
	values["rate"] = float64(s.all) / latency.Seconds() / 1e6
	return values, nil
}

// program is a process that uses memory of a node.
func (s *sharing) program(p *runtime.Proc, node int, first bool) error {
	m, err := s.space.Open(p)
	if err != nil {
		return err
	}
	p.Compute(sim.Nanosecond) // the others open theirs
	if first {
		if s.word, err = m.Alloc(node, 8); err != nil {
			return err
		}
		if s.barrier, err = m.NewBarrier(node, s.all); err != nil {
			return err
		}
	}
	for s.barrier == memory.Null {
		p.Sleep(sim.Microsecond)
	}
	one, check, err := s.access(m, node)
	if err != nil {
		return err
	}
	for i := range exanetWarmup + s.rounds {
		if i == exanetWarmup {
			if err := m.Barrier(s.barrier); err != nil {
				return err
			}
		}
		begin := p.Now()
		if err := one(); err != nil {
			return err
		}
		if i >= exanetWarmup {
			s.took += p.Now() - begin
			s.Operation(p, begin)
		}
		if err := check(); err != nil {
			return err
		}
	}
	if err := m.Barrier(s.barrier); err != nil || !first {
		return err
	}
	v, err := m.Load(s.word)
	if err == nil && v != s.changes {
		err = fmt.Errorf("the word is %d after %d changes", v, s.changes)
	}
	return err
}

// access returns the measured access, and a check of its effect.
func (s *sharing) access(m *memory.Member, node int) (one, check func() error, err error) {
	check = func() error { return nil }
	switch s.Text("op") {
	case gsasBarrier:
		return func() error { return m.Barrier(s.barrier) }, check, nil
	case gsasAdd:
		return func() error {
			s.changes++
			_, err := m.FetchAdd(s.word, 1)
			return err
		}, check, nil
	case gsasCompare:
		var last, found uint64
		check = func() error {
			if found == last {
				s.changes++
				found++
			}
			last = found
			return nil
		}
		return func() (err error) {
			found, err = m.CompareAndSwap(s.word, last, last+1)
			return err
		}, check, nil
	}
	at, err := m.Alloc(node, s.bytes)
	if err != nil {
		return nil, nil, err
	}
	data, back := m.Proc().Alloc(s.bytes), m.Proc().Alloc(s.bytes)
	experiment.Pattern(data.Write(), s.Seed)
	if err := m.Write(at, data); err != nil {
		return nil, nil, err
	}
	one = func() error { return m.Write(at, data) }
	check = func() error {
		if err := m.Read(at, back); err != nil {
			return err
		}
		return experiment.SameBytes("memory", back.Read(), data.Read())
	}
	if s.Text("op") == gsasRead {
		one = func() error { return m.Read(at, back) }
		check = func() error { return experiment.SameBytes("memory", back.Read(), data.Read()) }
	}
	return one, check, nil
}
