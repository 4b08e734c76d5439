package port

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// Result is what became of a set of handlers.
type Result struct {
	Name, Toolchain string
	Handlers        string // their names
	From            string // file and line
	Built, Ran      bool
	Checks          int      // comparisons with what the set should compute; 0: nobody knows that
	Expected        string   // what they compare, in words
	Notes           []string // what was guessed or left out
	Err             error    // the first thing that went wrong
}

// Report is what became of a checkout.
type Report struct {
	Results []Result
	Files   map[string][]byte // modules, scenarios and what they read
}

// Err joins what went wrong with sets.
func (r *Report) Err() error {
	var errs []error
	for i := range r.Results {
		if one := &r.Results[i]; one.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.Name, one.Err))
		}
	}
	return errors.Join(errs...)
}

// Run brings the handlers in a folder here. The error is one of the folder;
// what goes wrong with a set is in the report.
func Run(ctx context.Context, root string) (*Report, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder: expected a checkout with handlers", root)
	}
	c, err := read(root)
	if err != nil {
		return nil, err
	}
	programs := c.programs()
	if len(programs) == 0 {
		return nil, fmt.Errorf("%s has no handlers: expected functions marked __handler__, or files that include smp.h", root)
	}
	r := &Report{Files: make(map[string][]byte)}
	for _, p := range programs {
		if p.err != nil {
			r.Results = append(r.Results, Result{Name: p.name, Toolchain: p.toolchain, Notes: p.notes, Err: p.err})
			continue
		}
		if err := r.bring(ctx, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// bring builds the sets of a program and runs each. Sets with the same
// definitions share a module. Only ctx ends it with an error.
func (r *Report) bring(ctx context.Context, p *program) error {
	var jobs []*job
	for i := range p.sets {
		s := &p.sets[i]
		name := p.name
		if len(p.sets) > 1 {
			name += "-" + s.name
		}
		for n, first := 2, name; slices.ContainsFunc(jobs, func(o *job) bool { return o.name == name }) || r.Files[name+".yaml"] != nil; n++ {
			name = first + "-" + strconv.Itoa(n)
		}
		j := &job{name: name, program: p, set: s, files: make(map[string][]byte), trial: trialOf(p, s)}
		if s.why != "" {
			j.note("%s", s.why)
		}
		j.define = j.definitions()
		jobs = append(jobs, j)
	}
	built := make(map[string]*module)
	for _, j := range jobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := built[j.kind()]
		if m == nil {
			m = p.module(slices.DeleteFunc(slices.Clone(jobs), func(o *job) bool { return o.kind() != j.kind() }))
			built[j.kind()] = m
			if m.err == nil {
				for n, first := 2, m.name; r.Files[m.name] != nil; n++ {
					m.name = strings.TrimSuffix(first, ".wasm") + "-" + strconv.Itoa(n) + ".wasm"
				}
				r.Files[m.name] = m.wasm
			}
		}
		r.add(ctx, j, m)
	}
	return nil
}

// kind is the same for jobs that can share a module.
func (j *job) kind() string { return fmt.Sprint(j.wantPads != nil, j.define) }

// add runs a set and notes what became of it.
func (r *Report) add(ctx context.Context, j *job, m *module) {
	one := Result{Name: j.name, Toolchain: j.program.toolchain, Handlers: strings.Join(j.set.names(), ", "), From: j.set.from}
	err := shortened(m.err, 12, "")
	if err == nil {
		one.Built, j.module = true, m
		j.exports = m.exports[j.name]
		var text string
		if text, err = j.scenario(); err == nil {
			j.files[j.name+".yaml"] = []byte(text)
			one.Ran, one.Checks, err = j.run(ctx)
			err = shortened(err, 3, ", which spinsim run "+j.name+".yaml shows")
			one.Expected = j.wantBefore
		}
	}
	for name, content := range j.files { //lint:maporder each by itself
		r.Files[name] = content
	}
	one.Notes, one.Err = slices.Concat(j.program.notes, m.notes, j.notes), err
	r.Results = append(r.Results, one)
}

// shortened keeps the first lines of an error: handlers that fail do so for
// every packet. It leaves out by way of which headers a compiler came to a line.
func shortened(err error, most int, where string) error {
	if err == nil {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(err.Error()), "\n"), func(l string) bool {
		return strings.HasPrefix(strings.TrimSpace(l), "In file included from ")
	})
	end := ""
	if more := len(lines) - most; more > 0 {
		lines, end = lines[:most], fmt.Sprintf("\nand %d more lines%s", more, where)
	}
	if text := strings.Join(lines, "\n") + end; text != err.Error() {
		return errors.New(text)
	}
	return err
}

