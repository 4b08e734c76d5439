package nic

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// TransportSpec says how packets get from NIC to NIC. It is the transport
// section of a profile; there are no defaults.
type TransportSpec struct {
	// Kind is "none", for a network that loses nothing (what is lost all the
	// same is counted and named at the end of the run), or "reliable": every
	// packet is acknowledged, packets of a pair of nodes arrive once and in
	// order, and those that are lost or damaged are sent again.
	Kind string `yaml:"kind"`
	// Timeout is from the moment at which a packet's turn on the wire comes to
	// the next time it is sent, unless it has been acknowledged: 1 ps to 1 s.
	// Beyond it a message that has lost one packet is later by Timeout.
	Timeout sim.Time `yaml:"timeout"`
	// Window is how many packets to one node may be without acknowledgement, 1
	// to 2^16; others wait at the NIC.
	Window int `yaml:"window"`
	// Retries is how often a packet is sent again, 0 to 2^16. After that the
	// messages to its node that are on their way fail with
	// PTL_NI_UNDELIVERABLE; later ones are tried anew.
	Retries int `yaml:"retries"`
	// AckBytes is the length of an acknowledgement without fabric.header, 0 to the MTU.
	AckBytes int `yaml:"ack_bytes" unit:"B"`
}

// Values of TransportSpec.Kind.
const (
	Lossless = "none"
	Reliable = "reliable"
)

// maxWindow bounds the packets and retries of a transport.
const maxWindow = 1 << 16

// Validate returns every violation for a network whose packets have up to mtu
// bytes, each with the field's name in a profile.
func (s *TransportSpec) Validate(mtu int32) error {
	var wrong fields.Errors
	wrong.OneOf("kind", s.Kind, Lossless, Reliable)
	fields.Between(&wrong, "timeout", s.Timeout, 1, MaxTime)
	fields.Between(&wrong, "window", s.Window, 1, maxWindow)
	fields.Between(&wrong, "retries", s.Retries, 0, maxWindow)
	fields.Between(&wrong, "ack_bytes", s.AckBytes, 0, int(max(0, mtu)))
	return wrong.Join()
}
