package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/diagram"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// topologyFlags are the flags of topology.
type topologyFlags struct {
	overrides         []string
	shape             cli.ShapeFlag
	svg, load, format string
}

func topologyCommand() *cobra.Command {
	var f topologyFlags
	c := &cobra.Command{
		Use:   "topology PROFILE",
		Short: "Describe and draw a network of ExaNeSt's boards, with the load of every link in a run",
		Long: `Topology lists the links of a profile's network, such as exanest, by kind, and draws the network.

--links of compare, run and goal run writes the load of every link in a run. topology --load reads that file, lists the busiest links, and colours
the links by load. The picture then shows the network of that run:

  spinsim compare bcast --profile exanest --ranks 128 --size 64KiB --mode rdma --links loads.json
  spinsim topology exanest --load loads.json --svg loads.svg

topology path shows the route of a packet.`,
		Args: exactArguments("PROFILE"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as fabric.exanest.z_links=2; may be repeated")
	f.shape.Register(c)
	flags.StringVar(&f.svg, "svg", "", "draw the network: `FILE.svg` or .png")
	flags.StringVar(&f.load, "load", "", "loads of the links in a run: `FILE.json` that --links of compare, run or goal run has written")
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	c.AddCommand(pathCommand())
	return c
}

func (f *topologyFlags) run(c *cobra.Command, name string) error {
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return badInput(fmt.Errorf("--format: %w", err))
	}
	if f.svg != "" {
		if err := report.CheckImage(f.svg); err != nil {
			return badInput(fmt.Errorf("--svg: %w", err))
		}
	}
	n, err := f.network(c, name)
	if err != nil {
		return badInput(err)
	}
	if f.svg != "" {
		if err := n.draw(f.svg); err != nil {
			return err
		}
	}
	cli.SayBeside(c, format, n.UnusedNotes())
	return n.write(c.OutOrStdout(), format)
}

// boards is the network of a profile of kind exanest, with the loads of its
// links in a run.
type boards struct {
	fabric.QFDBs
	*making
	p     *profile.Profile
	loads map[string]cli.LinkLoad // nil: without a run
	of    *provenance.Record      // the run
	cut   string                  // why it has ended early
}

// drawn are facts behind all fields of a profile that describe a network and
// count its cores.
var drawn = used.Of(used.Network, used.Module, used.Cores)

// network reads the network that the flags name. With a run it comes from the
// run's own profile.
func (f *topologyFlags) network(c *cobra.Command, name string) (*boards, error) {
	overrides, err := f.shape.Overrides()
	if err != nil {
		return nil, err
	}
	overrides = append(overrides, f.overrides...)
	n := &boards{making: newMaking(c, "topology")}
	var list []cli.LinkLoad
	if f.load != "" {
		if list, n.of, n.cut, err = cli.ReadLinks(f.load); err != nil {
			return nil, fmt.Errorf("--load: %w", err)
		}
		if len(n.of.Profiles) != 1 || n.of.Profiles[0].Name != name && n.of.Profiles[0].From != name {
			return nil, fmt.Errorf("--load: %s: a run of another profile than %s", f.load, name)
		}
		if overrides != nil {
			return nil, fmt.Errorf("--load: with --topology or --set: the run has its own network")
		}
		n.Profiles = n.of.Profiles
		n.p, err = n.of.Profiles[0].Load()
	} else {
		if n.p, err = profile.Load(name, overrides...); err != nil {
			return nil, err
		}
		n.Unused = profile.Unused(overrides, drawn)
		n.Profiles = make([]provenance.Profile, 1)
		n.Profiles[0], err = provenance.NewProfile(n.p)
	}
	if err != nil {
		return nil, err
	}
	var is bool
	if n.QFDBs, is = n.p.Fabric.QFDBs(); !is {
		return nil, fmt.Errorf("profile %s: fabric.kind: %s, expected %s, whose boards and names topology knows; compare and osu take two nodes of any network, --path 0-5", name, n.p.Fabric.Kind, fabric.ExaNeSt)
	}
	return n, n.take(f.load, list)
}

// take checks that the loads of a run belong to links of the network.
func (n *boards) take(file string, list []cli.LinkLoad) error {
	if n.of == nil {
		return nil
	}
	known := map[string]bool{}
	for l := range n.p.Fabric.BoardLinks() {
		known[l.Name()] = true
	}
	for node := range n.Nodes() {
		known[fmt.Sprintf("%s->Node[%d]", n.Name(node), node)] = true
		known[fmt.Sprintf("Node[%d].Tx", node)] = true
	}
	n.loads = map[string]cli.LinkLoad{}
	for _, l := range list {
		if !known[l.Link] {
			return fmt.Errorf("--load: %s: %v QFDBs have no link %q", file, n.QFDBs, l.Link)
		}
		n.loads[l.Link] = l
	}
	return nil
}

func (n *boards) title() string {
	return fmt.Sprintf("%s %v: %s, %s in %s, %d MPSoCs %s to %s, %d cores", n.p.Name, n.QFDBs, counted(n.Boards(), "QFDB"), counted(n.Y*n.Z, "mezzanine"),
		counted(n.Z, "group"), n.Nodes(), n.Name(0), n.Name(n.Nodes()-1), n.Nodes()*n.p.Host.Cores)
}

func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func (n *boards) draw(name string) error {
	var load func(string) float64
	if n.loads != nil {
		load = func(link string) float64 { return n.loads[link].Load }
	}
	d, err := diagram.ExaNeSt(n.p.Fabric, load)
	if err != nil {
		return badInput(fmt.Errorf("--svg: %w", err))
	}
	d.Title = n.title()
	if n.loads != nil {
		d.Load = "share of the run in which the link was sending"
		for _, w := range d.Wires {
			d.Full = max(d.Full, w.Load)
		}
		run := "The run: " + n.of.Command[len("links of "):]
		if n.cut != "" {
			run += ", cut: " + n.cut
		}
		d.Caption, d.Origin, d.Cut = append([]string{run + "."}, n.of.Lines()...), n.of, n.cut
	} else {
		d.Caption, d.Origin = n.Lines(), &n.Record
	}
	if err = d.DrawFile(name); err == nil {
		return nil
	}
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) { // a full disk is no wrong input
		return fmt.Errorf("--svg: %w", err)
	}
	return badInput(fmt.Errorf("--svg: %w", err))
}

