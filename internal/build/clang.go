package build

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// clangFlags are the flags of every handler in C: wasm 1.0 as in docs/abi.md
// (Module), C11 with the GNU keywords.
var clangFlags = []string{
	"--target=wasm32-unknown-unknown", "-mcpu=mvp", "-mbulk-memory", "-mmutable-globals",
	"-mnontrapping-fptoint", "-msign-ext", "-std=gnu11", "-ffreestanding",
}

// optimize is for compilers only: if a linker's arguments have it, clang passes
// the module to a program wasm-opt of the PATH. Modules, and their cycles, would
// depend on the machine.
const optimize = "-O2"

// libraryName is the name in debugging information for the folder of this
// package's C library. The real folder differs in every build.
const libraryName = "/spin"

// linkFlags are the flags of the linker.
var linkFlags = []string{
	"-nostdlib", "-Wl,--no-entry", "-Wl,--stack-first", "-Wl,-z,stack-size=4096", "-Wl,--export=__stack_pointer",
}

// macro matches the argument of -D, NAME or NAME=VALUE, also for a macro with
// arguments.
var macro = regexp.MustCompile(`^[A-Za-z_]\w*(\([^)]*\))?(=|$)`)

// cppFlags are the flags of handlers in C++, in place of the dialect of C: no
// exceptions, no run-time types, no library.
var cppFlags = []string{
	"-std=gnu++20", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-nostdinc++", "-Wno-missing-field-initializers",
}

// buildClang compiles all sources of a folder to a module with debugging
// information.
func (o *Options) buildClang(dir string, lang Lang, tmp, out string) error {
	compiler, err := findClang()
	if err != nil {
		return err
	}
	sources, err := o.sources(dir, lang)
	if err != nil {
		return err
	}
	library, err := extractC(tmp)
	if err != nil {
		return err
	}
	args, err := o.clangArgs(library)
	if err != nil {
		return err
	}
	own, sets, err := o.addSets(dir, tmp, sources)
	if err != nil {
		return err
	}
	args = append(args, "-gdwarf-4", "-fdebug-compilation-dir=.", "-fdebug-prefix-map="+filepath.Join(tmp, cFolder)+"="+libraryName)
	plus := slices.Concat(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-std=gnu11" }), cppFlags)
	all := slices.Concat(sources, sets, library.sources)
	if lang == Cpp {
		all = append(all, library.cpp...)
	}
	var objects []string
	var failed error
	said := ""
	for i, source := range all {
		with := args
		if filepath.Ext(source) != ".c" {
			with = plus
		}
		if i < len(sources) {
			with = slices.Concat(with, own)
		}
		object := filepath.Join(tmp, fmt.Sprintf("object%d.o", i))
		messages, err := run(dir, compiler, slices.Concat(with, []string{"-c", "-o", object, source})...)
		failed = cmp.Or(failed, err)
		said += messages
		objects = append(objects, object)
	}
	if failed != nil {
		return fmt.Errorf("%s: %w\n%s", compiler, failed, said)
	}
	o.warn(said)
	messages, err := run(dir, compiler, slices.Concat(clangFlags, linkFlags, []string{"-o", out}, objects)...)
	if err != nil {
		with := args
		if lang == Cpp {
			with = plus
		}
		return fmt.Errorf("%s: %w\n%s%s", compiler, err, messages, callers(dir, compiler, tmp, slices.Concat(with, own), sources, messages))
	}
	return nil
}

// clangArgs returns the arguments, except for the linker or a single run. The
// user's folders of headers come before the library's.
func (o *Options) clangArgs(library *cLibrary) ([]string, error) {
	args := slices.Concat(clangFlags, []string{optimize, "-Wall", "-Wextra", "-Wno-unused-parameter"})
	for _, name := range o.Define {
		if !macro.MatchString(name) {
			// reported once: the compiler would report it for each file
			return nil, fmt.Errorf("-D %s: expected NAME or NAME=VALUE", name)
		}
		args = append(args, "-D", name)
	}
	for _, folder := range o.Include {
		abs, err := filepath.Abs(folder) // clang runs in the handler's folder
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("-I %s: expected a folder", folder)
		}
		args = append(args, "-I", abs)
	}
	for _, folder := range library.include {
		args = append(args, "-isystem", folder)
	}
	return args, nil
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
