package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// Source finds the origin of documents.
type Source struct {
	Program string // name of the program in commands: "spinsim"
	// Of returns the experiment of a record, or nil if it has none.
	Of func(r *provenance.Record) (*experiment.Experiment, error)
	// Read reads a handler module of the user.
	Read func(path string) ([]byte, error)
}

// Result is a section of a page, and its comparison with publications.
type Result struct {
	page.Section
	Deviations []report.Deviation
	Document   []byte // JSON of the same results, if they come from elsewhere
	Record     string // hash of the record of a document; "": there is none
}

// Section makes a section from a document: the bytes of the file with this
// name. A document that is not a result of this version of spinsim is an error.
func (s *Source) Section(name string, document []byte) (*Result, error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return nil, errors.New("empty, expected an object that spinsim wrote with --format json")
	}
	r, err := provenance.Read(document)
	if err != nil {
		return nil, err
	}
	if err := known(r); err != nil {
		return nil, err
	}
	cut, err := s.genuine(r, name, document)
	if err != nil {
		return nil, err
	}
	e, err := s.Of(r)
	if err != nil {
		return nil, err
	}
	var out *Result
	if e == nil {
		out, err = general(r, document)
	} else {
		out, err = s.measured(r, e, document)
	}
	if err != nil {
		return nil, err
	}
	if out.Record, err = seal.Hash(r); err != nil {
		return nil, err
	}
	out.From = name
	out.Cut = cut
	if r.Repeatable() {
		out.Commands = append(out.Commands, page.Command{Line: s.Program + " rerun " + Quoted(name), Help: "From the file, byte for byte:"})
	}
	return out, describe(&out.Section, r)
}

// genuine reports a document that was changed, or whose state nobody can check.
// Otherwise its numbers would appear above genuine hashes. cut says why the
// document is not complete.
func (s *Source) genuine(r *provenance.Record, name string, document []byte) (cut string, err error) {
	cut, err = seal.CheckObject(document)
	if errors.Is(err, seal.ErrNone) && !r.Repeatable() {
		return "", fmt.Errorf("%w: spinsim %s wrote it without one, or it was changed; repeat the command that wrote it, since rerun cannot make it again", err, r.Build)
	}
	if errors.Is(err, seal.ErrNone) {
		return "", fmt.Errorf("%w: spinsim %s wrote it without one, or it was changed; %s rerun %s -o NEW.json makes it again with one, and says what differs",
			err, r.Build, s.Program, Quoted(name))
	}
	return cut, err
}

// known reports what the profiles of a result lack, if another version wrote
// it.
func known(r *provenance.Record) error {
	for i := range r.Profiles {
		_, err := r.Profiles[i].Load()
		if missing := (*profile.MissingError)(nil); errors.As(err, &missing) {
			return fmt.Errorf("profile %s has no %s: it was written by spinsim %s; that version can report it", r.Profiles[i].Name, missing.Paths[0], r.Build)
		}
		if err != nil {
			return fmt.Errorf("provenance: %w", err)
		}
	}
	return nil
}

