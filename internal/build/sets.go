package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// Set is the handlers of one entry in a module with several. Its exports are
// NAME_header, NAME_payload and NAME_completion. Entries that share HPU memory
// share the variables of the source.
type Set struct {
	Name     string    // an identifier of C
	Handlers [3]string // functions for header, payload and completion; "": none
}

// macros are the definitions that choose the handlers of a set.
var macros = [3]string{"SPIN_HEADER", "SPIN_PAYLOAD", "SPIN_COMPLETION"}

// wrappers are the functions around handlers in the headers for other
// toolchains. Each file that includes one has them.
var wrappers = []string{"pspin_header", "pspin_payload", "pspin_completion", "p4spin_header", "p4spin_payload", "p4spin_completion"}

var includesSMP = regexp.MustCompile(`(?m)^\s*#\s*include\s*[<"]smp\.h[>"]`)

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// checkSets returns an error for sets that no module can have.
func checkSets(sets []Set) error {
	seen := make(map[string]bool)
	for i := range sets {
		s := &sets[i]
		if !identifier.MatchString(s.Name) || seen[s.Name] {
			return fmt.Errorf("set %q: expected an identifier of C that no other set has", s.Name)
		}
		seen[s.Name] = true
		if s.Handlers == [3]string{} {
			return fmt.Errorf("set %s has no handlers", s.Name)
		}
		for _, h := range s.Handlers {
			if h != "" && !identifier.MatchString(h) {
				return fmt.Errorf("set %s: %q, expected the name of a function", s.Name, h)
			}
		}
	}
	return nil
}

// definitions are those that make the functions of a header the ones of a set.
func (s *Set) definitions() (list []string) {
	for i, h := range s.Handlers {
		if h != "" {
			list = append(list, macros[i]+"="+h)
		}
	}
	// The inside of a macro is not replaced again.
	list = append(list, fmt.Sprintf(`export_name(name)=export_name("%s_" name)`, s.Name))
	for _, w := range wrappers {
		list = append(list, w+"="+s.Name+"_"+w)
	}
	return list
}

// addSets writes a file for each set but the first, whose definitions the
// handler's own files get. The files include the header that these include.
func (o *Options) addSets(dir, tmp string, sources []string) (args, files []string, err error) {
	if err := checkSets(o.Sets); err != nil || len(o.Sets) == 0 {
		return nil, nil, err
	}
	header, err := toolchainHeader(dir, sources)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range o.Sets[0].definitions() {
		args = append(args, "-D", d)
	}
	for i := range o.Sets[1:] {
		var b strings.Builder
		for _, d := range o.Sets[1+i].definitions() {
			fmt.Fprintf(&b, "#define %s\n", strings.Replace(d, "=", " ", 1))
		}
		fmt.Fprintf(&b, "#include <%s>\n", header)
		name := filepath.Join(tmp, fmt.Sprintf("set%d.c", i))
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil { //lint:files scratch of a build
			return nil, nil, err
		}
		files = append(files, name)
	}
	return args, files, nil
}

// toolchainHeader is the header that has the wrappers of the sources' toolchain:
// smp.h if one includes it, else handler.h, which may be behind others.
func toolchainHeader(dir string, sources []string) (string, error) {
	for _, name := range sources {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		if includesSMP.Match(text) {
			return "smp.h", nil
		}
	}
	return "handler.h", nil
}

// Exports are the names of a set's handlers in the module; "": none.
func (s *Set) Exports() (names [3]string) {
	for i, k := range manifest.Kinds() {
		if s.Handlers[i] != "" {
			names[i] = s.Name + "_" + string(k)
		}
	}
	return names
}
