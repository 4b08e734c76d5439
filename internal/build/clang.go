package build

import (
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
	"-mnontrapping-fptoint", "-msign-ext", "-std=gnu11", "-O2", "-ffreestanding",
}

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

// buildC compiles all .c files of a folder to a module. It returns the same
// module with debugging information.
func (o *Options) buildC(dir, tmp, out string) (debug []byte, err error) {
	compiler, err := findClang()
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, errors.New("no .c files")
	}
	for i := range sources {
		sources[i] = filepath.Base(sources[i])
	}
	library, err := extractC(tmp)
	if err != nil {
		return nil, err
	}
	args, err := o.clangArgs(library)
	if err != nil {
		return nil, err
	}
	for _, k := range []struct {
		out  string
		more []string
	}{
		{out, nil},
		{filepath.Join(tmp, "debug.wasm"), []string{"-gdwarf-4", "-fdebug-compilation-dir=.", "-fdebug-prefix-map=" + filepath.Join(tmp, cFolder) + "=" + libraryName}},
	} {
		all := slices.Concat(args, linkFlags, k.more, []string{"-o", k.out}, sources, library.sources)
		messages, err := run(dir, compiler, all...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s%s", compiler, err, messages, callers(dir, compiler, tmp, args, sources, messages))
		}
		if k.more == nil {
			o.warn(messages)
		}
	}
	return os.ReadFile(filepath.Join(tmp, "debug.wasm"))
}

// clangArgs returns the arguments, except for the linker or a single run. The
// user's folders of headers come before the library's.
func (o *Options) clangArgs(library *cLibrary) ([]string, error) {
	args := slices.Concat(clangFlags, []string{"-Wall", "-Wextra", "-Wno-unused-parameter"})
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
