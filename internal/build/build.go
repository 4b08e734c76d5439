// Package build compiles handlers to wasm modules, with TinyGo, clang, rustc or
// the compiler of AssemblyScript. It writes a manifest (package
// internal/manifest) into each module, from the source: the handlers with their
// kinds, the layout of their state, their needs on a device.
//
// Equal sources give equal bytes in any folder on any machine, with the same
// compilers, if the modules are stripped of debugging information. The script
// scripts/install-tinygo.sh installs the compilers of the committed modules.
package build

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/file"
)

// Target is the TinyGo target file of handlers: wasm 1.0 with bulk memory, sign
// extension and non-trapping conversion, without heap, scheduler or C library,
// a stack of 4 KiB placed first.
//
//go:embed target.json
var Target []byte

// Lang is the language of a handler's source.
type Lang string

// Languages that Build supports.
const (
	Auto   Lang = ""       // decided by the files in the folder
	TinyGo Lang = "tinygo" // a main package
	C      Lang = "c"      // all .c files of the folder
	Cpp    Lang = "cpp"    // all .cpp, .cc, .cxx and .c files

	Rust           Lang = "rust"           // a crate: lib.rs, or the only .rs file besides spin.rs
	AssemblyScript Lang = "assemblyscript" // index.ts, or the only .ts file besides spin.ts
)

// Langs lists the languages.
func Langs() []Lang { return []Lang{TinyGo, C, Cpp, Rust, AssemblyScript} }

// LangNames lists the languages in words.
func LangNames() string { return "tinygo, c, cpp, rust or assemblyscript" }

// languageOf returns the language of a source from its name; Auto: it is not a
// source.
func languageOf(name string) Lang {
	if strings.HasSuffix(name, ".d.ts") {
		return Auto
	}
	switch filepath.Ext(name) {
	case ".go":
		return TinyGo
	case ".c":
		return C
	case ".cpp", ".cc", ".cxx":
		return Cpp
	case ".rs":
		return Rust
	case ".ts":
		return AssemblyScript
	}
	return Auto
}

// Options are the options of a build. The zero value is the default of [Build]
// for a folder of one language.
type Options struct {
	Lang Lang
	// C: folders of headers, relative to the working directory; searched before
	// this package's own
	Include  []string
	Define   []string  // C: NAME or NAME=VALUE
	Sources  []string  // C, C++: files to compile, relative to the folder; nil: all
	Sets     []Set     // C: for several entries; nil: one, which Define or the source names
	Warnings io.Writer // receives the compilers' warnings; nil: nothing
	// Strip leaves out the source lines of the code. Then equal sources give
	// equal bytes anywhere. Without Strip, the module also holds the paths of
	// the sources.
	Strip bool
}

// Build compiles the handler in folder dir to the wasm module out, with Strip
// and no other [Options] except a language.
func Build(dir string, lang Lang, out string) error {
	o := Options{Lang: lang, Strip: true}
	return o.Build(dir, out)
}

// Build compiles the handler in folder dir to the wasm module out. If a
// compiler rejects the source, the error contains its messages.
//
// The TinyGo compiler is the first of these:
//
//   - $SPINSIM_TINYGO
//   - the one that scripts/install-tinygo.sh put into $SPINSIM_TOOLS, or into
//     .tools of a folder above dir or the working directory, or of the clone of
//     this module that the handler's module uses
//   - the one on the PATH
//
// clang is $SPINSIM_CLANG, or clang-19 or clang on the PATH.
func (o *Options) Build(dir, out string) error {
	lang := o.Lang
	if lang == Auto {
		var err error
		if lang, err = detect(dir); err != nil {
			return err
		}
	}
	tmp, remove, err := file.Scratch("spinsim-build")
	if err != nil {
		return err
	}
	defer remove()
	module := filepath.Join(tmp, "module.wasm")
	b, err := o.module(dir, lang, tmp, module)
	if err != nil {
		return fmt.Errorf("build %s: %w", dir, err)
	}
	return file.Write(out, b)
}

