package scenario

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Options replace values of a scenario.
type Options struct {
	Set    []string // profile values as "path=value", applied after the scenario's
	Ranks  int      // 0: as in the scenario
	Seed   *uint64  // nil: as in the scenario
	Engine string   // "": as in the scenario

	Parameters map[string]string // values that replace the scenario's, by name

	Build provenance.Build // the build that produces the results
	// replaces the scenario's profile and its Set; nil: as in the scenario
	Profile *profile.Profile
	// reads a file of at most limit bytes; nil: from the disk, below the
	// scenario's folder
	Read    func(name string, limit int64) (data []byte, err error)
	Limits  sim.Limits
	Links   runtime.WatchLinks // receives the activity of links; nil: nobody
	Capture runtime.Capture    // receives the network; nil: nobody

	Breakdown bool // shows the table breakdown, too
}

// read reads a file that a scenario names. It lies below the folder of the
// scenario, because somebody else may have written that. A name that the user
// gives in a parameter is free: own reads it.
func (o *Options) read(scenario, name string, limit int64, own profile.Files) ([]byte, error) {
	if o.Read != nil {
		return o.Read(name, limit)
	}
	for _, value := range o.Parameters { //lint:maporder any of them
		if beside(scenario, value) == name {
			return own(name, limit)
		}
	}
	return input.ReadBelow(folderOf(scenario), name, limit)
}

// folderOf returns the folder of a scenario; of the standard input, the current
// one.
func folderOf(scenario string) string {
	if input.Device(scenario) {
		return "."
	}
	return filepath.Dir(scenario)
}

// beside resolves a file name in a scenario.
func beside(scenario, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folderOf(scenario), name)
}

// readFile reads the file of c.
func (p *planner) readFile(c *Content, path string) {
	if c.kind != contentFile {
		return
	}
	name := beside(p.spec.file, c.file)
	var err error
	if c.bytes, err = p.options.read(p.spec.file, name, input.MaxData, input.Read); err != nil {
		p.fail(path+".file", "%w", err)
		return
	}
	if !slices.ContainsFunc(p.inputs, func(in provenance.Input) bool { return in.Name == name }) {
		p.inputs = append(p.inputs, provenance.NewInput(name, c.bytes))
	}
}

// loadModule loads a module once and remembers its hash.
func (p *planner) loadModule(name string, lib *handlers.Library) (*hpu.Module, error) {
	if m := p.modules[name]; m != nil {
		return m, nil
	}
	var handler provenance.Handler
	var wasm []byte
	called := strings.TrimSuffix(filepath.Base(name), ".wasm")
	if lib != nil {
		wasm = lib.Wasm
		handler = provenance.NewHandler(lib.Name, "", wasm)
	} else {
		var err error
		if wasm, err = p.options.read(p.spec.file, beside(p.spec.file, name), input.MaxModule, input.ReadRegular); err != nil {
			return nil, err
		}
		handler = provenance.NewHandler(called, beside(p.spec.file, name), wasm)
	}
	m, err := hpu.Load(called, wasm, p.profile.Device())
	p.modules[name] = m
	p.used = append(p.used, handler)
	return m, err
}

// command is the name of the command in the record of a scenario's results.
const command = "run"

// runArguments are the inputs of a result besides the scenario, its profile and
// its seed.
type runArguments struct {
	Ranks      int      `json:"ranks"`
	Table      string   `json:"table,omitempty"` // the only one shown
	Until      sim.Time `json:"until,omitempty"`
	EventLimit uint64   `json:"event_limit,omitempty"`
	Breakdown  bool     `json:"breakdown,omitempty"`

	Parameters map[string]string `json:"parameters,omitempty"` // replace the scenario's
	Sweep      *Lists            `json:"sweep,omitempty"`      // nil: one run
}

// Lists are the differences between the runs of a sweep, as a user writes them.
type Lists struct {
	Parameters []string `json:"parameters,omitempty"` // "name=LIST"
	Set        []string `json:"set,omitempty"`        // of the profile, "path=LIST"

	// one for every combination of parameters, the first parameter varies
	// fastest; none: the parameters do not change the device or the network
	Runs []RunOf `json:"runs,omitempty"`
}

