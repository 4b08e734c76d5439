package ip

import (
	_ "embed" // the defaults
	"fmt"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/sim"
)

//go:embed ip.yaml
var defaults []byte

// Spec has the parameters of IP over ExaNet. ip.yaml has the defaults and their
// sources.
type Spec struct {
	// Management is the Ethernet for heartbeats. IP over ExaNet is compared
	// with it.
	Management EthernetSpec `yaml:"management"`

	// Heartbeat is the time between heartbeats of a service, 1 ps to 1 s.
	Heartbeat sim.Time `yaml:"heartbeat"`
	// DeadAfter is the time without a heartbeat after which a peer is dead,
	// Heartbeat to 100 s.
	DeadAfter sim.Time `yaml:"dead_after"`

	// MTU is the maximum size of an IP packet over ExaNet, 576 to 65,535.
	MTU int `yaml:"mtu" unit:"B"`
	// Queue is how many packets the device holds for the service, 1 to
	// 65,536.
	Queue int `yaml:"queue"`
	// Ring is the size of a ring, one for each peer and direction: two
	// batches to 16 MiB, a multiple of 16.
	Ring int `yaml:"ring" unit:"B"`
	// Slots is the maximum number of transfers that a peer has not yet
	// taken out of its ring, 1 to 1,024.
	Slots int `yaml:"slots"`
	// Batch is the maximum size of a transfer: the MTU and 32, up to 8 MiB.
	Batch int `yaml:"batch" unit:"B"`
	// BatchPackets is the maximum number of packets of a transfer, 1 to
	// 65,536.
	BatchPackets int `yaml:"batch_packets"`

	// Spin is how long an idle service polls before it sleeps, if it may, 1
	// ps to 1 s.
	Spin sim.Time `yaml:"spin"`
	// Sleep is the length of the first sleep, 1 ps to 1 s.
	Sleep sim.Time `yaml:"sleep"`
	// SleepMost is the limit of the doubling sleeps, Sleep to 1 s.
	SleepMost sim.Time `yaml:"sleep_most"`

	// Syscall is the duration of a system call, at most 1 s.
	Syscall sim.Time `yaml:"syscall"`
	// PacketOut is the kernel's code for an outgoing packet, at most 1 s.
	PacketOut sim.Time `yaml:"packet_out"`
	// PacketIn is the kernel's code for a received packet, at most 1 s.
	PacketIn sim.Time `yaml:"packet_in"`
	// Route is the service's own code for a packet, at most 1 s.
	Route sim.Time `yaml:"route"`
	// Wake is the time from an event to a program that slept in a system
	// call, at most 1 s.
	Wake sim.Time `yaml:"wake"`

	// RTOInitial is the retransmission time-out before the first measured
	// round trip (RFC 6298), RTOLeast to 100 s.
	RTOInitial sim.Time `yaml:"rto_initial"`
	// RTOLeast is the minimum time-out, 1 ps to 100 s.
	RTOLeast sim.Time `yaml:"rto_least"`
	// RTOMost is the limit of the doubling time-outs, RTOInitial to 100 s.
	RTOMost sim.Time `yaml:"rto_most"`
	// DelayedAck is the maximum delay of an acknowledgement (RFC 5681), 1
	// ps to 100 s.
	DelayedAck sim.Time `yaml:"delayed_ack"`
	// SendBuffer is the maximum of unacknowledged bytes of a connection, 4
	// KiB to 1 GiB.
	SendBuffer int `yaml:"send_buffer" unit:"B"`
	// ReceiveBuffer is the maximum of unread bytes of a connection or a
	// datagram socket, 4 KiB to 1 GiB.
	ReceiveBuffer int `yaml:"receive_buffer" unit:"B"`
}

