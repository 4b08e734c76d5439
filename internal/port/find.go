package port

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/visible"
)

// Toolchains that handlers are written for.
const (
	psPIN   = "PsPIN"
	fpsPIN  = "FPsPIN"
	osmosis = "OSMOSIS"
	paper   = "sPIN'17" // LogGOPSim2 with gem5
)

// program is what a Makefile builds: files with sets of handlers.
type program struct {
	name      string
	dir       string // folder that its files and flags are relative to
	toolchain string
	files     []string
	sources   []*source
	include   []string // folders
	define    []string
	sets      []set
	notes     []string // what was guessed or left out
	err       error    // why it cannot be built
}

// checkout is a folder of somebody else's.
type checkout struct {
	root  string
	files map[string]*source // C files with handlers, by path below root
	makes []string           // Makefiles, likewise
}

// Limits of a checkout; more is no project of handlers.
const (
	maxFiles  = 200_000
	maxSource = 64 << 20 // bytes of a file
)

// makefiles are the names that make looks for.
var makefiles = []string{"GNUmakefile", "makefile", "Makefile"}

// read walks through the folder. It follows no links.
func read(root string) (*checkout, error) {
	c := &checkout{root: root, files: make(map[string]*source)}
	seen := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > maxFiles {
			return fmt.Errorf("%s has more than %d files: expected a project with handlers", root, maxFiles)
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && e.Name() == ".git":
			return filepath.SkipDir
		case !e.Type().IsRegular():
		case slices.Contains(makefiles, e.Name()):
			c.makes = append(c.makes, rel)
		case filepath.Ext(path) == ".c":
			text, err := file.Read(path, maxSource)
			if err != nil {
				return err
			}
			if s := readSource(visible.Line(rel), string(text)); len(s.handlers) > 0 {
				c.files[rel] = s
			}
		}
		return nil
	})
	return c, err
}

// programs lists what the Makefiles build, and then the files with handlers that
// no Makefile names.
func (c *checkout) programs() (list []*program) {
	left := make(map[string]bool)
	for name := range c.files { //lint:maporder a set
		left[name] = true
	}
	for _, name := range c.makes {
		p := c.made(name)
		if p == nil {
			continue
		}
		for _, f := range p.files {
			delete(left, filepath.Join(filepath.Dir(name), f))
		}
		if p.sets != nil || p.err != nil {
			list = append(list, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		s := c.files[name]
		p := &program{
			name: strings.TrimSuffix(filepath.Base(name), ".c"), dir: filepath.Join(c.root, filepath.Dir(name)),
			files: []string{filepath.Base(name)}, sources: []*source{s},
		}
		if !s.includesFile("smp.h") { // that toolchain has a Makefile for its simulator only
			p.notes = append(p.notes, fmt.Sprintf("%s: no Makefile names it: built alone", s.name))
		}
		p.settle()
		list = append(list, p)
	}
	apart(list, c.root)
	return list
}

// apart gives programs of the same name the names of their folders as well.
// Files and scenarios can have all of these names.
func apart(list []*program, root string) {
	count := make(map[string]int)
	for _, p := range list {
		count[p.name]++
	}
	for _, p := range list {
		if rel, err := filepath.Rel(root, p.dir); count[p.name] > 1 && err == nil && rel != "." {
			p.name = rel
		}
		p.name = strings.Trim(strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' {
				return r
			}
			return '-'
		}, p.name), "-.")
		p.name = cmp.Or(p.name, "handlers")
	}
}

