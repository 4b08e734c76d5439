package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
)

var publications []*Publication

// Register adds publications to the program. It panics if one of them, or one
// of their experiments, has the name of another: a programmer's mistake.
func Register(list ...*Publication) {
	for _, p := range list {
		if slices.ContainsFunc(publications, func(o *Publication) bool { return o.Name == p.Name }) {
			panic("experiment: there are two publications " + p.Name) //lint:panic programmer's mistake
		}
		for i, e := range p.Experiments {
			if slices.ContainsFunc(append(All(), p.Experiments[:i]...), func(o *Experiment) bool { return o.Name == e.Name }) {
				panic("experiment: there are two experiments " + e.Name) //lint:panic programmer's mistake
			}
		}
		for _, e := range p.Experiments {
			published := slices.ContainsFunc(p.Sources, func(begin string) bool { return strings.HasPrefix(e.Source, begin) })
			if published && !slices.ContainsFunc(p.Runs, func(r PublicationRun) bool { return r.Experiment == e.Name }) {
				p.Runs = append(p.Runs, PublicationRun{Experiment: e.Name})
			}
		}
		publications = append(publications, p)
	}
}

// Publications are the registered publications, in the order of Register.
func Publications() []*Publication { return slices.Clone(publications) }

// All lists the experiments that were registered with their publications.
func All() (list []*Experiment) {
	for _, p := range publications {
		list = append(list, p.Experiments...)
	}
	return list
}

// Find returns the registered experiment with a name.
func Find(name string) (*Experiment, error) { return FindIn(All(), name) }

// FindIn returns the experiment with a name in a list.
func FindIn(list []*Experiment, name string) (*Experiment, error) {
	var names []string
	for _, e := range list {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("no experiment %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}