// bodies are the texts of the handlers of a set.
func (p *program) bodies(s *set) string {
	var b strings.Builder
	for _, src := range p.sources {
		for i := range src.handlers {
			if slices.Contains(s.handlers[:], src.handlers[i].name) {
				b.WriteString(src.handlers[i].body)
			}
		}
	}
	return b.String()
}

var (
	flat    = regexp.MustCompile(`\(\s*\w+\s*\*\s*\)\s*(?:args\s*->\s*)?task\s*->\s*scratchpad\s*[^\[\s]`)
	literal = regexp.MustCompile(`\bspin_(?:host_write|write_to_host)\s*\(\s*(0[xX][0-9a-fA-F]+|[1-9]\d*)\s*,`)
)

// definitions are those that a set needs besides its Makefile's.
func (j *job) definitions() []string {
	body, define := j.program.bodies(j.set), append(slices.Clone(j.program.define), j.define...)
	if j.program.toolchain == fpsPIN {
		define = append(define, "FPSPIN")
		if strings.Contains(body, "fpspin_host_req") {
			define = append(define, "FPSPIN_HOST_ANSWERS")
			j.note("no program of the host is known: each of its requests is its own answer (FPSPIN_HOST_ANSWERS)")
		}
	}
	if j.program.toolchain != paper && flat.MatchString(body) {
		define = append(define, "SPIN_FLAT_SCRATCHPAD")
		j.note("task->scratchpad is taken for one address (SPIN_FLAT_SCRATCHPAD)")
	}
	if m := literal.FindStringSubmatch(body); m != nil {
		define = append(define, "PSPIN_HOST_BASE="+m[1])
		j.note("host memory begins at %s, where the handlers write (PSPIN_HOST_BASE)", m[1])
	}
	for _, d := range j.define {
		j.note("built with -D %s, as the model of its name needs", d)
	}
	return define
}

// probe is the export that shows scratchpads.
const probe = "scratchpads"

// probeSource is a handler that writes the sum of all clusters' scratchpads to
// host memory, word by word. Scratchpads of one cluster lie behind each other if
// the device has fewer than the handlers believe in.
const probeSource = `#undef export_name // it belongs to no set
#include <spin.h>
static uint32_t sum[%[1]d / 4];
SPIN_NEEDS("scratchpad=(%[1]d)*((%[2]d+clusters-1)/clusters)")
__attribute__((export_name("%[3]s"))) int32_t show_scratchpads(const ptl_payload_t *p, void *state)
{
	uint32_t clusters = (uint32_t)spin_num_clusters();
	for (uint32_t i = 0; i < %[2]d; i++) {
		uint32_t *pad = (uint32_t *)((uint8_t *)spin_place(spin_scratchpad(i %% clusters)) + i / clusters * %[1]d);
		for (uint32_t k = 0; k < %[1]d / 4; k++)
			sum[k] = i ? sum[k] + pad[k] : pad[k];
	}
	return spin_dma_to_host(PTL_ME_HOST_MEM, 0, sum, sizeof sum) < 0 ? PTL_FAIL : PTL_SUCCESS;
}
`

// clusters is how many clusters the handlers are built for.
func clusters(define []string, toolchain string) int {
	for _, d := range define {
		if text, is := strings.CutPrefix(d, "NB_CLUSTERS="); is {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				return n
			}
		}
	}
	if toolchain == fpsPIN {
		return 2
	}
	return 4
}

// module is what sets of a program have been built to.
type module struct {
	name      string // of its file
	wasm      []byte
	described *manifest.Manifest
	exports   map[string][3]string // by the name of the job
	jobs      []*job
	notes     []string
	err       error
}

// module builds sets with the same definitions.
func (p *program) module(jobs []*job) *module {
	m := &module{name: p.name + ".wasm", jobs: jobs, exports: make(map[string][3]string)}
	var sets []build.Set
	for i, j := range jobs {
		name := j.set.name
		if slices.ContainsFunc(sets, func(s build.Set) bool { return s.Name == name }) {
			name = fmt.Sprintf("%s_%d", name, i+1)
		}
		s := build.Set{Name: name, Handlers: j.set.handlers}
		sets, m.exports[j.name] = append(sets, s), s.Exports()
	}
	if m.wasm, m.err = m.build(p, jobs[0], sets); m.err == nil {
		m.described, m.err = manifest.Read(m.wasm)
	}
	return m
}