// module compiles a handler and adds its manifest.
func (o *Options) module(dir string, lang Lang, tmp, out string) ([]byte, error) {
	var err error
	if lang != C && lang != Cpp && len(o.Include)+len(o.Define)+len(o.Sources)+len(o.Sets) > 0 {
		return nil, errors.New("folders of headers and definitions are for C and C++")
	}
	switch lang {
	case TinyGo:
		err = o.buildTinyGo(dir, tmp, out)
	case C, Cpp:
		err = o.buildClang(dir, lang, tmp, out)
	case Rust:
		err = o.buildRust(dir, out)
	case AssemblyScript:
		err = o.buildAssemblyScript(dir, out)
	default:
		err = fmt.Errorf("unknown language %q, expected %s", lang, LangNames())
	}
	if err != nil {
		return nil, err
	}
	compiled, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	module, err := keepSections(compiled, !o.Strip)
	if err != nil {
		return nil, err
	}
	return o.withManifest(module, dir, filepath.Join(tmp, cFolder), lang, compiled)
}

// sources lists the files of a handler. No compiler takes one for an option.
func (o *Options) sources(dir string, lang Lang) (names []string, err error) {
	for _, name := range o.Sources {
		names = append(names, operand(name))
	}
	if o.Sources != nil {
		return names, nil
	}
	return sourcesOf(dir, lang)
}

// warn passes on a compiler's messages about a source that it has accepted.
func (o *Options) warn(messages string) {
	if o.Warnings != nil && messages != "" {
		fmt.Fprint(o.Warnings, messages)
	}
}

// languageNames are the names of languages for people.
var languageNames = map[Lang]string{TinyGo: "Go", C: "C", Cpp: "C++", Rust: "Rust", AssemblyScript: "AssemblyScript"}

// detect returns the language of the handler in dir.
func detect(dir string) (Lang, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Auto, fmt.Errorf("%s is a file, expected the folder of a handler's sources", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Auto, err
	}
	var lang Lang
	for _, e := range entries {
		found := languageOf(e.Name())
		if found == C && lang == Cpp || found == Cpp && lang == C {
			found, lang = Cpp, Cpp
		}
		if found != Auto && lang != Auto && found != lang {
			return Auto, fmt.Errorf("%s has %s and %s sources: name the language", dir, languageNames[lang], languageNames[found])
		}
		if found != Auto {
			lang = found
		}
	}
	if lang == Auto {
		return Auto, fmt.Errorf("%s has no handler: expected .go, .c, .cpp, .rs or .ts files", dir)
	}
	return lang, nil
}

func (o *Options) buildTinyGo(dir, tmp, out string) error {
	compiler, err := findTinyGo(dir)
	if err != nil {
		return err
	}
	target := filepath.Join(tmp, "spin.json")
	if err := os.WriteFile(target, Target, 0o644); err != nil { //lint:files scratch of a build
		return err
	}
	args := []string{"build", "-target=" + target, "-opt=2", "-panic=trap", "-o", out}
	if o.Strip {
		args = append(args, "-no-debug")
	}
	messages, err := run(dir, compiler, append(args, ".")...)
	if err == nil {
		o.warn(messages)
		return nil
	}
	if strings.Contains(messages, "undefined: structs.HostLayout") || strings.Contains(messages, "package structs is not in") {
		return fmt.Errorf("%s: this TinyGo has no structs.HostLayout, which says that the fields of a state lie as in C: expected TinyGo 0.33 or later with Go 1.23 or later; "+
			"scripts/install-tinygo.sh of spinsim builds one: %w\n%s", compiler, err, messages)
	}
	if !strings.Contains(messages, "undefined symbol: runtime.alloc") {
		return fmt.Errorf("%s: %w\n%s", compiler, err, messages)
	}
	// The linker reports only that there is an allocation; the compiler reports
	// where.
	places, _ := run(dir, compiler, append(args, `-print-allocs=^main\.`, ".")...)
	return fmt.Errorf("a handler has no heap, but this one allocates:\n%s"+
		"Variables of more than 256 bytes, or whose address is kept, cannot live on the stack:"+
		" put them into the state", allocations(dir, places))
}

