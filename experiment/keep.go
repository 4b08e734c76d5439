package experiment

import (
	"encoding/json"
	"fmt"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
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
}

// keeper finds and stores the values of points in Sweep.Checkpoint.
type keeper struct {
	s      *Sweep
	hashes map[*profile.Profile]string
}

// key is the key of a point's values in the checkpoint.
func (k *keeper) key(p *Point) (string, error) {
	if k.hashes[p.Profile] == "" {
		one, err := provenance.NewProfile(p.Profile)
		if err != nil {
			return "", err
		}
		k.hashes[p.Profile] = one.SHA256
	}
	id := pointIdentity{Experiment: p.experiment.Name, Profile: k.hashes[p.Profile], Seed: p.Seed, Engine: p.Engine, Breakdown: p.experiment.broken, Axes: make(map[string]string)}
	for i := range p.values {
		id.Axes[p.experiment.Axes[i].Name] = p.experiment.Axes[i].write(p.values[i])
	}
	for _, h := range p.handlers() {
		id.Handlers = append(id.Handlers, h.SHA256)
	}
	for _, in := range k.s.Inputs {
		id.Inputs = append(id.Inputs, in.SHA256)
	}
	return k.s.Checkpoint.Key(id)
}

// kept returns the keys of points, and the results that the checkpoint has; the
// others are nil. Without a checkpoint there are neither.
func (s *Sweep) kept(points []*Point) (keys []string, results []*Result, err error) {
	results = make([]*Result, len(points))
	if s.Checkpoint == nil {
		return nil, results, nil
	}
	k := &keeper{s, make(map[*profile.Profile]string)}
	keys = make([]string, len(points))
	for i, p := range points {
		if keys[i], err = k.key(p); err != nil {
			return nil, nil, err
		}
		text, known := s.Checkpoint.Get(keys[i])
		if !known {
			continue
		}
		var kept map[string]checkpoint.Value
		err := json.Unmarshal(text, &kept)
		values := make(Values, len(kept))
		for name, v := range kept { //lint:maporder a map is made of a map
			values[name] = v.V
		}
		if err == nil {
			err = p.experiment.checkValues(values)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("what is kept of %s: %w", p, err)
		}
		results[i] = &Result{p, values}
	}
	return keys, results, nil
}

// Missing names the points without a result in the checkpoint.
func (s *Sweep) Missing(points []*Point) (names []string, err error) {
	_, results, err := s.kept(points)
	for i, r := range results {
		if r == nil {
			names = append(names, points[i].String())
		}
	}
	return names, err
}

// keep stores a result in the checkpoint.
func (s *Sweep) keep(keys []string, i int, r *Result) error {
	if s.Checkpoint == nil {
		return nil
	}
	values := make(map[string]checkpoint.Value, len(r.Values))
	for name, v := range r.Values { //lint:maporder a map is made of a map
		values[name] = checkpoint.Value{V: v}
	}
	return s.Checkpoint.Put(keys[i], r.Point.place(), values)
}
