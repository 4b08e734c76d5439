package runtime

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/sim"
)

//go:embed profiles
var profileFiles embed.FS

// Profile describes a node and its network: every latency, width and count of a simulation. Profiles are YAML files; two
// of the publication sPIN'17 are embedded ("spin-dis", "spin-int"). Each value's source stands in the file's comment.
type Profile struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Fabric      fabric.Spec `yaml:"fabric"`
	NIC         NICSpec     `yaml:"nic"`
	DMA         DMASpec     `yaml:"dma"`
	HPU         HPUSpec     `yaml:"hpu"`
	Host        host.Spec   `yaml:"host"`
	Limits      LimitsSpec  `yaml:"limits"`

	// Origin is where the profile was loaded from; nothing that is simulated depends on it.
	Origin Origin `yaml:"-"`
}

// NICSpec describes the transmit and receive pipelines of a NIC (sPIN'17 §4, LogGP parameters).
type NICSpec struct {
	Overhead      sim.Time `yaml:"overhead"`       // LogGP's o: a core is busy for it to post one operation; at most 1 s, as all latencies
	MatchHeader   sim.Time `yaml:"match_header"`   // list search for a header packet; pipelined
	MatchPacket   sim.Time `yaml:"match_packet"`   // CAM look-up of any other packet; pipelined
	PacketBuffer  Size     `yaml:"packet_buffer"`  // bytes of packets that may wait for an HPU: a packet to 1 TiB
	EgressPackets int      `yaml:"egress_packets"` // packets that handlers may have waiting for the wire, 1 to 2^20
	// HandlerCommands is how many operations from host memory, gets into it, timers and messages to self the handlers of a node may have pending,
	// those that a handler has asked for since it was last suspended included; more are NO_SPACE. 1 to 2^20.
	HandlerCommands int      `yaml:"handler_commands"`
	Loopback        sim.Time `yaml:"loopback"` // from the egress to the receive side of the same node
	// Receive is "pipelined": packets are matched while others arrive, or "serial": the receive side takes every packet by itself, for its
	// bytes at the rate of the link once more and then for its matching (LogGOPSim2).
	Receive string `yaml:"receive"`
}

// Values of NICSpec.Receive.
const (
	Pipelined = "pipelined"
	Serial    = "serial"
)

// DMASpec describes the path between the NIC and host memory (sPIN'17 §4).
type DMASpec struct {
	Latency      sim.Time `yaml:"latency"`              // one way; a write pays it once, a read twice; at most 1 s
	Bandwidth    sim.Rate `yaml:"bandwidth"`            // of the bus or, if shared_memory, of the memory controller; a byte takes at most 1 ms
	FullDuplex   bool     `yaml:"full_duplex"`          // reads and writes do not share the bandwidth
	SharedMemory bool     `yaml:"shared_memory"`        // transfers contend with the cores for host memory
	EventBytes   int      `yaml:"event_bytes" unit:"B"` // bytes of the record that follows the data of a message, at most 4096
	// Charge is "full": every transfer takes the bus for its bytes, and a fetch crosses it twice, or "latency": deposits, records and
	// writes of handlers cost the latency only, a fetch of the data of a put costs it once, and nothing waits for the bus; handlers' reads
	// take the time of their bytes (LogGOPSim2).
	Charge string `yaml:"charge"`
}

// Values of DMASpec.Charge.
const (
	ChargeFull    = "full"
	ChargeLatency = "latency"
)

// maxBudget is the greatest budget of a handler, cycles. A handler that runs cannot be interrupted, nor can Go collect garbage
// meanwhile, so it must end by itself soon: this takes about a second of real time.
const maxBudget = 1_000_000_000