var allocation = regexp.MustCompile(`(?m)^(.+):(\d+)\.\d+,\d+\.\d+ \d+ \d+$`)

// allocations rewrites the output of -print-allocs: one place and source line
// per line.
func allocations(dir, messages string) string {
	var b strings.Builder
	for _, m := range allocation.FindAllStringSubmatch(messages, -1) {
		file, line := m[1], 0
		if _, err := fmt.Sscan(m[2], &line); err != nil {
			continue // the expression matches digits, so the number is too large
		}
		text := ""
		if src, err := os.ReadFile(file); err == nil {
			if lines := strings.Split(string(src), "\n"); line <= len(lines) {
				text = strings.TrimSpace(lines[line-1])
			}
		}
		if abs, err := filepath.Abs(dir); err == nil {
			if rel, err := filepath.Rel(abs, file); err == nil {
				file = rel
			}
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", file, line, text)
	}
	return b.String()
}

// run runs a compiler in dir and returns its output.
func run(dir, compiler string, args ...string) (string, error) {
	cmd := exec.Command(compiler, args...)
	cmd.Dir = dir
	messages, err := cmd.CombinedOutput()
	return string(messages), err
}

// Compiler returns the path of the compiler that Build would use for the
// sources of a language in a folder. The error explains how to get it.
func Compiler(dir string, lang Lang) (string, error) {
	switch lang {
	case TinyGo:
		return findTinyGo(dir)
	case C, Cpp:
		return findClang()
	case Rust:
		return findRust()
	case AssemblyScript:
		return findAssemblyScript(dir)
	}
	return "", fmt.Errorf("language %q, expected %s", lang, LangNames())
}

func findTinyGo(dir string) (string, error) {
	if path := os.Getenv("SPINSIM_TINYGO"); path != "" {
		return executable("SPINSIM_TINYGO", path)
	}
	if tools := os.Getenv("SPINSIM_TOOLS"); tools != "" {
		return executable("SPINSIM_TOOLS", filepath.Join(tools, "tinygo", "bin", "tinygo"))
	}
	if path, ok := installed(dir, filepath.Join(".tools", "tinygo", "bin", "tinygo")); ok {
		return path, nil
	}
	path, err := exec.LookPath("tinygo")
	if err != nil {
		return "", errors.New("TinyGo not found: run scripts/install-tinygo.sh of spinsim, or set SPINSIM_TINYGO to the compiler")
	}
	return path, nil
}

// installed returns the first of programs that is in the folder or one above
// it, or in the place of scripts/install-*.sh. That place is in a clone of this
// module: the clone with the working directory, or the clone that the folder's
// own module uses.
func installed(dir string, programs ...string) (string, bool) {
	if path, ok := above(dir, programs); ok {
		return path, true
	}
	scripts := slices.DeleteFunc(slices.Clone(programs), func(p string) bool { return !strings.HasPrefix(p, ".tools") })
	if path, ok := above(".", scripts); ok {
		return path, true
	}
	clone, err := exec.Command("go", "-C", dir, "list", "-m", "-f", "{{.Dir}}", "github.com/spinsim/spinsim").Output()
	if err != nil {
		return "", false
	}
	return oneIn(strings.TrimSpace(string(clone)), programs)
}

// above returns the first of programs that is in a folder or one above it.
func above(dir string, programs []string) (string, bool) {
	at, err := filepath.Abs(dir)
	for before := ""; err == nil && at != before; before, at = at, filepath.Dir(at) {
		if path, ok := oneIn(at, programs); ok {
			return path, true
		}
	}
	return "", false
}

// oneIn returns the first of programs that is in a folder.
func oneIn(folder string, programs []string) (string, bool) {
	for _, p := range programs {
		if path, err := exec.LookPath(filepath.Join(folder, p)); err == nil {
			return path, true
		}
	}
	return "", false
}

// executable returns path if it can be run. Otherwise the error names the
// variable that contained it.
func executable(variable, path string) (string, error) {
	abs, err := filepath.Abs(path) // compilers run in the handler's folder
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(abs); err != nil {
		return "", fmt.Errorf("from $%s: %w", variable, err)
	}
	return abs, nil
}
