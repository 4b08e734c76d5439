package scenario

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
)

// Options replace values of a scenario.
type Options struct {
	Set    []string // profile values as "path=value", applied after the scenario's
	Chosen string   // a profile instead of the scenario's; "": as in the scenario
	Ranks  int      // 0: as in the scenario
	Seed   *uint64  // nil: as in the scenario
	Engine string   // "": as in the scenario
	Table  string   // the only table that is shown; "": as in the scenario

	Parameters map[string]string // values that replace the scenario's, by name
	Several    []string          // parameters with several values, each in other runs
	Replaced   []string          // paths of values that flags replace

	// replaces the scenario's profile and its Set; nil: as in the scenario
	Profile *profile.Profile
	// reads a file of at most limit bytes; nil: from the disk, below the
	// scenario's folder
	Read func(name string, limit int64) (data []byte, err error)

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
	called := strings.TrimSuffix(filepath.Base(name), ".wasm")
	if lib == nil {
		wasm, err := p.options.read(p.spec.file, beside(p.spec.file, name), input.MaxModule, input.ReadRegular)
		if err != nil {
			return nil, err
		}
		lib = handlers.New(called, wasm)
		lib.Path = beside(p.spec.file, name)
	}
	m, err := hpu.Load(called, lib.Wasm, p.profile.Device())
	p.modules[name] = m
	p.used = append(p.used, lib)
	return m, err
}

// Record describes the inputs of a run of the plan, for a command's document.
func (p *Plan) Record(build provenance.Build, command string) (*provenance.Record, error) {
	device, err := provenance.NewProfile(p.profile)
	if err != nil {
		return nil, err
	}
	r := &provenance.Record{Build: build, Command: command, Profiles: []provenance.Profile{device}, Seed: &p.seed, Engine: p.engine, Inputs: p.inputs}
	for _, l := range p.used {
		r.Handlers = append(r.Handlers, provenance.NewHandler(l.Name, l.Path, l.Wasm))
	}
	return r, nil
}
