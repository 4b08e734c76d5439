package lint

import (
	"go/ast"
	"slices"
)

// writers are the functions of package os that begin, change or name a file.
var writers = []string{"Create", "CreateTemp", "WriteFile", "OpenFile", "Rename", "Truncate", "Link", "Symlink"}

// fileRoom is the package that writes files aside and names them when they are
// whole; runFiles ends those of runs together.
const (
	fileRoom = "internal/file"
	runFiles = "internal/cli/files.go"
)

// files keeps one way to write a file: a file of the user appears whole or not
// at all, and a file of a run that was cut off does not look like a whole one.
func files(r *report) {
	for _, s := range r.tree.sources {
		if s.test || s.dir == fileRoom || s.top == "examples" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			e, is := n.(ast.Expr)
			if !is {
				return true
			}
			switch x, name := selector(e); {
			case x == "os" && slices.Contains(writers, name):
				r.at(s, n.Pos(), "os.%s: files of users are written by package %s, which names them when they are whole", name, fileRoom)
			case x == "trace" && name == "Create" && s.path != runFiles:
				r.at(s, n.Pos(), "trace.Create: timelines are begun and ended by RunFiles in %s, which knows what to do when a run is cut off", runFiles)
			}
			return true
		})
	}
}
