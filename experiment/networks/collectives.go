package networks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/goal/collective"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Who does the collectives of a workload.
const (
	byHost     = "host"
	byNIC      = "nic"
	byNICRing  = "nic-ring"
	byNICTree  = "nic-tree"
	bySwitch   = "switch"
	asRecorded = "as-recorded"
)

var modes = map[string]mpi.Mode{byHost: mpi.ModeHost, byNIC: mpi.ModeDoubling, byNICRing: mpi.ModeRing, byNICTree: mpi.ModeTree, bySwitch: mpi.ModeSwitch}

// perCollective is the table of the collectives.
const perCollective = "collectives"

var collectives = &experiment.Experiment{
	Name:  "collectives",
	Short: "a workload, collective by collective, by hosts, NICs and switches",
	Long: `Ranks run a workload. Its collectives, but for alltoalls, gathers and scatters, are done by one of these:
  host         processes, by the algorithms of package mpi
  nic          recursive doubling by handlers of the NICs (handlers/allreduce); only allreduces, others as by host
  nic-ring     a ring by handlers of the NICs; likewise
  nic-tree     aggregators in the NICs: each has two others below it (handlers/reduction)
  switch       the same module in units of switches (fabric.units)
  as-recorded  the messages of the workload, which add in no time
Other collectives remain messages. A workload is the file of a GOAL schedule with named collectives (//coll), the first file of a Chakra trace
(trace.0.et), or step: a training step of 16 ranks in a grid. In each of 4 layers they add 64 KiB in rows, forward and backward, and 256 KiB of gradients in
columns, while the layers before it compute.

The table collectives has the time of each in the run, and what one of them takes when nothing else runs: its bytes on links, the processors
that handlers need, and what limits it.
On another profile switches need units, for example --set 'fabric.units={at: all, rate: 25600Gb/s, wire: 1ns}'.`,
	Source: "ours", Profiles: []string{"inc"},
	Smoke: []experiment.Values{{"on": bySwitch}},
	Axes: []experiment.Axis{
		{Name: "workload", Kind: report.Text, Default: step, Help: "`FILE`s of schedules or traces, or step"},
		{Name: "on", Kind: report.Text, Of: []string{byHost, byNIC, byNICRing, byNICTree, bySwitch, asRecorded}, Default: strings.Join([]string{byHost, byNIC, byNICRing, byNICTree, bySwitch}, ","), Help: "who does the collectives; the command's help describes each"},
	},
	Points: offers, Run: runWorkload, Independent: true,
	Inputs: func(p *experiment.Point) []provenance.Input { return load(p).files },
	Memory: func(p *experiment.Point) int64 {
		s, cfg, err := scheduled(p)
		if err != nil {
			return 0 // Points has said so
		}
		return nodes.Memory(s, cfg)
	},
	Columns: []report.Column{
		{Name: "time", Unit: "us", Kind: report.Duration, Help: "when the last rank had done all of its operations"},
		{Name: "ranks", Kind: report.Count, Help: "of the workload"},
		{Name: "in_allreduce", Kind: report.Share, Help: "share of the time in which at least one allreduce was under way"},
		{Name: "communication_share", Kind: report.Share, Help: "share of the ranks' time in which they did not compute"},
		{Name: "link_bytes", Kind: report.Size, Help: "bytes that links carried, headers included, each link counts"},
		{Name: "busiest_link", Kind: report.Text, Help: "the link that was busy longest"},
		{Name: "link_busy", Kind: report.Share, Help: "share of the time in which it was busy"},
		{Name: "host_cpu", Unit: "us", Kind: report.Duration, Help: "time that cores of all ranks were busy, computations included"},
		{Name: "handlers", Kind: report.Number, Help: "handlers under way at the device that had most, mean over the time"},
		{Name: "events", Kind: report.Count, Help: "events of the simulation"},
	},
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "speedup", Kind: report.Ratio, Help: "time of host / time"},
		Of:     "time", Axis: "on", Base: byHost,
	}},
	Slots: func(p *experiment.Point) []*handlers.Slot { return modes[p.Text("on")].Slots() },
	View: experiment.View{
		Value: "time", Series: []string{"on"}, Base: byHost,
		Summary: []string{experiment.ProfileColumn, "workload", "ranks", "on", "time_us", "speedup", "in_allreduce", "communication_share", "link_bytes", "link_busy", "host_cpu_us", "handlers"},
	},
	Details: []experiment.Detail{{
		Name: perCollective, Title: "collectives",
		Columns: []report.Column{
			{Name: "collective", Help: "name in the workload of the first of those that are alike"},
			{Name: "kind", Help: "what it does"},
			{Name: "bytes", Kind: report.Size, Help: "what a member contributes"},
			{Name: "members", Kind: report.Count, Help: "ranks that take part"},
			{Name: "count", Kind: report.Count, Help: "how many there are with this kind, bytes and number of members"},
			{Name: "mean", Unit: "us", Kind: report.Duration, Help: "from the first member's beginning to the last one's end in the run, mean over these"},
			{Name: "alone", Unit: "us", Kind: report.Duration, Help: "time of the first of them when nothing else runs, and all members begin together"},
			{Name: "alone_bytes", Kind: report.Size, Help: "bytes that links carried then"},
			{Name: "alone_link", Kind: report.Share, Help: "share of its time in which the busiest link was busy"},
			{Name: "alone_cpu", Kind: report.Share, Help: "likewise the busiest core of a node"},
			{Name: "alone_handlers", Kind: report.Number, Help: "handlers under way at the device that had most, mean over its time: the processors that they need"},
			{Name: "limit", Help: "what is busy at least half of that time, most of all; latency: nothing is"},
		},
	}},
	Undivided: "a workload has many operations of many kinds: the table collectives divides its time, and --trace shows them",
	Caveats:   func(results []*experiment.Result) []string { return append(each(results), left(results)...) },
	Notes:     []string{"Every element of every allreduce was compared with the sum over its members; with as-recorded, every byte of every message."},
}

