// Package scaffold makes the folder of a new handler, with all its files.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/spin"
)

// Options choose the folder and its language.
type Options struct {
	Dir     string     // new folder; its last part is the name of the handler
	Lang    build.Lang // one of build.Langs, build.Auto: build.TinyGo
	Replace string     // clone of spinsim for a handler in Go; "": found as described at New
	// Slot is where the handlers are to run; nil: in a match entry of their own.
	Slot *handlers.Slot
}

//go:embed templates
var templates embed.FS

const (
	module  = "github.com/spinsim/spinsim"
	extend  = ".tmpl"
	release = "v0.0.0" // version of a module that a folder replaces
)

// values are the values in the templates.
type values struct {
	Name    string
	Version string // of spinsim
	Replace string // folder of spinsim in go.mod; "": none
}

// New makes the folder and returns the paths of its files in alphabetical
// order. It refuses an invalid name and an existing folder.
//
// A handler in Go is a module that requires package spin of this module. A
// clone of spinsim replaces the module, so that nothing has to be published or
// fetched. It is the clone that Options names, the clone around the folder, or
// the clone from which the program was built, if it still exists. Without a
// clone the module requires the version of the program.
func New(o Options) ([]string, error) {
	if o.Lang == build.Auto {
		o.Lang = build.TinyGo
	}
	if !slices.Contains(build.Langs(), o.Lang) {
		return nil, fmt.Errorf("unknown language %q, expected %s", o.Lang, build.LangNames())
	}
	if o.Dir == "" {
		return nil, checkName("", o.Lang)
	}
	abs, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	v := values{Name: filepath.Base(abs)}
	if err := checkName(v.Name, o.Lang); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(abs); err == nil {
		return nil, fmt.Errorf("%s exists already", o.Dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if o.Lang == build.TinyGo {
		if v.Version, v.Replace, err = required(abs, o.Replace); err != nil {
			return nil, err
		}
	}
	made := func() (map[string][]byte, error) { return render(o.Lang, v) }
	if o.Slot != nil {
		made = func() (map[string][]byte, error) { return forSlot(o, v) }
	}
	files, err := made()
	if err != nil {
		return nil, err
	}
	return write(o.Dir, files)
}

var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// standard are the folders of Go's standard library. The go command takes a
// module with such a name for a part of the library.
var standard = strings.Fields(`archive arena bufio builtin bytes cmd cmp compress container context crypto database debug embed
	encoding errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect
	regexp runtime simd slices sort strconv strings structs sync syscall testdata testing text time unicode unique unsafe
	vendor weak`)

func checkName(s string, lang build.Lang) error {
	if !name.MatchString(s) {
		return fmt.Errorf("%q is no name for a handler: expected a letter, then letters, digits, - or _", s)
	}
	if lang == build.TinyGo && slices.Contains(standard, s) {
		return fmt.Errorf("%q is no name for a handler: Go's standard library has a package of that name", s)
	}
	return nil
}

// required decides which spinsim a module in dir uses.
func required(dir, clone string) (version, replace string, err error) {
	if clone != "" {
		if !isClone(clone) {
			return "", "", fmt.Errorf("%s is no clone of spinsim: it has no go.mod of %s", clone, module)
		}
		abs, err := filepath.Abs(clone)
		return release, quote(abs), err
	}
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if isClone(at) {
			rel, err := filepath.Rel(dir, at)
			return release, quote(rel), err
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	// a folder with @ is Go's module cache
	if _, file, _, ok := runtime.Caller(0); ok && !strings.Contains(file, "@") {
		if at := filepath.Join(filepath.Dir(file), "..", ".."); filepath.IsAbs(file) && isClone(at) {
			return release, quote(at), nil
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		version = versionOf(info)
	}
	if version == "" {
		return "", "", errors.New("this spinsim is no published version, and its source is not here: name a clone of its repository")
	}
	return version, "", nil
}

// versionOf returns the version of this module that another can require, "" if
// there is none.
func versionOf(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && strings.HasPrefix(m.Version, "v") && !strings.Contains(m.Version, "+") {
			return m.Version
		}
	}
	return ""
}

var declared = regexp.MustCompile(`(?m)^module ` + regexp.QuoteMeta(module) + `\s*$`)

// isClone reports whether dir is the root of this module.
func isClone(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && declared.Match(b)
}

// quote writes a folder in the syntax of go.mod.
func quote(dir string) string {
	dir = filepath.ToSlash(dir)
	if strings.ContainsAny(dir, " \"'`()[]{},") {
		return strconv.Quote(dir)
	}
	return dir
}

// render fills the templates of a language and returns the files by name.
func render(lang build.Lang, v values) (map[string][]byte, error) {
	files := make(map[string][]byte)
	dir := "templates/" + string(lang)
	entries, err := templates.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		t, err := template.ParseFS(templates, dir+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, v); err != nil {
			return nil, err
		}
		name := strings.ReplaceAll(strings.TrimSuffix(e.Name(), extend), "NAME", v.Name)
		files[name] = b.Bytes()
	}
	if lang == build.C || lang == build.Cpp {
		files["spin.h"] = spin.CHeader
	}
	return files, nil
}

// write makes the folder with the files. If that fails, nothing is left.
func write(dir string, files map[string][]byte) (paths []string, err error) {
	if err := file.WriteFolder(dir, files); err != nil {
		return nil, err
	}
	for name := range files {
		paths = append(paths, filepath.Join(dir, name))
	}
	slices.Sort(paths)
	return paths, nil
}
