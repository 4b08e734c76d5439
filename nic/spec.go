package nic

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of the specs. They are far beyond any device, and no sum of times
// overflows.
const (
	MaxTime     = sim.Second // largest latency of a NIC
	MinMTU      = 64         // bytes of a packet, for the headers of a message
	maxBuffer   = 1 << 40    // bytes of packets, of DMA or of memory
	maxPackets  = 1 << 20    // in the egress
	maxCommands = 1 << 20
	maxTries    = 1 << 20
)

// Spec describes the transmit and receive pipelines of a NIC (sPIN'17 §4, LogGP
// parameters). It is the nic section of a profile, which gives the source of
// each value. There are no defaults.
type Spec struct {
	// Overhead is LogGP's o: how long a core is busy to post one operation. At
	// most 1 s, like all latencies.
	Overhead sim.Time `yaml:"overhead"`
	// MatchHeader is the time of the list search for a header packet. Searches
	// are pipelined.
	MatchHeader sim.Time `yaml:"match_header"`
	// MatchPacket is the time of the CAM look-up of any other packet. Look-ups
	// are pipelined.
	MatchPacket sim.Time `yaml:"match_packet"`
	// PacketBuffer is how many bytes of packets may wait for an HPU: one packet
	// to 1 TiB.
	PacketBuffer sim.Size `yaml:"packet_buffer"`
	// EgressPackets is how many packets of handlers may wait for the wire, 1 to
	// 2^20. 2^20 is no limit. Tenants that take turns (HPUSpec.Arbiter) have equal
	// parts of it, one packet at least.
	EgressPackets int `yaml:"egress_packets"`
	// HandlerCommands is how many commands the handlers of a node may have
	// pending: operations from host memory, gets into it, timers and messages
	// to self. Commands that a handler has requested since it was last
	// suspended count. More are NO_SPACE. 1 to 2^20.
	HandlerCommands int `yaml:"handler_commands"`
	// Loopback is the time from the egress to the receive side of the same
	// node.
	Loopback sim.Time `yaml:"loopback"`
	// LoopbackRate is the rate of the loopback path. It takes one packet after
	// the other, each with its header on links (fabric.header). Absent: no
	// limit, and loopback_wire has no effect; but for tenants that take turns
	// (HPUSpec.Arbiter) that of links (fabric.rate). A program's message of one packet
	// to its own process does not take that path, because it stands for stores
	// into registers of the interface, such as a descriptor.
	LoopbackRate sim.Rate `yaml:"loopback_rate,omitempty"`
	// LoopbackWire is the time on the wires from the NIC into the loopback path
	// and back, at most 1 s.
	LoopbackWire sim.Time `yaml:"loopback_wire,omitempty"`
	// Receive is Pipelined or Serial.
	Receive string `yaml:"receive"`
	// FaultPause is the time after which an access to host memory that ended
	// with FAULT is tried again, at most 1 s. It applies to the NIC's own
	// accesses, and to accesses of handlers that have not asked to see faults.
	FaultPause sim.Time `yaml:"fault_pause"`
	// FaultTries is how often such an access is tried again, 0 to 2^20. After
	// that the message fails with PTL_NI_SEGV.
	FaultTries int `yaml:"fault_tries"`
}

// Values of Spec.Receive.
const (
	// Pipelined: packets are matched while others arrive.
	Pipelined = "pipelined"
	// Serial: the receive side takes one packet at a time. Each takes its bytes
	// at the rate of the link once more, and then its matching (LogGOPSim2).
	Serial = "serial"
)

// Validate returns every violation, each with the field's name in a profile.
// Packets of the network have up to mtu bytes.
func (s *Spec) Validate(mtu int32) error {
	var wrong fields.Errors
	fields.Between(&wrong, "overhead", s.Overhead, 0, MaxTime)
	fields.Between(&wrong, "match_header", s.MatchHeader, 0, MaxTime)
	fields.Between(&wrong, "match_packet", s.MatchPacket, 0, MaxTime)
	fields.Between(&wrong, "packet_buffer", int64(s.PacketBuffer), int64(mtu), maxBuffer)
	fields.Between(&wrong, "egress_packets", s.EgressPackets, 1, maxPackets)
	fields.Between(&wrong, "handler_commands", s.HandlerCommands, 1, maxCommands)
	fields.Between(&wrong, "loopback", s.Loopback, 0, MaxTime)
	if !s.LoopbackRate.IsZero() {
		if err := s.LoopbackRate.Check(); err != nil {
			wrong.Add("loopback_rate", err)
		}
	}
	fields.Between(&wrong, "loopback_wire", s.LoopbackWire, 0, MaxTime)
	fields.Between(&wrong, "fault_pause", s.FaultPause, 0, MaxTime)
	fields.Between(&wrong, "fault_tries", s.FaultTries, 0, maxTries)
	wrong.OneOf("receive", s.Receive, Pipelined, Serial)
	return wrong.Join()
}
