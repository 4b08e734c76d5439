package scenario

import (
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/sim"
)

// Spec is the content of a scenario file. The help tags are the manual: the
// JSON schema and the reference are made from them.
type Spec struct {
	Title       string        `yaml:"title" help:"One line for the head of the report."`
	Description string        `yaml:"description" help:"What the experiment is about, for people who read the file."`
	Parameters  Parameters    `yaml:"parameters" help:"Values with names. In all other values $name stands for one, and spinsim run --param changes them; $$ is a $."`
	Profile     string        `yaml:"profile" required:"true" help:"The device and the network: the name of a built-in profile (spinsim profile lists them), or a profile file, relative to the scenario."`
	Set         Settings      `yaml:"set" help:"Values of the profile to replace: paths such as hpu.cores, or the profile's own nesting."`
	Topology    Settings      `yaml:"topology" help:"Values of the profile's fabric section to replace, such as kind: crossbar."`
	Ranks       int           `yaml:"ranks" required:"true" help:"Number of nodes, each with one process."`
	Seed        *uint64       `yaml:"seed" help:"Seed of everything random, patterns included. Default 1."`
	Engine      EngineName    `yaml:"engine" help:"What executes handlers. Results do not depend on it. Default wazero."`
	EventQueue  Expr          `yaml:"event_queue" help:"Slots of each process's event queue, which nobody empties: only entries with the portal table option flowctrl can run out of them. Default 4096."`
	Entries     []Entry       `yaml:"entries" help:"Match list entries, with or without handlers. They are appended in this order before time begins."`
	Programs    []Program     `yaml:"programs" help:"What the hosts do. A rank has at most one program; ranks without one only serve their entries."`
	Expect      []Expectation `yaml:"expect" help:"What must be true at the end. If it is not, the run has failed."`
	Output      Output        `yaml:"output" help:"What to show besides latencies. By default, what the ranks counted, if nothing is measured."`

	file    string
	text    []byte            // of the file
	lines   map[string]int    // by path
	wrong   strictyaml.Errors // errors of reading
	follows map[string]bool   // paths of errors that follow from unreadable parameters
	uses    map[string][]string
}

// Entry is a match list entry on some ranks (Portals 4.x §3.12.1).
type Entry struct {
	Name       string        `yaml:"name" required:"true" help:"Name by which programs, expectations and output refer to the entry and its memory."`
	Ranks      RankSet       `yaml:"ranks" required:"true" help:"Where it is appended."`
	PT         Expr          `yaml:"pt" help:"Portal table index. Default 0."`
	MatchBits  Expr          `yaml:"match_bits" help:"Match bits, compared with those of a request. Default 0."`
	IgnoreBits Expr          `yaml:"ignore_bits" help:"Match bits that are not compared. Default 0."`
	Source     Expr          `yaml:"source" help:"The only rank whose requests match. Default: any."`
	List       ListName      `yaml:"list" help:"Which of the two lists. Default priority."`
	Options    []EntryOption `yaml:"options" help:"Options of the entry (Portals 4.x §3.12.1). Default op_put, op_get and what the handlers need."`
	PTOptions  []PTOption    `yaml:"pt_options" help:"Options of the portal table entry (Portals 4.x §3.7.1); those of all entries with the same index are joined."`
	MinFree    Expr          `yaml:"min_free" help:"With manage_local: the entry is unlinked when fewer bytes are left. Default 0, never."`
	Length     Expr          `yaml:"length" help:"Bytes of host memory. A message is truncated to what fits, and handlers see no more than that. Default: the size of fill."`
	Fill       Content       `yaml:"fill" help:"What the host memory holds at the beginning. Default zero."`
	Handlers   *Handlers     `yaml:"handlers" help:"Handlers that run on the messages of the entry."`
}

// Handlers is the handler part of an entry (sPIN'17 §2).
type Handlers struct {
	Module     string  `yaml:"module" required:"true" help:"A built-in library, such as count, or the path of a .wasm file, relative to the scenario."`
	Shares     string  `yaml:"shares" help:"Earlier entry, with handlers of the same module, whose HPU memory and state these handlers have, too. Default: memory of their own."`
	Header     string  `yaml:"header" help:"Export that runs when the header of a message arrives."`
	Payload    string  `yaml:"payload" help:"Export that runs for every packet."`
	Completion string  `yaml:"completion" help:"Export that runs when the message has been dealt with. If none of the three is given, the only handler of each kind is taken, or that called header, payload or completion."`
	Set        string  `yaml:"set" help:"Set of handlers in the module's manifest, in place of the three names."`
	UserHeader Expr    `yaml:"user_header" help:"Bytes at the head of a message that the header handler sees as user header. Default: what the module needs."`
	HPUMemory  Expr    `yaml:"hpu_memory" help:"Bytes of HPU memory. Default: what state and module need."`
	State      Content `yaml:"state" help:"What the HPU memory holds at the beginning. Default: what the module says, else zero."`
	HostMemory Expr    `yaml:"host_memory" help:"Bytes of handler host memory, the second range that handlers reach (HANDLER_HOST_MEM). Default: what the module needs."`
	Stamp      *Stamp  `yaml:"stamp" help:"Where handlers see the user id of the process that sends, whatever it has written there: for protection domains. Default: nowhere."`
}

// Stamp is portals.Stamp.
type Stamp struct {
	Shift Expr `yaml:"shift" help:"Lowest of the match bits that show it. Default 0."`
	Bits  Expr `yaml:"bits" required:"true" help:"How many; a process whose user id has more is refused."`
}

