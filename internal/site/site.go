package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	_ "embed"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// source is the place of files that are not pages.
const source = "https://github.com/spinsim/spinsim/blob/main/"

// tutorial is the path through the pages for a beginner.
var tutorial = []entry{
	{"README.md", "1. First table"},
	{"docs/handlers.md", "2. First handler"},
	{"docs/sweeps.md", "3. First sweep"},
	{"docs/reports.md", "4. First report"},
}

// entry is a line of the list at the side.
type entry struct{ File, Title string }

// Page returns the page of a file, for example index.html for README.md of the
// repository.
func (e entry) Page() string { return pageOf(e.File) }

func pageOf(file string) string {
	if file == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(file, ".md") + ".html"
}

// section is a group of entries at the side.
type section struct {
	Title   string
	Entries []entry
}

// page is a document.
type page struct {
	entry
	body     []byte
	headings []heading
	anchors  map[string]bool
	links    []string // as written in the document
}

type heading struct{ ID, Title string }

// site is all documents of a repository.
type site struct {
	root   string
	pages  map[string]*page // by file
	images map[string]bool
}

// build writes the site of the repository in root into a folder and returns the
// number of pages. A broken link is an error.
func build(root, folder string) (pages int, err error) {
	s := &site{root: root, pages: map[string]*page{}, images: map[string]bool{}}
	if err := filepath.WalkDir(root, s.visit); err != nil {
		return 0, err
	}
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		errs = append(errs, s.check(s.pages[file]))
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	menu, err := s.menu()
	if err != nil {
		return 0, err
	}
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		if err := s.write(folder, s.pages[file], menu); err != nil {
			return 0, err
		}
	}
	for image := range s.images {
		b, err := os.ReadFile(filepath.Join(root, image))
		if err != nil {
			return 0, err
		}
		if err := writeFile(filepath.Join(folder, image), b); err != nil {
			return 0, err
		}
	}
	return len(s.pages), nil
}

// visit renders a file if it is a document.
func (s *site) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != "."
	if d.IsDir() && (hidden && name != s.root || d.Name() == "testdata") {
		return fs.SkipDir
	}
	if d.IsDir() || hidden || filepath.Ext(name) != ".md" {
		return nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := filepath.Rel(s.root, name)
	if err != nil {
		return err
	}
	p, err := s.render(filepath.ToSlash(file), b)
	s.pages[p.File] = p
	return err
}

// render makes HTML from a document. Links to other documents become links to
// their pages.
func (s *site) render(file string, markdown []byte) (*page, error) {
	p := &page{entry: entry{File: file, Title: file}, anchors: map[string]bool{}}
	m := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	tree := m.Parser().Parse(text.NewReader(markdown), parser.WithContext(parser.NewContext(parser.WithIDs(&slugs{taken: p.anchors}))))
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.heading(n, markdown)
		case *ast.Link:
			n.Destination = s.target(p, string(n.Destination))
		case *ast.Image:
			if at := resolve(file, string(n.Destination)); local(string(n.Destination)) {
				s.images[at] = true
			}
			p.links = append(p.links, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = m.Renderer().Render(&out, markdown, tree)
	p.body = out.Bytes()
	return p, err
}

// heading notes a heading. The first is the title; headings of the second level
// are the contents of the page.
func (p *page) heading(n *ast.Heading, markdown []byte) {
	title := plain(n, markdown)
	if n.Level == 1 && p.Title == p.File {
		p.Title = title
	}
	if id, ok := n.AttributeString("id"); ok && n.Level == 2 {
		p.headings = append(p.headings, heading{string(id.([]byte)), title})
	}
}

// plain returns the text of a heading without its marks.
func plain(n ast.Node, markdown []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out.Write(t.Value(markdown))
			continue
		}
		out.WriteString(plain(c, markdown))
	}
	return out.String()
}

// local reports whether a link leads to a file of the repository.
func local(link string) bool {
	return !strings.Contains(link, "://") && !strings.HasPrefix(link, "mailto:")
}

// resolve returns the file that a link names.
func resolve(file, link string) string {
	name, _, _ := strings.Cut(link, "#")
	if name == "" {
		return file
	}
	return path.Join(path.Dir(file), name)
}

// target returns a link of a page in the form for the site, relative to the
// page.
func (s *site) target(p *page, link string) []byte {
	if !local(link) {
		return []byte(link)
	}
	p.links = append(p.links, link)
	file := resolve(p.File, link)
	if info, err := os.Stat(filepath.Join(s.root, file)); err == nil && info.IsDir() {
		if _, err := os.Stat(filepath.Join(s.root, file, "README.md")); err == nil {
			file = path.Join(file, "README.md")
		}
	}
	if path.Ext(file) != ".md" {
		return []byte(source + file)
	}
	to := up(p.File) + pageOf(file)
	if _, anchor, ok := strings.Cut(link, "#"); ok {
		to += "#" + anchor
	}
	return []byte(to)
}

// up returns the path from the page of a file to the folder of the site.
func up(file string) string { return strings.Repeat("../", strings.Count(file, "/")) }

// check finds the broken links of a page.
func (s *site) check(p *page) error {
	var errs []error
	for _, link := range p.links {
		if !local(link) {
			continue
		}
		file := resolve(p.File, link)
		if _, err := os.Stat(filepath.Join(s.root, file)); err != nil {
			errs = append(errs, fmt.Errorf("%s: link %s: there is no %s", p.File, link, file))
			continue
		}
		_, anchor, ok := strings.Cut(link, "#")
		if to := s.pages[file]; ok && to != nil && !to.anchors[anchor] {
			errs = append(errs, fmt.Errorf("%s: link %s: %s has no heading %s", p.File, link, file, anchor))
		}
	}
	return errors.Join(errs...)
}

// menu returns the list at the side: the tutorial, then all other pages.
func (s *site) menu() ([]section, error) {
	seen := map[string]bool{}
	for _, e := range tutorial {
		if s.pages[e.File] == nil {
			return nil, fmt.Errorf("tutorial: there is no %s", e.File)
		}
		seen[e.File] = true
	}
	groups := []section{{"Begin", tutorial}, {Title: "Documents"}, {Title: "Examples"}, {Title: "Packages"}, {Title: "Project"}}
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		in := 3
		switch top, _, below := strings.Cut(file, "/"); {
		case seen[file]:
			continue
		case top == "docs":
			in = 1
		case top == "examples":
			in = 2
		case !below:
			in = 4
		}
		groups[in].Entries = append(groups[in].Entries, s.pages[file].entry)
	}
	return groups, nil
}

//go:embed page.html
var layout string

var pageTemplate = template.Must(template.New("page").Parse(layout))

func (s *site) write(folder string, p *page, menu []section) error {
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, map[string]any{
		"Title": p.Title, "File": p.File, "Up": up(p.File), "Menu": menu, "Headings": p.headings, "Source": source + p.File,
		"Body": template.HTML(p.body),
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, filepath.FromSlash(p.Page())), out.Bytes())
}

func writeFile(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o666) //lint:files pages of a new folder
}