// describe adds the origin of a result.
func describe(s *page.Section, r *provenance.Record) error {
	s.Facts = append(s.Facts, [2]string{"command", r.Command})
	if r.Build.Commit != "" {
		s.Facts = append(s.Facts, [2]string{"commit", r.Build.Commit})
	}
	s.Facts = append(s.Facts, [2]string{"spinsim", r.Build.String()})
	if r.Build.Go != "" {
		s.Facts = append(s.Facts, [2]string{"Go", r.Build.Go})
	}
	for _, e := range r.Build.Engines {
		s.Facts = append(s.Facts, [2]string{"engine", e})
	}
	if r.Seed != nil {
		s.Facts = append(s.Facts, [2]string{"seed", fmt.Sprint(*r.Seed)})
	}
	for i := range r.Profiles {
		p := &r.Profiles[i]
		s.Facts = append(s.Facts, [2]string{"profile", p.Name + ", SHA-256 " + p.SHA256})
		values, err := profile.Values(p.Content, profile.Origin{Name: p.From, Embedded: p.Embedded, Overrides: p.Overrides})
		if err != nil {
			return err
		}
		of := page.Profile{Name: p.Name + " " + provenance.Short(p.SHA256)}
		for _, v := range values {
			of.Values = append(of.Values, page.Value(v))
		}
		s.Profiles = append(s.Profiles, of)
		if err := p.Verify(); err != nil {
			s.Notes = append(s.Notes, err.Error()+"; the values below are the recorded ones.")
		}
	}
	for i := range r.Handlers {
		h := &r.Handlers[i]
		s.Facts = append(s.Facts, [2]string{"handler module", h.Name + ", SHA-256 " + h.SHA256})
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		s.Facts = append(s.Facts, [2]string{"input", fmt.Sprintf("%s, %d bytes, SHA-256 %s", in.Name, in.Bytes, in.SHA256)})
	}
	return nil
}

// measured makes a section from an experiment's rows.
func (s *Source) measured(r *provenance.Record, e *experiment.Experiment, document []byte) (out *Result, err error) {
	var x struct {
		Rows []experiment.Row `json:"rows"`
	}
	if err := json.Unmarshal(document, &x); err != nil || len(x.Rows) == 0 {
		return nil, fmt.Errorf("no rows: expected those of %s", r.Command)
	}
	further, err := furtherRows(e, document)
	if err != nil {
		return nil, err
	}
	sweep, notes, err := experiment.RerunSweep(r, e, s.Read)
	if err != nil {
		return nil, err
	}
	defer func() {
		// answers compute with measured values, and a file can contain any
		if wrong := recover(); wrong != nil {
			out, err = nil, fmt.Errorf("rows: no values that %s measures: %v", r.Command, wrong)
		}
	}()
	if sweep.Falls() {
		w, err := sweep.Waterfall(sweep.Profiles[0], sweep.Profiles[1])
		if err == nil {
			err = w.Restore(x.Rows)
		}
		if err != nil {
			return nil, err
		}
		if out, err = Waterfall(w); err != nil {
			return nil, err
		}
	} else {
		results, points, err := sweep.Restore(x.Rows, further)
		if err != nil {
			return nil, err
		}
		if out, err = Sweep(sweep, results, points); err != nil {
			return nil, err
		}
		notes = append(notes, differences(sweep, results, document)...)
	}
	out.Notes = slices.Concat(notes, out.Notes)
	line, err := experiment.Line(r, e)
	if err != nil {
		return nil, err
	}
	out.Commands = append(out.Commands, page.Command{Line: s.Program + " " + Quoted(line...), Help: "By its command:"})
	return out, nil
}

// furtherRows reads the further tables of a document.
func furtherRows(e *experiment.Experiment, document []byte) (map[string][]experiment.Row, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, err
	}
	further := make(map[string][]experiment.Row)
	for i := range e.Details {
		var rows []experiment.Row
		if err := json.Unmarshal(fields[e.Details[i].Name], &rows); err != nil {
			return nil, fmt.Errorf("no %s: expected a list of rows", e.Details[i].Name)
		}
		further[e.Details[i].Name] = rows
	}
	return further, nil
}

// differences lists where the page differs from the document, because published
// numbers or computed values have changed since.
func differences(s *experiment.Sweep, results []*experiment.Result, document []byte) []string {
	t, err := s.Table(results)
	var now bytes.Buffer
	if err == nil {
		t.Answer = s.Answer(results) // which the document has, too
		err = t.Write(&now, report.JSONFormat)
	}
	if err != nil {
		return []string{"The document could not be compared: " + err.Error()}
	}
	list, err := provenance.Differences(document, now.Bytes())
	if err != nil || len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d values of the file are others in this version, which shows what was measured with its own published numbers and columns: %s.", len(list), list[0])}
}
