package fabric

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/size"
	"github.com/spinsim/spinsim/sim"
)

// MaxNodes is the largest number of nodes of a fabric.
const MaxNodes = 1 << 22

// Bounds of a Spec. Together with the bounds of sim.Rate they prevent an
// overflow of a message's time.
const (
	MaxTime   = sim.Second // of each of wire, switch and gap
	MaxMTU    = 1 << 16    // bytes of a packet, and bytes that a link adds to it
	maxInject = 1 << 30    // bytes of an inject buffer, or of a buffer
)

// Spec describes a fabric. It is the fabric section of a profile.
type Spec struct {
	// Kind is the shape of the network, for example "fat-tree": [FatTree],
	// [LeafSpine], [Dragonfly], [Crossbar], [Torus], [ExaNeSt] or [File].
	Kind string `yaml:"kind"`
	// Radix is the number of ports of a fat tree's switches: even, at least 4. A
	// crossbar has a port for every node and ignores Radix.
	Radix int `yaml:"radix,omitempty"`
	// LeafNodes is the number of nodes of a leaf of kind leaf-spine, or of a router of
	// kind dragonfly, 1 to 4,096. Other kinds have none.
	LeafNodes int `yaml:"leaf_nodes,omitempty"`
	// Spines is the number of spines of kind leaf-spine, 1 to 4,096. Other kinds
	// have none.
	Spines int `yaml:"spines,omitempty"`
	// Rails is how many nodes in a row are devices of one host, each at a leaf of its
	// own, 2 to 4,096 (rail-optimised). Absent: nodes fill one leaf after the other.
	// Only with kind leaf-spine.
	Rails int `yaml:"rails,omitempty"`
	// Group is the number of routers of a group of kind dragonfly, 1 to 256, and
	// Globals how many links a router has to other groups, 1 to 256. There are at
	// most Group*Globals+1 groups. Other kinds have none.
	Group int `yaml:"group,omitempty"`
	// Globals: see Group.
	Globals int `yaml:"globals,omitempty"`
	// GlobalWire is the propagation time of links between groups, at most 1 s.
	// Absent: as SwitchWire. Only with kind dragonfly.
	GlobalWire sim.Time `yaml:"global_wire,omitempty"`
	// Paths is how the switches of kinds fat-tree and leaf-spine choose among ways
	// up: [ByDestination], [ByFlow], [ByPacket] or [ByLoad]. On kind dragonfly
	// ByFlow and ByPacket go over a group by chance. Absent: ByDestination. Other
	// kinds have none.
	Paths string `yaml:"paths,omitempty"`
	// Choices is how many ways a switch compares for a packet, 1 to 64. Only with
	// Paths ByLoad.
	Choices int `yaml:"choices,omitempty"`
	// Dims are the lengths of a torus's rings, 1 to 8 of them: [4, 4, 2] has 32
	// switches with a node each. For kind exanest they are three numbers of QFDBs:
	// on a mezzanine, mezzanines in a group, groups; [4, 4, 2] has 128 nodes.
	// Other kinds have none.
	Dims []int `yaml:"dims,omitempty,flow"`
	// Exanest is the additional fields of kind exanest. Other kinds have none.
	Exanest ExanestSpec `yaml:"exanest,omitempty"`
	// Topology is the shape of a network of kind file. In a profile it is the name
	// of a YAML file, or the shape itself. Other kinds have none.
	Topology Plan `yaml:"topology,omitempty"`
	// Rate is the rate of a node's links in each direction: the G of LogGP, as in
	// "20ps/B" or "400Gb/s". One packet's time is rounded to the nearest
	// picosecond; it is exact if the rate is whole picoseconds per byte. A byte
	// takes at most 1 ms, also for SwitchRate.
	Rate sim.Rate `yaml:"rate"`
	// SwitchRate is the rate of links between switches. Absent: Rate.
	SwitchRate sim.Rate `yaml:"switch_rate,omitempty"`
	// Gap is the least time between the beginnings of two packets of one node, at
	// most 1 s: the g of LogGP.
	Gap sim.Time `yaml:"gap,omitempty"`
	// Wire is the propagation time of every link without its own wire time, 1 ps
	// to 1 s.
	Wire sim.Time `yaml:"wire"`
	// SwitchWire is the propagation time of links between switches, at most 1 s.
	// Absent: Wire.
	SwitchWire sim.Time `yaml:"switch_wire,omitempty"`
	// Switch is the time that a packet's head takes from reaching a switch to its
	// output port, at most 1 s.
	Switch sim.Time `yaml:"switch"`
	// StoreAndForward makes switches wait for a packet's tail before they route
	// it.
	StoreAndForward bool `yaml:"store_and_forward,omitempty"`
	// Header is the number of bytes the link adds to every packet, at most 65,536.
	Header int32 `yaml:"header,omitempty" unit:"B"`
	// MTU is the most bytes of a packet, Header not included, 1 to 65,536.
	MTU int32 `yaml:"mtu" unit:"B"`
	// Buffer is the size of the buffers at the end of every link, in bytes,
	// headers included. Each class of packets and each virtual channel has one
	// buffer. Buffer is one number, or one for requests and one for answers, MTU +
	// Header to 1 GiB. A packet stays in its buffer until the next buffer has room
	// for all of it. Absent: buffers are unbounded.
	Buffer Buffers `yaml:"buffer,omitempty"`
	// Queue is how many bytes, headers included, may wait for a link that leaves a
	// switch, with the rest of the packet that is leaving: MTU + Header to 1 GiB. A
	// packet that finds no room is dropped (tail drop). Absent: queues have no end.
	Queue int64 `yaml:"queue,omitempty" unit:"B"`
	// AnswersFirst gives every port that leaves a switch a second queue, which goes
	// first: for acknowledgements and credits of a transport. It has as much room
	// as Queue.
	AnswersFirst bool `yaml:"answers_first,omitempty"`
	// Trim makes a switch without room for a packet cut off the payload of one, and
	// send its header on in the queue that goes first: [TrimArriving] or
	// [TrimEither]. Absent: it drops the packet.
	Trim string `yaml:"trim,omitempty"`
	// MarkFrom and MarkTo are bytes, headers included, that wait behind a packet
	// when it leaves a switch. Up to MarkFrom it is not marked (ECN), from MarkTo on
	// it is, in between with a chance that grows linearly (RED). At most MarkTo.
	MarkFrom int64 `yaml:"mark_from,omitempty" unit:"B"`
	// MarkTo is at most 1 GiB; see MarkFrom. Absent: no marks.
	MarkTo int64 `yaml:"mark_to,omitempty" unit:"B"`
	// PauseFrom makes a switch pause the sender of a link, switch or node (PFC, XOFF),
	// when more bytes of requests than PauseFrom, headers included, have come by the
	// link and not left the switch; at most 1 GiB. Nodes then choose a packet when
	// their link is free, as with an InjectBuffer of one. A Queue must hold what one
	// link brings; what several bring may find no room there. Absent: no pauses.
	PauseFrom int64 `yaml:"pause_from,omitempty" unit:"B"`
	// PauseUntil is down to how many of these bytes the sender is paused (XON), at
	// most PauseFrom.
	PauseUntil int64 `yaml:"pause_until,omitempty" unit:"B"`
	// Rates makes every link that carries packets to a switch or from one compute
	// the rate that it allows each flow, at most once in this time: up to 1 s, and at
	// least a round trip. For rate laws that keep to it. Absent: no link does.
	Rates sim.Time `yaml:"rates,omitempty"`
	// Units are compute units of switches; see UnitSpec.
	Units UnitSpec `yaml:"units,omitempty"`
	// Faults is the faults; see FaultSpec.
	Faults FaultSpec `yaml:"faults,omitempty"`
	// InjectBuffer is how many bytes, headers included, a node may have injected
	// and not yet sent: MTU + Header to 1 GiB; 0 is no limit.
	InjectBuffer int64 `yaml:"inject_buffer,omitempty" unit:"B"`

	// The next fields are simplifications of message-level simulators (sPIN'17:
	// LogGOPSim2). The effect of each can be measured separately.

	// SwitchPerLink counts the traversal of a switch with every link of a path,
	// the last one included.
	SwitchPerLink bool `yaml:"switch_per_link,omitempty"`
	// WholePackets makes a packet arrive as late as a packet of MTU bytes. It
	// occupies links only for its own bytes.
	WholePackets bool `yaml:"whole_packets,omitempty"`
	// AddGap makes a message of s bytes occupy its node's link for g + (s-1)G, the
	// formula of LogGP. Without it each packet occupies the link for the longer of
	// Gap and its bytes. With AddGap s bytes on any link take (s-1)G.
	AddGap bool `yaml:"add_gap,omitempty"`
	// NoContention lets any number of packets pass a link at once, except on a
	// node's own link into the fabric.
	NoContention bool `yaml:"no_contention,omitempty"`
}

