// Package build compiles handlers to wasm modules, with TinyGo or with clang, and writes into them what their source says of them
// (package spin/manifest): the handlers with their kinds, the layout of their state, what they need of a device.
//
// Equal sources give equal bytes in any folder on any machine with the same compilers;
// scripts/install-tinygo.sh installs those that the committed modules were built with.
package build

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/spin/c"
)

// Target is the TinyGo target file of handlers: wasm 1.0 with bulk memory, sign extension and
// non-trapping conversion, without heap, scheduler or C library, a stack of 4 KiB placed first.
//
//go:embed target.json
var Target []byte

// Lang is the language of a handler's source.
type Lang string

// Languages that Build knows.
const (
	Auto   Lang = ""       // by the files in the folder
	TinyGo Lang = "tinygo" // a main package
	C      Lang = "c"      // all .c files of the folder
)

// Build compiles the handler in folder dir to the wasm module out. The TinyGo compiler is
// $SPINSIM_TINYGO, or the one scripts/install-tinygo.sh put into $SPINSIM_TOOLS or into .tools of a
// folder above dir or of the clone of this module that the handler's module uses, or the one on the PATH; clang is $SPINSIM_CLANG, or clang-19 or clang on the
// PATH. The error of a compiler that rejects the source carries its messages.
func Build(dir string, lang Lang, out string) error {
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
	switch lang {
	case TinyGo:
		err = buildTinyGo(dir, tmp, module)
	case C:
		err = buildC(dir, tmp, module)
	default:
		err = fmt.Errorf("unknown language %q, expected %q or %q", lang, TinyGo, C)
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", dir, err)
	}
	b, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	if b, err = keepNames(b); err == nil {
		b, err = withManifest(b, dir, lang, tmp)
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", dir, err)
	}
	return file.Write(out, b)
}

// detect tells the language of the handler in dir.
func detect(dir string) (Lang, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Auto, err
	}
	var lang Lang
	for _, e := range entries {
		found := Auto
		switch filepath.Ext(e.Name()) {
		case ".go":
			found = TinyGo
		case ".c":
			found = C
		}
		if found != Auto && lang != Auto && found != lang {
			return Auto, fmt.Errorf("%s has Go and C sources: name the language", dir)
		}
		if found != Auto {
			lang = found
		}
	}
	if lang == Auto {
		return Auto, fmt.Errorf("%s has no handler: expected .go or .c files", dir)
	}
	return lang, nil
}

func buildTinyGo(dir, tmp, out string) error {
	compiler, err := findTinyGo(dir)
	if err != nil {
		return err
	}
	target := filepath.Join(tmp, "spin.json")
	if err := os.WriteFile(target, Target, 0o644); err != nil {
		return err
	}
	args := []string{"build", "-target=" + target, "-opt=2", "-panic=trap", "-no-debug", "-o", out}
	messages, err := run(dir, compiler, append(args, ".")...)
	if err == nil {
		return nil
	}
	if !strings.Contains(messages, "undefined symbol: runtime.alloc") {
		return fmt.Errorf("%s: %w\n%s", compiler, err, messages)
	}
	// The linker knows only that something allocates; the compiler knows where.
	places, _ := run(dir, compiler, append(args, `-print-allocs=^main\.`, ".")...)
	return fmt.Errorf("a handler has no heap, but this one allocates:\n%s"+
		"Variables of more than 256 bytes, or whose address is kept, cannot live on the stack:"+
		" put them into the state", allocations(dir, places))
}

var allocation = regexp.MustCompile(`(?m)^(.+):(\d+)\.\d+,\d+\.\d+ \d+ \d+$`)

// allocations rewrites what -print-allocs says as one place and source line per line.
func allocations(dir, messages string) string {
	var b strings.Builder
	for _, m := range allocation.FindAllStringSubmatch(messages, -1) {
		file, line := m[1], 0
		if _, err := fmt.Sscan(m[2], &line); err != nil {
			continue // the expression matches digits: only a number too large
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

func buildC(dir, tmp, out string, more ...string) error {
	compiler, err := findClang()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "spin.h"), c.Header, 0o644); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return errors.New("no .c files")
	}
	for i := range sources {
		sources[i] = filepath.Base(sources[i])
	}
	args := []string{
		"--target=wasm32-unknown-unknown", "-mcpu=mvp", "-mbulk-memory", "-mmutable-globals",
		"-mnontrapping-fptoint", "-msign-ext", "-std=c11", "-O2", "-Wall", "-Wextra",
		"-ffreestanding", "-nostdlib", "-isystem", tmp, "-o", out,
		"-Wl,--no-entry", "-Wl,--stack-first", "-Wl,-z,stack-size=4096", "-Wl,--export=__stack_pointer",
	}
	args = append(args, more...)
	if messages, err := run(dir, compiler, append(args, sources...)...); err != nil {
		return fmt.Errorf("%s: %w\n%s", compiler, err, messages)
	}
	return nil
}

// run runs a compiler in dir and returns what it wrote.
func run(dir, compiler string, args ...string) (string, error) {
	cmd := exec.Command(compiler, args...)
	cmd.Dir = dir
	messages, err := cmd.CombinedOutput()
	return string(messages), err
}

func findTinyGo(dir string) (string, error) {
	if path := os.Getenv("SPINSIM_TINYGO"); path != "" {
		return executable("SPINSIM_TINYGO", path)
	}
	if tools := os.Getenv("SPINSIM_TOOLS"); tools != "" {
		return executable("SPINSIM_TOOLS", filepath.Join(tools, "tinygo", "bin", "tinygo"))
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if path, ok := installedIn(at); ok {
			return path, nil
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at = parent
	}
	if clone, err := exec.Command("go", "-C", dir, "list", "-m", "-f", "{{.Dir}}", "github.com/spinsim/spinsim").Output(); err == nil {
		if path, ok := installedIn(strings.TrimSpace(string(clone))); ok {
			return path, nil
		}
	}
	path, err := exec.LookPath("tinygo")
	if err != nil {
		return "", errors.New("TinyGo not found: run scripts/install-tinygo.sh of spinsim, or set SPINSIM_TINYGO to the compiler")
	}
	return path, nil
}

// installedIn returns the compiler that scripts/install-tinygo.sh has put into a clone of this module.
func installedIn(clone string) (string, bool) {
	path := filepath.Join(clone, ".tools", "tinygo", "bin", "tinygo")
	_, err := os.Stat(path)
	return path, err == nil
}

func findClang() (string, error) {
	if path := os.Getenv("SPINSIM_CLANG"); path != "" {
		return executable("SPINSIM_CLANG", path)
	}
	for _, name := range []string{"clang-19", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("clang not found: install clang-19 and lld-19 (scripts/install-tinygo.sh does), or set SPINSIM_CLANG to the compiler")
}

// executable returns path if it can be run; else the error names the variable it came from.
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
