package nic

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of an HPUSpec.
const (
	minClock = 1e6  // Hz
	maxClock = 1e12 // Hz
	// maxBudget is the greatest budget of a handler, cycles. A running handler
	// cannot be interrupted, and Go cannot collect garbage meanwhile. So the
	// handler must end soon: this budget takes about a second of real time.
	maxBudget     = 1_000_000_000
	maxWaiting    = 1 << 24 // handlers
	maxHandles    = 1 << 16
	minNodeMemory = 1 << 16 // bytes
	minFragment   = 64      // bytes
)

// HPUSpec describes the handler processing units (sPIN'17 §4). It is the hpu
// section of a profile, which gives the source of each value. There are no
// defaults.
type HPUSpec struct {
	// Clock is 1 MHz to 1 THz.
	Clock sim.Frequency `yaml:"clock"`
	// Cores is the number of HPUs, 1 to 4096.
	Cores int `yaml:"cores"`
	// Contexts is how many handlers an HPU holds, 1 to 4096. One of them runs.
	// Cores times Contexts is at most 65,536.
	Contexts int `yaml:"contexts"`
	// Clusters is the number of clusters of equal size that the HPUs form: a
	// divisor of Cores. 0 or absent: one. Each cluster has its own scratchpads
	// (portals.Spin). The time of an access is the same in all scratchpads.
	Clusters int `yaml:"clusters,omitempty"`
	// StackBytes is the size of the shadow stack of a context, bytes, 0 to
	// 2^24.
	StackBytes int `yaml:"stack_bytes" unit:"B"`
	// Dispatch is the time from when a packet is ready to the handler's first
	// cycle, at most 1 s. It may be given in cycles of Clock, as all of type Delay:
	// "16 cycles".
	Dispatch Delay `yaml:"dispatch"`
	// Home is which HPUs a handler may run on: absent, any that is idle;
	// HomeMessage, those of one cluster. That is the home of the message, or the
	// cluster with the fewest handlers if the home has all that it takes
	// (ClusterTasks). Dispatch is then the time from when a cluster takes a
	// handler until one of its HPUs can begin it, and holds no HPU. It needs two
	// Clusters or more.
	Home string `yaml:"home,omitempty"`
	// Arbiter is which handler an idle HPU takes, or a cluster with room: FIFO,
	// RoundRobin, WFQ or WLBVT. Absent: FIFO. With others than FIFO tenants also take
	// turns on the bus and at the egress; but with transport.kind reliable, packets
	// to one node wait for its window in the order in which they come. They need
	// tenants, and ClusterTasks of 0: what a cluster has taken in advance is in no
	// order of tenants.
	Arbiter string `yaml:"arbiter,omitempty"`
	// Fragment is the length of the pieces in which DMA operations of the tenants
	// with the greatest weight take turns on the bus, 64 B or more; others have
	// shorter ones, but with RoundRobin. Operations on a region of vectors go as a
	// whole, and so do packets that no handler takes; those that have waited for a
	// page have no turn. Absent: all go as a whole. It needs an Arbiter other than
	// FIFO.
	Fragment sim.Size `yaml:"fragment,omitempty"`
	// ClusterTasks is how many handlers a cluster takes in advance: as many as
	// its HPUs, and so many more, 0 to 2^16. It needs a Home.
	ClusterTasks int `yaml:"cluster_tasks,omitempty"`
	// Copy is the rate at which a cluster copies packets into its own memory,
	// one after the other, before Dispatch. 0 or absent: a copy takes no time.
	// It needs a Home.
	Copy sim.Rate `yaml:"copy,omitempty"`
	// Finish is the time for which an HPU is held behind a handler's last cycle,
	// at most 1 s.
	Finish Delay `yaml:"finish,omitempty"`
	// Feedback is the time behind Finish until the device has been told of the
	// handler's end, at most 1 s. It holds the HPU, too.
	Feedback Delay `yaml:"feedback,omitempty"`
	// Send is the time until a packet that a handler sends from HPU memory has
	// left, besides its bytes at the rate Copy, at most 1 s. The handler's end
	// waits for it, whatever else leaves meanwhile. 0 or absent: the end waits
	// for no packet.
	Send Delay `yaml:"send,omitempty"`
	// MaxCycles is the budget of a handler, 1 to 10^9 cycles.
	MaxCycles int64 `yaml:"max_cycles"`
	// MaxCyclesPerByte is added to the budget for each byte of the handler's
	// packet, cycles. For a packet of the MTU, both together are at most 10^9.
	MaxCyclesPerByte int64 `yaml:"max_cycles_per_byte"`
	// WaitingHandlers is how many handlers of a node may wait for an HPU, 1 to
	// 2^24. Beyond it, a message that needs a header handler, or a packet that
	// needs a payload handler, is dropped as if the packet buffer were full.
	WaitingHandlers int `yaml:"waiting_handlers"`
	// DMAHandles is how many non-blocking DMA operations one handler may have
	// open, 1 to 65,536.
	DMAHandles int `yaml:"dma_handles"`
	// DMABytes is how many bytes the DMA operations of a node's handlers may
	// have on their way, 1 to 2^40. The operations that a handler has requested
	// since it was last suspended count, too. Beyond it, a non-blocking
	// operation is NO_SPACE and a blocking one waits. An operation of more
	// bytes than DMABytes goes alone.
	DMABytes sim.Size `yaml:"dma_bytes"`
	// MaxCodeBytes is the largest code section of a module, bytes, 1 to 2^26.
	MaxCodeBytes int `yaml:"max_code_bytes" unit:"B"`
	// MaxFunctions is how many functions a module may define, 1 to 2^20.
	MaxFunctions int `yaml:"max_functions"`
	// MaxMemoryBytes is the largest memory that a module may declare, bytes.
	MaxMemoryBytes int64 `yaml:"max_memory_bytes" unit:"B"`
	// MaxHPUMemory is the largest HPU memory of one program, bytes.
	MaxHPUMemory int64 `yaml:"max_hpu_memory" unit:"B"`
	// NodeMemory is the memory for all programs of a node, 2^16 to 2^40 bytes:
	// the memory that modules declare and the HPU memory.
	NodeMemory sim.Size `yaml:"node_memory"`
	// MaxCallDepth is how many calls of functions that may recurse can be
	// active, 1 to 1024; see hpu.Spec.
	MaxCallDepth int `yaml:"max_call_depth"`
	// DMAWrite is how long a blocking write to host memory holds its handler:
	// Initiated or Landed.
	DMAWrite string `yaml:"dma_write"`
	// Charge is ChargeCycles or ChargeNothing.
	Charge string `yaml:"charge"`
	// Costs are the costs of instructions and imports. A profile has the table
	// here, or the name of a built-in one.
	Costs hpu.CostTable `yaml:"costs"`
}

