package scenario

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Options replace what a scenario says about itself.
type Options struct {
	Set    []string // of the profile, "path=value", after those of the scenario
	Ranks  int      // 0: as the scenario says
	Seed   *uint64  // nil: as the scenario says
	Engine string   // "": as the scenario says

	Build   provenance.Build                                        // whose results these are
	Profile *profile.Profile                                        // in place of the scenario's with its Set; nil: as the scenario says
	Read    func(name string, limit int64) (data []byte, err error) // reads a file that is not longer than limit; nil: from the disk
	Limits  sim.Limits
	Links   runtime.WatchLinks // told what links did; nil: nobody
}

// read returns a file that a scenario needs.
func (o *Options) read(name string, limit int64) ([]byte, error) {
	if o.Read != nil {
		return o.Read(name, limit)
	}
	return input.Read(name, limit)
}

// readFile gives content of a file its bytes.
func (p *Plan) readFile(c *Content, path string) {
	if c.kind != contentFile {
		return
	}
	name := p.relative(c.file)
	var err error
	if c.bytes, err = p.options.read(name, input.MaxData); err != nil {
		p.fail(path+".file", "%w", err)
		return
	}
	if !slices.ContainsFunc(p.inputs, func(in provenance.Input) bool { return in.Name == name }) {
		p.inputs = append(p.inputs, provenance.NewInput(name, c.bytes))
	}
}

// loadModule loads a module once and remembers its hash.
func (p *Plan) loadModule(name string, lib *handlers.Library) (*hpu.Module, error) {
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
		if wasm, err = p.options.read(p.relative(name), input.MaxModule); err != nil {
			return nil, err
		}
		handler = provenance.NewHandler(called, p.relative(name), wasm)
	}
	m, err := hpu.Load(called, wasm, p.profile.Device())
	p.modules[name] = m
	p.used = append(p.used, handler)
	return m, err
}

// command is what the record of a scenario's results calls it.
const command = "run"

// runArguments are what a result is made from besides the scenario, its profile and its seed.
type runArguments struct {
	Ranks      int      `json:"ranks"`
	Table      string   `json:"table,omitempty"` // the only one shown
	Until      sim.Time `json:"until,omitempty"`
	EventLimit uint64   `json:"event_limit,omitempty"`
}

// Record says what the results of the plan are made from.
func (p *Plan) Record() (*provenance.Record, error) {
	profile, err := provenance.NewProfile(p.profile)
	if err != nil {
		return nil, err
	}
	r := &provenance.Record{
		Build: p.options.Build, Command: command, Profiles: []provenance.Profile{profile}, Seed: &p.seed, Engine: p.engine,
		Handlers: p.used, Inputs: p.inputs,
	}
	return r, r.WithArguments(runArguments{p.ranks, p.only, p.options.Limits.Until, p.options.Limits.Events})
}

// PlanOf makes the plan that a record is of. read looks up files that the record has the hash of only. A built-in module that is another
// one now is a note, any other file that is not the one recorded is an error.
func PlanOf(r *provenance.Record, read func(name string, limit int64) ([]byte, error)) (p *Plan, notes []string, err error) {
	if len(r.Inputs) == 0 || len(r.Profiles) != 1 || r.Seed == nil {
		return nil, nil, errors.New("provenance: expected a scenario as the first of inputs, one profile and a seed")
	}
	var a runArguments
	if err := r.Parse(&a); err != nil {
		return nil, nil, err
	}
	o := Options{Ranks: a.Ranks, Seed: r.Seed, Engine: r.Engine, Build: r.Build, Limits: sim.Limits{Until: a.Until, Events: a.EventLimit}}
	if o.Profile, err = r.Profiles[0].Load(); err != nil {
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

// recorded is a file that a record knows.
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