// build compiles sets, with the definitions of a job.
func (m *module) build(p *program, j *job, sets []build.Set) (wasm []byte, err error) {
	tmp, remove, err := file.Scratch("spinsim-port")
	if err != nil {
		return nil, err
	}
	defer remove()
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, err
	}
	o := build.Options{Lang: build.C, Strip: true, Define: j.define, Include: p.include, Sources: slices.Clone(p.files), Sets: sets}
	dir := p.dir
	if p.toolchain == paper {
		if dir, err = m.stage(p, tmp); err != nil {
			return nil, err
		}
	}
	if j.wantPads != nil {
		name := filepath.Join(tmp, "probe.c")
		text := fmt.Sprintf(probeSource, scratchpadBytes, clusters(j.define, p.toolchain), probe)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil { //lint:files scratch of a build
			return nil, err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return nil, err
		}
		o.Sources = append(o.Sources, rel)
	}
	out := filepath.Join(tmp, "module.wasm")
	if err := o.Build(dir, out); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// stateFields reads the fields of the state of a set of the paper's toolchain.
func (j *job) stateFields() (list []field) {
	if j.set.state == "" {
		return nil
	}
	var err error
	for _, s := range j.program.sources {
		if list, err = s.structure(j.set.state); err == nil {
			return list
		}
	}
	j.note("%v: 64 bytes of zero are assumed", err)
	return nil
}

// stage copies a program of the paper's toolchain without the headers that
// spinsim has in their place, which the compiler would find first.
func (m *module) stage(p *program, tmp string) (string, error) {
	dir := filepath.Join(tmp, "staged")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	names, err := filepath.Glob(filepath.Join(p.dir, "*.h"))
	if err != nil {
		return "", err
	}
	for _, f := range p.files {
		names = append(names, filepath.Join(p.dir, f))
	}
	for _, from := range names {
		name := filepath.Base(from)
		if ours, _ := spin.CFiles.Open("c/compat/" + name); ours != nil {
			if err := ours.Close(); err != nil {
				return "", err
			}
			m.notes = append(m.notes, fmt.Sprintf("spinsim's own %s stands for the checkout's", name))
			continue
		}
		text, err := file.Read(from, maxSource)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil { //lint:files scratch of a build
			return "", err
		}
	}
	return dir, nil
}

// Limits of a run of handlers that nobody knows.
const (
	maxEvents = 20_000_000
	maxTime   = 100 * sim.Millisecond
)

// run runs the scenario. ran is true if the simulation ended by itself.
func (j *job) run(ctx context.Context) (ran bool, checks int, err error) {
	name := j.name + ".yaml"
	plan, err := scenario.Load(name, scenario.Options{Read: func(name string, limit int64) ([]byte, error) {
		if name == j.module.name {
			return j.module.wasm, nil
		}
		if content, ok := j.files[name]; ok && int64(len(content)) <= limit {
			return content, nil
		}
		return nil, fmt.Errorf("%s is not among the files of the scenario", name)
	}})
	if err != nil {
		return false, 0, err
	}
	result, err := plan.Run(ctx, runtime.Config{Limits: sim.Limits{Until: maxTime, Events: maxEvents}})
	if result == nil {
		return false, 0, err
	}
	return result.Cut == "", result.Checked, err
}

// Write prints the report for people.
func (r *Report) Write(out io.Writer) error {
	var b bytes.Buffer
	said := make(map[string]bool) // a note about several sets stands below the first
	for i := range r.Results {
		one := &r.Results[i]
		fmt.Fprintf(&b, "%s (%s, %s): %s\n", one.Name, one.Toolchain, one.From, one.state())
		for _, n := range one.Notes {
			if !said[n] {
				fmt.Fprintf(&b, "  %s\n", visible.Line(n))
			}
			said[n] = true
		}
	}
	_, err := b.WriteTo(out)
	return err
}

// state says how far a set came.
func (r *Result) state() string {
	switch {
	case !r.Built:
		return "not built"
	case !r.Ran:
		return "built, did not run to its end"
	case r.Err != nil:
		return "built, ran, but not as the model of the published example"
	case r.Checks == 0:
		return "built, ran; data not checked: nobody knows what it computes"
	}
	return fmt.Sprintf("built, ran, data checked: %s", r.Expected)
}
