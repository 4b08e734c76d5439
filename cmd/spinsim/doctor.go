package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

// need is something that a purpose needs besides spinsim.
type need struct {
	name string
	// returns its version and place; the error is the reason if it is not usable
	find func() (found string, err error)
	get  string // how to get it
}

// purpose is a task of a user.
type purpose struct {
	name, does string
	needs      []need
}

// simulate is the purpose that must always work.
const simulate = "simulate"

// purposes lists the tasks of users and what they need.
func purposes() []purpose {
	linker := need{"wasm-ld", program("wasm-ld-19", "wasm-ld"), "apt-get install lld-19"}
	golang := need{"go", program("go"), "https://go.dev/dl: 1.26 or newer"}
	return []purpose{
		{simulate, "compare, run, osu, goal, topology and all other commands", []need{
			{"engine", engineWorks, "a whole spinsim: this one is damaged"},
		}},
		{"handlers-go", "handler new and build: handlers in Go; programs with spinsim as a library need only go", []need{
			golang, {"tinygo", compiler(build.TinyGo), "scripts/install-tinygo.sh of the repository"}, linker,
		}},
		{"handlers-c", "handler new --lang c and build: handlers in C", []need{
			{"clang", compiler(build.C), "apt-get install clang-19"}, linker,
		}},
		{"handlers-cpp", "handler new --lang cpp and build: handlers in C++", []need{
			{"clang", compiler(build.Cpp), "apt-get install clang-19"}, linker,
		}},
		{"handlers-rust", "handler new --lang rust and build: handlers in Rust", []need{
			{"rustc", compiler(build.Rust), "apt-get install rustc libstd-rust-dev-wasm32, or rustup target add wasm32-unknown-unknown"}, linker,
		}},
		{"handlers-assemblyscript", "handler new --lang assemblyscript and build: handlers in AssemblyScript", []need{
			{"asc", compiler(build.AssemblyScript), "npm install assemblyscript, here or in a folder above, or scripts/install-languages.sh of the repository"},
		}},
		{"programs", "mpirun: MPI programs, unchanged", []need{
			{"gcc", program("gcc"), "apt-get install gcc libc6-dev"},
			{"libfabric", header("/usr/include/rdma/providers/fi_prov.h"), "apt-get install libfabric-dev"},
			{"mpirun", program("mpirun.openmpi"), "apt-get install openmpi-bin"},
		}},
		{"captures", "to look at packets in captures", []need{
			{"wireshark", program("wireshark", "tshark"), "apt-get install wireshark, or tshark"},
		}},
		{"develop", "bash .ci/run in a clone: every test of spinsim itself", []need{
			golang,
			{"gcc", program("gcc"), "apt-get install gcc libc6-dev"},
			{"llvm-mca", program("llvm-mca-19"), "apt-get install llvm-19"},
			{"mpicc", program("mpicc.openmpi"), "apt-get install libopenmpi-dev openmpi-bin"},
			{"chromium", program("chromium", "google-chrome"), "apt-get install chromium"},
		}},
	}
}

func doctorCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "doctor [PURPOSE...]",
		Short: "List the programs that spinsim can use, which are missing, and how to get them",
		Long: `Doctor looks for the other programs that spinsim can use, by purpose. Simulations need none of them.

The exit status is 1 if spinsim itself does not work, or if a program for a given PURPOSE is missing:
` + purposeHelp() + `

  spinsim doctor handlers-c && spinsim handler build`,
		RunE: func(c *cobra.Command, args []string) error { return doctor(c.OutOrStdout(), format, args) },
	}
	c.Flags().StringVar(&format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	cli.SuggestArgument(c, false, func(*cobra.Command) []string { return purposeNames() })
	return c
}

func purposeNames() (names []string) {
	for _, p := range purposes() {
		names = append(names, p.name)
	}
	return names
}

func purposeHelp() (text string) {
	for _, p := range purposes() {
		text += fmt.Sprintf("\n  %-12s %s", p.name, p.does)
	}
	return text
}

// doctorColumns are the columns of its table.
func doctorColumns() []report.Column {
	return []report.Column{
		{Name: "purpose", Help: "what it is needed for: an argument of doctor"},
		{Name: "program", Help: "what is needed"},
		{Name: "there", Kind: report.Flag, Help: "whether it is installed and works"},
		{Name: "found", Help: "its version and where it is, or what is wrong with it"},
		{Name: "get", Help: "how to get it, if it is missing"},
	}
}

func doctor(out io.Writer, formatName string, wanted []string) error {
	format, err := report.ParseFormat(formatName)
	if err != nil {
		return badInput(fmt.Errorf("--format: %w", err))
	}
	for _, name := range wanted {
		if names := purposeNames(); !slices.Contains(names, name) {
			return badInput(fmt.Errorf("no purpose %q, expected some of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names)))
		}
	}
	t := report.New(doctorColumns()...)
	var missing []error
	for _, p := range purposes() {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		for _, n := range p.needs {
			found, err := n.find()
			get := ""
			if err != nil {
				found, get = err.Error(), n.get
			}
			if err != nil && (len(wanted) > 0 || p.name == simulate) {
				missing = append(missing, fmt.Errorf("%s: %s: %w", p.name, n.name, err))
			}
			t.Add(p.name, n.name, err == nil, found, get)
		}
	}
	return errors.Join(t.Write(out, format), errors.Join(missing...))
}

// engineWorks loads and runs a built-in module, as every simulation does at its
// beginning.
func engineWorks() (string, error) {
	m, err := handlers.Open("count")
	if err != nil {
		return "", err
	}
	p, err := profile.Load("spin-dis")
	if err != nil {
		return "", err
	}
	return strings.Join(thisBuild().Engines, ", "), errors.Join(p.CheckModule(m.Name, m.Wasm), runtime.CheckEngine("wazero"))
}

// compiler finds the compiler of handlers in a language, as handler build does in this folder.
func compiler(lang build.Lang) func() (string, error) {
	return func() (string, error) {
		path, err := build.Compiler(".", lang)
		if err != nil {
			return "", err
		}
		return versionOf(path)
	}
}

// program finds the first of programs that may be on the PATH.
func program(names ...string) func() (string, error) {
	return func() (string, error) {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil {
				return versionOf(path)
			}
		}
		return "", fmt.Errorf("%s not found", strings.Join(names, " or "))
	}
}

// header finds a header of a C library.
func header(path string) func() (string, error) {
	return func() (string, error) {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s not found", path)
		}
		return path, nil
	}
}

var versionNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

// answersWithin is how long a program may take to print its version. A program
// that waits for a display is not usable.
const answersWithin = 10 * time.Second

// versionOf asks a program for its version.
func versionOf(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	var failed error
	for _, how := range []string{"--version", "version"} { // go knows the second only
		text, err := exec.CommandContext(ctx, path, how).CombinedOutput()
		if number := versionNumber.Find(text); err == nil && number != nil {
			return fmt.Sprintf("%s (%s)", number, path), nil
		}
		failed = errors.Join(failed, err)
	}
	if failed == nil {
		failed = errors.New("says no version")
	}
	return "", fmt.Errorf("%s: %w", path, failed)
}