// scheduled returns what a point runs, with its configuration.
func scheduled(p *experiment.Point) (*goal.Schedule, nodes.Config, error) {
	w := load(p)
	if w.err != nil {
		return nil, nodes.Config{}, w.err
	}
	s := w.schedule
	o := mpi.DefaultOptions(mpi.Host)
	cfg := nodes.Config{Config: p.Config(context.Background(), s.Ranks()), MPI: o}
	mode, swapped := modes[p.Text("on")]
	if !swapped {
		return s, cfg, nil
	}
	cfg.MPI.Allreduce, cfg.Calls = mode, make(map[string]bool)
	by, contents := make([]string, len(s.Collectives())), s.Contents()
	for i, c := range s.Collectives() {
		if called(c, contents[i].Ranks) == nil {
			by[i], cfg.Calls[c.Name] = collective.Call, true
		}
	}
	if len(cfg.Calls) == 0 {
		return nil, cfg, fmt.Errorf("%s: has none of %v: expected --on %s", p.Text("workload"), nodes.CallKinds(), asRecorded)
	}
	s, err := collective.Swap(s, by)
	return s, cfg, err
}

// called returns why a collective stays messages; nil: the library does it. An
// allreduce that it cannot do is an error.
func called(c goal.Collective, members int) error {
	if c.Kind == goal.AllReduce {
		return nil
	}
	return nodes.Callable(c, members)
}

// offers refuses what cannot run.
func offers(p *experiment.Point) (bool, error) {
	if err := modes[p.Text("on")].Check(&p.Profile.Fabric); err != nil {
		return false, &experiment.NoPoint{Why: fmt.Errorf("profile %s: %w", p.Profile.Origin.Name, err)}
	}
	s, cfg, err := scheduled(p)
	if err != nil {
		return false, fmt.Errorf("--workload: %w", err)
	}
	if err = errors.Join(nodes.CheckCalls(s, &cfg), nodes.CheckCores(s, &cfg)); err == nil {
		if err = nodes.Check(s, cfg.MPI); !errors.As(err, &nodes.InputError{}) {
			err = nil // what waits for ever is an error of the run
		}
	}
	if err != nil {
		return false, fmt.Errorf("--workload: %s: %w", p.Text("workload"), err)
	}
	return true, nil
}