// bits returns the time of bytes bytes at a rate: sG, or (s-1)G with AddGap.
func (s *Spec) bits(r sim.Rate, bytes int64) sim.Time {
	if s.AddGap && bytes > 0 {
		bytes--
	}
	return r.Time(bytes)
}

// Serial returns the time that a packet of bytes bytes, without the header,
// takes to pass a node's link.
func (s *Spec) Serial(bytes int) sim.Time { return s.bits(s.Rate, int64(bytes)+int64(s.Header)) }

// Occupied returns how long a packet of bytes bytes occupies the link of its
// source node.
func (s *Spec) Occupied(bytes int) sim.Time {
	if s.AddGap {
		return s.Serial(bytes)
	}
	return max(s.Gap, s.Serial(bytes))
}

// full returns the bytes of the longest packet, header included.
func (s *Spec) full() int64 { return int64(s.MTU) + int64(s.Header) }

// Buffers are bytes by class; the last number is also for the remaining
// classes. In YAML a single number, or a list; each may have a unit.
type Buffers []int64

// UnmarshalYAML reads one size or a list of them.
func (b *Buffers) UnmarshalYAML(unmarshal func(any) error) error {
	var list []string
	if err := unmarshal(&list); err != nil {
		list = make([]string, 1)
		if err := unmarshal(&list[0]); err != nil {
			return errors.New("want a number of bytes such as 16KiB, or a list of one for each class")
		}
	}
	*b = nil
	for _, text := range list {
		n, err := size.Parse(text)
		if err != nil {
			return err
		}
		*b = append(*b, n)
	}
	if len(*b) == 1 && (*b)[0] == 0 {
		*b = nil
	}
	return nil
}

