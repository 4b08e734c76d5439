package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/internal/file"
)

// The states of a run.
const (
	waiting   = "waiting"
	running   = "running"
	done      = "done"
	failed    = "failed"
	cancelled = "cancelled"
)

// The outputs of a run, besides a file for each further table.
const (
	tableFile  = "table.csv"
	textFile   = "table.txt"
	resultFile = "result.json"
	plotFile   = "plot.svg"
	reportFile = "report.html"
	traceFile  = "trace.json.gz" // a long one has hundreds of megabytes without .gz
)

// run is a command that the page has started, or will.
type run struct {
	id, folder string
	kept       string // the folder with the points that it need not measure again
	selection  *selection
	command    *command
	cancel     context.CancelFunc
	ended      chan struct{}

	mu      sync.Mutex
	state   string
	points  int // to measure; 0: not known yet
	before  int // points that were kept before
	message string
	status  int // of the program
	outputs []string
}

// status is what the page knows about a run.
type status struct {
	ID        string     `json:"id"`
	State     string     `json:"state"`
	Command   string     `json:"command"`
	Selection *selection `json:"selection"`
	Points    int        `json:"points"`
	Measured  int        `json:"measured"`
	Message   string     `json:"message"`
	Status    int        `json:"status"`
	Outputs   []string   `json:"outputs"`
}

func (r *run) look() status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := status{
		ID: r.id, State: r.state, Command: r.command.line(), Selection: r.selection,
		Points: r.points, Message: r.message, Status: r.status, Outputs: slices.Clone(r.outputs),
	}
	if r.state == running && r.points > 0 {
		s.Measured = min(max(0, keptIn(r.kept)-r.before), r.points)
	}
	return s
}

// keptIn counts the points in a folder of --resume.
func keptIn(folder string) int {
	data, err := os.ReadFile(filepath.Join(folder, "points.ndjson")) //nolint:gosec // a folder of ours
	if err != nil {
		return 0 // none yet
	}
	return bytes.Count(data, []byte("\n"))
}

func (r *run) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// set changes the state.
func (r *run) set(state, message string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.message, r.status = state, strings.TrimSpace(message), status
}

func (r *run) has(output string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs = append(r.outputs, output)
}

// runs are all runs of a server, and the modules that were sent to it.
type runs struct {
	Options
	folder string
	ctx    context.Context //nolint:containedctx // of the server: it outlives requests
	places chan struct{}
	wait   sync.WaitGroup

	mu      sync.Mutex
	byID    map[string]*run
	order   []*run // the oldest first
	modules map[string]bool
}

const (
	mostRuns    = 100
	mostModules = 100
)

// errFull is for a page that asks for too much.
var errFull = fmt.Errorf("%d runs wait: cancel some, or wait for them", mostRuns)

