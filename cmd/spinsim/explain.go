package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/portalscript"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// explainCommand shows what happened to every request, and why.
func explainCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "explain FILE",
		Short: "Show for every message the examined entries, why each matched or not, and the events",
		Long: `Explain runs a scenario (a file whose name ends in .yaml or .yml) or a script. For every request it prints the match list entries that were
examined, why each matched or not, where the data was delivered, and which events and counters followed. With - it reads the script from
standard input. A script appends entries and sends requests:

  procs 2                                      # two processes, 0 and 1
  1: eq q 16                                   # process 1: event queue q
  1: pt 0 eq=q                                 # portal table entry 0
  1: me a pt=0 bits=7 start=0x100 len=64 OP_PUT
  0: md m len=64
  0: put m len=5 to=1 bits=7

docs/explain.md lists the commands. The exit status is 2 if the file has an error, and otherwise as for run.`,
		Args: exactArguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return explain(c, args[0], format) },
	}
	c.Flags().StringVar(&format, "format", "text", "format `NAME`: text or json")
	return c
}

func explain(c *cobra.Command, file, format string) error {
	if format != "text" && format != "json" {
		return badInput(fmt.Errorf("--format: no format %q, expected text or json", format))
	}
	if ext := filepath.Ext(file); ext == ".yaml" || ext == ".yml" {
		return explainScenario(c, file, format)
	}
	text, err := readText(c, file)
	if err != nil {
		return badInput(err)
	}
	if format == "text" {
		var out bytes.Buffer // a script with a mistake explains nothing
		if err := portalscript.Explain(text, &out, nil); err != nil {
			return scriptError(file, err)
		}
		_, err := out.WriteTo(c.OutOrStdout())
		return err
	}
	x := explanation{Requests: []*explainedRequest{}}
	err = portalscript.Explain(text, printed{&x}, func(s *portalscript.Step) { x.add(nil, s.Process, s.Text, s.Record, s.Name) })
	if err != nil {
		return scriptError(file, err)
	}
	record := provenance.Record{Build: thisBuild(), Command: "explain", Inputs: []provenance.Input{provenance.NewInput(file, []byte(text))}}
	return writeIndented(c.OutOrStdout(), &record, x, nil)
}

func readText(c *cobra.Command, file string) (string, error) {
	if file != "-" {
		text, err := input.Read(file, input.MaxText)
		return string(text), err
	}
	text, err := input.ReadFrom(c.InOrStdin(), "standard input", input.MaxText)
	return string(text), err
}

// scriptError adds the name of the file to an error.
func scriptError(file string, err error) error {
	if mistake, ok := errors.AsType[*portalscript.Error](err); ok {
		return badInput(fmt.Errorf("%s:%d: %s", file, mistake.Line, mistake.Why))
	}
	return err
}

func explainScenario(c *cobra.Command, file, format string) error {
	p, err := scenario.Load(file, scenario.Options{})
	if err != nil {
		return badInput(err)
	}
	out := c.OutOrStdout()
	var failed error
	x := explanation{Requests: []*explainedRequest{}}
	p.Explain(func(s *scenario.ExplainStep) {
		text := portalscript.StepText(s.NI, s.Name, s.Record)
		switch {
		case text == "":
		case format == "json":
			ns := s.At.Nanoseconds()
			x.add(&ns, s.Rank, text, s.Record, s.Name)
		case failed == nil:
			_, failed = fmt.Fprintf(out, "%14.3f ns  rank %-3d %s\n", s.At.Nanoseconds(), s.Rank, text)
		}
	})
	var had used.Set
	_, err = p.Run(c.Context(), runtime.Config{Used: had.Join})
	record, e := p.Record(thisBuild(), "explain")
	if e != nil {
		return e
	}
	record.Unused = profile.Unused(record.Profiles[0].Overrides, had)
	if format == "json" {
		return errors.Join(writeIndented(out, record, x, err), err)
	}
	for _, note := range record.UnusedNotes() {
		if failed == nil {
			_, failed = fmt.Fprintln(out, strings.TrimPrefix(note, "--")) // the file's set, no flag
		}
	}
	return errors.Join(failed, err)
}

// explanation is what JSON shows: requests in the order of their arrival. Each
// has the events that followed at the same process until the next request.
// Events before the first request of a process, and lines that the script
// printed, stand by themselves.
type explanation struct {
	Requests []*explainedRequest `json:"requests"`
	last     map[int]*explainedRequest
}

type explainedRequest struct {
	Process int             `json:"process"`
	AtNS    *float64        `json:"at_ns,omitempty"`
	Request string          `json:"request,omitempty"`
	Printed string          `json:"printed,omitempty"`
	Steps   []explainedStep `json:"steps,omitempty"`
}

type explainedStep struct {
	Kind    string   `json:"kind"`
	AtNS    *float64 `json:"at_ns,omitempty"`
	Object  string   `json:"object,omitempty"` // entry, queue or counter
	List    string   `json:"list,omitempty"`
	Verdict string   `json:"verdict,omitempty"`
	Text    string   `json:"text"`
}

var explainedKinds = map[portals.TraceKind]string{
	portals.TraceRequest: "request", portals.TraceExamined: "examined", portals.TraceMatched: "delivered", portals.TraceRefused: "refused",
	portals.TraceHeaderQueued: "header queued", portals.TraceHeaderTaken: "header taken", portals.TraceEvent: "event",
	portals.TraceEventLost: "event lost", portals.TraceCounter: "counter", portals.TraceTriggered: "triggered", portals.TraceOpQueued: "queued",
	portals.TracePTDisabled: "disabled", portals.TracePTEnabled: "enabled",
}

func (x *explanation) add(at *float64, process int, text string, r *portals.TraceRecord, name func(portals.Handle) string) {
	if r.What == portals.TraceRequest {
		x.begin(&explainedRequest{Process: process, AtNS: at, Request: text})
		return
	}
	q := x.last[process]
	if q == nil {
		q = x.begin(&explainedRequest{Process: process})
	}
	s := explainedStep{Kind: explainedKinds[r.What], AtNS: at, Text: strings.TrimSpace(text)}
	switch r.What {
	case portals.TraceExamined:
		s.Verdict = r.Verdict.String()
		s.List = r.List.String()
		s.Object = name(r.Handle)
	case portals.TraceMatched, portals.TraceEvent, portals.TraceEventLost, portals.TraceCounter:
		s.Object = name(r.Handle)
	}
	q.Steps = append(q.Steps, s)
}

func (x *explanation) begin(q *explainedRequest) *explainedRequest {
	if x.last == nil {
		x.last = make(map[int]*explainedRequest)
	}
	x.Requests = append(x.Requests, q)
	x.last[q.Process] = q
	return q
}

// printed collects the lines that a script prints.
type printed struct{ x *explanation }

// Write notes lines, "process: text".
func (p printed) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		text := string(bytes.TrimRight(line, "\n"))
		var process int
		if _, err := fmt.Sscanf(text, "%d:", &process); err != nil {
			process = 0
		}
		p.x.Requests = append(p.x.Requests, &explainedRequest{Process: process, Printed: text})
	}
	return len(b), nil
}