// EthernetSpec describes the management network: one switch with a link to
// every node.
type EthernetSpec struct {
	// Rate is the rate of a link, in each direction.
	Rate sim.Rate `yaml:"rate"`
	// Wire is the propagation time of a link, 1 ps to 1 s.
	Wire sim.Time `yaml:"wire"`
	// Switch is the delay of the store-and-forward switch, at most 1 s.
	Switch sim.Time `yaml:"switch"`
	// Header is the frame's bytes beside its packet, 0 to 1,024.
	Header int `yaml:"header" unit:"B"`
	// MTU is the maximum size of a packet, 576 to 9,000.
	MTU int `yaml:"mtu" unit:"B"`
	// Queue is the send queue of a node's interface, 64 KiB to 1 GiB.
	Queue int `yaml:"queue" unit:"B"`
	// Interrupt is the time from the arrival of a frame to the driver's
	// code, at most 1 s.
	Interrupt sim.Time `yaml:"interrupt"`
}

// Load returns the defaults with overrides such as "sleep_most=100us". The
// error lists every violation.
func Load(overrides ...string) (*Spec, error) {
	s := new(Spec)
	if err := strictyaml.Load("ip.yaml", defaults, s, "ip", overrides); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("ip: %w", err)
	}
	return s, nil
}

// Bounds of a Spec.
const (
	maxTime   = sim.Second
	longest   = 100 * sim.Second
	leastMTU  = 576 // every host takes this (RFC 791)
	maxRing   = 1 << 24
	maxSlots  = 1 << 10
	maxQueue  = 1 << 16
	maxBuffer = 1 << 30
	granule   = 16 // unit of ring sizes and places, bytes
)

// Validate returns every violation, each with the field's name.
func (s *Spec) Validate() error {
	var wrong fields.Errors
	m := &s.Management
	wrong.Add("management.rate", m.Rate.Check())
	fields.Between(&wrong, "management.wire", m.Wire, 1, maxTime)
	fields.Between(&wrong, "management.switch", m.Switch, 0, maxTime)
	fields.Between(&wrong, "management.header", m.Header, 0, 1024)
	fields.Between(&wrong, "management.mtu", m.MTU, leastMTU, 9000)
	fields.Between(&wrong, "management.queue", m.Queue, 1<<16, maxBuffer)
	fields.Between(&wrong, "management.interrupt", m.Interrupt, 0, maxTime)
	fields.Between(&wrong, "heartbeat", s.Heartbeat, 1, maxTime)
	fields.Between(&wrong, "dead_after", s.DeadAfter, s.Heartbeat, longest)
	fields.Between(&wrong, "mtu", s.MTU, leastMTU, inet.MaxPacket)
	fields.Between(&wrong, "queue", s.Queue, 1, maxQueue)
	fields.Between(&wrong, "batch", s.Batch, s.MTU+2*granule, maxRing/2)
	fields.Between(&wrong, "batch_packets", s.BatchPackets, 1, maxQueue)
	fields.Between(&wrong, "ring", s.Ring, min(2*s.Batch, maxRing), maxRing)
	if s.Ring%granule != 0 {
		wrong.Add("ring", fmt.Errorf("want a multiple of %d, got %d", granule, s.Ring))
	}
	fields.Between(&wrong, "slots", s.Slots, 1, maxSlots)
	fields.Between(&wrong, "spin", s.Spin, 1, maxTime)
	fields.Between(&wrong, "sleep", s.Sleep, 1, maxTime)
	fields.Between(&wrong, "sleep_most", s.SleepMost, s.Sleep, maxTime)
	fields.Between(&wrong, "syscall", s.Syscall, 0, maxTime)
	fields.Between(&wrong, "packet_out", s.PacketOut, 0, maxTime)
	fields.Between(&wrong, "packet_in", s.PacketIn, 0, maxTime)
	fields.Between(&wrong, "route", s.Route, 0, maxTime)
	fields.Between(&wrong, "wake", s.Wake, 0, maxTime)
	fields.Between(&wrong, "rto_least", s.RTOLeast, 1, longest)
	fields.Between(&wrong, "rto_initial", s.RTOInitial, s.RTOLeast, longest)
	fields.Between(&wrong, "rto_most", s.RTOMost, s.RTOInitial, longest)
	fields.Between(&wrong, "delayed_ack", s.DelayedAck, 1, longest)
	fields.Between(&wrong, "send_buffer", s.SendBuffer, 1<<12, maxBuffer)
	fields.Between(&wrong, "receive_buffer", s.ReceiveBuffer, 1<<12, maxBuffer)
	return wrong.Join()
}