func runWorkload(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	s, cfg, err := scheduled(p)
	if err != nil {
		return nil, err
	}
	r, err := nodes.Run(ctx, s, cfg)
	if err != nil {
		return nil, err
	}
	rows, err := apart(ctx, p, s, cfg, r)
	if err != nil {
		return nil, err
	}
	var reducing []span
	for i, c := range s.Collectives() {
		if c.Kind == goal.AllReduce {
			reducing = append(reducing, span(r.Windows[i]))
		}
	}
	return experiment.Values{
		"time": r.Max, "ranks": r.Ranks, "communication_share": r.Share(), "in_allreduce": share(covered(reducing), r.Max),
		"link_bytes": r.Load.LinkBytes, "busiest_link": r.Load.Link, "link_busy": share(r.Load.LinkBusy, r.Max),
		"host_cpu": r.Nodes.CPUBusy, "handlers": share(r.Load.Handlers, r.Max), "events": r.Events, perCollective: rows,
	}, nil
}

// alike are collectives of one kind, size and number of members.
type alike struct {
	kind    goal.CollectiveKind
	bytes   uint64
	members int
}

// apart makes the table of the collectives: each kind runs alone, too.
func apart(ctx context.Context, p *experiment.Point, s *goal.Schedule, cfg nodes.Config, r *nodes.Result) (experiment.Rows, error) {
	var order []alike
	of := make(map[alike][]int)
	contents := s.Contents()
	for i, c := range s.Collectives() {
		a := alike{c.Kind, c.Bytes, contents[i].Ranks}
		if of[a] == nil {
			order = append(order, a)
		}
		of[a] = append(of[a], i)
	}
	var rows experiment.Rows
	for _, a := range order {
		sum := sim.Time(0)
		for _, i := range of[a] {
			sum = sum.Plus(r.Windows[i].End - r.Windows[i].Start)
		}
		first := of[a][0]
		alone, err := collective.Alone(s, first)
		if err != nil {
			return nil, err
		}
		one, name := r, s.Collectives()[first].Name
		if alone.Len() < s.Len() {
			cfg.Config = p.Config(context.Background(), s.Ranks())
			if one, err = nodes.Run(ctx, alone, cfg); err != nil {
				return nil, fmt.Errorf("%s alone: %w", name, err)
			}
		}
		l := &one.Load
		rows = append(rows, []any{
			name, string(a.kind), int64(min(a.bytes, 1<<62)), a.members, len(of[a]), sum / sim.Time(len(of[a])), one.Max, l.LinkBytes, //nolint:gosec // it fits
			share(l.LinkBusy, one.Max), share(l.CPU, one.Max), share(l.Handlers, one.Max), limit(p, one),
		})
	}
	return rows, nil
}

// limit is the busiest resource in the run of a collective.
func limit(p *experiment.Point, r *nodes.Result) string {
	what, most := "latency", 0.5
	note := func(name string, busy float64) {
		if busy >= most {
			what, most = name, busy
		}
	}
	note("link "+r.Load.Link, share(r.Load.LinkBusy, r.Max))
	note("core", share(r.Load.CPU, r.Max))
	if slots := modes[p.Text("on")].Slots(); len(slots) > 0 {
		library, _, _ := strings.Cut(slots[0].Name, ".")
		if n := processors(p, library); n > 0 {
			note("handlers", share(r.Load.Handlers, r.Max)/float64(n))
		}
	}
	return what
}

// processors is how many processors a device has for the handlers of a library; 0:
// they are a pipeline.
func processors(p *experiment.Point, library string) int {
	switch of, other := p.Profile.Pools[p.Profile.Serve[library]["payload"]]; {
	case !other:
		return p.Profile.HPU.Cores
	case of.Kind == nic.Firmware:
		return of.Cores
	}
	return 0
}

func share(part, whole sim.Time) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// span is a time between two.
type span struct{ Start, End sim.Time }

