package provenance

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spinsim/spinsim/runtime"
)

// module is the path of this module.
const module = "github.com/spinsim/spinsim"

// Build identifies a build of spinsim.
type Build struct {
	Version  string   `json:"version"`          // as in the module system; "devel" if there is none
	Commit   string   `json:"commit,omitempty"` // "": not recorded
	Modified bool     `json:"modified"`         // the commit's files had changes
	Go       string   `json:"go,omitempty"`
	Engines  []string `json:"engines,omitempty"` // engines for handlers, with their versions
	// the user's program, which uses spinsim as a library; nil: spinsim
	// itself
	Program *Program `json:"program,omitempty"`
}

// Program is a program outside spinsim's module.
type Program struct {
	Module   string `json:"module"`
	Version  string `json:"version"`          // as in Build
	Commit   string `json:"commit,omitempty"` // as in Build
	Modified bool   `json:"modified"`
}

// devel is the version of a build without one.
const devel = "devel"

// engineModules are the modules of the engines that a build can have.
var engineModules = []struct{ name, module string }{
	{"wazero", "github.com/tetratelabs/wazero"},
	{"wasmtime", "github.com/bytecodealliance/wasmtime-go/v44"},
}

// ReadBuild returns the build information that the Go tool wrote into the
// program. In a git checkout, go build and go install record the commit, unless
// -buildvcs=false is set. go run does not.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b := buildOf(info)
	for _, e := range engineModules {
		if runtime.CheckEngine(e.name) == nil {
			b.Engines = append(b.Engines, strings.TrimSpace(e.name+" "+versionOf(info, e.module)))
		}
	}
	return b
}

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: known(versionOf(info, module)), Go: info.GoVersion}
	commit, modified := "", false // of the program's module
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if main := info.Main.Path; main != "" && main != module {
		b.Program = &Program{Module: main, Version: known(info.Main.Version), Commit: commit, Modified: modified}
	} else {
		b.Commit, b.Modified = commit, modified
	}
	return b
}

// known returns a version as Build has it.
func known(version string) string {
	if version == "" || version == "(devel)" {
		return devel
	}
	return version
}

// versionOf returns the version of a module in the program, "" if unknown.
func versionOf(info *debug.BuildInfo, path string) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == path {
			if m.Replace != nil {
				m = m.Replace
			}
			return m.Version
		}
	}
	return ""
}

// String names the build in a word, for example v0.3.0,
// v0.0.0-20260101000000-0123456789ab+dirty, devel-0123456789ab or devel. The
// user's program follows, if there is one.
func (b Build) String() string {
	s := inWord(b.Version, b.Commit, b.Modified)
	if b.Version == "" {
		s = "of no known version"
	}
	if b.Program != nil {
		s += " " + b.Program.String()
	}
	return s
}

// String names the program: its module, and its version like a build's.
func (p *Program) String() string { return p.Module + "@" + inWord(p.Version, p.Commit, p.Modified) }

// inWord returns a version, with the commit unless the version contains it.
func inWord(version, commit string, modified bool) string {
	if version != devel || commit == "" {
		return version
	}
	s := devel + "-" + Short(commit)
	if modified {
		s += "+dirty"
	}
	return s
}

// Same reports whether two builds are known to have the same source.
func (b Build) Same(o Build) bool {
	own, other := b.Program, o.Program
	if (own == nil) != (other == nil) || own != nil && *own != *other {
		return false
	}
	return b.Version == o.Version && b.Commit == o.Commit && b.Modified == o.Modified
}

// Facts returns the lines of "spinsim version": name and value.
func (b Build) Facts() [][2]string {
	commit := "not recorded in this program: go build and go install do so in a git checkout, but not with -buildvcs=false, and go run does not"
	if b.Commit != "" {
		commit = b.Commit
		if b.Modified {
			commit += ", modified"
		}
	}
	facts := [][2]string{
		{"spinsim", b.Version},
		{"commit", commit},
		{"go", b.Go},
		{"engines", strings.Join(b.Engines, ", ")},
	}
	if b.Program != nil {
		facts = append(facts, [2]string{"program", b.Program.String()})
	}
	return facts
}

// Line returns Facts in one line.
func (b Build) Line() string {
	details := []string{}
	if b.Commit != "" && !strings.Contains(b.Version, Short(b.Commit)) {
		details = append(details, "commit "+Short(b.Commit))
	}
	if b.Modified {
		details = append(details, "modified")
	}
	details = append(append(details, b.Go), b.Engines...)
	if b.Program != nil {
		details = append(details, b.Program.String())
	}
	return fmt.Sprintf("spinsim %s (%s)", b.Version, strings.Join(details, ", "))
}
