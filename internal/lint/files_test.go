package lint

import (
	"go/ast"
	"slices"
)

// writers are the functions of package os that create, change or rename a file.
var writers = []string{"Create", "CreateTemp", "WriteFile", "OpenFile", "Rename", "Truncate", "Link", "Symlink"}

// fileRoom is the package that writes files under another name and renames them
// when they are complete. runFiles ends the files of a run together.
const (
	fileRoom = "internal/file"
	runFiles = "internal/cli/files.go"
)

// files allows one way to write a file. A file of the user appears complete or
// not at all, and a file of a run that was cut off does not look complete.
func files(r *report) {
	for _, s := range r.tree.sources {
		if s.test || s.dir == fileRoom || s.top == "examples" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
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
