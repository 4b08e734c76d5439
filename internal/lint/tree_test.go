package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path of this module.
const module = "github.com/spinsim/spinsim"

// simulation lists the packages whose behaviour must depend on inputs and seed
// alone.
var simulation = []string{"sim", "fabric", "smmu", "host", "portals", "hpu", "runtime", "handlers", "mpi", "goal"}

// source is one Go file, whatever its build tags.
type source struct {
	path  string // slash-separated, from the root of the repository
	dir   string
	top   string // first folder: "runtime" for runtime/node.go
	test  bool
	text  []byte
	ast   *ast.File
	marks map[int][]string // line: text of the lint comment
}

// tree is the repository.
type tree struct {
	root    string
	fset    *token.FileSet
	sources []*source
}

// skipped folders have no code of ours.
var skipped = map[string]bool{".git": true, ".tools": true, "tools": true, "testdata": true}

func load(t *testing.T) *tree {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	tr := &tree{root: root, fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path == root {
				return nil
			}
			_, err := os.Stat(filepath.Join(path, "go.mod")) // a module of its own, such as a user's handler
			if skipped[d.Name()] || err == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return tr.add(filepath.ToSlash(relative), text)
	})
	require.NoError(t, err)
	require.NotEmpty(t, tr.sources)
	return tr
}

// add parses a file into the tree.
func (tr *tree) add(path string, text []byte) error {
	file, err := parser.ParseFile(tr.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s := &source{path: path, test: strings.HasSuffix(path, "_test.go"), text: text, ast: file, marks: map[int][]string{}}
	s.dir, _ = filepath.Split(path)
	s.dir = strings.TrimSuffix(s.dir, "/")
	s.top, _, _ = strings.Cut(s.dir, "/")
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if mark, ok := strings.CutPrefix(comment.Text, "//lint:"); ok {
				line := tr.fset.Position(comment.Pos()).Line
				s.marks[line] = append(s.marks[line], mark)
			}
		}
	}
	tr.sources = append(tr.sources, s)
	return nil
}

// inSimulation reports whether s is a program file of a simulation package.
func (s *source) inSimulation() bool {
	if s.test {
		return false
	}
	for _, name := range simulation {
		if s.top == name {
			return true
		}
	}
	return false
}

// generated reports whether a program wrote the file.
func (s *source) generated() bool { return ast.IsGenerated(s.ast) }

// report collects the violations of a rule.
type report struct {
	tree *tree
	rule string
	list []string
}

// at notes a violation at a position unless a marker with a reason allows it.
func (r *report) at(s *source, pos token.Pos, format string, args ...any) {
	line := r.tree.fset.Position(pos).Line
	for _, l := range []int{line, line - 1} {
		for _, mark := range s.marks[l] {
			if rule, reason, _ := strings.Cut(mark, " "); rule == r.rule && strings.TrimSpace(reason) != "" {
				return
			}
		}
	}
	r.list = append(r.list, fmt.Sprintf("%s:%d: %s", s.path, line, fmt.Sprintf(format, args...)))
}

// rules are all checks of a file or of the tree, by their names in markers.
var rules = map[string]func(*report){
	"imports":  imports,
	"clock":    clock,
	"random":   random,
	"maporder": mapOrder,
	"panic":    panics,
	"timing":   timing,
	"words":    words,
	"doc":      documented,
	"size":     sizes,
	"guest":    guests,
	"shape":    shape,
	"skip":     skips,
	"paths":    paths,
	"files":    files,
	"english":  english,
	"arrows":   arrows,
	"outside":  outside,
}

func TestRepository(t *testing.T) {
	tr := load(t)
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			r := &report{tree: tr, rule: name}
			rule(r)
			sort.Strings(r.list)
			if len(r.list) > 0 {
				t.Errorf("%d violations; if one must be, add //lint:%s and the reason\n%s",
					len(r.list), name, strings.Join(r.list, "\n"))
			}
		})
	}
}

// Every rule must find its violations in testdata: the lines with a comment
// "want", and no others. Marked and correct lines pass.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.Len(t, files, len(rules))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			tr := &tree{root: t.TempDir(), fset: token.NewFileSet()}
			want := tr.unpack(t, string(text))
			r := &report{tree: tr, rule: name}
			rules[name](r)
			var got []string
			for _, found := range r.list {
				got = append(got, regexp.MustCompile(`^[^:]+:\d+`).FindString(found))
			}
			sort.Strings(got)
			sort.Strings(want)
			require.Equal(t, want, got, "%s", strings.Join(r.list, "\n"))
		})
	}
}

// unpack adds the files of an archive, each after a line "-- path --", and
// returns the places marked with "want".
func (tr *tree) unpack(t *testing.T, archive string) []string {
	t.Helper()
	var want []string
	for _, part := range strings.Split("\n"+archive, "\n-- ")[1:] {
		path, text, _ := strings.Cut(part, " --\n")
		full := filepath.Join(tr.root, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
		for i, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "want") {
				want = append(want, fmt.Sprintf("%s:%d", path, i+1))
			}
		}
		if filepath.Ext(path) == ".go" {
			require.NoError(t, tr.add(path, []byte(text)))
		}
	}
	return want
}