// Values of HPUSpec.DMAWrite.
const (
	Initiated = "initiated" // until the write is initiated on the bus (sPIN'17 appendix C.3.2)
	Landed    = "landed"    // until its data has landed (sPIN'17 appendix B.5)
)

// HomeMessage is a value of HPUSpec.Home.
const HomeMessage = "message"

// Values of HPUSpec.Charge.
const (
	ChargeCycles  = "cycles"  // a handler takes the time of its cycles
	ChargeNothing = "nothing" // cycles count against the budget, but take no time
)

// Time is how long a handler takes for a number of cycles.
func (s *HPUSpec) Time(cycles int64) sim.Time {
	if s.Charge == ChargeNothing {
		return 0
	}
	return s.Clock.Cycles(cycles)
}

// Device is the part that the module loader needs, for a network with packets
// of up to mtu bytes.
func (s *HPUSpec) Device(mtu int32) *hpu.Spec {
	return &hpu.Spec{
		Cores: s.Cores, Clusters: s.Clusters, Contexts: s.Contexts,
		PacketBytes: int(mtu), StackBytes: s.StackBytes,
		MaxCodeBytes: s.MaxCodeBytes, MaxFunctions: s.MaxFunctions,
		MaxMemoryBytes: s.MaxMemoryBytes, MaxHPUMemoryBytes: s.MaxHPUMemory,
		MaxCallDepth: s.MaxCallDepth, Costs: s.Costs,
	}
}

// Validate returns every violation, each with the field's name in a profile.
// Packets of the network have up to mtu bytes. Validate does not check mtu
// itself.
func (s *HPUSpec) Validate(mtu int32) error {
	var wrong fields.Errors
	fields.Between(&wrong, "clock", int64(s.Clock), minClock, maxClock)
	wrong.Add("dispatch", s.Dispatch.check(s.Clock))
	if s.Arbiter != "" {
		wrong.OneOf("arbiter", s.Arbiter, Arbiters()...)
		if s.Arbiter != FIFO && s.ClusterTasks > 0 {
			wrong.Add("cluster_tasks", fmt.Errorf("%d with arbiter %s, expected 0: what a cluster takes in advance is in no order of tenants", s.ClusterTasks, s.Arbiter))
		}
	}
	if s.Fragment != 0 {
		fields.Between(&wrong, "fragment", int64(s.Fragment), minFragment, maxBuffer)
		if s.Arbiter == "" || s.Arbiter == FIFO {
			wrong.Add("fragment", fmt.Errorf("%v without an arbiter that gives tenants turns: expected hpu.arbiter %s, %s or %s", s.Fragment, RoundRobin, WFQ, WLBVT))
		}
	}
	if s.Home != "" {
		wrong.OneOf("home", s.Home, HomeMessage)
	}
	if s.Home != "" && s.Clusters < 2 {
		wrong.Add("home", fmt.Errorf("%s needs hpu.clusters of 2 or more", s.Home))
	}
	if s.Home == "" && (s.ClusterTasks != 0 || !s.Copy.IsZero()) {
		wrong.Add("home", errors.New("absent, but cluster_tasks and copy need one"))
	}
	fields.Between(&wrong, "cluster_tasks", s.ClusterTasks, 0, 1<<16)
	wrong.Add("copy", s.Copy.Check())
	wrong.Add("finish", s.Finish.check(s.Clock))
	wrong.Add("feedback", s.Feedback.check(s.Clock))
	wrong.Add("send", s.Send.check(s.Clock))
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
