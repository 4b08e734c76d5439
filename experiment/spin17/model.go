package spin17

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Noise is operating system noise for Model: a trace and its name. nil Trace:
// none.
type Noise struct {
	Name  string
	Trace *goal.NoiseTrace
}

// Model runs a GOAL schedule in the LogGOPS model, which sPIN'17 extends. name
// is the schedule's name in tables. nil: the experiment can be described but not
// run.
func Model(name string, s *goal.Schedule, noise Noise) *experiment.Experiment {
	return modelOf(&modelRun{swaps: newSwaps(s, false), noise: noise.Trace}, name, noise)
}

// ATLAHS is Model by the rules of ATLAHS' simulator. It has no critical path.
func ATLAHS(name string, s *goal.Schedule, noise Noise) *experiment.Experiment {
	e := modelOf(&modelRun{swaps: newSwaps(s, false), noise: noise.Trace, model: goal.ATLAHS}, name, noise)
	e.Name, e.Source = "atlahs", "ATLAHS, SC'25"
	e.Short = strings.Replace(e.Short, "the LogGOPS model", "the model of ATLAHS", 1)
	e.Undivided = "the model has no device whose parts could be told apart"
	e.Axes = slices.DeleteFunc(e.Axes, func(a experiment.Axis) bool { return a.Name == criticalPath })
	e.Details = slices.DeleteFunc(e.Details, func(d experiment.Detail) bool { return d.Name == "path" })
	e.Columns = slices.DeleteFunc(e.Columns, func(c report.Column) bool { return strings.HasPrefix(c.Help, ofThePath) })
	e.View.Quiet = slices.DeleteFunc(e.View.Quiet, func(axis string) bool { return axis == criticalPath })
	return e
}

// criticalPath is an axis, ofThePath how the help of its columns begins.
const (
	criticalPath = "critical-path"
	ofThePath    = "of the critical path: "
)

// modelOf describes the runs of a model. name is the schedule's.
func modelOf(m *modelRun, name string, noise Noise) *experiment.Experiment {
	s := m.swaps.of
	short := "a GOAL schedule in the LogGOPS model"
	if s != nil {
		short = fmt.Sprintf("a GOAL schedule of %d %s in the LogGOPS model", s.Ranks(), report.Counted(s.Ranks(), "ranks"))
	}
	detours := "none"
	if noise.Trace != nil {
		detours = strings.ReplaceAll(noise.Name, ",", "_")
	}
	quiet := make([]string, 0, len(modelAxes()))
	for _, a := range modelAxes() {
		quiet = append(quiet, a.Name)
	}
	return &experiment.Experiment{
		Name:       "model",
		Short:      short,
		Source:     "LogGOPS'10",
		Deviceless: true,
		Undivided:  "the model has no device whose parts could be told apart; --critical-path shows where its time goes",
		Axes: append([]experiment.Axis{
			{Name: "file", Kind: report.Text, Of: []string{strings.ReplaceAll(name, ",", "_")}, Help: "the schedule"},
			{Name: "detours", Kind: report.Text, Of: []string{detours}, Help: "operating system noise: the file of --noise"},
		}, modelAxes()...),
		Points: m.has,
		Run:    m.run,
		Memory: m.memory,
		Columns: []report.Column{
			{Name: "max", Unit: "ns", Kind: report.Count, Help: "last rank finishes"},
			{Name: "max_rank", Kind: report.Count, Help: "which rank that is"},
			{Name: "p99", Unit: "ns", Kind: report.Count, Help: "99 % of the ranks have finished"},
			{Name: "p75", Unit: "ns", Kind: report.Count, Help: "75 %"},
			{Name: "half", Unit: "ns", Kind: report.Count, Help: "half"},
			{Name: "p25", Unit: "ns", Kind: report.Count, Help: "25 %"},
			{Name: "first", Unit: "ns", Kind: report.Count, Help: "first rank finishes"},
			{Name: "mean", Unit: "ns", Kind: report.Count, Help: "mean"},
			{Name: "ranks", Kind: report.Count, Help: "ranks"},
			{Name: "messages", Kind: report.Count, Help: "messages"},
			{Name: "events", Kind: report.Count, Help: "operations and messages"},
			{Name: "mismatched", Kind: report.Count, Help: "messages received with another size; empty: none"},
			{Name: "computing", Unit: "ns", Kind: report.Count, Help: ofThePath + "computing"},
			{Name: "sending", Unit: "ns", Kind: report.Count, Help: ofThePath + "sending"},
			{Name: "receiving", Unit: "ns", Kind: report.Count, Help: ofThePath + "receiving"},
			{Name: "on_the_way", Unit: "ns", Kind: report.Count, Help: ofThePath + "messages on the way"},
		},
		Details: append(modelDetails(), collectivesDetail(s, report.Count)),
		Caveats: collectiveCaveats(collAxis),
		View: experiment.View{
			Value: "max", Quiet: quiet, Lines: true, Programs: "finish",
			Summary: []string{"max", "max_rank", "p99", "half", "first", "mean"},
		},
	}
}

