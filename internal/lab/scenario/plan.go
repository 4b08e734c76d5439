package scenario

import (
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
)

// Plan is a checked scenario: every name, file and module exists and every
// range fits. It can run any number of times.
type Plan struct {
	spec      *Spec
	output    Output // from the spec, or changed by Show
	only      string // the only table to show; "": all
	profile   *profile.Profile
	ranks     int
	seed      uint64
	engine    string
	env       *env
	entries   []*entryPlan
	programs  []*programPlan
	programOf []*programPlan // by rank; nil: none
	modules   map[string]*hpu.Module
	stepPaths []string
	stepID    map[string]int // place in stepPaths
	options   Options
	// bytes: of all entries and buffers of all ranks; the limit of a breakdown,
	// 0: none
	memory, room int64
	inputs       []provenance.Input
	used         []*handlers.Library // modules
	explain      func(*ExplainStep)  // nil: nobody
}

// planner makes a plan and collects the errors of its scenario.
type planner struct {
	*Plan

	failed map[string]bool // paths of steps and buffers with an error on a rank
	errs   []error
}

// entryPlan is a resolved entry.
type entryPlan struct {
	*Entry
	index      int
	path       string
	ranks      []int
	on         []bool         // by rank
	handlers   *handlers.Plan // nil: none
	layout     stateLayout
	shares     *entryPlan // entry whose HPU memory it uses; nil: its own
	inBytes    string     // path of a step that waits for bytes; "": none
	inMessages string
}

type programPlan struct {
	*Program
	path     string
	ranks    []int
	marks    map[string]bool
	measures map[string]bool
}

// Limits of a scenario; more is likely a mistake.
const (
	maxRanks  = 1 << 20
	maxCount  = 1 << 30
	maxMemory = 1 << 36 // of all regions of all ranks
	maxNested = 8       // nested repeats
)

// Load reads and plans the scenario in a file. It joins the errors of reading
// with all other errors that it can find without the unreadable parts.
func Load(file string, o Options) (*Plan, error) {
	read := o.Read
	if read == nil {
		read = input.Read
	}
	data, err := read(file, input.MaxText)
	if err != nil {
		return nil, err
	}
	s, err := parse(file, data, o.Parameters)
	if err != nil {
		return nil, err
	}
	return s.Plan(o)
}

// Plan checks the scenario. It joins all errors, which are of type *FieldError,
// including the errors of reading.
func (s *Spec) Plan(o Options) (*Plan, error) {
	p := &planner{failed: make(map[string]bool), Plan: &Plan{
		spec: s, output: s.Output, ranks: s.Ranks, seed: 1, engine: string(s.Engine), modules: make(map[string]*hpu.Module), stepID: make(map[string]int),
		options: o, inputs: []provenance.Input{provenance.NewInput(s.file, s.text)},
	}}
	if o.Ranks != 0 {
		p.ranks = o.Ranks
	}
	if s.Seed != nil {
		p.seed = *s.Seed
	}
	if o.Seed != nil {
		p.seed = *o.Seed
	}
	if o.Engine != "" {
		p.engine = o.Engine
	}
	if p.engine != "" {
		if err := checkEngine(p.engine); err != nil && o.Engine != "" {
			p.errs = append(p.errs, err)
		} else if err != nil {
			p.fail("engine", "%w", err)
		}
	}
	if !s.wrong.Damaged("profile") && !s.wrong.Damaged("set") && !s.wrong.Damaged("topology") {
		p.loadProfile(o.Set)
	}
	p.checkRanks()
	if p.profile != nil && p.ranks > 0 && p.ranks <= maxRanks && (o.Ranks != 0 || !s.wrong.Damaged("ranks")) {
		p.env = newEnv(p.profile, p.ranks)
		p.programOf = make([]*programPlan, p.ranks)
		p.planEntries()
		p.planPrograms()
		p.checkServe()
		p.checkRest()
	}
	if err := errors.Join(append([]error{s.unread()}, p.errs...)...); err != nil {
		return nil, err
	}
	if o.Table != "" {
		if err := p.show(o.Table); err != nil {
			return nil, fmt.Errorf("--table: %w", err)
		}
	}
	return p.Plan, nil
}