// hash names things by what they are made from.
func hash(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// begin returns the run of a selection. Equal selections are one run, for all
// pages: results depend on nothing else. What has failed or was cancelled begins
// anew.
func (s *runs) begin(sel *selection) (*run, error) {
	c, err := sel.check()
	if err != nil {
		return nil, err
	}
	var modules []string
	for _, m := range c.modules {
		modules = append(modules, m.ID)
	}
	id := hash(append(append(c.arguments(), sel.View), modules...)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range modules {
		if !s.modules[m] {
			return nil, wrong("handler", errors.New("the module is not here any more: send it again"))
		}
	}
	if old := s.byID[id]; old != nil {
		if state := old.look().State; state != failed && state != cancelled {
			return old, nil
		}
		if err := s.forget(old); err != nil {
			return nil, err
		}
	}
	if err := s.room(); err != nil {
		return nil, err
	}
	kept := hash(append(append(slices.Clone(c.words), c.experiment.Name), modules...)...)
	r := &run{
		id: id, folder: filepath.Join(s.folder, "runs", id), kept: filepath.Join(s.folder, "points", kept),
		selection: sel, command: c, state: waiting, outputs: []string{}, ended: make(chan struct{}),
	}
	if err := s.equip(r.folder, c.modules); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(s.ctx)
	s.byID[id], s.order = r, append(s.order, r)
	s.wait.Go(func() {
		defer close(r.ended)
		s.take(ctx, r)
	})
	return r, nil
}

// equip makes the folder of a program, with its modules under their names.
func (s *runs) equip(folder string, modules []sent) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, m := range modules {
		data, err := file.Read(s.module(m.ID), file.MaxModule)
		if err == nil {
			err = write(filepath.Join(folder, m.Name), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *runs) module(id string) string { return filepath.Join(s.folder, "modules", id+".wasm") }

func write(name string, data []byte) error {
	w, err := file.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Discard())
	}
	return w.Commit()
}

// room forgets the oldest run that is over if there are many.
func (s *runs) room() error {
	if len(s.order) < mostRuns {
		return nil
	}
	k := slices.IndexFunc(s.order, (*run).over)
	if k < 0 {
		return errFull
	}
	return s.forget(s.order[k])
}

// forget removes a run that is over, or about to be.
func (s *runs) forget(r *run) error {
	<-r.ended
	delete(s.byID, r.id)
	s.order = slices.DeleteFunc(s.order, func(o *run) bool { return o == r })
	return os.RemoveAll(r.folder)
}

// take runs the program when it is its turn.
func (s *runs) take(ctx context.Context, r *run) {
	defer r.cancel()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		r.set(running, "", 0)
		s.measure(ctx, r)
	}
	if ctx.Err() != nil {
		r.set(cancelled, "", 0)
	}
}

// measure runs the command of a run: for its table, then, from the points that
// it has kept, for everything else.
func (s *runs) measure(ctx context.Context, r *run) {
	program := func(to string, flags ...string) (int, string) {
		return s.start(ctx, r.folder, to, slices.Concat(r.command.arguments(), flags, s.limits())...)
	}
	if status, errs := program("points.txt", "--points"); status != 0 {
		r.set(failed, errs, status)
		return
	}
	points, err := os.ReadFile(filepath.Join(r.folder, "points.txt")) //nolint:gosec // written by start
	if err != nil {
		r.set(failed, err.Error(), 1)
		return
	}
	r.mu.Lock()
	r.points, r.before = bytes.Count(points, []byte("\n"))-1, keptIn(r.kept) // and their number
	r.mu.Unlock()
	again := []string{"--resume=" + r.kept}
	if r.selection.View == viewTimeline {
		again = []string{"--trace=" + traceFile} // a timeline keeps no points
	}
	status, errs := program(tableFile, append(again, "--format=csv")...)
	if s.there(r, tableFile); status != 0 {
		r.set(failed, errs, status)
		return
	}
	if r.selection.View == viewTimeline {
		s.there(r, traceFile)
		r.set(done, errs, 0)
		return
	}
	for _, one := range s.others(r) {
		if status, errs := program(one.to, append(again, one.flags...)...); status == 0 {
			s.there(r, one.file)
		} else if one.file != plotFile { // not everything can be drawn
			r.set(failed, errs, status)
			return
		}
	}
	status, errs = s.start(ctx, r.folder, reportFile, "report", resultFile, "--output=-", "--quiet")
	if status != 0 {
		r.set(failed, errs, status)
		return
	}
	s.there(r, reportFile)
	r.set(done, "", 0)
}

// output is a file that a command makes from points that are kept.
type output struct {
	to    string // where its standard output goes
	file  string
	flags []string
}

func (s *runs) others(r *run) []output {
	list := []output{
		{resultFile, resultFile, []string{"--format=json"}},
		{textFile, textFile, []string{"--format=table"}},
		{"plot.txt", plotFile, []string{"--plot=" + plotFile}},
	}
	for i := range r.command.experiment.Details {
		name := r.command.experiment.Details[i].Name
		list = append(list, output{name + ".csv", name + ".csv", []string{"--format=csv", "--table=" + name}})
	}
	return list
}

// there adds an output, unless it is empty.
func (s *runs) there(r *run, output string) {
	if info, err := os.Stat(filepath.Join(r.folder, output)); err == nil && info.Size() > 0 {
		r.has(output)
	}
}

// receive keeps a module, and lets the command check that it fits into a slot.
func (s *runs) receive(ctx context.Context, name, experiment, slot string, data []byte) (sent, error) {
	sum := sha256.Sum256(data)
	m := sent{hex.EncodeToString(sum[:]), name}
	sel := &selection{Experiment: experiment, View: viewResult, Modules: map[string]sent{slot: m}}
	c, err := sel.check()
	if err != nil {
		return m, err
	}
	s.mu.Lock()
	if err = nil; !s.modules[m.ID] {
		if len(s.modules) >= mostModules {
			err = wrong("handler", fmt.Errorf("%d modules are here, more than fit: start the page anew", len(s.modules)))
		} else if err = write(s.module(m.ID), data); err == nil {
			s.modules[m.ID] = true
		}
	}
	s.mu.Unlock()
	if err != nil {
		return m, err
	}
	folder, err := os.MkdirTemp(s.folder, "check")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // the whole folder goes at the end
	if err := s.equip(folder, c.modules); err != nil {
		return m, err
	}
	status, errs := s.start(ctx, folder, "points.txt", slices.Concat(c.arguments(), []string{"--points"}, s.limits())...)
	if status != 0 {
		return m, wrong("handler", errors.New(strings.TrimSpace(errs)))
	}
	return m, nil
}
