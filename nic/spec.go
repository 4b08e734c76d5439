package nic

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of the specs, far beyond any device, and such that no sum of times overflows.
const (
	MaxTime     = sim.Second // of every latency of a NIC
	MinMTU      = 64         // bytes of a packet: what the headers of a message need
	maxBuffer   = 1 << 40    // bytes of packets, of DMA, of memory
	maxPackets  = 1 << 20    // in the egress
	maxCommands = 1 << 20
	maxTries    = 1 << 20
)

// Spec describes the transmit and receive pipelines of a NIC (sPIN'17 §4, LogGP
// parameters). It is the nic section of a profile, where each value's source
// stands; there are no defaults.
type Spec struct {
	// Overhead is LogGP's o: a core is busy for it to post one operation; at
	// most 1 s, as all latencies.
	Overhead sim.Time `yaml:"overhead"`
	// MatchHeader is the list search for a header packet; pipelined.
	MatchHeader sim.Time `yaml:"match_header"`
	// MatchPacket is the CAM look-up of any other packet; pipelined.
	MatchPacket sim.Time `yaml:"match_packet"`
	// PacketBuffer is the bytes of packets that may wait for an HPU: a packet to 1 TiB.
	PacketBuffer sim.Size `yaml:"packet_buffer"`
	// EgressPackets is how many packets handlers may have waiting for the wire,
	// 1 to 2^20; 2^20 is no limit.
	EgressPackets int `yaml:"egress_packets"`
	// HandlerCommands is how many operations from host memory, gets into it,
	// timers and messages to self the handlers of a node may have pending,
	// those that a handler has asked for since it was last suspended included;
	// more are NO_SPACE. 1 to 2^20.
	HandlerCommands int `yaml:"handler_commands"`
	// Loopback is the time from the egress to the receive side of the same node.
	Loopback sim.Time `yaml:"loopback"`
	// LoopbackRate is how fast that path is, one packet after the other, each
	// with the header that it has on links (fabric.header); absent: without
	// limit, and loopback_wire means nothing. A program's message of one packet
	// to its own process stands for stores into registers of the interface,
	// such as a descriptor, and does not take that path.
	LoopbackRate sim.Rate `yaml:"loopback_rate,omitempty"`
	// LoopbackWire is the time on the wires from the NIC into that path and back, at most 1 s.
	LoopbackWire sim.Time `yaml:"loopback_wire,omitempty"`
	// Receive is Pipelined or Serial.
	Receive string `yaml:"receive"`
	// FaultPause is the time after which an access to host memory that ended
	// with FAULT is tried again, at most 1 s. It is the policy of the NIC's own
	// accesses and of those of handlers that have not asked to be told.
	FaultPause sim.Time `yaml:"fault_pause"`
	// FaultTries is how often, 0 to 2^20. After that the message fails with PTL_NI_SEGV.
	FaultTries int `yaml:"fault_tries"`
}

// Values of Spec.Receive.
const (
	// Pipelined: packets are matched while others arrive.
	Pipelined = "pipelined"
	// Serial: the receive side takes every packet by itself, for its bytes at
	// the rate of the link once more and then for its matching (LogGOPSim2).
	Serial = "serial"
)

// Validate returns every violation for a network whose packets have up to mtu
// bytes, each with the field's name in a profile.
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
