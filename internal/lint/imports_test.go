package lint

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// policy is what a top-level package may import besides the standard library and
// its own subpackages.
type policy struct {
	ours   []string // top-level packages of this module
	theirs []string // modules; a prefix of the import path
}

// anything stands for every package that other rules do not exclude.
var anything = []string{"*"}

// table is that of docs/architecture: rooms, lowest first. A package that is not
// in it is a change of the architecture: change the table first. A sub-package
// with a rule of its own may import of its room only what the rule names.
var table = map[string]policy{
	"sim":            {ours: []string{"internal"}},
	"fabric":         {ours: []string{"sim", "internal"}},
	"fabric/diagram": {ours: []string{"fabric", "sim", "report"}}, // pictures of networks
	"inet":           {ours: []string{"sim", "internal"}},         // TCP, UDP and IPv4 without a clock
	"smmu":           {ours: []string{"sim", "internal"}},
	"host":           {ours: []string{"sim", "smmu", "internal"}},
	"pinning":        {ours: []string{"sim", "host"}}, // who has memory pinned for devices, and how long: over the calls of an operating system
	"portals":        {ours: []string{"internal"}},
	"datatype":       {}, // where the bytes of MPI's types lie: for programs and for the handlers that unpack them
	"spin":           {ours: []string{"internal"}},
	"spin/manifest":  {ours: []string{"internal"}}, // what a module says of itself: read by all that have to do with handlers
	"hpu": {
		ours:   []string{"sim", "spin/manifest", "internal"},
		theirs: []string{"github.com/tetratelabs/wazero"},
	},
	"nic": {ours: []string{"sim", "fabric", "smmu", "host", "portals", "hpu", "internal"}},
	"profile": {
		ours:   []string{"sim", "fabric", "smmu", "host", "portals", "hpu", "nic", "internal"},
		theirs: []string{"go.yaml.in/yaml/v3"},
	},
	"runtime":  {ours: []string{"sim", "fabric", "smmu", "host", "portals", "hpu", "nic", "profile", "spin", "internal"}},
	"handlers": {ours: []string{"datatype", "nic", "profile", "runtime", "portals", "hpu", "spin", "internal"}},
	"handlers/rdma/channels": { // threads of the kernel post commands, too
		ours: []string{"handlers", "host", "runtime", "portals", "spin"},
	},
	"handlers/kv/store": { // what handlers hand over is the host's: its memory has times
		ours: []string{"handlers", "sim", "runtime", "portals", "spin"},
	},
	"handlers/scan/query": {
		ours: []string{"handlers", "runtime", "portals", "spin"},
	},
	"handlers/internal": { // random tests
		ours: []string{"handlers", "sim", "nic", "profile", "runtime", "portals", "hpu", "spin"},
	},
	"handlers/replicate": { // as there
		ours: []string{"handlers", "sim", "portals", "runtime", "spin"},
	},
	"handlers/raid5": { // clients wait so long for answers; what is durable is on storage
		ours: []string{"handlers", "sim", "host", "portals", "runtime", "spin"},
	},
	"handlers/backupring": { // its IOprovider is a kernel
		ours: []string{"handlers", "sim", "host", "nic", "profile", "runtime", "portals", "spin"},
	},
	"handlers/rnr": { // its driver is a kernel's
		ours: []string{"handlers", "sim", "host", "nic", "runtime", "portals", "spin"},
	},
	"handlers/part": { // its driver is the operating system's
		ours: []string{"handlers", "sim", "host", "runtime", "portals", "spin"},
	},
	"npf/stack": { // sockets of a program on a ring
		ours: []string{"sim", "inet", "portals", "runtime", "handlers"},
	},
	"exanet":      {ours: []string{"sim", "inet", "portals", "spin", "profile", "runtime", "handlers", "internal"}},
	"exanet/gvas": {}, // addresses: what names memory in ExaNeSt
	"exanet/ip": { // beside ExaNet it has the management Ethernet, a network of its own
		ours: []string{"exanet", "sim", "inet", "fabric", "portals", "runtime", "handlers", "internal"},
	},
	"npf": { // programs and networks of NPF'17: a TCP/IP stack of a program's own, servers on it
		ours: []string{"sim", "inet", "host", "portals", "pinning", "profile", "runtime", "handlers", "internal"},
	},
	"mpi":        {ours: []string{"sim", "host", "pinning", "portals", "datatype", "hpu", "spin", "profile", "runtime", "handlers", "exanet", "internal"}},
	"goal":       {ours: []string{"sim", "portals", "profile", "runtime", "mpi", "trace", "internal"}, theirs: []string{"github.com/klauspost/compress", "github.com/ulikunitz/xz"}},
	"provenance": {ours: []string{"sim", "profile", "runtime", "report", "internal"}},
	"scenario": {
		ours:   []string{"sim", "portals", "hpu", "spin/manifest", "nic", "profile", "runtime", "handlers", "provenance", "report", "trace", "internal"},
		theirs: []string{"go.yaml.in/yaml/v3"},
	},
	"handlerlab": {
		ours:   []string{"nic", "sim", "portals", "hpu", "spin/manifest", "profile", "runtime", "handlers", "internal"},
		theirs: []string{"github.com/google/pprof"}, // profiles of handlers
	},
	"experiment": {ours: []string{"sim", "inet", "fabric", "host", "pinning", "portals", "datatype", "hpu", "spin", "nic", "profile", "runtime", "handlers", "exanet", "npf", "mpi", "goal", "provenance", "report", "trace/breakdown", "trace/spc", "internal"}, theirs: []string{"gonum.org/v1/gonum/stat"}},
	"trace/capture": { // pcapng of links: what packets are is known to NICs
		ours: []string{"sim", "fabric", "nic", "trace"},
	},
	"trace/spc":        {ours: []string{"sim", "internal"}}, // traces of storage, which runs are made of
	"trace/breakdown":  {ours: []string{"sim"}},             // what observers of a run do with its time: no file formats
	"experiment/cores": {ours: []string{"hpu", "profile"}},  // cost tables beside the cores they describe
	"experiment/command": { // command lines of experiments, spinsim's and a user's own
		ours:   []string{"experiment", "sim", "fabric", "profile", "runtime", "handlers", "provenance", "report", "trace", "internal"},
		theirs: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/vbauerster/mpb/v8", "golang.org/x/term"},
	},
	"experiment/reports": { // pages of results: documents become sweeps again
		ours: []string{"experiment", "scenario", "profile", "provenance", "report", "internal"},
	},
	"report":        {ours: []string{"sim", "internal"}, theirs: []string{"github.com/jedib0t/go-pretty/v6", "gonum.org/v1/plot", "golang.org/x/image"}},
	"trace":         {ours: []string{"sim", "internal"}, theirs: []string{"google.golang.org/protobuf"}},
	"cmd":           {ours: anything, theirs: anything},
	"examples":      {ours: anything},
	"internal/site": {theirs: []string{"github.com/yuin/goldmark"}}, // the documents as a website
	"internal":      {theirs: []string{"go.yaml.in/yaml/v3"}},       // what several rooms need that is no room: files, YAML, poison, guarded memory, sizes, bounds of fields
}