// RunOf is the device and the network for given values of parameters.
type RunOf struct {
	// its place among the profiles of the record, from 0; the values of Set are
	// applied to it
	Profile int    `json:"profile"`
	Ranks   int    `json:"ranks"`
	Seed    uint64 `json:"seed"`
}

// ListsOf returns the lists of a record; nil: the record is of one run.
func ListsOf(r *provenance.Record) (*Lists, error) {
	var a runArguments
	err := r.Parse(&a)
	return a.Sweep, err
}

// Record returns the inputs of the plan's results.
func (p *Plan) Record() (*provenance.Record, error) { return p.record(nil) }

// record returns the record of one run. With lists, it is the record of a
// sweep, and the plan is its first run.
func (p *Plan) record(sweep *Lists) (*provenance.Record, error) {
	profile, err := provenance.NewProfile(p.profile)
	if err != nil {
		return nil, err
	}
	r := &provenance.Record{
		Build: p.options.Build, Command: command, Profiles: []provenance.Profile{profile}, Seed: &p.seed, Engine: p.engine,
		Handlers: p.used, Inputs: p.inputs,
	}
	return r, r.WithArguments(runArguments{p.ranks, p.only, p.options.Limits.Until, p.options.Limits.Events, p.options.Breakdown, p.options.Parameters, sweep})
}

// PlanOf makes the plan of a record, for a run of a sweep, from 0, with the
// variation of that run. read looks up files of which the record has only the
// hash. If a built-in module has changed, PlanOf adds a note. If any other file
// differs from the record, it returns an error.
func PlanOf(r *provenance.Record, read func(name string, limit int64) ([]byte, error), run int, own Variation) (p *Plan, notes []string, err error) {
	if len(r.Inputs) == 0 || len(r.Profiles) == 0 || r.Seed == nil {
		return nil, nil, errors.New("provenance: expected a scenario as the first of inputs, a profile and a seed")
	}
	var a runArguments
	if err := r.Parse(&a); err != nil {
		return nil, nil, err
	}
	of := RunOf{0, a.Ranks, *r.Seed}
	if a.Sweep != nil && len(a.Sweep.Runs) > 0 {
		of = a.Sweep.Runs[run%len(a.Sweep.Runs)]
	}
	if of.Profile < 0 || of.Profile >= len(r.Profiles) {
		return nil, nil, fmt.Errorf("provenance.arguments.sweep.runs: profile %d, but there are %d", of.Profile, len(r.Profiles))
	}
	o := Options{Ranks: of.Ranks, Seed: &of.Seed, Engine: r.Engine, Build: r.Build, Limits: sim.Limits{Until: a.Until, Events: a.EventLimit}, Breakdown: a.Breakdown}
	o.Parameters = maps.Clone(a.Parameters)
	o = o.With(Variation{Parameters: own.Parameters})
	if o.Profile, err = r.Profiles[of.Profile].Load(own.Set...); err != nil {
		return nil, nil, err
	}
	for i := range r.Handlers {
		h := &r.Handlers[i]
		if h.Path != "" {
			continue
		}
		lib, err := handlers.Builtin(h.Name)
		if err != nil {
			return nil, nil, err
		}
		if err := h.Verify(lib.Wasm); err != nil {
			notes = append(notes, err.Error())
		}
	}
	o.Read = func(name string, limit int64) ([]byte, error) { return recorded(r, name, limit, read) }
	if p, err = Load(r.Inputs[0].Name, o); err != nil {
		return nil, nil, err
	}
	if a.Table != "" {
		err = p.Show(a.Table)
	}
	return p, notes, err
}

// recorded returns a file that is in a record.
func recorded(r *provenance.Record, name string, limit int64, read func(name string, limit int64) ([]byte, error)) ([]byte, error) {
	if in := r.Input(name); in != nil {
		return in.Data(func(name string) ([]byte, error) { return read(name, limit) })
	}
	for i := range r.Handlers {
		if h := &r.Handlers[i]; h.Path == name && name != "" {
			wasm, err := read(name, limit)
			if err == nil {
				err = h.Verify(wasm)
			}
			return wasm, err
		}
	}
	return nil, fmt.Errorf("%s is not among the recorded files", name)
}
