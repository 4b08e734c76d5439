package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// suspicion is what may follow from errors that were found before.
type suspicion struct {
	all    bool           // anything
	parts  []string       // what is said of these parts of the scenario, such as entries[3]
	names  *regexp.Regexp // what names one of these; nil: nothing
	output bool           // what is said of the output
}

// indexed are the parts of a scenario that stand in lists; only errors in these
// leave the others to be judged.
var indexed = regexp.MustCompile(`^(entries|programs|expect)\[(\d+)\]`)

// suspect says what may follow from what is wrong so far.
func (p *Plan) suspect() *suspicion {
	s := &suspicion{}
	var paths []string
	for _, err := range p.errs {
		var field *FieldError
		if !errors.As(err, &field) {
			s.all = true // of what the caller has given, such as values of the profile
			return s
		}
		paths = append(paths, field.Path)
	}
	for _, err := range p.spec.wrong {
		paths = append(paths, err.Path)
		if strings.HasSuffix(err.Path, ".name") {
			s.all = true // who knows what it is called?
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

// referred are the fields of a scenario that others refer to; one of entries,
// programs and expectations is a part.
var referred = []string{"profile", "set", "topology", "ranks", "engine", "event_queue", "entries", "programs", "expect"}

// namesIn are the names that errors about other parts would mention if they
// came from a part that is wrong.
func (p *Plan) namesIn(part string) (names []string) {
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

// covers reports whether an error may follow from those found before.
func (s *suspicion) covers(err error) bool {
	var field *FieldError
	return !errors.As(err, &field) || slices.Contains(s.parts, indexed.FindString(field.Path)) || s.names != nil && s.names.MatchString(fmt.Sprint(field.Err))
}

// checkRest checks what refers to entries and programs. If one of these is
// wrong, what may follow from that is not said.
func (p *Plan) checkRest() {
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

// forget leaves out entries and programs that are wrong: of these not
// everything is known. Nothing comes of the plan any more.
func (p *Plan) forget(parts []string) {
	p.entries = slices.DeleteFunc(p.entries, func(e *entryPlan) bool { return slices.Contains(parts, e.path) })
	p.programs = slices.DeleteFunc(p.programs, func(g *programPlan) bool { return slices.Contains(parts, g.path) })
	for r, g := range p.programOf {
		if g != nil && slices.Contains(parts, g.path) {
			p.programOf[r] = nil
		}
	}
}