// covered is the time in which at least one is under way.
func covered(list []span) (sum sim.Time) {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.Start, b.Start) })
	end := sim.Time(0)
	for _, w := range list {
		if from := max(w.Start, end); w.End > from {
			sum += w.End - from
			end = w.End
		}
	}
	return sum
}

// mostEach is how many kinds of collectives have a sentence.
const mostEach = 4

// each compares who does the collectives, those that take longest first.
func each(results []*experiment.Result) (lines []string) {
	type sentence struct {
		text    string
		longest sim.Time
	}
	var order []string
	of := make(map[string]*sentence)
	for _, r := range results {
		rows, _ := r.Values[perCollective].(experiment.Rows)
		for _, row := range rows {
			if !slices.Contains(nodes.CallKinds(), goal.CollectiveKind(row[1].(string))) {
				continue
			}
			key := fmt.Sprintf("%s, %s: %s of %d B by %v ranks", r.Point.Profile.Name, filepath.Base(r.Point.Text("workload")), row[1], row[2], row[3])
			s := of[key]
			if s == nil {
				s = &sentence{}
				of[key], order = s, append(order, key)
			} else {
				s.text += ", "
			}
			mean := row[5].(sim.Time)
			s.longest = max(s.longest, mean)
			s.text += fmt.Sprintf("%s %.4g µs (limit: %v)", r.Point.Text("on"), 1e6*mean.Seconds(), row[11])
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(of[b].longest, of[a].longest) })
	for i, key := range order {
		if i == mostEach {
			return append(lines, fmt.Sprintf("%d more in the table.", len(order)-i))
		}
		lines = append(lines, key+": "+of[key].text+".")
	}
	return lines
}

// checked is what a run compares, for the kinds that are not in the notes.
var checked = map[goal.CollectiveKind]string{
	goal.AllGather:     "every byte was compared with its member's",
	goal.ReduceScatter: "every element was compared with the sum",
	goal.Broadcast:     "every byte was compared with the root's",
	goal.Reduce:        "every element at the root was compared with the sum",
	goal.Barrier:       "no rank left before all had come",
}

// left names what the answer does not have.
func left(results []*experiment.Result) (lines []string) {
	seen := make(map[string]bool)
	var byHosts []string // rows with modes of allreduces alone
	swapped := false
	for _, r := range results {
		on := r.Point.Text("on")
		mode, is := modes[on]
		if swapped = swapped || is; is && !mode.Rooted() && !slices.Contains(byHosts, on) {
			byHosts = append(byHosts, on)
		}
	}
	for _, r := range results {
		w := load(r.Point)
		if w.err != nil || seen[r.Point.Text("workload")] {
			continue
		}
		seen[r.Point.Text("workload")] = true
		lines = append(append(lines, others(w, r.Point.Text("workload"), swapped, byHosts)...), w.notes...)
	}
	return lines
}

// others has a sentence for each kind of a workload besides allreduces.
func others(w *workload, name string, swapped bool, byHosts []string) (lines []string) {
	does, stay, why := make(map[goal.CollectiveKind]int), make(map[goal.CollectiveKind]int), make(map[goal.CollectiveKind]error)
	contents := w.schedule.Contents()
	for i, c := range w.schedule.Collectives() {
		if err := called(c, contents[i].Ranks); err != nil {
			stay[c.Kind]++
			why[c.Kind] = err
		} else if c.Kind != goal.AllReduce {
			does[c.Kind]++
		}
	}
	for _, kind := range goal.CollectiveKinds() {
		say := func(n int, what string) {
			lines = append(lines, fmt.Sprintf("%s: %s of kind %s: %s.", name, experiment.Counted(n, "collective"), kind, what))
		}
		switch n := stay[kind]; {
		case n == 0:
		case checked[kind] == "":
			say(n, "messages of hosts in all rows, since no library of handlers has it")
		default:
			say(n, "messages of hosts in all rows, since one has "+why[kind].Error())
		}
		switch n := does[kind]; {
		case n == 0 || !swapped:
		case len(byHosts) > 0:
			say(n, "by processes in rows of "+strings.Join(byHosts, ", ")+", whose handlers have allreduces alone; "+checked[kind])
		default:
			say(n, checked[kind])
		}
	}
	return lines
}
