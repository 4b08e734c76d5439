package provenance

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spinsim/spinsim/runtime"
)

// module is the path of this module.
const module = "github.com/spinsim/spinsim"

// Build says which spinsim it is.
type Build struct {
	Version  string   `json:"version"`          // as the module system has it; "devel" if it has none
	Commit   string   `json:"commit,omitempty"` // "": not known, as with go run
	Modified bool     `json:"modified"`         // the commit's files had been changed
	Go       string   `json:"go,omitempty"`
	Engines  []string `json:"engines,omitempty"` // that execute handlers, with their versions
}

// devel is the version of a build that has none.
const devel = "devel"

// engineModules are the modules of the engines that a build may have.
var engineModules = []struct{ name, module string }{
	{"wazero", "github.com/tetratelabs/wazero"},
	{"wasmtime", "github.com/bytecodealliance/wasmtime-go/v44"},
}

// ReadBuild returns what the Go tool has written into the program. go build and go install record the commit, go run does not.
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
	b := Build{Version: versionOf(info, module), Go: info.GoVersion}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = devel
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// versionOf is the version of a module in the program, "" if it is not known.
func versionOf(info *debug.BuildInfo, path string) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}

// String names the build in a word, such as v0.3.0, v0.0.0-20260101000000-0123456789ab+dirty, devel-0123456789ab or devel.
func (b Build) String() string {
	if b.Version == "" {
		return "of no known version"
	}
	if b.Version != devel || b.Commit == "" {
		return b.Version
	}
	s := devel + "-" + Short(b.Commit)
	if b.Modified {
		s += "+dirty"
	}
	return s
}

// Same reports whether two builds are known to be of the same source.
func (b Build) Same(o Build) bool {
	return b.Version == o.Version && b.Commit == o.Commit && b.Modified == o.Modified
}

// Facts are the lines of "spinsim version": what it is, and its value.
func (b Build) Facts() [][2]string {
	commit := "not known: go run does not record it, go build and go install do"
	if b.Commit != "" {
		commit = b.Commit
		if b.Modified {
			commit += ", modified"
		}
	}
	return [][2]string{
		{"spinsim", b.Version},
		{"commit", commit},
		{"go", b.Go},
		{"engines", strings.Join(b.Engines, ", ")},
	}
}

// Line is Facts in a line.
func (b Build) Line() string {
	details := []string{}
	if b.Commit != "" && !strings.Contains(b.Version, Short(b.Commit)) {
		details = append(details, "commit "+Short(b.Commit))
	}
	if b.Modified {
		details = append(details, "modified")
	}
	details = append(append(details, b.Go), b.Engines...)
	return fmt.Sprintf("spinsim %s (%s)", b.Version, strings.Join(details, ", "))
}