// checkEngine reports an engine that does not exist.
func checkEngine(name string) error {
	e, err := hpu.NewEngine(name)
	if err != nil {
		return err
	}
	return e.Close()
}

// fail notes an error of the value at a path of the scenario. If the path is not
// in the file, the line belongs to the longest part of it that is.
func (p *planner) fail(path, format string, args ...any) {
	if p.spec.wrong.Damaged(path) {
		return
	}
	p.errs = append(p.errs, p.at(path, fmt.Errorf(format, args...)))
}

// at adds the place in the scenario to an error.
func (p *Plan) at(path string, err error) error {
	e := &FieldError{File: p.spec.file, Path: path, Err: err}
	for part := path; part != ""; {
		if line, ok := p.spec.lines[part]; ok {
			e.Line = line
			break
		}
		part = part[:max(0, strings.LastIndexAny(part, ".["))]
	}
	return e
}

// value adapts a value of the profile. The file of a topology is relative to
// the scenario's file, like the profile.
func (s *Spec) value(path, text string) string {
	// no file if the topology itself is here
	if path != "fabric.topology" || text == "" || strings.ContainsAny(text, "{}[]\n") {
		return text
	}
	return beside(s.file, text)
}

// planEntries resolves ranks, modules and states.
func (p *planner) planEntries() {
	for i := range p.spec.Entries {
		e := &entryPlan{Entry: &p.spec.Entries[i], index: i, path: fmt.Sprintf("entries[%d]", i)}
		if err := checkName(e.Name); err != nil {
			p.fail(e.path+".name", "%w", err)
		}
		if other := p.entry(e.Name); other != nil {
			p.fail(e.path+".name", "%s is the name of %s", e.Name, other.path)
		}
		e.on = make([]bool, p.ranks)
		var err error
		if e.ranks, err = e.Ranks.list(p.env); err != nil {
			p.fail(e.path+".ranks", "%w", err)
		}
		for _, r := range e.ranks {
			e.on[r] = true
		}
		p.readFile(&e.Fill, e.path+".fill")
		if e.Fill.kind == contentValues {
			p.fail(e.path+".fill", "only a state has fields with names")
		}
		if e.Handlers != nil {
			p.planHandlers(e)
		}
		p.entries = append(p.entries, e)
	}
}

func checkName(name string) error {
	for _, r := range name {
		if r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return fmt.Errorf("%q, expected letters, digits, and _ - . only", name)
		}
	}
	if strings.HasSuffix(name, hostMemory) {
		return fmt.Errorf("%q ends like the name of the handlers' host memory of an entry", name)
	}
	if name == "" {
		return errors.New("empty, expected a name")
	}
	return nil
}