// MarshalYAML writes a list, or a single number if there is only one.
func (b Buffers) MarshalYAML() (any, error) {
	if len(b) == 1 {
		return b[0], nil
	}
	return []int64(b), nil
}

func (s *Spec) bufferOf(c Class) int64 { return s.Buffer[min(int(c), len(s.Buffer)-1)] }

// Validate reports everything wrong with s, each with the field's name in the
// profile.
func (s *Spec) Validate() error { return errors.Join(append(s.checkShape(), s.times()...)...) }

// times checks all other fields.
func (s *Spec) times() (errs []error) {
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if s.Rate.IsZero() {
		wrong("rate", "want a rate such as 20ps/B or 400Gb/s")
	} else if err := s.Rate.Check(); err != nil {
		wrong("rate", "%v", err)
	}
	if err := s.SwitchRate.Check(); err != nil {
		wrong("switch_rate", "%v", err)
	}
	if s.Wire < 1 || s.Wire > MaxTime {
		wrong("wire", "want 1 ps to %v, got %v: nodes may not meet without delay", MaxTime, s.Wire)
	}
	if s.Gap < 0 || s.Gap > MaxTime {
		wrong("gap", "want 0 s to %v, got %v", MaxTime, s.Gap)
	}
	if s.SwitchWire < 0 || s.SwitchWire > MaxTime {
		wrong("switch_wire", "want 1 ps to %v, or none, got %v", MaxTime, s.SwitchWire)
	}
	if s.Switch < 0 || s.Switch > MaxTime {
		wrong("switch", "want 0 s to %v, got %v", MaxTime, s.Switch)
	}
	if s.MTU < 1 || s.MTU > MaxMTU {
		wrong("mtu", "want 1 to %d bytes, got %d", MaxMTU, s.MTU)
	}
	if s.Header < 0 || s.Header > MaxMTU {
		wrong("header", "want 0 to %d bytes, got %d", MaxMTU, s.Header)
	}
	if full := int64(s.MTU) + int64(s.Header); s.InjectBuffer != 0 && (s.InjectBuffer < full || s.InjectBuffer > maxInject) {
		wrong("inject_buffer", "want 0 (no limit) or mtu + header = %d to %d bytes, got %d", full, maxInject, s.InjectBuffer)
	}
	return append(append(errs, s.checkUnits()...), s.pressure()...)
}