// HPUSpec describes the handler processing units (sPIN'17 §4). The bounds that stand not here are those of hpu.Spec.
type HPUSpec struct {
	Clock            Frequency `yaml:"clock"` // 1 MHz to 1 THz
	Cores            int       `yaml:"cores"`
	Contexts         int       `yaml:"contexts"` // per core
	StackBytes       int       `yaml:"stack_bytes" unit:"B"`
	Dispatch         sim.Time  `yaml:"dispatch"`            // from a packet being ready to the handler's first cycle, at most 1 s
	MaxCycles        int64     `yaml:"max_cycles"`          // 1 to maxBudget
	MaxCyclesPerByte int64     `yaml:"max_cycles_per_byte"` // for a packet of the MTU both together at most maxBudget
	// WaitingHandlers is how many handlers of a node may wait for an HPU, 1 to 2^24. A message, or a packet, whose header or payload
	// handler would be one more is dropped as if the packet buffer were full.
	WaitingHandlers int `yaml:"waiting_handlers"`
	DMAHandles      int `yaml:"dma_handles"` // non-blocking DMA operations one handler may have open, 1 to 65,536
	// DMABytes is how many bytes DMA operations of a node's handlers may have on their way, 1 to 2^40, those included that a handler has
	// asked for since it was last suspended. Beyond it a non-blocking operation is NO_SPACE and a blocking one waits; one of more bytes
	// goes alone.
	DMABytes       Size  `yaml:"dma_bytes"`
	MaxCodeBytes   int   `yaml:"max_code_bytes" unit:"B"`
	MaxFunctions   int   `yaml:"max_functions"`
	MaxMemoryBytes int64 `yaml:"max_memory_bytes" unit:"B"`
	MaxHPUMemory   int64 `yaml:"max_hpu_memory" unit:"B"`
	NodeMemory     Size  `yaml:"node_memory"` // bytes, 2^16 to 2^40, of all programs of a node: what the modules declare and the HPU memory
	MaxCallDepth   int   `yaml:"max_call_depth"`
	// DMAWrite is what a blocking write to host memory holds a handler for: until it is "initiated" on the bus (sPIN'17 appendix C.3.2), or
	// until its data has "landed" (appendix B.5).
	DMAWrite string `yaml:"dma_write"`
	// Charge is "cycles": a handler takes the time of its cycles, or "nothing": they count against its budget, but take no time.
	Charge string   `yaml:"charge"`
	Costs  CostsRef `yaml:"costs"`
}

// Values of HPUSpec.DMAWrite and HPUSpec.Charge.
const (
	Initiated     = "initiated"
	Landed        = "landed"
	ChargeCycles  = "cycles"
	ChargeNothing = "nothing"
)

// time is how long cycles of a handler take.
func (s *HPUSpec) time(cycles int64) sim.Time {
	if s.Charge == ChargeNothing {
		return 0
	}
	return s.Clock.Cycles(cycles)
}

// CostsRef is a cost table: in YAML either the name of an embedded one or the table itself.
type CostsRef struct{ hpu.CostTable }

// UnmarshalYAML accepts a name or a mapping.
func (c *CostsRef) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return decodeTree("costs", n, &c.CostTable)
	}
	table, err := Costs(n.Value)
	if err != nil {
		return err // whoever decodes a profile names the place
	}
	c.CostTable = *table
	return nil
}

// MarshalYAML writes the table itself, whatever its name was.
func (c CostsRef) MarshalYAML() (any, error) { return c.CostTable, nil }

// CostNames lists the embedded cost tables in alphabetical order.
func CostNames() []string { return embeddedNames("profiles/costs") }

// CostSource returns the text of an embedded cost table, comments included.
func CostSource(name string) ([]byte, error) {
	data, err := profileFiles.ReadFile("profiles/costs/" + name + ".yaml")
	if err != nil || strings.Contains(name, "/") {
		return nil, fmt.Errorf("no cost table %q, expected one of %s or a mapping", name, strings.Join(CostNames(), ", "))
	}
	return data, nil
}

// Costs returns an embedded cost table.
func Costs(name string) (*hpu.CostTable, error) {
	data, err := CostSource(name)
	if err != nil {
		return nil, err
	}
	tree, err := parseTree(name, data)
	if err != nil {
		return nil, err
	}
	table := new(hpu.CostTable)
	if err := decodeTree(name, tree, table); err != nil {
		return nil, err
	}
	return table, nil
}

// ProfileNames lists the embedded profiles in alphabetical order.
func ProfileNames() []string { return embeddedNames("profiles") }

