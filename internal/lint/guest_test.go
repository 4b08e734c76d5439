package lint

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// maxGuestLines is the limit for the handlers of a library, in lines of code,
// so that a student can read them.
const maxGuestLines = 400

// guests bounds the code of handler libraries: handlers/NAME/guest, and the
// folders of the library that it imports. Records and helpers in handlers/NAME
// itself do not count, because handlers and hosts both use them. Comments and
// lines without code do not count either.
func guests(r *report) {
	folders := map[string][]*source{}
	for _, s := range r.tree.sources {
		if !s.test {
			folders[s.dir] = append(folders[s.dir], s)
		}
	}
	for dir := range folders {
		library, name := path.Split(dir)
		library = strings.TrimSuffix(library, "/")
		if name != "guest" || path.Dir(library) != "handlers" {
			continue
		}
		lines, seen := 0, map[string]bool{library: true}
		var count func(dir string)
		count = func(dir string) {
			if seen[dir] || !strings.HasPrefix(dir, library+"/") {
				return
			}
			seen[dir] = true
			for _, s := range folders[dir] {
				lines += codeLines(s.text)
				for _, imported := range s.ast.Imports {
					count(importDir(imported))
				}
			}
		}
		count(dir)
		if lines >= maxGuestLines {
			files := folders[dir]
			sort.Slice(files, func(i, j int) bool { return files[i].path < files[j].path })
			r.at(files[0], files[0].ast.Package, "the handlers of %s have %d lines of code, expected fewer than %d", library, lines, maxGuestLines)
		}
	}
}

// shape requires the same parts of every handler library.
func shape(r *report) {
	folders := map[string]map[string]*source{}
	for _, s := range r.tree.sources {
		if folders[s.dir] == nil {
			folders[s.dir] = map[string]*source{}
		}
		folders[s.dir][path.Base(s.path)] = s
	}
	for dir, files := range folders {
		if path.Dir(dir) != "handlers" || path.Base(dir) == "internal" {
			continue
		}
		var first *source
		for _, s := range files {
			if first == nil || s.path < first.path {
				first = s
			}
		}
		var missing []string
		for _, name := range []string{"state.go", "host.go"} {
			if files[name] == nil {
				missing = append(missing, name)
			}
		}
		if folders[dir+"/guest"] == nil {
			missing = append(missing, "guest/")
		}
		for _, name := range []string{"README.md", path.Base(dir) + ".wasm"} {
			if _, err := os.Stat(filepath.Join(r.tree.root, dir, name)); err != nil {
				missing = append(missing, name)
			}
		}
		if missing != nil {
			r.at(first, first.ast.Package, "%s is a library without %s", dir, strings.Join(missing, ", "))
		}
	}
}

// importDir returns the folder of an imported package of this module. For
// another package the result is not a folder of the repository.
func importDir(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
}

// codeLines counts the lines with code.
func codeLines(text []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	n, last := 0, 0
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return n
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := max(file.Line(pos), last+1)
		if end := file.Line(pos) + strings.Count(literal, "\n"); end >= first {
			n += end - first + 1
			last = end
		}
	}
}
