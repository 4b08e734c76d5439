package npf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers/backupring"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// instanceTerms lead to the published throughput. Both times are the difference
// to it, without any other source.
var instanceTerms = experiment.Axis{
	Name: "term", Kind: report.Text, Of: []string{"ours", "alone", "together"}, Default: "ours",
	Help: "a way to the published throughput; the command's help describes each",
	Terms: []experiment.Term{
		{},
		{Help: "an operation takes longer by what is missing of that of one server", Values: map[string]string{"operation": "2.5us"}, WhatIf: true},
		{Help: "and longer by what is missing of that of several, for each other server the same", Values: map[string]string{"shared": "0.96us"}, WhatIf: true},
	},
}

var instances = &experiment.Experiment{
	Name:  "npf-instances",
	Short: "key-value servers with memory for more than there is: operations in a second of all of them",
	Long: `Key-value servers (memcached's protocol, 90% gets, values of 1 KiB, keys of 64 B) run on node 0, each in a virtual machine whose memory contains the working set. Each has a load on node 1. All items
are stored at the beginning.
` + fleetModesHelp + `
Operations are counted after a warm-up, which brings in the pages of receive rings.`,
	Source:   "NPF'17 §6",
	Smoke:    []experiment.Values{{"instances": 2, "vm": 16 << 20, "working-set": 8 << 20, "connections": 2, "warm": sim.Millisecond, "time": sim.Millisecond}},
	Profiles: []string{"eth-npf"},
	Axes: slices.Concat([]experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{fleetNPF, fleetPinned}, Help: "treatment of absent memory; the command's help describes each"},
		{Name: "instances", Kind: report.Count, Least: "1", Most: "16", Default: "1,2,3,4", Help: "servers, each with a core; the kernel's interrupts are on the fourth core"},
		{Name: "vm", Kind: report.Size, Least: "4MiB", Most: "1TiB", Default: "3GB", Help: "memory of each server; items may take seven eighths of it"},
		{Name: "working-set", Column: "working_set", Kind: report.Size, Least: "1MiB", Most: "1TiB", Default: "1.8GB", Help: "memory of the items stored and requested; in the paper under 2 GB"},
	}, fleetAxes("16"), []experiment.Axis{
		{Name: "shared", Kind: report.Duration, Unit: "us", Most: "1ms", Default: "0ns", Help: "additional time of an operation for each other server, for something that they share"},
		instanceTerms,
		{Name: "warm", Kind: report.Duration, Unit: "ms", Least: "1us", Most: "100s", Default: "80ms", Help: "warm-up, in which the pages of rings and of sent data come, one after the other"},
		{Name: "time", Kind: report.Duration, Unit: "ms", Least: "1us", Most: "100s", Default: "10ms", Help: "time in which operations are counted"},
	}),
	Points: func(p *experiment.Point) (bool, error) {
		return true, errors.Join(hasStack(p), outlastsLosses(p, p.Time("time"), "--time"))
	},
	Run: runInstances,
	Columns: append([]report.Column{
		{Name: "throughput", Unit: "kops", Kind: report.Number, Help: "operations in a second of all servers, thousands; empty: their memory cannot be pinned"},
		{Name: "per_operation", Unit: "us", Kind: report.Number, Help: "of a server's time: servers / throughput"},
		{Name: "hits", Kind: report.Share, Help: "part of the gets that found something"},
		{Name: "resident", Unit: "bytes", Kind: report.Size, Help: "memory that the servers have in the end"},
		{Name: "absent", Kind: report.Count, Help: "frames whose memory was absent, warm-up included"},
		{Name: "major", Kind: report.Count, Help: "page faults that had to read storage"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerInstances(),
	Slots:     experiment.Always(backupring.ProviderSlot),
	Operation: fleetOperation,
	Memory: func(p *experiment.Point) int64 {
		n := int64(p.Int("instances"))
		return p.Footprint(2) + n*(int64(p.Int("working-set"))/instanceChunk*200+int64(p.Int("vm"))/host4K*160) + 256<<20
	},
	View: experiment.View{
		Value: "throughput", Series: []string{"mode"}, X: "instances",
		Quiet:   []string{"term", "vm", "working-set", "connections", "operation", "shared", "warm", "time"},
		Summary: []string{experiment.ProfileColumn, "mode", "instances", "throughput", "hits", "resident", "absent", "major"},
	},
	Presets: []experiment.Preset{{
		Name: "waterfall", Short: "from the throughput here to the published one, one term of what an operation takes at a time", Source: "NPF'17 §6",
		Values: map[string]string{"mode": fleetNPF, "instances": "1,2,3,4", "term": strings.Join(instanceTerms.Of, ","), "vm": "100MB", "working-set": "60MB"},
		View: &experiment.View{
			Value: "per_operation", X: "instances", Quiet: []string{"mode", "vm", "working-set", "connections", "warm", "time"},
			Summary: []string{"term", "operation", "shared", "instances", "throughput", "per_operation"},
		},
	}},
	Notes: []string{
		"Every value that came was compared with the one that was stored.",
		"No parameter was set by these figures. What a packet takes in a user-level stack (host.message) is ours; --operation asks what else an operation would have to take.",
	},
}

const (
	instanceChunk = 1184 // that memcached has for an object of 64 B and 1 KiB
	host4K        = 4 << 10
)

// ledgerInstances are the rows of NPF'17 §6.1, table 5, that npf-instances
// answers.
func ledgerInstances() (list []experiment.LedgerRow) {
	for i, id := range []string{"npf17-6.1-01", "npf17-6.1-02", "npf17-6.1-03", "npf17-6.1-04", "npf17-6.1-05", "npf17-6.1-06"} {
		mode := []string{fleetNPF, fleetPinned}[i/4]
		list = append(list, experiment.LedgerRow{
			ID: id, Of: fmt.Sprintf("mode=%s instances=%d", mode, i%4+1), Column: "throughput",
			Also: []string{"vm=100MB working-set=60MB"}, // of the preset waterfall
		})
	}
	return append(list, experiment.LedgerRow{
		ID: "npf17-6.1-07", Of: "mode=pinned instances=3,4", How: "the memory of 3 and of 4 servers of 3 GB cannot be pinned",
		Holds: func(m *experiment.Measured) bool {
			return !slices.ContainsFunc(m.Results, func(r *experiment.Result) bool { return r.Values["throughput"] != nil })
		},
	}, experiment.LedgerRow{
		ID: "npf17-6.1-13", Of: "mode=npf instances=1,2,3,4,5", How: "the most of 1 to 5 servers with which, and with fewer, every get finds its item and no page fault reads storage",
		Ours: func(m *experiment.Measured) []float64 {
			n := 0
			for _, r := range m.Results {
				if r.Float("hits") < 1 || r.Values["major"] != 0 {
					break
				}
				n = r.Point.Int("instances")
			}
			return []float64{float64(n)}
		},
	})
}

func runInstances(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	f := &fleet{
		Point: p, operation: p.Time("operation") + p.Time("shared")*sim.Time(p.Int("instances")-1), pinned: p.Text("mode") == fleetPinned, vm: int64(p.Int("vm")), ring: fleetClientRing, ends: []sim.Time{p.Time("warm"), p.Time("warm") + p.Time("time")},
	}
	if f.pinned && int64(p.Int("instances")) > int64(p.Profile.OS.Memory)/f.vm {
		return impossible(), nil // more than there is, so it cannot work
	}
	f.limit = max(f.vm*7/8>>20<<20, 1<<20)
	connections := p.Int("connections")
	for i := range p.Int("instances") {
		var load []*memaslap.Client
		for n := range connections {
			x, err := memaslap.New(memaslap.Config{Window: max(p.Int("working-set")/instanceChunk/connections, 1), Overwrite: 1, Seed: p.Seed}, i*connections+n)
			if err != nil {
				return nil, err
			}
			load = append(load, x)
		}
		f.loads = append(f.loads, load)
	}
	stats, err := f.run(ctx)
	if errors.Is(err, errCannotPin) {
		return impossible(), nil
	}
	if err != nil {
		return nil, err
	}
	p.OnlyDuring(p.Operations(), func(o *experiment.Operation) bool { return o.To > fleetBegin+p.Time("warm") })
	ops, gets, hits := int64(0), int64(0), int64(0)
	for _, c := range f.counts {
		ops += c[1].Ops() - c[0].Ops()
		gets, hits = gets+c[1].Gets, hits+c[1].Hits
	}
	values := experiment.ClusterValues(&stats)
	values["throughput"] = float64(ops) / p.Time("time").Seconds() / 1000
	values["per_operation"], values["hits"] = nil, nil
	if ops > 0 {
		values["per_operation"] = float64(len(f.loads)) * p.Time("time").Seconds() * 1e6 / float64(ops)
	}
	if gets > 0 {
		values["hits"] = float64(hits) / float64(gets)
	}
	values["resident"], values["absent"], values["major"] = int(f.resident), int(f.absent), int(f.kernel.Major)
	return values, nil
}

// impossible are the values of a point without a result.
func impossible() experiment.Values {
	values := experiment.Values{"throughput": nil, "per_operation": nil, "hits": nil, "resident": nil, "absent": nil, "major": nil}
	for _, c := range experiment.ClusterColumns() {
		values[c.Name] = nil
	}
	return values
}