// pressure checks bounded buffers and faults.
func (s *Spec) pressure() (errs []error) {
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if len(s.Buffer) > Classes {
		wrong("buffer", "want one number, or %d: for requests and for answers, got %d", Classes, len(s.Buffer))
	}
	for _, b := range s.Buffer {
		if b < s.full() || b > maxInject {
			wrong("buffer", "want room for a packet, mtu + header = %d, to %d bytes, got %d", s.full(), maxInject, b)
		}
	}
	if len(s.Buffer) > 0 && (s.SwitchPerLink || s.WholePackets || s.AddGap || s.NoContention) {
		wrong("buffer", "switch_per_link, whole_packets, add_gap and no_contention are simplifications of networks whose buffers have no end: want either them or buffer")
	}
	if s.Queue != 0 && (s.Queue < s.full() || s.Queue > maxInject) {
		wrong("queue", "want room for a packet, mtu + header = %d, to %d bytes, got %d", s.full(), maxInject, s.Queue)
	}
	if s.Queue != 0 && (len(s.Buffer) > 0 || s.NoContention || s.AddGap) {
		wrong("queue", "a switch drops what finds no room: with buffer packets wait for room instead, and with no_contention or add_gap nothing is known of a queue")
	}
	errs = append(errs, s.ports()...)
	if err := s.Faults.Validate(); err != nil {
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			errs = append(errs, fmt.Errorf("faults.%w", e))
		}
	}
	return errs
}

// ports checks ports with two queues.
func (s *Spec) ports() (errs []error) {
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if s.AnswersFirst && (len(s.Buffer) > 0 || s.NoContention || s.AddGap || s.SwitchPerLink || s.WholePackets) {
		wrong("answers_first", "with buffer answers have buffers of their own, and with no_contention, add_gap, switch_per_link or whole_packets nothing is known of a queue")
	}
	if s.Trim != "" && s.Trim != TrimArriving && s.Trim != TrimEither {
		wrong("trim", "want %s or %s, got %q", TrimArriving, TrimEither, s.Trim)
	}
	if s.Trim != "" && (!s.AnswersFirst || s.Queue == 0 || s.Header == 0) {
		wrong("trim", "the header of a packet without room goes first: want queue, answers_first and a header of at least 1 byte")
	}
	if s.MarkTo != 0 && !s.AnswersFirst {
		wrong("mark_to", "a mark depends on what waits when a packet leaves: want answers_first")
	}
	if s.MarkTo < 0 || s.MarkTo > maxInject {
		wrong("mark_to", "want 0 to %d bytes, got %d", maxInject, s.MarkTo)
	}
	if s.MarkFrom < 0 || s.MarkFrom > s.MarkTo {
		wrong("mark_from", "want 0 to mark_to, %d bytes, got %d", s.MarkTo, s.MarkFrom)
	}
	return append(append(errs, s.checkPauses()...), s.checkRates()...)
}

// New makes the fabric of spec for nodes nodes, and registers its switches with
// eng.
func New(eng *sim.Engine, spec Spec, nodes int) (Fabric, error) {
	topo, err := spec.checked(nodes)
	if err != nil {
		return nil, err
	}
	return newFabric(eng, spec, nodesOf(topo, nodes), topo)
}

// checked returns the topology, or an error if s or nodes is not legal.
func (s *Spec) checked(nodes int) (Topology, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("fabric: want 1 to %d nodes, got %d", MaxNodes, nodes)
	}
	topo, err := s.shape().build(s, nodes)
	if err == nil {
		topo, err = s.withUnits(topo, nodes)
	}
	if err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	return topo, nil
}

// newFabric makes a network with the faults of spec.
func newFabric(eng *sim.Engine, spec Spec, nodes int, topo Topology) (Fabric, error) {
	n, err := newNetwork(eng, spec, nodes, topo)
	if err != nil {
		return nil, err
	}
	if spec.Faults.none() {
		return n, nil
	}
	f, err := NewFaulty(eng, n, spec.Faults)
	if err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	return f, nil
}
