package lint

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// policy is what a room may import besides the standard library, the utilities
// and its own folders.
type policy struct {
	rooms   []string // the highest rooms; this one may also import what they may
	modules []string // prefixes of import paths
}

// anything stands for every package that no other rule excludes.
var anything = []string{"*"}

// utilities are small packages that every room may import.
var utilities = []string{
	"internal/expr", "internal/fields", "internal/file", "internal/guard", "internal/lazy",
	"internal/memory", "internal/poison", "internal/seal", "internal/size", "internal/strictyaml", "internal/used", "internal/visible",
}

// table lists the rooms of docs/architecture.md, lowest first. A new package
// changes the architecture, so change the table first. A folder with its own
// row may import from its room only what the row names.
var table = map[string]policy{
	"sim":      {},
	"portals":  {},
	"datatype": {},
	"ledger":   {},
	"spin":     {},
	"trace":    {rooms: []string{"sim"}, modules: []string{"google.golang.org/protobuf"}},
	"report":   {rooms: []string{"sim"}, modules: []string{"github.com/jedib0t/go-pretty/v6", "gonum.org/v1/plot", "golang.org/x/image", "github.com/parquet-go/parquet-go"}},
	"fabric":   {rooms: []string{"sim"}},
	"inet":     {rooms: []string{"sim"}},
	"smmu":     {rooms: []string{"sim"}},
	"host":     {rooms: []string{"smmu"}},
	"hpu":      {rooms: []string{"sim", "internal/manifest"}, modules: []string{"github.com/tetratelabs/wazero"}},
	"laws":     {rooms: []string{"spin"}},
	"nic":      {rooms: []string{"fabric", "host", "portals", "hpu", "laws"}},
	"profile":  {rooms: []string{"nic"}, modules: []string{"go.yaml.in/yaml/v3"}},
	"runtime":  {rooms: []string{"profile", "spin"}},
	"handlers": {rooms: []string{"runtime", "datatype"}},
	"exanet":   {rooms: []string{"handlers", "inet"}},
	"mpi":      {rooms: []string{"exanet", "internal/pinning"}},
	"goal": {
		rooms:   []string{"mpi", "trace"},
		modules: []string{"github.com/klauspost/compress", "github.com/ulikunitz/xz"},
	},

	"internal/manifest": {},
	"internal/pinning":  {rooms: []string{"host"}},

	// The upper house.
	"internal/page":        {rooms: []string{"report"}},
	"internal/provenance":  {rooms: []string{"runtime", "report"}},
	"internal/checkpoint":  {rooms: []string{"internal/provenance"}},
	"internal/spc":         {rooms: []string{"sim"}},
	"internal/breakdown":   {rooms: []string{"sim"}},
	"internal/capture":     {rooms: []string{"nic", "trace"}},
	"internal/diagram":     {rooms: []string{"fabric", "report"}},
	"internal/osu":         {rooms: []string{"mpi", "internal/provenance"}},
	"internal/beff":        {rooms: []string{"mpi"}},
	"internal/patterns":    {rooms: []string{"mpi"}},
	"internal/ddtbench":    {rooms: []string{"datatype"}},
	"internal/cores":       {rooms: []string{"profile"}},
	"internal/npf":         {rooms: []string{"handlers", "inet", "internal/pinning"}},
	"internal/goal/chakra": {rooms: []string{"goal"}, modules: []string{"google.golang.org/protobuf"}},
	"internal/goal":        {rooms: []string{"goal"}, modules: []string{"github.com/klauspost/compress"}},
	"internal/lab": {
		rooms:   []string{"experiment"},
		modules: []string{"go.yaml.in/yaml/v3", "github.com/google/pprof"},
	},
	"internal/cli": {
		rooms:   []string{"runtime", "internal/provenance", "internal/capture"},
		modules: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/vbauerster/mpb/v8", "golang.org/x/term"},
	},
	"internal/batch": {rooms: []string{"internal/checkpoint", "internal/cli"}, modules: []string{"github.com/spf13/cobra"}},
	"experiment": {
		rooms:   []string{"handlers", "report", "ledger", "internal/batch", "internal/breakdown"},
		modules: []string{"github.com/spf13/cobra"},
	},
	"experiment/spin17": {
		rooms:   []string{"experiment", "goal", "internal/goal", "internal/ddtbench", "internal/spc", "internal/ycsb"},
		modules: []string{"gonum.org/v1/gonum/stat"},
	},
	"experiment/exanest":  {rooms: []string{"experiment", "exanet", "internal/osu", "internal/patterns"}, modules: []string{"gonum.org/v1/gonum/stat"}},
	"experiment/part":     {rooms: []string{"experiment", "mpi"}, modules: []string{"gonum.org/v1/gonum/stat"}},
	"experiment/npf":      {rooms: []string{"experiment/part", "internal/npf", "internal/osu", "internal/beff"}, modules: []string{"gonum.org/v1/gonum/stat"}},
	"experiment/inswitch": {rooms: []string{"experiment", "mpi"}},
	"experiment/networks": {rooms: []string{"experiment", "goal", "internal/goal", "internal/goal/chakra"}},
	"experiment/pspin":    {rooms: []string{"experiment", "internal/cores", "internal/pspin"}},
	"mpirun":              {rooms: []string{"mpi"}, modules: []string{"golang.org/x/sys"}},
	"experiment/programs": {rooms: []string{"experiment/exanest", "experiment/part", "mpirun"}},
	"internal/pspin":      {rooms: []string{"handlers"}},
	"internal/ycsb":       {},
	"internal/libraries":  {rooms: []string{"handlers"}},
	"internal/wings":      {rooms: []string{"experiment/spin17", "experiment/exanest", "experiment/npf", "experiment/pspin", "experiment/networks", "experiment/inswitch"}},
	"internal/identify":   {rooms: []string{"ledger"}, modules: []string{"gonum.org/v1/gonum/mat"}},
	"internal/reports":    {rooms: []string{"experiment", "internal/lab", "internal/page", "ledger"}},
	"internal/serve":      {rooms: []string{"internal/reports"}},
	"internal/build":      {rooms: []string{"spin", "internal/manifest"}, modules: []string{"github.com/tetratelabs/wazero"}},
	"internal/scaffold":   {rooms: []string{"handlers", "internal/build"}},
	"internal/port":       {rooms: []string{"inet", "internal/build", "internal/lab"}},
	"internal/site":       {modules: []string{"github.com/yuin/goldmark"}},
	"cmd":                 {rooms: anything, modules: anything},
	"examples":            {rooms: anything},

	// Only tests import these.
	"internal/rapidtest":    {},
	"internal/hosttest":     {rooms: []string{"host"}},
	"internal/smmutest":     {rooms: []string{"smmu"}},
	"internal/typetest":     {rooms: []string{"datatype"}},
	"internal/inetscript":   {rooms: []string{"inet"}},
	"internal/portalscript": {rooms: []string{"portals", "internal/script"}},
	"internal/script":       {},
	"internal/lint":         {},
}