// made reads the program of a Makefile; nil: it has none.
func (c *checkout) made(name string) *program {
	dir := filepath.Join(c.root, filepath.Dir(name))
	p := &program{name: filepath.Base(dir), dir: dir}
	text, err := file.Read(filepath.Join(c.root, name), maxSource)
	if err != nil {
		p.err = err
		return p
	}
	m := readMakefile(visible.Line(name), dir, string(text))
	m.root = c.root
	variable := ""
	for _, v := range []string{"SPIN_APP_SRCS", "SPIN_KERNEL_SRCS"} {
		if _, ok := m.variables[v]; ok {
			variable = cmp.Or(variable, v)
		}
	}
	if variable == "" {
		return nil
	}
	if m.branches > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s:%d: a condition is not evaluated: the variables of all branches count, the last one most", name, m.branches))
	}
	files, unknown, err := m.words(variable)
	p.err = err
	for i, f := range files {
		if rel, err := filepath.Rel(dir, f); err == nil && filepath.IsAbs(f) { // behind $(PWD)
			files[i] = rel
		}
	}
	for _, word := range unknown {
		p.notes = append(p.notes, fmt.Sprintf("%s: %s: %s has no value here: left out", m.at(variable), variable, word))
	}
	missing := func(f string) bool { return !c.has(filepath.Join(dir, f)) }
	if i := slices.IndexFunc(files, missing); i >= 0 && err == nil {
		others := c.below(filepath.Dir(name))
		if len(others) == 0 {
			p.err = fmt.Errorf("%s: %s: no file %s in the checkout", m.at(variable), variable, files[i])
		} else {
			p.notes = append(p.notes, fmt.Sprintf("%s: no file %s in the checkout: the files with handlers below are taken instead", m.at(variable), files[i]))
		}
		files = others
	}
	p.files = files
	for _, f := range files {
		if s := c.files[filepath.Join(filepath.Dir(name), f)]; s != nil {
			p.sources = append(p.sources, s)
		}
	}
	p.flags(c, m)
	p.settle()
	return p
}

// has reports whether a file or folder is in the checkout, and no link leads out
// of it.
func (c *checkout) has(path string) bool {
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(c.root, at)
	return err == nil && filepath.IsLocal(rel)
}

// below lists the files with handlers in the folder of a Makefile, relative to
// it.
func (c *checkout) below(dir string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
			list = append(list, rel)
		}
	}
	return list
}

