package host

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// maxRecord is the most bytes of an event's record.
const maxRecord = 4096

// BusSpec describes the bus between the devices and the memory of a node
// (sPIN'17 §4). It is the dma section of a profile, where each value's source
// stands; there are no defaults.
type BusSpec struct {
	// Latency is one way, at most 1 s; a write pays it once, a read twice.
	Latency sim.Time `yaml:"latency"`
	// Bandwidth is that of the bus or, if SharedMemory, at which a transfer
	// takes the memory controller; a byte takes at most 1 ms. 0: no time.
	Bandwidth sim.Rate `yaml:"bandwidth"`
	// FullDuplex says that reads and writes do not share the bandwidth.
	FullDuplex bool `yaml:"full_duplex"`
	// SharedMemory says that transfers contend with the cores for host memory,
	// whose controller they take in the place of a bus.
	SharedMemory bool `yaml:"shared_memory"`
	// EventBytes is the bytes of the record that follows the data of a message, 0 to 4096.
	EventBytes int `yaml:"event_bytes" unit:"B"`
	// Charge is ChargeFull or ChargeLatency.
	Charge string `yaml:"charge"`
}

// Values of BusSpec.Charge.
const (
	// ChargeFull: every transfer takes the bus for its bytes, and a fetch crosses it twice.
	ChargeFull = "full"
	// ChargeLatency: deposits, records and writes of handlers cost the latency
	// only, a fetch of the data of a put costs it once, and nothing waits for
	// the bus; handlers' reads take the time of their bytes (LogGOPSim2).
	ChargeLatency = "latency"
)

// Validate returns every violation, each with the field's name in a profile.
func (s *BusSpec) Validate() error {
	var wrong fields.Errors
	fields.Between(&wrong, "latency", s.Latency, 0, maxTime)
	wrong.Add("bandwidth", s.Bandwidth.Check())
	fields.Between(&wrong, "event_bytes", s.EventBytes, 0, maxRecord)
	wrong.OneOf("charge", s.Charge, ChargeFull, ChargeLatency)
	return wrong.Join()
}
