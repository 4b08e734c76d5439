package build

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sourcesOf lists the sources of a language in a folder, by their names there.
func sourcesOf(dir string, lang Lang) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if of := languageOf(e.Name()); of == lang || of == C && lang == Cpp {
			names = append(names, operand(e.Name()))
		}
	}
	if len(names) == 0 {
		extensions := map[Lang]string{TinyGo: ".go", C: ".c", Cpp: ".cpp, .cc, .cxx or .c", Rust: ".rs", AssemblyScript: ".ts"}
		return nil, fmt.Errorf("no %s files", extensions[lang])
	}
	return names, nil
}

// operand returns a file's name as compilers take it for one: those that begin
// with - are options, those with @ files of options.
func operand(name string) string {
	if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "@") {
		return "./" + name
	}
	return name
}

// root returns the main file of a folder: the file with that name, else the
// only file besides the library's.
func root(dir string, lang Lang, name, library string) (string, error) {
	names, err := sourcesOf(dir, lang)
	if err != nil {
		return "", err
	}
	if slices.Contains(names, name) {
		return name, nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == library })
	if len(names) != 1 {
		return "", fmt.Errorf("which of %s is the first? Call it %s", strings.Join(names, ", "), name)
	}
	return names[0], nil
}

// rustTarget is Rust's name for WebAssembly without an operating system.
const rustTarget = "wasm32-unknown-unknown"

// buildRust compiles the crate of a folder to a module with debugging
// information.
func (o *Options) buildRust(dir, out string) error {
	compiler, err := findRust()
	if err != nil {
		return err
	}
	source, err := root(dir, Rust, "lib.rs", "spin.rs")
	if err != nil {
		return err
	}
	linker, err := findProgram("wasm-ld", "apt-get install lld-19", "wasm-ld-19", "wasm-ld", "rust-lld")
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	args := []string{
		"--edition=2021", "--target=" + rustTarget, "--crate-type=cdylib", "--crate-name=handler", "-Copt-level=2", "-Cpanic=abort", "-Cdebuginfo=2",
		"-Ccodegen-units=1", "-Clinker=" + linker, "-Clinker-flavor=wasm-ld", "-Ctarget-cpu=mvp",
		"-Ctarget-feature=+bulk-memory,+mutable-globals,+nontrapping-fptoint", "--remap-path-prefix=" + abs + "=.",
	}
	for _, link := range []string{"--stack-first", "-zstack-size=4096", "--export=__stack_pointer", "--no-fatal-warnings"} {
		args = append(args, "-Clink-arg="+link)
	}
	messages, err := run(dir, compiler, append(args, "-o", out, source)...)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", compiler, err, messages)
	}
	o.warn(messages)
	return nil
}

// findRust finds a compiler that has the target. The first on the PATH may lack
// it.
func findRust() (string, error) {
	if path := os.Getenv("SPINSIM_RUSTC"); path != "" {
		return executable("SPINSIM_RUSTC", path)
	}
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin") {
		path := filepath.Join(folder, "rustc")
		if _, err := exec.LookPath(path); err != nil {
			continue
		}
		lib, err := exec.Command(path, "--print=target-libdir", "--target="+rustTarget).Output()
		if err != nil {
			continue
		}
		if _, err := os.Stat(strings.TrimSpace(string(lib))); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Rust compiler with the target " + rustTarget + ": " + getRust + ", or set SPINSIM_RUSTC to the compiler")
}

// getRust and getAssemblyScript explain how to get the compilers.
const (
	getRust           = "apt-get install rustc libstd-rust-dev-wasm32 lld-19, or rustup target add " + rustTarget
	getAssemblyScript = "npm install assemblyscript in the handler's folder or one above it, or run scripts/install-languages.sh of spinsim"
)

// buildAssemblyScript compiles the module of a folder.
func (o *Options) buildAssemblyScript(dir, out string) error {
	compiler, err := findAssemblyScript(dir)
	if err != nil {
		return err
	}
	source, err := root(dir, AssemblyScript, "index.ts", "spin.ts")
	if err != nil {
		return err
	}
	// The debugging information is needed for names of functions; keepSections
	// removes the rest.
	messages, err := run(dir, compiler, source, "--outFile", out, "--runtime", "stub", "-O3", "--debug", "--use", "abort=", "--memoryBase", "1024", "--sourceMap", "--noColors")
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", compiler, err, messages)
	}
	o.warn(messages)
	module, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	// it is in the names only if something calls it
	if bytes.Contains(module, []byte("~lib/rt/stub/__new")) {
		return errors.New("a handler has no heap, but this one allocates: arrays, strings, closures and managed classes need one; put data into the state, and mark classes @unmanaged")
	}
	sourceMap, err := os.ReadFile(out + ".map")
	if err != nil {
		return err
	}
	if module, err = withLines(module, sourceMap); err != nil {
		return err
	}
	return os.WriteFile(out, module, 0o644) //lint:files scratch of a build
}

func findAssemblyScript(dir string) (string, error) {
	if path := os.Getenv("SPINSIM_ASC"); path != "" {
		return executable("SPINSIM_ASC", path)
	}
	asc := filepath.Join("node_modules", ".bin", "asc")
	if tools := os.Getenv("SPINSIM_TOOLS"); tools != "" {
		if path, err := exec.LookPath(filepath.Join(tools, asc)); err == nil {
			return path, nil
		}
	}
	if path, ok := installed(dir, asc, filepath.Join(".tools", asc)); ok {
		return path, nil
	}
	return findProgram("the compiler of AssemblyScript", getAssemblyScript+", or set SPINSIM_ASC to the compiler", "asc")
}

// findProgram finds the first of programs that may be on the PATH; get explains
// how to get it.
func findProgram(what, get string, names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s not found: %s", what, get)
}