// flags reads the folders of headers and the definitions of SPIN_CFLAGS.
func (p *program) flags(c *checkout, m *makefile) {
	const name = "SPIN_CFLAGS"
	known, unknown, err := m.words(name)
	p.err = cmp.Or(p.err, err)
	for _, word := range unknown {
		if word == "$(EXTRA_CFLAGS)" || word == "${DEFINITIONS}" { // for the command line of make
			continue
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: %s needs a variable of the command line: left out, the source's own value holds", m.at(name), word))
	}
	for i := 0; i < len(known); i++ {
		word := known[i]
		if (word == "-I" || word == "-D") && i+1 < len(known) {
			i++
			word += known[i]
		}
		switch {
		case strings.HasPrefix(word, "-I"):
			p.folder(c, m.at(name), word[2:])
		case strings.HasPrefix(word, "-D"):
			p.define = append(p.define, word[2:])
		case strings.HasPrefix(word, "-O"), strings.HasPrefix(word, "-g"), strings.HasPrefix(word, "-W"), word == "-flto":
		default:
			p.notes = append(p.notes, fmt.Sprintf("%s: %s is for another compiler: left out", m.at(name), word))
		}
	}
}

// folder adds a folder of headers.
func (p *program) folder(c *checkout, at, name string) {
	dir := name
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.dir, name)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !c.has(dir) {
		if from, folders := p.uninstalled(c, dir); folders != nil {
			p.notes = append(p.notes, fmt.Sprintf("%s: -I%s: not installed: the headers below %s are taken", at, name, from))
			p.include = append(p.include, folders...)
			return
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: -I%s: no such folder in the checkout: left out", at, name))
		return
	}
	p.include = append(p.include, dir)
}

// uninstalled lists the folders with headers of a library in the checkout that
// has not been installed into a folder: of LIBRARY/install/include those below
// LIBRARY, a folder of the program.
func (p *program) uninstalled(c *checkout, dir string) (library string, folders []string) {
	rel, err := filepath.Rel(p.dir, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil
	}
	library, _, _ = strings.Cut(rel, string(filepath.Separator))
	if info, err := os.Lstat(filepath.Join(p.dir, library)); err != nil || !info.IsDir() || !c.has(filepath.Join(p.dir, library)) {
		return "", nil
	}
	err = filepath.WalkDir(filepath.Join(p.dir, library), func(path string, e fs.DirEntry, err error) error {
		if in := filepath.Dir(path); err == nil && e.Type().IsRegular() && filepath.Ext(path) == ".h" && !slices.Contains(folders, in) {
			folders = append(folders, in)
		}
		return err
	})
	if err != nil {
		return "", nil // it is as if it were not there
	}
	return library, folders
}

// settle finds the toolchain and the sets of a program.
func (p *program) settle() {
	p.toolchain = psPIN
	for _, s := range p.sources {
		switch {
		case s.includesFile("smp.h"):
			p.toolchain = paper
		case s.includesFile("spin_host.h"):
			p.toolchain = fpsPIN
		case s.includesFile("osmosis_io.h"):
			p.toolchain = osmosis
		}
	}
	if p.toolchain == paper {
		p.sets = paperSets(p.sources)
		return
	}
	given := make(map[string]bool)
	for _, s := range p.sources {
		if s.unread > 0 {
			p.notes = append(p.notes, fmt.Sprintf("%s:%d: __handler__ without void, a name and ( behind it: left out", s.name, s.unread))
		}
		for _, one := range s.sets {
			p.sets = append(p.sets, one)
			for _, h := range one.names() {
				given[h] = true
				if called := regexp.MustCompile(`\b` + h + `\s*\(`); !slices.ContainsFunc(p.sources, func(o *source) bool { return called.MatchString(o.code) }) {
					p.notes = append(p.notes, fmt.Sprintf("%s: no file with handlers has %s", one.from, h))
				}
			}
		}
	}
	for _, s := range p.sources {
		for _, one := range s.grouped(given) {
			if slices.ContainsFunc(p.sets, func(o set) bool { return o.name == one.name }) {
				p.notes = append(p.notes, fmt.Sprintf("%s: no init_handlers names %s: left out", one.from, strings.Join(one.names(), ", ")))
				continue
			}
			p.sets = append(p.sets, one)
		}
	}
}

// grouped makes sets of the handlers that no function hands out, by their
// names: x_hh, x_ph and x_th are x.
func (s *source) grouped(given map[string]bool) (list []set) {
	for i := range s.handlers {
		f := &s.handlers[i]
		if given[f.name] {
			continue
		}
		name, kind := f.name, 1
		for k, end := range []string{"_hh", "_ph", "_th"} {
			if before, is := strings.CutSuffix(f.name, end); is {
				name, kind = before, k
			}
		}
		at := slices.IndexFunc(list, func(o set) bool { return o.name == name })
		if at < 0 {
			at = len(list)
			list = append(list, set{name: name, from: fmt.Sprintf("%s:%d", s.name, f.line), why: "no init_handlers names its handlers: put together by their names"})
		}
		list[at].handlers[kind] = f.name
	}
	return list
}

// paperSets makes the sets of the paper's toolchain, where the scripts of the
// simulator put handlers together. Handlers of a set have the same state.
func paperSets(sources []*source) (list []set) {
	const why = "handlers of this toolchain are put together by their names and states here; there a schedule chooses them"
	for _, s := range sources {
		var loose []set // header handlers without others
		for i := range s.handlers {
			f := &s.handlers[i]
			name, kind := paperKind(f)
			one := set{name: name, from: fmt.Sprintf("%s:%d", s.name, f.line), why: why}
			if m := casts.FindStringSubmatch(f.body); m != nil {
				one.state = m[1]
			}
			one.handlers[kind] = f.name
			at := slices.IndexFunc(list, func(o set) bool { return o.name == name && o.handlers[kind] == "" })
			if at < 0 {
				list = append(list, one)
				continue
			}
			list[at].handlers[kind], list[at].state = f.name, cmp.Or(list[at].state, one.state)
		}
		list = slices.DeleteFunc(list, func(o set) bool {
			alone := o.handlers[0] != "" && o.handlers[1] == "" && o.handlers[2] == "" && o.state != "" &&
				slices.ContainsFunc(list, func(p set) bool { return p.state == o.state && p.name != o.name && p.handlers[0] == "" })
			if alone {
				loose = append(loose, o)
			}
			return alone
		})
		for i := range list {
			for _, l := range loose {
				if list[i].state == l.state && list[i].handlers[0] == "" {
					list[i].handlers[0] = l.handlers[0]
				}
			}
		}
	}
	return list
}

// paperKind tells the kind of a handler by the record that it reads, else by its
// name, and its name without the kind.
func paperKind(f *function) (name string, kind int) {
	name, kind = strings.TrimSuffix(f.name, "_handler"), 1
	for k, words := range [][2]string{{"_header", "ptl_header_t"}, {"_payload", "ptl_payload_t"}, {"_completion", "ptl_completion_t"}} {
		if strings.Contains(f.name, words[0]) || strings.Contains(f.body, words[1]) {
			kind = k
		}
		name = strings.Replace(name, words[0], "", 1)
	}
	return name, kind
}
