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
		for i := range p.sets {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			r.add(ctx, p, &p.sets[i])
		}
	}
	return r, nil
}

// add brings one set here.
func (r *Report) add(ctx context.Context, p *program, s *set) {
	j := &job{name: r.unused(p, s), program: p, set: s, files: make(map[string][]byte), trial: trialOf(p, s)}
	one := Result{Name: j.name, Toolchain: p.toolchain, Handlers: strings.Join(s.names(), ", "), From: s.from}
	if s.why != "" {
		j.note("%s", s.why)
	}
	wasm, err := j.build()
	if err == nil {
		one.Built = true
		j.files[j.name+".wasm"] = wasm
		var text string
		if text, err = j.scenario(); err == nil {
			j.files[j.name+".yaml"] = []byte(text)
			one.Ran, one.Checks, err = j.run(ctx)
			one.Expected = j.wantBefore
		}
	}
	for name, content := range j.files { //lint:maporder each by itself
		r.Files[name] = content
	}
	one.Notes, one.Err = slices.Concat(p.notes, j.notes), err
	r.Results = append(r.Results, one)
}

// unused is a name for the files of a set that no other has.
func (r *Report) unused(p *program, s *set) string {
	name := p.name
	if len(p.sets) > 1 {
		name += "-" + s.name
	}
	for i := 2; ; i++ {
		if !slices.ContainsFunc(r.Results, func(o Result) bool { return o.Name == name }) {
			return name
		}
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(i-1)) + "-" + strconv.Itoa(i)
	}
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
	for i, macro := range []string{"SPIN_HEADER", "SPIN_PAYLOAD", "SPIN_COMPLETION"} {
		if h := j.set.handlers[i]; h != "" {
			define = append(define, macro+"="+h)
			j.exports[i] = string(manifest.Kinds()[i])
		}
	}
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
const probeSource = `#include <spin.h>
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

// build compiles the module of a job.
func (j *job) build() (wasm []byte, err error) {
	tmp, remove, err := file.Scratch("spinsim-port")
	if err != nil {
		return nil, err
	}
	defer remove()
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, err
	}
	p, define := j.program, j.definitions()
	o := build.Options{Lang: build.C, Strip: true, Define: define, Include: p.include, Sources: slices.Clone(p.files)}
	dir := p.dir
	if p.toolchain == paper {
		if dir, err = j.stage(tmp); err != nil {
			return nil, err
		}
		if err := j.fieldsOf(); err != nil {
			j.note("%v: 64 bytes of zero are assumed", err)
		}
	}
	if j.wantPads != nil {
		name := filepath.Join(tmp, "probe.c")
		text := fmt.Sprintf(probeSource, scratchpadBytes, clusters(define, p.toolchain), probe)
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
	if wasm, err = os.ReadFile(out); err == nil {
		j.module, err = manifest.Read(wasm)
	}
	return wasm, err
}

// fieldsOf reads the fields of the state of a set of the paper's toolchain.
func (j *job) fieldsOf() (err error) {
	if j.set.state == "" {
		return nil
	}
	for _, s := range j.program.sources {
		if j.fields, err = s.structure(j.set.state); err == nil {
			return nil
		}
	}
	return err
}

// stage copies a program of the paper's toolchain without the headers that
// spinsim has in their place, which the compiler would find first.
func (j *job) stage(tmp string) (string, error) {
	dir := filepath.Join(tmp, "staged")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	names, err := filepath.Glob(filepath.Join(j.program.dir, "*.h"))
	if err != nil {
		return "", err
	}
	for _, f := range j.program.files {
		names = append(names, filepath.Join(j.program.dir, f))
	}
	for _, from := range names {
		name := filepath.Base(from)
		if ours, _ := spin.CFiles.Open("c/compat/" + name); ours != nil {
			if err := ours.Close(); err != nil {
				return "", err
			}
			j.note("spinsim's own %s stands for the checkout's", name)
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
				fmt.Fprintf(&b, "  %s\n", n)
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
