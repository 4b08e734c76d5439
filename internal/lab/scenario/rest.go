package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// suspicion describes the errors that may follow from earlier errors.
type suspicion struct {
	all    bool           // anything
	parts  []string       // errors in these parts of the scenario, such as entries[3]
	names  *regexp.Regexp // errors with one of these names; nil: none
	output bool           // errors in the output
}

// indexed are the parts of a scenario that are elements of lists. Only after
// errors in these can the other parts still be checked.
var indexed = regexp.MustCompile(`^(entries|programs|expect)\[(\d+)\]`)

// suspect returns the errors that may follow from the errors so far.
func (p *planner) suspect() *suspicion {
	s := &suspicion{}
	var paths []string
	for _, err := range p.errs {
		var field *FieldError
		if !errors.As(err, &field) {
			s.all = true // an error in the caller's values, such as values of the profile
			return s
		}
		paths = append(paths, field.Path)
	}
	for _, err := range p.spec.wrong {
		paths = append(paths, err.Path)
		if strings.HasSuffix(err.Path, ".name") {
			s.all = true // its name is unknown
		}
	}
	var words []string
	for _, path := range paths {
		part := indexed.FindString(path)
		top, _, _ := strings.Cut(path, ".")
		switch {
		case part != "":
			s.parts = append(s.parts, part)
			words = append(words, p.namesIn(part)...)
		case top == "output":
			s.output = path == top
		case path == "" || slices.ContainsFunc(referred, func(f string) bool { return strings.HasPrefix(top, f) }):
			s.all = true
		}
	}
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	if len(words) > 0 {
		s.names = regexp.MustCompile(`(^|[^\w.-])(` + strings.Join(words, "|") + `)($|[^\w.-])`)
	}
	return s
}

// referred are the fields of a scenario that other fields refer to. In entries,
// programs and expectations, each element is a part.
var referred = []string{"profile", "set", "topology", "ranks", "engine", "event_queue", "entries", "programs", "expect"}

// namesIn returns the names that errors of other parts would mention if a wrong
// part caused them.
func (p *planner) namesIn(part string) (names []string) {
	for _, e := range p.entries {
		if e.path == part {
			names = append(names, e.Name)
		}
	}
	for _, g := range p.programs {
		if g.path != part {
			continue
		}
		names = append(names, "mark", "measures", "measure")
		for i := range g.Buffers {
			names = append(names, g.Buffers[i].Name)
		}
	}
	return names
}

// covers reports whether an error may follow from earlier errors.
func (s *suspicion) covers(err error) bool {
	var field *FieldError
	return !errors.As(err, &field) || slices.Contains(s.parts, indexed.FindString(field.Path)) || s.names != nil && s.names.MatchString(fmt.Sprint(field.Err))
}

// checkRest checks the parts that refer to entries and programs. It does not
// report errors that may follow from errors in these.
func (p *planner) checkRest() {
	suspicion := p.suspect()
	if suspicion.all {
		return
	}
	before := len(p.errs)
	p.forget(suspicion.parts)
	p.checkMemory()
	p.checkPrograms()
	p.checkExpectations(suspicion.parts)
	if !suspicion.output {
		p.checkOutput()
	}
	p.errs = append(p.errs[:before], slices.DeleteFunc(p.errs[before:], suspicion.covers)...)
}

// forget removes entries and programs with errors, because they are incomplete.
// The plan has failed and is not used afterwards.
func (p *planner) forget(parts []string) {
	p.entries = slices.DeleteFunc(p.entries, func(e *entryPlan) bool { return slices.Contains(parts, e.path) })
	p.programs = slices.DeleteFunc(p.programs, func(g *programPlan) bool { return slices.Contains(parts, g.path) })
	for r, g := range p.programOf {
		if g != nil && slices.Contains(parts, g.path) {
			p.programOf[r] = nil
		}
	}
}
