package host

import (
	"errors"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// maxRecord is the largest record of an event, in bytes.
const maxRecord = 4096

// BusSpec describes the bus between the devices and the memory of a node
// (sPIN'17 §4). It is the dma section of a profile, which also has the source
// of each value. There are no defaults.
type BusSpec struct {
	// Latency is one way, at most 1 s. A write pays it once, a read twice, unless
	// WriteWays and ReadWays say otherwise.
	Latency sim.Time `yaml:"latency"`
	// WriteWays is how often a write pays Latency: 1, or 2 if it has ended when the
	// memory has answered, so that its data counts as there then (sPIN'17 C.3.2 has
	// two latencies for a read, and says nothing of a write). 0 or absent: 1.
	WriteWays int `yaml:"write_ways,omitempty"`
	// ReadWays is how often a read pays Latency: 2, or 1 if that is the time of the
	// whole access. 0 or absent: 2.
	ReadWays int `yaml:"read_ways,omitempty"`
	// Bandwidth is the rate of the bus or, with SharedMemory, the rate at which a
	// transfer uses the memory controller. A byte takes at most 1 ms. 0: bytes
	// take no time.
	Bandwidth sim.Rate `yaml:"bandwidth"`
	// Gap is the time for which a transfer holds the bus besides its bytes, at
	// most 1 s. 0 or absent: none. It needs ChargeFull and no SharedMemory.
	Gap sim.Time `yaml:"gap,omitempty"`
	// FullDuplex gives reads and writes a bandwidth of their own each.
	FullDuplex bool `yaml:"full_duplex"`
	// SharedMemory makes transfers use the memory controller instead of a bus, so
	// that they compete with the cores.
	SharedMemory bool `yaml:"shared_memory"`
	// EventBytes is the length of the record that follows the data of a message, 0
	// to 4096.
	EventBytes int `yaml:"event_bytes" unit:"B"`
	// Charge is ChargeFull or ChargeLatency.
	Charge string `yaml:"charge"`
}

// Values of BusSpec.Charge.
const (
	// ChargeFull: every transfer occupies the bus for its bytes, and a fetch
	// crosses it twice.
	ChargeFull = "full"
	// ChargeLatency: deposits, records and handlers' writes cost only the latency.
	// A fetch of the data of a put costs it once. Nothing waits for the bus.
	// Handlers' reads take the time of their bytes (LogGOPSim2).
	ChargeLatency = "latency"
)

// Validate returns every violation, each with the field's name in a profile.
func (s *BusSpec) Validate() error {
	var wrong fields.Errors
	fields.Between(&wrong, "latency", s.Latency, 0, maxTime)
	fields.Between(&wrong, "write_ways", s.WriteWays, 0, 2)
	fields.Between(&wrong, "read_ways", s.ReadWays, 0, 2)
	wrong.Add("bandwidth", s.Bandwidth.Check())
	fields.Between(&wrong, "gap", s.Gap, 0, maxTime)
	if s.Gap > 0 && (s.SharedMemory || s.Charge == ChargeLatency) {
		wrong.Add("gap", errors.New("a transfer holds no bus with shared_memory or charge: latency"))
	}
	fields.Between(&wrong, "event_bytes", s.EventBytes, 0, maxRecord)
	wrong.OneOf("charge", s.Charge, ChargeFull, ChargeLatency)
	return wrong.Join()
}
