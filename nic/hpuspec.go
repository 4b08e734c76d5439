package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of an HPUSpec.
const (
	minClock = 1e6  // Hz
	maxClock = 1e12 // Hz
	// maxBudget is the greatest budget of a handler, cycles. A handler that
	// runs cannot be interrupted, nor can Go collect garbage meanwhile, so it
	// must end by itself soon: this takes about a second of real time.
	maxBudget     = 1_000_000_000
	maxWaiting    = 1 << 24 // handlers
	maxHandles    = 1 << 16
	minNodeMemory = 1 << 16 // bytes
)

// HPUSpec describes the handler processing units (sPIN'17 §4). It is the hpu
// section of a profile, where each value's source stands; there are no
// defaults.
type HPUSpec struct {
	// Clock is 1 MHz to 1 THz.
	Clock sim.Frequency `yaml:"clock"`
	// Cores is the number of HPUs, 1 to 4096.
	Cores int `yaml:"cores"`
	// Contexts is how many handlers an HPU holds, one of which runs, 1 to 4096;
	// Cores times Contexts is at most 65,536.
	Contexts int `yaml:"contexts"`
	// Clusters is how many clusters the HPUs form, each of as many: a divisor
	// of Cores. 0 or absent: one. A cluster has scratchpads of its own
	// (portals.Spin); the time of an access does not depend on whose they are.
	Clusters int `yaml:"clusters,omitempty"`
	// StackBytes is the shadow stack of a context, bytes, 0 to 2^24.
	StackBytes int `yaml:"stack_bytes" unit:"B"`
	// Dispatch is the time from a packet being ready to the handler's first cycle, at most 1 s.
	Dispatch sim.Time `yaml:"dispatch"`
	// MaxCycles is the budget of a handler, 1 to 10^9 cycles.
	MaxCycles int64 `yaml:"max_cycles"`
	// MaxCyclesPerByte is what each byte of its packet adds to the budget,
	// cycles; for a packet of the MTU both together are at most 10^9.
	MaxCyclesPerByte int64 `yaml:"max_cycles_per_byte"`
	// WaitingHandlers is how many handlers of a node may wait for an HPU, 1 to
	// 2^24. A message, or a packet, whose header or payload handler would be
	// one more is dropped as if the packet buffer were full.
	WaitingHandlers int `yaml:"waiting_handlers"`
	// DMAHandles is the non-blocking DMA operations one handler may have open, 1 to 65,536.
	DMAHandles int `yaml:"dma_handles"`
	// DMABytes is how many bytes DMA operations of a node's handlers may have
	// on their way, 1 to 2^40, those included that a handler has asked for
	// since it was last suspended. Beyond it a non-blocking operation is
	// NO_SPACE and a blocking one waits; one of more bytes goes alone.
	DMABytes sim.Size `yaml:"dma_bytes"`
	// MaxCodeBytes is the code section of a module, bytes, 1 to 2^26.
	MaxCodeBytes int `yaml:"max_code_bytes" unit:"B"`
	// MaxFunctions is the functions that a module defines, 1 to 2^20.
	MaxFunctions int `yaml:"max_functions"`
	// MaxMemoryBytes is the memory that a module declares, bytes.
	MaxMemoryBytes int64 `yaml:"max_memory_bytes" unit:"B"`
	// MaxHPUMemory is the HPU memory of one program, bytes.
	MaxHPUMemory int64 `yaml:"max_hpu_memory" unit:"B"`
	// NodeMemory is the bytes, 2^16 to 2^40, of all programs of a node: what
	// the modules declare and the HPU memory.
	NodeMemory sim.Size `yaml:"node_memory"`
	// MaxCallDepth is the active calls of functions that may recurse, 1 to 1024; see hpu.Spec.
	MaxCallDepth int `yaml:"max_call_depth"`
	// DMAWrite is what a blocking write to host memory holds a handler for: Initiated or Landed.
	DMAWrite string `yaml:"dma_write"`
	// Charge is ChargeCycles or ChargeNothing.
	Charge string `yaml:"charge"`
	// Costs is what instructions and imports cost. A profile has the table
	// here, or the name of a built-in one.
	Costs hpu.CostTable `yaml:"costs"`
}

// Values of HPUSpec.DMAWrite.
const (
	Initiated = "initiated" // until the write is initiated on the bus (sPIN'17 appendix C.3.2)
	Landed    = "landed"    // until its data has landed (sPIN'17 appendix B.5)
)

// Values of HPUSpec.Charge.
const (
	ChargeCycles  = "cycles"  // a handler takes the time of its cycles
	ChargeNothing = "nothing" // they count against its budget, but take no time
)

// Time is how long cycles of a handler take.
func (s *HPUSpec) Time(cycles int64) sim.Time {
	if s.Charge == ChargeNothing {
		return 0
	}
	return s.Clock.Cycles(cycles)
}

// Device is what the module loader has to know, for a network whose packets have up to mtu bytes.
func (s *HPUSpec) Device(mtu int32) *hpu.Spec {
	return &hpu.Spec{
		Cores: s.Cores, Clusters: s.Clusters, Contexts: s.Contexts,
		PacketBytes: int(mtu), StackBytes: s.StackBytes,
		MaxCodeBytes: s.MaxCodeBytes, MaxFunctions: s.MaxFunctions,
		MaxMemoryBytes: s.MaxMemoryBytes, MaxHPUMemoryBytes: s.MaxHPUMemory,
		MaxCallDepth: s.MaxCallDepth, Costs: s.Costs,
	}
}

// Validate returns every violation for a network whose packets have up to mtu
// bytes, each with the field's name in a profile. What is wrong with mtu itself
// is not said.
func (s *HPUSpec) Validate(mtu int32) error {
	var wrong fields.Errors
	fields.Between(&wrong, "clock", int64(s.Clock), minClock, maxClock)
	fields.Between(&wrong, "dispatch", s.Dispatch, 0, MaxTime)
	fields.Between(&wrong, "max_cycles", s.MaxCycles, 1, maxBudget)
	fields.Between(&wrong, "max_cycles_per_byte", s.MaxCyclesPerByte, 0, max(0, maxBudget-s.MaxCycles)/max(1, int64(mtu)))
	fields.Between(&wrong, "waiting_handlers", s.WaitingHandlers, 1, maxWaiting)
	fields.Between(&wrong, "dma_handles", s.DMAHandles, 1, maxHandles)
	fields.Between(&wrong, "dma_bytes", int64(s.DMABytes), 1, maxBuffer)
	fields.Between(&wrong, "node_memory", int64(s.NodeMemory), minNodeMemory, maxBuffer)
	wrong.OneOf("dma_write", s.DMAWrite, Initiated, Landed)
	wrong.OneOf("charge", s.Charge, ChargeCycles, ChargeNothing)
	if err := s.Device(max(1, min(mtu, fabric.MaxMTU))).Validate(); err != nil {
		wrong = append(wrong, err)
	}
	return wrong.Join()
}
