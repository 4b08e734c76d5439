package build

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// place is a place in a source.
type place struct {
	file string
	line int
}

func (p place) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", p.file, p.line, fmt.Errorf(format, args...))
}

// prefix begins the comments that are directives to the builder.
const prefix = "//spin:"

// directiveOf returns the directive in the text of a C comment. Unlike in Go, a
// blank may come before it, because formatters insert one.
func directiveOf(text string) (directive string, is bool) {
	directive, is = strings.CutPrefix("//"+strings.TrimLeft(text, " \t"), prefix)
	return directive, is && !strings.HasPrefix(directive, `"`) // with a quote it describes a field
}

// described is an unfinished manifest.
type described struct {
	manifest.Manifest
	needs []handlerNeeds
	sets  []handlerSet
}

// handlerSet names handlers of one entry.
type handlerSet struct {
	name    string
	exports []string
	at      place
}

// handlerNeeds are the needs of one handler from a directive.
type handlerNeeds struct {
	manifest.Needs
	export string
	at     place
}

// directive executes a directive, given without its prefix:
//
//	//spin:library NAME [VERSION]
//	//spin:needs [handler=EXPORT] KEY=VALUE ...
//	//spin:set NAME EXPORT ...
func (d *described) directive(text string, at place) error {
	word, rest, _ := strings.Cut(text, " ")
	args := strings.Fields(rest)
	switch word {
	case "library":
		if len(args) < 1 || len(args) > 2 {
			return at.errorf("%slibrary: expected a name and perhaps a version", prefix)
		}
		if d.Name != "" {
			return at.errorf("%slibrary: the library is called %s already", prefix, d.Name)
		}
		d.Name = args[0]
		if len(args) == 2 {
			d.Version = args[1]
		}
		return nil
	case "needs":
		return d.needed(args, at)
	case "set":
		if len(args) < 2 {
			return at.errorf("%sset: expected a name and the handlers of an entry", prefix)
		}
		d.sets = append(d.sets, handlerSet{args[0], args[1:], at})
		return nil
	}
	return at.errorf("%s%s: unknown directive, expected library, needs or set", prefix, word)
}

// needed notes needs of the library, or of the handler named first.
func (d *described) needed(args []string, at place) error {
	n := &d.Needs
	seen := map[string]bool{}
	for i, arg := range args {
		key, value, given := strings.Cut(arg, "=")
		if !given || seen[key] {
			return at.errorf("%sneeds: %q, expected KEY=VALUE, each key once", prefix, arg)
		}
		seen[key] = true
		if key == "handler" && i == 0 {
			d.needs = append(d.needs, handlerNeeds{export: value, at: at})
			n = &d.needs[len(d.needs)-1].Needs
			continue
		}
		if err := need(n, key, value); err != nil {
			return at.errorf("%sneeds %s: %w", prefix, key, err)
		}
	}
	return nil
}

// need sets one of the needs.
func need(n *manifest.Needs, key, value string) (err error) {
	list := func() []string { return strings.Split(value, ",") }
	switch key {
	case "memory":
		n.Memory, err = manifest.ParseExpr(value)
	case "user_header":
		var bytes uint64
		bytes, err = strconv.ParseUint(value, 0, 63)
		n.UserHeader = int64(bytes)
	case "spaces":
		for _, s := range list() {
			n.Spaces = append(n.Spaces, manifest.Space(s))
		}
	case "host_memory":
		n.HostMemory, err = manifest.ParseExpr(value)
	case "scratchpad":
		n.Scratchpad, err = manifest.ParseExpr(value)
	case "message_memory":
		n.MessageMemory, err = manifest.ParseExpr(value)
	case "messages":
		n.Messages, err = manifest.ParseExpr(value)
	case "entry_options":
		n.EntryOptions = list()
	case "pt_options":
		n.PTOptions = list()
	case "packets":
		for _, k := range list() {
			n.Packets = append(n.Packets, manifest.Packet(k))
		}
	case "pool":
		n.Pool = manifest.Pool(value)
	default:
		return fmt.Errorf("unknown, expected handler in the first place, memory, user_header, spaces, host_memory, scratchpad, message_memory, messages, entry_options, pt_options, packets or pool")
	}
	return err
}

// annotate applies the tag of a field: words KEY=VALUE, without blanks in the
// values. A field that is a struct takes only a name.
func annotate(f *manifest.Field, tag string) error {
	for word := range strings.FieldsSeq(tag) {
		key, value, given := strings.Cut(word, "=")
		if !given || value == "" {
			return fmt.Errorf("%q, expected words KEY=VALUE", word)
		}
		var err error
		switch key {
		case "name":
			f.Name = value
		case "unit":
			f.Unit = value
		case "default":
			f.Default, err = manifest.ParseExpr(value)
		case "min":
			f.Min, err = manifest.ParseExpr(value)
		case "max":
			f.Max, err = manifest.ParseExpr(value)
		default:
			err = fmt.Errorf("unknown, expected name, unit, default, min or max")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// oneLine returns the first paragraph of a comment in one line, as a
// description.
func oneLine(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		w := strings.Fields(line)
		if len(w) == 0 && words != nil {
			break
		}
		words = append(words, w...)
	}
	const most = 1000 // bytes
	s := ""
	for i, w := range words {
		if len(s)+len(w) > most-len(" …") {
			return s + " …"
		}
		if i > 0 {
			s += " "
		}
		s += w
	}
	return s
}

// withoutName removes the name of a function at the beginning of its comment,
// because the export has its own name.
func withoutName(comment, name string) string { return strings.TrimPrefix(comment, name+" ") }

// arrange puts handlers in the order of the exports, adds their needs, and
// drops layouts that no handler names.
func (d *described) arrange(exports []export, found map[string]*manifest.Handler, states map[string]*manifest.State) error {
	var names []string
	for _, e := range exports {
		h := found[e.name]
		if h == nil {
			h = &manifest.Handler{Export: e.name}
		}
		names = append(names, e.name)
		d.Handlers = append(d.Handlers, *h)
		if s := states[h.State]; s != nil && !slices.Contains(d.States, s) {
			d.States = append(d.States, s)
		}
	}
	for i := range d.needs {
		n := &d.needs[i]
		h := d.Handler(n.export)
		if h == nil {
			return n.at.errorf("%sneeds: there is no handler %q, expected one of %s", prefix, n.export, strings.Join(names, ", "))
		}
		h.Needs = h.Needs.And(&n.Needs)
	}
	for _, s := range d.sets {
		for _, export := range s.exports {
			switch h := d.Handler(export); {
			case h == nil:
				return s.at.errorf("%sset %s: there is no handler %q, expected one of %s", prefix, s.name, export, strings.Join(names, ", "))
			case h.Set != "":
				return s.at.errorf("%sset %s: %s belongs to set %s already", prefix, s.name, export, h.Set)
			default:
				h.Set = s.name
			}
		}
	}
	return nil
}