// linkClass is a kind of links of the network.
type linkClass struct {
	name    string
	rate    sim.Rate
	latency sim.Time
	count   int
	packets int64
	bytes   int64
	sum     float64 // of loads
	busiest cli.LinkLoad
}

// add counts a link. It asks for the link's name only if there are loads: a
// network may have many millions of links.
func (k *linkClass) add(loads map[string]cli.LinkLoad, name func() string) {
	k.count++
	if loads == nil {
		return
	}
	l := loads[name()]
	k.packets += l.Packets
	k.bytes += l.Bytes
	k.sum += l.Load
	if l.Load > k.busiest.Load {
		k.busiest = l
	}
}

// classes returns the kinds of links of the network.
func (n *boards) classes() []linkClass {
	s := &n.p.Fabric
	list := []linkClass{
		{name: "interface to switch", rate: s.Rate, latency: s.Wire + s.Switch},
		{name: "switch to interface", rate: s.Rate, latency: s.Wire},
		{name: "in a QFDB"},
		{name: "F1 to its router"},
		{name: "router to its F1"},
		{name: "X: on a mezzanine"},
		{name: "Y: in a group"},
		{name: "Z: between groups"},
	}
	for node := range n.Nodes() {
		list[0].add(n.loads, func() string { return fmt.Sprintf("Node[%d].Tx", node) })
		list[1].add(n.loads, func() string { return fmt.Sprintf("%s->Node[%d]", n.Name(node), node) })
	}
	for l := range s.BoardLinks() {
		k := 5 + l.Dim
		switch {
		case l.Dim >= 0:
		case l.To.F == fabric.RouterF:
			k = 3
		case l.From.F == fabric.RouterF:
			k = 4
		default:
			k = 2
		}
		list[k].rate, list[k].latency = l.Rate, l.Wire+l.Switch
		list[k].add(n.loads, l.Name)
	}
	return slices.DeleteFunc(list, func(k linkClass) bool { return k.count == 0 })
}