// testLibraries are for packages whose name ends in "test": only tests import
// those.
var testLibraries = []string{"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/anishathalye/porcupine", "github.com/gopacket/gopacket", "github.com/tetratelabs/wazero"}

// imports checks the table for every file of the program, whatever its build
// tags. Tests may import anything.
func imports(r *report) {
	for _, s := range r.tree.sources {
		room, rule := ruleOf(s.dir)
		if room == "" {
			r.at(s, s.ast.Package, "package %q is not in the table of rooms", s.dir)
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

// ruleOf returns the row of a folder: its own or the nearest above it. The room
// is "" if there is none.
func ruleOf(dir string) (room string, rule policy) {
	if slices.ContainsFunc(utilities, func(u string) bool { return within(dir, u) }) {
		return dir, policy{modules: []string{"go.yaml.in/yaml/v3"}}
	}
	for room = dir; room != "." && room != ""; room = path.Dir(room) {
		if rule, ok := table[room]; ok {
			return room, rule
		}
	}
	return "", policy{}
}

// within reports whether a folder is a room or lies in it.
func within(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }

// reaches reports whether the folder lies in one of the rooms, or in a room
// that they may import.
func reaches(rooms []string, dir string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool {
		home, _ := ruleOf(dir)
		return home == room || within(room, home) && within(dir, room) || reaches(table[room].rooms, dir)
	})
}

func allowed(s *source, room string, rule policy, imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return true // standard library
	}
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		switch {
		case within(ours, room) || slices.Contains(utilities, ours):
			return true
		case slices.Equal(rule.rooms, anything):
			return !within(ours, "cmd") && (s.top != "examples" || isTest(s) || !within(ours, "internal"))
		}
		return reaches(rule.rooms, ours)
	}
	theirs := rule.modules
	if isTest(s) {
		theirs = slices.Concat(theirs, testLibraries)
	}
	return slices.Equal(rule.modules, anything) || slices.ContainsFunc(theirs, func(prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/")
	})
}

// isTest reports whether only tests import the package of a file.
func isTest(s *source) bool { return strings.HasSuffix(s.ast.Name.Name, "test") }
