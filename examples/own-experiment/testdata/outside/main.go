// Outside is what a user's module can do with the packages of spinsim: an
// experiment with a handler and a network of its own, as a program, and with
// "library" as a sweep, a table and a timeline of its own.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

//go:embed filter.wasm
var filter []byte

var dumbbells = &experiment.Experiment{
	Name: "dumbbell", Short: "a message through a filter, over two switches with a cable",
	Axes: []experiment.Axis{
		{Name: "size", Kind: report.Size, Least: "4", Most: "1MiB", Default: "8,64KiB", Help: "size of the message"},
		{Name: "network", Kind: report.Text, Of: []string{"profile", "dumbbell"}, Default: "profile,dumbbell", Help: "who connects the nodes"},
	},
	Columns: []report.Column{
		{Name: "latency", Unit: "ns", Kind: report.Duration, Help: "from the put to the host that knows the message has been handled"},
		{Name: "passed", Kind: report.Count, Help: "packets that the filter let pass"},
	},
	Slots: experiment.Always(handlers.New("filter", filter).Slot(handlers.Slot{
		Name: "target", Short: "a payload handler that lets some packets pass",
		Handlers: []string{"payload"}, Fields: []string{"wanted", "passed"},
	})),
	Run: measure,
}

func measure(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	cfg := p.Config(ctx, 2)
	if p.Text("network") == "dumbbell" {
		cfg.Fabric = func(eng *sim.Engine, spec fabric.Spec, nodes int) (fabric.Fabric, error) {
			return fabric.NewNetwork(eng, spec, nodes, dumbbell(nodes))
		}
	}
	v := experiment.Values{}
	source := func(s *runtime.Proc) error { return experiment.Send(s, 1, bytes.Repeat([]byte{7}, p.Int("size"))) }
	target := func(t *runtime.Proc) error {
		in, err := p.Receive(t, p.Int("size"))
		if err != nil {
			return err
		}
		if err := in.Handlers().Set("wanted", 0x07070707); err != nil {
			return err
		}
		if v["latency"], err = in.Wait(); err != nil {
			return err
		}
		passed, err := in.Handlers().Number("passed")
		if err == nil {
			v["passed"] = int(passed.(uint64))
		}
		return err
	}
	_, err := experiment.Simulate(ctx, cfg, func(c *runtime.Cluster) error {
		return errors.Join(c.Spawn(0, "source", source), c.Spawn(1, "target", target))
	}, func() error { return nil })
	return v, err
}

// dumbbell is two switches with a cable, and the nodes by turns at one of them.
type dumbbell int

func (n dumbbell) Size() (switches, links int) { return 2, int(n) + 2 }
func (n dumbbell) Home(node int) int           { return node % 2 }
func (n dumbbell) Channels() int               { return 1 }
func (n dumbbell) SwitchName(s int) string     { return fmt.Sprintf("Switch[%d]", s) }
func (n dumbbell) LinkName(link int) string    { return fmt.Sprintf("Link[%d]", link) }

func (n dumbbell) Link(link int) fabric.Link {
	if link < int(n) {
		return fabric.Link{From: link % 2, To: link, Node: true}
	}
	return fabric.Link{From: link - int(n), To: int(n) + 1 - link}
}

func (n dumbbell) Route(at, _, dst int) (link, channel int) {
	if dst%2 == at {
		return dst, 0
	}
	return int(n) + at, 0
}

// library makes a sweep without a command line. It keeps the results, writes
// them as CSV of its own, and the timeline of the last point.
func library(out io.Writer) error {
	s, err := experiment.New(dumbbells)
	if err != nil {
		return err
	}
	s.Profiles = []string{"spin-int"}
	if s.Checkpoint, err = experiment.OpenKept("kept"); err != nil {
		return err
	}
	points, err := s.Points()
	if err != nil {
		return err
	}
	record := s.Record()
	timeline, err := newTimeline(record)
	if err != nil {
		return err
	}
	points[len(points)-1].Tracer = timeline
	results, err := s.Run(context.Background(), points, nil)
	if err := errors.Join(err, timeline.Close(), s.Checkpoint.Close()); err != nil {
		return err
	}
	t := report.New(report.Column{Name: "network"}, report.Column{Name: "latency", Unit: "ns", Kind: report.Duration})
	for _, r := range results {
		t.Add(r.Point.Text("network"), r.Values["latency"])
	}
	t.Origin = record
	return t.Write(out, report.CSVFormat)
}

func newTimeline(of *experiment.Record) (*trace.Writer, error) {
	w, err := trace.Create("own.pftrace", trace.Options{})
	if err != nil {
		return nil, err
	}
	program, hash, err := of.Seal()
	w.Seal(program, hash, "")
	return w, err
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "library" {
		if err := library(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(experiment.RunMain([]*experiment.Experiment{dumbbells}, experiment.ReadBuild(), os.Args[1:], os.Stdout, os.Stderr))
}