// classColumns describe a network; the columns after the first four need a run.
func classColumns() []report.Column {
	return []report.Column{
		{Name: "links", Help: "where the links are"},
		{Name: "number", Kind: report.Count, Help: "how many there are; a cable is two, one in each direction"},
		{Name: "rate", Unit: "Gbps", Kind: report.Number, Help: "bits that one of them carries"},
		{Name: "latency", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "wire, and the switch or router at the end"},
		{Name: "link_packets", Kind: report.Count, Help: "packets that they carried in the run"},
		{Name: "link_bytes", Kind: report.Size, Help: "bytes that they carried, with headers and control data"},
		{Name: "mean_load", Kind: report.Share, Help: "share of the run in which one of them was sending, on average"},
		{Name: "max_load", Kind: report.Share, Help: "that of the busiest"},
		{Name: "busiest", Help: "which that is"},
	}
}

const plainColumns = 4 // the columns of a network without a run

func (n *boards) write(out io.Writer, format report.Format) error {
	columns := classColumns()
	if n.loads == nil {
		columns = columns[:plainColumns]
	}
	t := report.New(columns...)
	t.Title, t.Origin = n.title(), &n.Record
	if n.of != nil {
		t.Origin, t.Cut = n.of, n.cut
	}
	for _, k := range n.classes() {
		var busiest any = k.busiest.Link
		if k.busiest.Link == "" {
			busiest = nil
		}
		row := []any{k.name, k.count, gigabits(k.rate), k.latency, k.packets, k.bytes, k.sum / float64(k.count), k.busiest.Load, busiest}
		t.Add(row[:len(columns)]...)
	}
	t.Notes = append(n.UnusedNotes(), n.notes()...)
	return t.Write(out, format)
}

// gigabits returns a rate in Gb/s, to six decimals.
func gigabits(r sim.Rate) float64 {
	const bytes, digits = 1_000_000_000, 1_000_000
	return math.Round(digits*8*bytes/(float64(r.Time(bytes))/float64(sim.Nanosecond))) / digits
}

// notes returns the size of the network, and the links that a run has used
// most.
func (n *boards) notes() (notes []string) {
	src, dst := fabric.Place{F: 1}, fabric.Place{X: n.X / 2, Y: n.Y / 2, Z: n.Z / 2, F: 2}
	from, to := n.Node(src), n.Node(dst)
	if path, latency, err := fabric.Way(n.p.Fabric, n.Nodes(), from, to, 0); err == nil {
		w := n.count(path)
		notes = append(notes, fmt.Sprintf("No two MPSoCs are further apart than %s and %s: %s and %s, %v for a cell without payload.", n.Name(from), n.Name(to),
			counted(w.links, "link"), counted(w.routers, "router"), latency))
	}
	if n.loads == nil {
		return notes
	}
	var list []cli.LinkLoad
	for _, l := range n.loads { //lint:maporder sorted below
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b cli.LinkLoad) int {
		return cmp.Or(cmp.Compare(b.Load, a.Load), cmp.Compare(a.Link, b.Link))
	})
	var names []string
	for _, l := range list[:min(len(list), 8)] {
		names = append(names, fmt.Sprintf("%s %.1f%%", l.Link, 100*l.Load))
	}
	notes = append(notes, "Busiest: "+strings.Join(names, ", ")+".")
	if n.cut != "" {
		notes = append(notes, "The run was cut: "+n.cut+".")
	}
	return notes
}

// way counts the parts of a path.
type way struct{ links, routers int }

// count counts the links between MPSoCs and the routers of a path.
func (n *boards) count(path []fabric.Hop) (w way) {
	for _, h := range path[1 : len(path)-1] {
		from, to, _ := strings.Cut(h.Link, "->")
		to, _, _ = strings.Cut(to, "[")
		up, down := strings.HasSuffix(to, "R"), strings.HasSuffix(from, "R")
		if up {
			w.routers++
		}
		if up == down {
			w.links++
		}
	}
	return w
}

// node parses the name or number of an MPSoC, or c and the number of one of its
// cores.
func (n *boards) node(text string) (int, error) {
	if text != "" && strings.ContainsAny(text[:1], "mM") {
		return n.Find(text)
	}
	cores, number := 1, text
	if rest, core := strings.CutPrefix(text, "c"); core {
		cores, number = n.p.Host.Cores, rest
	}
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= n.Nodes()*cores {
		return 0, fmt.Errorf("%q: want an MPSoC such as M3QBF4 or its number, 0 to %d, or c and the number of a core, c0 to c%d", text, n.Nodes()-1, n.Nodes()*n.p.Host.Cores-1)
	}
	return i / cores, nil
}
