package nic

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// TransportSpec describes how packets get from NIC to NIC. It is the transport
// section of a profile. There are no defaults.
type TransportSpec struct {
	// Kind is "none" or "reliable". None is for a network that loses nothing; a
	// packet that is lost nevertheless is counted and named at the end of the
	// run. With reliable every packet is acknowledged, lost or damaged packets
	// are sent again, and the packets between a pair of nodes arrive once and
	// in order.
	Kind string `yaml:"kind"`
	// Timeout is the time from a packet's turn on the wire to its
	// retransmission, unless it has been acknowledged: 1 ps to 1 s. A message
	// that loses one packet is later by Timeout.
	Timeout sim.Time `yaml:"timeout"`
	// Window is how many unacknowledged packets to one node there may be, 1 to
	// 2^16. Others wait at the NIC.
	Window int `yaml:"window"`
	// Retries is how often a packet is sent again, 0 to 2^16. After that, the
	// messages to its node that are on their way fail with
	// PTL_NI_UNDELIVERABLE. Later messages are sent as usual.
	Retries int `yaml:"retries"`
	// AckBytes is the length of an acknowledgement without fabric.header,
	// bytes, 0 to the MTU.
	AckBytes int `yaml:"ack_bytes" unit:"B"`
}

// Values of TransportSpec.Kind.
const (
	Lossless = "none"
	Reliable = "reliable"
)

// maxWindow bounds the packets and retries of a transport.
const maxWindow = 1 << 16

// Validate returns every violation, each with the field's name in a profile.
// Packets of the network have up to mtu bytes.
func (s *TransportSpec) Validate(mtu int32) error {
	var wrong fields.Errors
	wrong.OneOf("kind", s.Kind, Lossless, Reliable)
	fields.Between(&wrong, "timeout", s.Timeout, 1, MaxTime)
	fields.Between(&wrong, "window", s.Window, 1, maxWindow)
	fields.Between(&wrong, "retries", s.Retries, 0, maxWindow)
	fields.Between(&wrong, "ack_bytes", s.AckBytes, 0, int(max(0, mtu)))
	return wrong.Join()
}