func embeddedNames(dir string) []string {
	entries, err := fs.ReadDir(profileFiles, dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// ProfileSource returns the text of an embedded profile, comments included.
func ProfileSource(name string) ([]byte, error) {
	data, err := profileFiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil || strings.Contains(name, "/") {
		return nil, fmt.Errorf("no profile %q, expected a file or one of %s", name, strings.Join(ProfileNames(), ", "))
	}
	return data, nil
}

// LoadProfile reads an embedded profile by name, or a file if name has a path separator or ends in .yaml or .yml. A file
// may name an embedded profile in the key "base" and then holds only what differs. Each override is "path=value", such as
// "hpu.cores=8", applied in order. The result is validated. All errors of text, overrides and values are joined; each names the file, the line or
// the field's path.
func LoadProfile(name string, overrides ...string) (*Profile, error) {
	tree, found, err := profileTree(name)
	if err != nil {
		if isProfileFile(name) {
			err = fmt.Errorf("profile %w", err)
		}
		return nil, err
	}
	p, err := profileOf(name, tree, overrides, found...)
	if err != nil {
		return nil, err
	}
	p.Origin.Embedded = !isProfileFile(name)
	return p, nil
}

// loadTopology puts the network that a profile names as a file, relative to dir, in the place of the name.
func loadTopology(tree *yaml.Node, dir string) error {
	n := child(child(tree, "fabric"), "topology")
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return nil
	}
	name := n.Value
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	data, err := file.Read(name, file.MaxText)
	if err != nil {
		return fmt.Errorf("fabric.topology: %w", err)
	}
	shape, err := parseTree(name, data)
	if err != nil {
		return fmt.Errorf("fabric.topology: %w", err)
	}
	if err := decodeTree(name, shape, new(fabric.Plan)); err != nil {
		return fmt.Errorf("fabric.topology: %w", err)
	}
	*n = *shape
	return nil
}

// isProfileFile tells a profile's file from the name of an embedded profile.
func isProfileFile(name string) bool {
	ext := path.Ext(name)
	return strings.ContainsRune(name, os.PathSeparator) || ext == ".yaml" || ext == ".yml"
}

// profileOf makes a profile of its text and the overrides.
func profileOf(name string, tree *yaml.Node, overrides []string, found ...problem) (*Profile, error) {
	wrong := strict{name: name, problems: found}
	wrong.check(tree, reflect.TypeFor[Profile](), "")
	errs := wrong.errors()
	for _, o := range overrides {
		of := strict{name: fmt.Sprintf("%s: override %q", name, o), lineless: true}
		next := cloneTree(tree)
		err := applyOverride(next, o)
		if err == nil {
			err = loadTopology(next, "")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", of.name, err))
			continue
		}
		if of.check(next, reflect.TypeFor[Profile](), ""); of.problems == nil {
			tree = next // else the old value stays, so that nothing follows from a missing one
		}
		errs = append(errs, of.errors()...)
		wrong.problems = append(wrong.problems, of.problems...)
	}
	p := new(Profile)
	if err := tree.Decode(p); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	} else {
		for _, err := range wrong.beside(p.Validate()) {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("profile %w", err)
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	p.Origin = Origin{Name: name, Overrides: slices.Clone(overrides)}
	return p, nil
}

// profileTree reads the text of a profile and, below it, of its base. What is wrong with a text that has a base is cut out of it and
// returned.
func profileTree(name string) (*yaml.Node, []problem, error) {
	read := ProfileSource
	if isProfileFile(name) {
		read = func(name string) ([]byte, error) { return file.Read(name, file.MaxText) }
	}
	data, err := read(name)
	if err != nil {
		return nil, nil, err
	}
	tree, err := parseTree(name, data)
	if err != nil {
		return nil, nil, err
	}
	if err := loadTopology(tree, path.Dir(name)); err != nil {
		return nil, nil, err
	}
	base := removeKey(tree, "base")
	if base == nil {
		return tree, nil, nil
	}
	own := strict{name: name}
	own.check(tree, reflect.TypeFor[Profile](), "") // with the file's own lines
	if !slices.Contains(ProfileNames(), base.Value) {
		return nil, nil, fmt.Errorf("%s:%d: base: no profile %q, expected one of %s", name, base.Line, base.Value, strings.Join(ProfileNames(), ", "))
	}
	root, _, err := profileTree(base.Value)
	if err != nil {
		return nil, nil, err
	}
	if child(tree, "name") == nil { // another device must not pass for its base
		child(root, "name").Value = strings.TrimSuffix(path.Base(name), path.Ext(name))
	}
	mergeTree(root, tree)
	return root, own.problems, nil
}

// Validate checks every field and returns all violations joined, each with the field's path.
func (p *Profile) Validate() error {
	var errs []error
	if p.Name == "" {
		errs = append(errs, errors.New("name: empty, expected the profile's name"))
	}
	errs = append(errs, below("fabric.", p.Fabric.Validate())...)
	errs = append(errs, p.Host.Validate("host"))
	c := checker{}
	if p.Fabric.MTU > 0 && p.Fabric.MTU <= fabric.MaxMTU { // else package fabric has said so
		c.between("fabric.mtu", int64(p.Fabric.MTU), minMTU, fabric.MaxMTU)
	}
	c.span("nic.overhead", p.NIC.Overhead)
	c.span("nic.match_header", p.NIC.MatchHeader)
	c.span("nic.match_packet", p.NIC.MatchPacket)
	c.between("nic.packet_buffer", int64(p.NIC.PacketBuffer), int64(p.Fabric.MTU), 1<<40)
	c.between("nic.egress_packets", int64(p.NIC.EgressPackets), 1, 1<<20)
	c.between("nic.handler_commands", int64(p.NIC.HandlerCommands), 1, 1<<20)
	c.span("nic.loopback", p.NIC.Loopback)
	c.span("dma.latency", p.DMA.Latency)
	if err := p.DMA.Bandwidth.Check(); err != nil {
		errs = append(errs, fmt.Errorf("dma.bandwidth: %w", err))
	}
	c.between("dma.event_bytes", int64(p.DMA.EventBytes), 0, 4096)
	c.between("hpu.clock", int64(p.HPU.Clock), 1e6, 1e12)
	c.span("hpu.dispatch", p.HPU.Dispatch)
	c.between("hpu.max_cycles", p.HPU.MaxCycles, 1, maxBudget)
	c.between("hpu.max_cycles_per_byte", p.HPU.MaxCyclesPerByte, 0, max(0, maxBudget-p.HPU.MaxCycles)/max(1, int64(p.Fabric.MTU)))
	c.between("hpu.dma_bytes", int64(p.HPU.DMABytes), 1, 1<<40)
	c.between("hpu.node_memory", int64(p.HPU.NodeMemory), 1<<16, 1<<40)
	c.between("hpu.waiting_handlers", int64(p.HPU.WaitingHandlers), 1, 1<<24)
	c.between("hpu.dma_handles", int64(p.HPU.DMAHandles), 1, 1<<16)
	c.oneOf("nic.receive", p.NIC.Receive, Pipelined, Serial)
	c.oneOf("dma.charge", p.DMA.Charge, ChargeFull, ChargeLatency)
	c.oneOf("hpu.dma_write", p.HPU.DMAWrite, Initiated, Landed)
	c.oneOf("hpu.charge", p.HPU.Charge, ChargeCycles, ChargeNothing)
	p.Limits.check(&c)
	errs = append(errs, c.errs...)
	device := p.Device()
	device.PacketBytes = max(1, min(device.PacketBytes, fabric.MaxMTU)) // what is wrong with it has been said
	errs = append(errs, below("hpu.", device.Validate())...)
	return errors.Join(errs...)
}

// below gives each of several errors, which begin with the names of fields, the path to these.
func below(path string, err error) []error {
	several, are := err.(interface{ Unwrap() []error })
	if !are {
		return nil
	}
	var errs []error
	for _, e := range several.Unwrap() {
		errs = append(errs, fmt.Errorf("%s%w", path, e))
	}
	return errs
}

const (
	maxSpan = sim.Second // of every latency of a node
	minMTU  = 64         // bytes: what the headers of a message need
)

type checker struct{ errs []error }

func (c *checker) between(field string, v, least, most int64) {
	if v < least || v > most {
		c.errs = append(c.errs, fmt.Errorf("%s: %d, expected %d to %d", field, v, least, most))
	}
}

func (c *checker) span(field string, v sim.Time) {
	if v < 0 || v > maxSpan {
		c.errs = append(c.errs, fmt.Errorf("%s: %v, expected 0 s to %v", field, v, maxSpan))
	}
}

func (c *checker) oneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		c.errs = append(c.errs, fmt.Errorf("%s: %q, expected %s", field, v, strings.Join(allowed, " or ")))
	}
}

// Device is the part of the profile that the module loader needs.
func (p *Profile) Device() *hpu.Spec {
	return &hpu.Spec{
		Cores: p.HPU.Cores, Contexts: p.HPU.Contexts,
		PacketBytes: int(p.Fabric.MTU), StackBytes: p.HPU.StackBytes,
		MaxCodeBytes: p.HPU.MaxCodeBytes, MaxFunctions: p.HPU.MaxFunctions,
		MaxMemoryBytes: p.HPU.MaxMemoryBytes, MaxHPUMemoryBytes: p.HPU.MaxHPUMemory,
		MaxCallDepth: p.HPU.MaxCallDepth, Costs: p.HPU.Costs.CostTable,
	}
}