// modelAxes are the parameters of the model and of the noise.
func modelAxes() []experiment.Axis {
	p := goal.DefaultParams()
	ns := func(name, column string, value any, help string) experiment.Axis {
		_, fractions := value.(goal.ByteTime)
		return experiment.Axis{
			Name: name, Column: column, Unit: "ns", Kind: report.Count, Fractions: fractions,
			Most: fmt.Sprint(goal.MaxCost), Default: fmt.Sprint(value), Help: help,
		}
	}
	return []experiment.Axis{
		ns("L", "latency", p.L, "latency, in ns"),
		ns("o", "overhead", p.Overhead, "time a processor is busy for a message, at each end, in ns"),
		ns("g", "gap", p.Gap, "time a network interface is busy for a message, at each end, in ns"),
		ns("G", "byte_gap", p.ByteGap, "time that every byte after the first adds to g, in ns"),
		ns("O", "byte_overhead", p.ByteOverhead, "time that every byte after the first adds to o, in ns"),
		{Name: "S", Column: "eager", Kind: report.Size, Default: fmt.Sprintf("%dB", p.Eager), Help: "largest message that does not wait for its receive"},
		{Name: "noise-seed", Kind: report.Count, Default: "1", Help: "seeds the place in the noise where each rank begins"},
		{Name: "noise-coscheduled", Kind: report.Flag, Default: "false", Help: "all ranks begin at the same place in the noise"},
		{Name: criticalPath, Kind: report.Flag, Default: "false", Help: "also follow the operations that determine the last finishing time"},
		collectiveAxis(""),
	}
}

// modelDetails are the tables with several rows for each point.
func modelDetails() []experiment.Detail {
	return []experiment.Detail{
		{
			Name: "path", Title: "critical path",
			Columns: []report.Column{
				{Name: "start", Unit: "ns", Kind: report.Count, Help: "when the operation begins to take time"},
				{Name: "end", Unit: "ns", Kind: report.Count, Help: "when it ends"},
				{Name: "rank", Kind: report.Count, Help: "where"},
				{Name: "busy_with", Help: "what takes the time"},
				{Name: "operation", Help: "of the schedule"},
			},
		},
		{
			Name: "finish", Title: "finishing times", Quiet: true,
			Columns: []report.Column{
				{Name: "rank", Kind: report.Count, Help: "of the schedule"},
				{Name: "finish", Unit: "ns", Kind: report.Count, Help: "when it had done all of its operations"},
			},
		},
	}
}

// modelRun measures points of a schedule.
type modelRun struct {
	swaps *swaps
	noise *goal.NoiseTrace
	model goal.Model
}

// params are the parameters of the model at a point.
func (m *modelRun) params(p *experiment.Point) (goal.Params, error) {
	gap, err := byteTime(p, "G")
	overhead, err2 := byteTime(p, "O")
	return goal.Params{
		Model: m.model, L: int64(p.Int("L")), Overhead: int64(p.Int("o")), Gap: int64(p.Int("g")),
		ByteGap: gap, ByteOverhead: overhead, Eager: uint64(p.Int("S")), //nolint:gosec // 0 or more
	}, errors.Join(err, err2)
}

// byteTime is exact: a fraction has the digits that its user wrote.
func byteTime(p *experiment.Point, axis string) (goal.ByteTime, error) {
	f, fraction := p.Value(axis).(float64)
	if !fraction {
		return goal.PerByte(int64(p.Int(axis))), nil
	}
	t, err := goal.ParseByteTime(strconv.FormatFloat(f, 'f', -1, 64))
	if err != nil {
		return t, fmt.Errorf("--%s: %w", axis, err)
	}
	return t, nil
}

// has refuses parameters with which an operation takes too long, and choices
// that change nothing.
func (m *modelRun) has(p *experiment.Point) (bool, error) {
	if m.noise == nil && (p.Int("noise-seed") != 1 || p.Flag("noise-coscheduled")) {
		return false, fmt.Errorf("--noise-seed and --noise-coscheduled are for --noise, which is not given")
	}
	params, err := m.params(p)
	if err != nil {
		return false, err
	}
	s := m.swaps.at(p)
	if s.err != nil {
		return false, fmt.Errorf("--%s: %w", collAxis, s.err)
	}
	return true, s.Check(params)
}

