package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// pathFlags are the flags of topology path.
type pathFlags struct {
	profile      string
	overrides    []string
	shape        cli.ShapeFlag
	size, format string
}

func pathCommand() *cobra.Command {
	f := pathFlags{profile: fabric.ExaNeSt}
	c := &cobra.Command{
		Use:   "path FROM TO",
		Short: "List the links and routers between two MPSoCs, with their times without load",
		Long: `Path lists every link of the route from one MPSoC to another, with the switch or router before it, and the time when the head of a cell reaches its end on an
idle network. FROM and TO are names such as M3QBF4 (mezzanine 3, QFDB B, F4), numbers of MPSoCs, or numbers of cores such as c17.

  spinsim topology path M1QAF2 M3QBF4
  spinsim topology path --topology 1024x512x2 --size 256 0 4194303`,
		Args: exactArguments("FROM", "TO"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.profile, "profile", f.profile, "network: `NAME` of a profile or a file")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as fabric.exanest.ties=up; may be repeated")
	f.shape.Register(c)
	flags.StringVar(&f.size, "size", "0", "payload of the cell, up to the profile's fabric.mtu: `SIZE`")
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	return c
}

func (f *pathFlags) run(c *cobra.Command, from, to string) error {
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return badInput(fmt.Errorf("--format: %w", err))
	}
	bytes, err := sim.ParseSize(f.size)
	if err != nil {
		return badInput(fmt.Errorf("--size: %w", err))
	}
	network := topologyFlags{overrides: f.overrides, shape: f.shape}
	n, err := network.network(c, f.profile)
	if err != nil {
		return badInput(err)
	}
	n.Command = "topology path"
	mtu := sim.Size(n.p.Fabric.MTU)
	if bytes > mtu {
		return badInput(fmt.Errorf("--size: %v, expected at most %v, the payload of a cell (fabric.mtu)", bytes, mtu))
	}
	src, err := n.node(from)
	if err != nil {
		return badInput(fmt.Errorf("FROM: %w", err))
	}
	dst, err := n.node(to)
	if err != nil {
		return badInput(fmt.Errorf("TO: %w", err))
	}
	path, latency, err := fabric.Way(n.p.Fabric, n.Nodes(), src, dst, int32(bytes))
	if err != nil {
		return badInput(err)
	}
	cli.SayBeside(c, format, n.UnusedNotes())
	return n.writePath(c.OutOrStdout(), format, src, dst, int64(bytes), path, latency)
}

// hopColumns describe a path.
func hopColumns() []report.Column {
	return []report.Column{
		{Name: "hop", Kind: report.Count, Help: "number of the link on the way"},
		{Name: "link", Help: "its name, as --links and faults have it"},
		{Name: "rate", Unit: "Gbps", Kind: report.Number, Help: "bits that it carries"},
		{Name: "before", Unit: "ns", Kind: report.Duration, Scale: "path", Help: "traversal of the switch or router that it leaves"},
		{Name: "stall", Unit: "ns", Kind: report.Duration, Scale: "path", Help: "time that a cell waits there because the link before is slower and its bytes are not there yet"},
		{Name: "wire", Unit: "ns", Kind: report.Duration, Scale: "path", Help: "propagation"},
		{Name: "at", Unit: "ns", Kind: report.Duration, Scale: "path", Help: "when the head of the cell is at the link's end; in the last row, when its last byte is"},
	}
}

// writePath writes the hops of a path. The latency is the sum of their times
// and the time of the last byte.
func (n *boards) writePath(out io.Writer, format report.Format, src, dst int, bytes int64, path []fabric.Hop, latency sim.Time) error {
	t := report.New(hopColumns()...)
	t.Origin = &n.Record
	total := bytes + int64(n.p.Fabric.Header)
	at, stalls := sim.Time(0), sim.Time(0)
	for i, h := range path {
		stall := sim.Time(0)
		if i > 0 && !n.p.Fabric.StoreAndForward {
			stall = max(0, path[i-1].Rate.Time(total)-h.Rate.Time(total))
		}
		at += h.Wait + stall + h.Wire
		stalls += stall
		t.Add(i+1, h.Link, gigabits(h.Rate), h.Wait, stall, h.Wire, at)
	}
	t.Add(nil, "last byte", nil, nil, nil, nil, latency)
	w := n.count(path)
	s := &n.p.Fabric
	t.Title = fmt.Sprintf("%s to %s (node %d to %d) of %s %v, %d B", n.Name(src), n.Name(dst), src, dst, n.p.Name, n.QFDBs, bytes)
	t.Notes = n.UnusedNotes()
	t.Answer = []string{fmt.Sprintf("%s to %s: %s, %s; %v without load.", n.Name(src), n.Name(dst), counted(w.links, "link"), counted(w.routers, "router"), latency)}
	inside, link := 2*s.Wire+s.Switch, s.SwitchWire+s.Switch
	if sum := inside + sim.Time(w.links)*link + sim.Time(w.routers)*s.Exanest.Router; sum == at-stalls {
		t.Notes = append(t.Notes, fmt.Sprintf("The report's check: %v in one MPSoC + %d x %v for links + %d x %v for routers = %v. %d B with header and footer add %v.",
			inside, w.links, link, w.routers, s.Exanest.Router, sum, total, latency-sum))
	}
	return t.Write(out, format)
}
