package provenance

import (
	_ "embed"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/runtime"
)

// module is the path of this module.
const module = "github.com/spinsim/spinsim"

// Build identifies a build of spinsim.
type Build struct {
	// as in the module system; else that of the next release with "-devel"
	Version  string   `json:"version"`
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

// devel is the version of a program without one, and the end of spinsim's.
const devel = "devel"

// release is the version that the next release has, or this one if it is
// tagged: scripts/release.sh compares the two.
//
//go:embed version.txt
var release string

// engineModules are the modules of the engines that a build can have.
var engineModules = []struct{ name, module string }{
	{"wazero", "github.com/tetratelabs/wazero"},
	{"wasmtime", "github.com/bytecodealliance/wasmtime-go/v44"},
}

// ReadBuild returns the build information that the Go tool wrote into the
// program. In a git checkout, go build and go install record the commit, unless
// -buildvcs=false is set. go run does not.
func ReadBuild() Build { return readBuild() }

// readBuild parses some hundred lines, and each sweep has them in its record.
var readBuild = sync.OnceValue(func() Build {
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
})

func buildOf(info *debug.BuildInfo) Build {
	version := versionOf(info, module)
	if info.Main.Path == module && strings.HasPrefix(version, "v0.0.0-") {
		version = "" // of a clone without tags, whose commit is recorded
	}
	b := Build{Version: known(version, strings.TrimSpace(release)+"-"+devel), Go: info.GoVersion}
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
		b.Program = &Program{Module: main, Version: known(info.Main.Version, devel), Commit: commit, Modified: modified}
	} else {
		b.Commit, b.Modified = commit, modified
	}
	return b
}

// known returns a version of the module system, or another one if it has none.
func known(version, other string) string {
	if version == "" || version == "(devel)" {
		return other
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

// String names the build in a word, for example v0.3.0, v0.3.0-devel or
// v0.3.0-devel-0123456789ab+dirty. The user's program follows, if there is one.
func (b Build) String() string {
	s := inWord(b.Version, b.Commit, b.Modified)
	if b.Version == "" {
		s = "of no known version"
	}
	if b.Program != nil {
		s += " " + b.Program.String()
	}
	return visible.Line(s) // a document may hold anything
}

// String names the program: its module, and its version like a build's.
func (p *Program) String() string { return p.Module + "@" + inWord(p.Version, p.Commit, p.Modified) }

// inWord returns a version, with the commit unless the version contains it.
func inWord(version, commit string, modified bool) string {
	if !strings.HasSuffix(version, devel) || commit == "" {
		return version
	}
	s := version + "-" + Short(commit)
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