// entry returns the entry with that name, nil if there is none.
func (p *Plan) entry(name string) *entryPlan {
	for _, e := range p.entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// planHandlers loads the module, finds the handlers and the layout of the state.
func (p *planner) planHandlers(e *entryPlan) {
	h := e.Handlers
	path := e.path + ".handlers"
	var lib *handlers.Library
	if filepath.Ext(h.Module) != ".wasm" {
		var err error
		if lib, err = handlers.Builtin(h.Module); err != nil {
			p.fail(path+".module", "%w or the path of a .wasm file", err)
			return
		}
	}
	module, err := p.loadModule(h.Module, lib)
	if err != nil {
		p.fail(path+".module", "%w", err)
		return
	}
	if e.handlers = p.choose(h, module, path); e.handlers == nil {
		return
	}
	p.checkNeeds(e)
	if h.Shares != "" {
		if !p.share(e) {
			e.handlers = nil
		}
		return
	}
	p.readFile(&h.State, path+".state")
	e.layout.described = e.handlers.State
	if h.State.kind == contentFields {
		at, device := p.anyRank(e.ranks)
		if i, err := e.layout.list(h.State.fields, 0, at, device); err != nil {
			p.fail(fmt.Sprintf("%s.state[%d]", path, i), "%w", err)
		}
	}
	if h.State.kind == contentValues && !e.layout.known() {
		p.fail(path+".state.values", "the module does not describe its state: give a list of typed values")
		return
	}
	for i := range h.State.values {
		v := &h.State.values[i]
		if n, err := e.layout.described.Lookup(v.Name); err != nil {
			p.fail(path+".state.values."+v.Name, "%w", err)
		} else if !n.Field.Type.Float() && !v.Value.expr.IsSet() {
			p.fail(path+".state.values."+v.Name, "%s, expected a whole number for %s", v.Value.text, n.Field.Type)
		}
	}
}

// choose checks the names of the handlers. Without names it takes the handlers
// that are the obvious choice. It returns nil if it has noted an error.
func (p *planner) choose(h *Handlers, m *hpu.Module, path string) *handlers.Plan {
	before := len(p.errs)
	wanted := handlers.Exports{h.Header, h.Payload, h.Completion}
	if h.Set != "" {
		if wanted != (handlers.Exports{}) {
			p.fail(path+".set", "%s, and handlers by their names: expected one of both", h.Set)
			return nil
		}
		var err error
		if wanted, err = handlers.OfSet(m, h.Set); err != nil {
			p.fail(path+".set", "%w", err)
			return nil
		}
	}
	for i, kind := range manifest.Kinds() {
		if wanted[i] != "" {
			if err := handlers.Check(m, kind, wanted[i]); err != nil {
				p.fail(path+"."+string(kind), "%w", err)
			}
		}
	}
	if len(p.errs) > before {
		return nil
	}
	chosen, err := handlers.PlanOf(m, wanted)
	if err != nil {
		p.fail(path, "%w", err)
		return nil
	}
	return chosen
}

// anyRank returns an environment and a device for values that are equal on all
// the ranks.
func (p *planner) anyRank(ranks []int) (*env, *manifest.Device) {
	if len(ranks) == 0 {
		return p.env, p.device(0)
	}
	return p.env.with(varRank, int64(ranks[0])), p.device(ranks[0])
}

// running lists the libraries whose handlers run, with their names in the
// section serve of a profile.
func (p *Plan) running() (libraries []string) {
	for _, m := range p.modules { //lint:maporder sorted below
		libraries = append(libraries, m.Library())
	}
	slices.Sort(libraries)
	return slices.Compact(libraries)
}

// checkServe rejects replacements that choose processors for handlers that do
// not run.
func (p *planner) checkServe() {
	if p.errs != nil || p.spec.wrong != nil {
		return // a module could not be read
	}
	for _, x := range p.spec.Set {
		if err := profile.CheckServe([]string{x.Path + "=" + x.Value}, p.running()); err != nil {
			p.fail(x.where, "%w", err)
		}
	}
	if err := profile.CheckServe(p.options.Set, p.running()); err != nil {
		p.errs = append(p.errs, err)
	}
}

// planPrograms resolves the program of each rank.
func (p *planner) planPrograms() {
	for i := range p.spec.Programs {
		g := &programPlan{
			Program: &p.spec.Programs[i], path: fmt.Sprintf("programs[%d]", i),
			marks: make(map[string]bool), measures: make(map[string]bool),
		}
		if g.Name = visible.Line(g.Name); g.Name == "" {
			g.Name = "program"
		}
		var err error
		if g.ranks, err = g.Ranks.list(p.env); err != nil {
			p.fail(g.path+".ranks", "%w", err)
		}
		for _, r := range g.ranks {
			if other := p.programOf[r]; other != nil {
				p.fail(g.path+".ranks", "rank %d already runs %s", r, other.path)
				break
			}
			p.programOf[r] = g
		}
		names := make(map[string]bool)
		for k := range g.Buffers {
			b := &g.Buffers[k]
			path := fmt.Sprintf("%s.buffers[%d]", g.path, k)
			if err := checkName(b.Name); err != nil {
				p.fail(path+".name", "%w", err)
			} else if names[b.Name] || p.entry(b.Name) != nil {
				p.fail(path+".name", "%s is the name of something else", b.Name)
			}
			names[b.Name] = true
			p.readFile(&b.Fill, path+".fill")
			if b.Fill.kind == contentValues {
				p.fail(path+".fill", "only a state has fields with names")
			}
		}
		p.programs = append(p.programs, g)
	}
}

// stream returns the source of a memory's pattern. It depends only on seed,
// rank and name.
func (p *Plan) stream(rank int, name string) source {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", rank, name)
	return source{p.seed, h.Sum64()}
}
