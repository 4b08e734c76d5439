package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
)

// pointIdentity is all that the values of a point depend on, except the
// program.
type pointIdentity struct {
	Experiment string            `json:"experiment"`
	Profile    string            `json:"profile"` // hash, with the fields of axes
	Axes       map[string]string `json:"axes"`
	Seed       uint64            `json:"seed"`
	Engine     string            `json:"engine"`
	Handlers   []string          `json:"handlers,omitempty"` // hashes
	Inputs     []string          `json:"inputs,omitempty"`
	Breakdown  bool              `json:"breakdown,omitempty"`
	Given      map[string]string `json:"given,omitempty"`
}

// key is the key of a point's result in Checkpoint. hashes keeps the hashes of
// profiles.
func (s *Sweep) key(p *Point, hashes map[*profile.Profile]string) (string, error) {
	id, err := s.identity(p, hashes)
	if err != nil {
		return "", err
	}
	return s.Checkpoint.Key(id)
}

// identity is what the values of a point depend on. hashes keeps the hashes of
// profiles.
func (s *Sweep) identity(p *Point, hashes map[*profile.Profile]string) (*pointIdentity, error) {
	if hashes[p.Profile] == "" && p.Profile != nil {
		one, err := s.devices.record(p.Profile)
		if err != nil {
			return nil, err
		}
		hashes[p.Profile] = one.SHA256
	}
	id := &pointIdentity{Experiment: p.experiment.Name, Profile: hashes[p.Profile], Seed: p.Seed, Engine: p.Engine, Breakdown: p.experiment.broken, Given: s.Given, Axes: make(map[string]string)}
	for i := range p.values {
		id.Axes[p.experiment.Axes[i].Name] = p.experiment.Axes[i].write(p.values[i])
	}
	for _, h := range p.handlers() {
		id.Handlers = append(id.Handlers, h.SHA256)
	}
	for _, in := range slices.Concat(s.Inputs, furtherInputs(p)) {
		id.Inputs = append(id.Inputs, in.SHA256)
	}
	return id, nil
}

// encode makes a value for JSON of the values, and of what happened.
func (r *Result) encode() map[string]any {
	values := make(map[string]any, len(r.Values))
	for name, v := range r.Values { //lint:maporder a map is made of a map
		if rows, is := v.(Rows); is {
			values[name] = rows.encode()
		} else {
			values[name] = checkpoint.Value{V: v}
		}
	}
	return map[string]any{"values": values, "used": r.used}
}

// decode reads what encode has made.
func (p *Point) decode(text []byte) (*Result, error) {
	var kept struct {
		Values map[string]json.RawMessage
		Used   used.Set
	}
	err := json.Unmarshal(text, &kept)
	values := make(Values, len(kept.Values))
	for name, text := range kept.Values { //lint:maporder a map is made of a map
		if p.experiment.detail(name) != nil {
			var rows keptRows
			err = errors.Join(err, json.Unmarshal(text, &rows))
			values[name] = rows.decode()
			continue
		}
		var v checkpoint.Value
		err = errors.Join(err, json.Unmarshal(text, &v))
		values[name] = v.V
	}
	if err == nil {
		err = p.experiment.checkValues(values)
	}
	if err != nil {
		return nil, fmt.Errorf("what is kept of %s: %w", p, err)
	}
	return &Result{Point: p, Values: values, used: kept.Used}, nil
}

// furtherInputs are the files of Experiment.Inputs.
func furtherInputs(p *Point) []provenance.Input {
	if p.experiment.Inputs == nil {
		return nil
	}
	return p.experiment.Inputs(p)
}