// testLibraries are for packages whose name ends in "test": they are imported by
// tests only.
var testLibraries = []string{"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/anishathalye/porcupine", "github.com/gopacket/gopacket", "github.com/tetratelabs/wazero"}

// imports keeps the table true for every file of the program, whatever its build
// tags; tests may import what they need.
func imports(r *report) {
	for _, s := range r.tree.sources {
		room, rule := ruleOf(s.dir)
		if room == "" {
			r.at(s, s.ast.Package, "top-level package %q is not in the table of architecture", s.top)
			continue
		}
		if s.test {
			continue
		}
		for _, spec := range s.ast.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || !allowed(s, room, rule, path) {
				r.at(s, spec.Pos(), "%s may not import %s", room, path)
			}
		}
	}
}

// ruleOf returns the rule of a folder, which is that of the innermost folder
// that has one, and the name of it; "" without a rule.
func ruleOf(dir string) (room string, rule policy) {
	for room = dir; room != "." && room != ""; room = path.Dir(room) {
		if rule, known := table[room]; known {
			return room, rule
		}
	}
	return "", policy{}
}

// within reports whether a folder is that of a room or in it.
func within(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }

func allowed(s *source, room string, rule policy, imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return true // standard library
	}
	if ours, is := strings.CutPrefix(imported, module+"/"); is {
		if within(ours, room) {
			return true
		}
		if slices.Equal(rule.ours, anything) {
			return !within(ours, "cmd") && (s.top != "examples" || !within(ours, "internal"))
		}
		return slices.ContainsFunc(rule.ours, func(other string) bool { return within(ours, other) })
	}
	theirs := rule.theirs
	if strings.HasSuffix(s.ast.Name.Name, "test") {
		theirs = slices.Concat(theirs, testLibraries)
	}
	return slices.Equal(rule.theirs, anything) || slices.ContainsFunc(theirs, func(prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/")
	})
}