// Program is the program of the processes of some ranks.
type Program struct {
	Name    string   `yaml:"name" help:"Name for messages. Default program."`
	Ranks   RankSet  `yaml:"ranks" required:"true" help:"Which ranks run it."`
	Buffers []Buffer `yaml:"buffers" help:"Memory of the process, by name. The memory of the rank's entries can be used in the same way."`
	Steps   []Step   `yaml:"steps" required:"true" help:"What it does, one after the other."`
}

// Buffer is memory of a process.
type Buffer struct {
	Name  string  `yaml:"name" required:"true" help:"Name, different from those of the rank's entries."`
	Bytes Expr    `yaml:"bytes" help:"Size. Default: that of fill."`
	Fill  Content `yaml:"fill" help:"What it holds at the beginning. Default zero."`
}

// Output selects the outputs.
type Output struct {
	Format FormatName  `yaml:"format" help:"How to write the tables. Default table."`
	Events EventSet    `yaml:"events" help:"Show full events at the time at which they are posted: all, or a list of types."`
	Stats  RankSet     `yaml:"stats" help:"Show what these ranks counted."`
	State  []StateOut  `yaml:"state" help:"Show HPU memory at the end."`
	Memory []MemoryOut `yaml:"memory" help:"Show host memory at the end."`
	Trace  string      `yaml:"trace" help:"Write a timeline for ui.perfetto.dev to this file, relative to the working directory and below it unless --allow-output names another folder: .pftrace or .json, either with .gz."`
}

// StateOut shows the HPU memory of an entry.
type StateOut struct {
	Of     string   `yaml:"of" required:"true" help:"Entry."`
	Ranks  RankSet  `yaml:"ranks" help:"Default: all that have the entry."`
	Fields []string `yaml:"fields" help:"Fields to show. Default: all, or bytes in hexadecimal if the state has no fields."`
}

// MemoryOut shows a range of host memory.
type MemoryOut struct {
	Of     string  `yaml:"of" required:"true" help:"Entry or buffer."`
	Ranks  RankSet `yaml:"ranks" help:"Default: all that have it."`
	Offset Expr    `yaml:"offset" help:"Default 0."`
	Bytes  Expr    `yaml:"bytes" help:"Default: to the end."`
}

// Expectation is a condition that must be true.
type Expectation struct {
	_       strictyaml.OneOf `help:"What must be true."`
	Memory  *MemoryCheck     `yaml:"memory" help:"Bytes of host memory."`
	State   *StateCheck      `yaml:"state" help:"A field of HPU memory."`
	Stat    *StatCheck       `yaml:"stat" help:"What a rank counted."`
	Events  *EventCheck      `yaml:"events" help:"How many events of a type were posted to a rank."`
	Latency *LatencyCheck    `yaml:"latency" help:"A measured interval."`
}

// MemoryCheck compares host memory.
type MemoryCheck struct {
	Of     string  `yaml:"of" required:"true" help:"Entry or buffer."`
	Ranks  RankSet `yaml:"ranks" help:"Default: all that have it; in a program, its own rank."`
	Offset Expr    `yaml:"offset" help:"Default 0."`
	Bytes  Expr    `yaml:"bytes" help:"Default: the size of equals, else to the end."`
	Equals Content `yaml:"equals" help:"The bytes wanted."`
	SameAs *Place  `yaml:"same_as" help:"Memory that holds the bytes wanted, at the time of the comparison."`
}

// Place is the place of memory.
type Place struct {
	Of     string `yaml:"of" required:"true" help:"Entry or buffer."`
	Rank   Expr   `yaml:"rank" required:"true" help:"Whose it is."`
	Offset Expr   `yaml:"offset" help:"Default 0."`
}

// Bounds are limits for numbers.
type Bounds struct {
	Equals  Expr `yaml:"equals" help:"The value wanted."`
	AtLeast Expr `yaml:"at_least" help:"The least value wanted."`
	AtMost  Expr `yaml:"at_most" help:"The largest value wanted."`
}

// StateCheck compares a field of HPU memory.
type StateCheck struct {
	Of     string  `yaml:"of" required:"true" help:"Entry."`
	Ranks  RankSet `yaml:"ranks" help:"Default: all that have it; in a program, its own rank."`
	Field  string  `yaml:"field" required:"true" help:"Field of the state: a name, or the number of the field, from 0."`
	Bounds `yaml:",inline"`
}

// StatCheck compares a counter of a rank.
type StatCheck struct {
	Name   StatName `yaml:"name" required:"true" help:"What was counted. A failed handler, a lost and a refused message make the run fail unless their number is expected here."`
	Ranks  RankSet  `yaml:"ranks" help:"Default: each rank; in a program, its own."`
	Bounds `yaml:",inline"`
}

// EventCheck compares the number of events.
type EventCheck struct {
	Type   EventName `yaml:"type" required:"true" help:"Type of event."`
	Ranks  RankSet   `yaml:"ranks" help:"Default: each rank; in a program, its own."`
	Bounds `yaml:",inline"`
}

// LatencyCheck compares measured intervals; every sample counts.
type LatencyCheck struct {
	Name    string    `yaml:"name" required:"true" help:"Name of the measurement."`
	Ranks   RankSet   `yaml:"ranks" help:"Default: all that measured it; in a program, its own rank."`
	Equals  *sim.Time `yaml:"equals" help:"The time wanted, to the picosecond."`
	AtLeast *sim.Time `yaml:"at_least" help:"The least time wanted."`
	AtMost  *sim.Time `yaml:"at_most" help:"The longest time wanted."`
}
