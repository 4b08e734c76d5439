package npf

import (
	"context"
	"errors"
	"maps"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

// MPI over reliable connections, as compared in NPF'17: npf-imb and npf-beff.

const npfMPIStrategies = `  bounce  copies through pinned buffers on both sides, 64 KiB at a time
  cache   a pin-down cache: pinned memory stays pinned, up to --bound
  none    nothing is pinned: the interface has page faults (NPF)
Messages up to --eager are copied through other buffers of the library in each case.`

// npfMPIAxes are the axes of the library.
func npfMPIAxes() []experiment.Axis {
	return []experiment.Axis{
		{Name: "strategy", Kind: report.Text, Of: pinning.OwnKinds(), Default: "bounce,cache,none", Help: "how memory of large messages becomes ready for the interface; the command's help describes bounce, cache and none"},
		{Name: "ranks", Kind: report.Count, Least: "2", Most: "32", Default: "8", Help: "processes, one on each node"},
		{Name: "bound", Kind: report.Size, Least: "1MiB", Most: "64GiB", Multiple: "4KiB", Default: "1GiB", Help: "cache and firehose: most memory that a rank pins; the paper gives none"},
		{Name: "eager", Kind: report.Size, Most: "1MiB", Default: "12KiB", Help: "the longest message that does not wait for its receive: Open MPI's"},
	}
}

// npfMPIColumns describe the use of memory.
func npfMPIColumns() []report.Column {
	return append([]report.Column{
		{Name: "faults", Kind: report.Count, Help: "page faults of interfaces, all of the run"},
		{Name: "pinned", Kind: report.Count, Help: "pages that were pinned for messages, all of the run; again counts"},
		{Name: "copied", Kind: report.Size, Help: "bytes that were copied to and from bounce buffers, all of the run"},
	}, experiment.ClusterColumns()...)
}

// npfMPI runs a program at all ranks.
func npfMPI(ctx context.Context, p *experiment.Point, program func(r *mpi.Rank) error) (experiment.Values, error) {
	o := mpi.DefaultInfiniBandOptions()
	o.Ranks, o.Eager, o.BufferBytes = p.Int("ranks"), p.Int("eager"), o.BufferBytes+p.Int("eager")
	bound := uint64(p.Int("bound"))
	switch s := &o.InfiniBand.Pinning; p.Text("strategy") {
	case pinning.FirehoseKind:
		s.Kind, s.Bound, s.Victims = pinning.FirehoseKind, bound, bound
	default:
		s.Kind, s.Bound = p.Text("strategy"), bound
	}
	faults := 0
	o.InfiniBand.Connections.Served = func(int, *rnr.Served) { faults++ }
	var world *mpi.World
	values := experiment.Values{}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, p.Int("ranks")), func(c *runtime.Cluster) (err error) {
		if world, err = mpi.New(c, o); err != nil {
			return err
		}
		var all []error
		for rank := range p.Int("ranks") {
			all = append(all, world.Spawn(rank, program))
		}
		return errors.Join(all...)
	}, func() error {
		pages, copied := int64(0), int64(0)
		for rank := range p.Int("ranks") {
			s := world.Pinning(rank)
			pages += s.Pins
			copied += s.CopiedBytes
		}
		values["faults"], values["pinned"], values["copied"] = faults, int(pages), int(copied)
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	return values, nil
}