// Bytes of the model, as goal.NewSimulator and the critical path allocate them.
const (
	bytesPerOperation = 36
	bytesPerStep      = 24
	bytesPerRank      = 256
)

func (m *modelRun) memory(p *experiment.Point) int64 {
	of := int64(bytesPerOperation)
	if m.model == goal.LogGOPS && p.Flag(criticalPath) {
		of += bytesPerStep
	}
	s := m.swaps.at(p)
	return of*int64(s.Len()) + bytesPerRank*int64(s.Ranks())
}

func (m *modelRun) run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	params, err := m.params(p)
	if err != nil {
		return nil, err
	}
	s := m.swaps.at(p).Schedule
	options := []goal.Option{goal.WithContext(ctx), goal.WithLimits(p.Limits)}
	if m.noise != nil {
		options = append(options, goal.WithNoise(m.noise.Noise(s.Ranks(), uint64(p.Int("noise-seed")), p.Flag("noise-coscheduled")))) //nolint:gosec // 0 or more
	}
	simulator := goal.NewSimulator(s)
	d := &drawing{to: p.Tracer, of: s, tracks: make(map[unitKey]sim.TrackID)}
	windows := make([]goal.Window, len(s.Collectives()))
	traced := slices.Clip(options)
	if p.Tracer != nil {
		traced = append(traced, goal.WithTrace(d.span))
	}
	if len(windows) > 0 {
		traced = append(traced, goal.WithWindows(windows))
	}
	r, err := simulator.Run(params, traced...)
	if err == nil {
		err = d.err
	}
	if err != nil {
		return nil, err
	}
	values := finished(&r)
	at := make([]window, len(windows))
	for i, w := range windows {
		at[i] = window{w.Start, w.End}
	}
	values[collectivesTable] = collectiveRows(s, at, r.MaxNS, func(ns int64) any { return ns })
	if m.model != goal.LogGOPS {
		return values, nil
	}
	maps.Copy(values, experiment.Values{"computing": nil, "sending": nil, "receiving": nil, "on_the_way": nil, "path": experiment.Rows(nil)})
	if !p.Flag(criticalPath) {
		return values, nil
	}
	path, _, err := simulator.CriticalPath(params, options...)
	if err != nil {
		return nil, err
	}
	values["computing"], values["sending"], values["receiving"], values["on_the_way"] = path.CalcNS, path.SendNS, path.RecvNS, path.LatencyNS
	var steps experiment.Rows
	for _, t := range path.Steps {
		steps = append(steps, []any{t.Start, t.End, t.Rank, t.Kind.String(), t.Op.String()})
	}
	values["path"] = steps
	return values, nil
}

// finished are the values of a run without its critical path.
func finished(r *goal.Result) experiment.Values {
	d := r.Distribution()
	rows := make(experiment.Rows, len(r.FinishNS))
	for rank, at := range r.FinishNS {
		rows[rank] = []any{rank, at}
	}
	values := experiment.Values{
		"max": r.MaxNS, "max_rank": r.MaxRank, "p99": d.P99, "p75": d.P75, "half": d.P50, "p25": d.P25, "first": d.Min, "mean": int64(d.Mean),
		"ranks": r.Ranks, "messages": r.Messages, "events": r.Events, "mismatched": nil,
		"finish": rows,
	}
	if r.Mismatched > 0 {
		values["mismatched"] = r.Mismatched
	}
	return values
}

// drawing puts the spans of a run on a timeline: a line for each processor and
// each direction of a network interface.
type drawing struct {
	to     sim.Tracer
	of     *goal.Schedule
	tracks map[unitKey]sim.TrackID
	err    error // a span that no timeline can hold
}

type unitKey struct {
	rank  int
	unit  goal.Unit
	index uint8
}

// latestDrawn is the last time of a timeline, in ns: it counts picoseconds.
const latestDrawn = math.MaxInt64 / int64(sim.Nanosecond)

func (d *drawing) span(p goal.Span) {
	ref := d.of.Ref(p.OpRank, p.Op)
	if p.End > latestDrawn {
		if d.err == nil {
			d.err = fmt.Errorf("%v ends after %d ns, a timeline holds %d ns", ref, p.End, latestDrawn)
		}
		return
	}
	key := unitKey{p.Rank, p.Unit, p.Index}
	track, known := d.tracks[key]
	if !known {
		track = d.to.Track("rank", p.Rank, fmt.Sprintf("%v %d", p.Unit, p.Index))
		d.tracks[key] = track
	}
	d.to.Span(track, p.Kind.String(), sim.Time(p.Start)*sim.Nanosecond, sim.Time(p.End)*sim.Nanosecond, p.Flow,
		sim.Arg{Key: "operation", Text: ref.String()})
}
