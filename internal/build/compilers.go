package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// search is the way to a compiler: the one that a variable of the environment
// names, one in a place of its own, one on the PATH, or an error.
type search struct {
	what     string
	variable string // "": none
	get      string // how to get it
	own      func(dir string) (path string, err error)
	names    []string // on the PATH
}

var searches = map[Lang]search{
	TinyGo: {"TinyGo", "SPINSIM_TINYGO", "run scripts/install-tinygo.sh of spinsim", ownTinyGo, []string{"tinygo"}},
	C:      clang,
	Cpp:    clang,
	Rust: {
		"a Rust compiler with the target " + rustTarget, "SPINSIM_RUSTC",
		"apt-get install rustc libstd-rust-dev-wasm32 lld-19, or rustup target add " + rustTarget, ownRust, nil,
	},
	AssemblyScript: {
		"the compiler of AssemblyScript", "SPINSIM_ASC",
		"npm install assemblyscript in the handler's folder or one above it, or run scripts/install-languages.sh of spinsim", ownAssemblyScript,
		[]string{"asc"},
	},
}

var (
	clang   = search{"clang", "SPINSIM_CLANG", "install clang-19 and lld-19 (scripts/install-tinygo.sh does)", nil, []string{"clang-19", "clang"}}
	wasmLD  = search{what: "wasm-ld", get: "apt-get install lld-19", names: []string{"wasm-ld-19", "wasm-ld", "rust-lld"}}
	inTools = filepath.Join("tinygo", "bin", "tinygo")
)

// Compiler returns the path of the compiler that Build would use for the
// sources of a language in a folder. The error explains how to get it.
func Compiler(dir string, lang Lang) (string, error) {
	s, is := searches[lang]
	if !is {
		return "", fmt.Errorf("language %q, expected %s", lang, LangNames())
	}
	return s.find(dir)
}

func (s *search) find(dir string) (string, error) {
	if path := os.Getenv(s.variable); path != "" {
		return executable(s.variable, path)
	}
	if s.own != nil {
		if path, err := s.own(dir); path != "" || err != nil {
			return path, err
		}
	}
	for _, name := range s.names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	get := s.get
	if s.variable != "" {
		get += ", or set " + s.variable + " to the compiler"
	}
	return "", fmt.Errorf("%s not found: %s", s.what, get)
}

func ownTinyGo(dir string) (string, error) {
	if tools := os.Getenv("SPINSIM_TOOLS"); tools != "" {
		return executable("SPINSIM_TOOLS", filepath.Join(tools, inTools))
	}
	return installed(dir, filepath.Join(".tools", inTools)), nil
}

func ownAssemblyScript(dir string) (string, error) {
	asc := filepath.Join("node_modules", ".bin", "asc")
	if tools := os.Getenv("SPINSIM_TOOLS"); tools != "" {
		if path, err := exec.LookPath(filepath.Join(tools, asc)); err == nil {
			return path, nil
		}
	}
	return installed(dir, asc, filepath.Join(".tools", asc)), nil
}

// ownRust returns a compiler that has the target. The first on the PATH may
// lack it.
func ownRust(string) (string, error) {
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
	return "", nil
}

// installed returns the first of programs that is in the folder or one above
// it, or in the place of scripts/install-*.sh. That place is in a clone of this
// module: the clone with the working directory, or the clone that the folder's
// own module uses. "": there is none.
func installed(dir string, programs ...string) string {
	if path := above(dir, programs); path != "" {
		return path
	}
	scripts := slices.DeleteFunc(slices.Clone(programs), func(p string) bool { return !strings.HasPrefix(p, ".tools") })
	if path := above(".", scripts); path != "" {
		return path
	}
	clone, err := exec.Command("go", "-C", dir, "list", "-m", "-f", "{{.Dir}}", "github.com/spinsim/spinsim").Output()
	if err != nil {
		return ""
	}
	return oneIn(strings.TrimSpace(string(clone)), programs)
}

// above returns the first of programs that is in a folder or one above it, ""
// if there is none.
func above(dir string, programs []string) string {
	at, err := filepath.Abs(dir)
	for before := ""; err == nil && at != before; before, at = at, filepath.Dir(at) {
		if path := oneIn(at, programs); path != "" {
			return path
		}
	}
	return ""
}

// oneIn returns the first of programs that is in a folder.
func oneIn(folder string, programs []string) string {
	for _, p := range programs {
		if path, err := exec.LookPath(filepath.Join(folder, p)); err == nil {
			return path
		}
	}
	return ""
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
