package nic

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Tenants are the owners of handlers that share the processors of a device, by
// name. Processes whose user id none of them has are one tenant more, of weight
// 1 and without budgets of its own.
type Tenants map[string]Tenant

// Tenant is the processes of a node with a user id (Portals 4.x §3.7), their
// share of the device and their budgets. Absent budgets are the device's own.
// OSMOSIS (arXiv 2309.03628) gives each execution context such a policy.
type Tenant struct {
	// UID is the user id of its processes.
	UID uint32 `yaml:"uid"`
	// Weight is its part of the processors, beside the weights of others that
	// want them, 1 to 65,536. Policy fifo ignores it.
	Weight int `yaml:"weight"`
	// Handlers is how many of its handlers may be under way at a time, at most
	// 2^16, also while processors are idle: so others find idle ones. Policy fifo
	// has no such limit.
	Handlers int `yaml:"handlers,omitempty"`
	// MaxCycles is the budget of a handler, cycles, at most that of hpu.max_cycles
	// and hpu.max_cycles_per_byte, which apply as well: the watchdog ends a handler
	// beyond it.
	MaxCycles int64 `yaml:"max_cycles,omitempty"`
	// WaitingHandlers is how many handlers may wait for a processor, of
	// hpu.waiting_handlers.
	WaitingHandlers int `yaml:"waiting_handlers,omitempty"`
	// PacketBuffer is how many bytes of packets may wait for a processor, of
	// nic.packet_buffer.
	PacketBuffer sim.Size `yaml:"packet_buffer,omitempty"`
	// DMABytes is how many bytes of DMA operations its handlers may have, on the bus
	// or waiting for their turn, before further non-blocking ones get NO_SPACE: of
	// hpu.dma_bytes. So much of its reads is on the way. One larger operation goes
	// alone.
	DMABytes sim.Size `yaml:"dma_bytes,omitempty"`
	// HandlerCommands is how many commands its handlers may have pending, before
	// further ones get NO_SPACE: of nic.handler_commands.
	HandlerCommands int `yaml:"handler_commands,omitempty"`
	// NodeMemory is how much memory of the NIC its programs may have, of
	// hpu.node_memory.
	NodeMemory sim.Size `yaml:"node_memory,omitempty"`
}

// Values of HPUSpec.Arbiter: which tenant's oldest handler an idle processor
// takes.
const (
	// FIFO: the oldest of all, whoever owns it.
	FIFO = "fifo"
	// RoundRobin: that of each tenant in turn (OSMOSIS' baseline).
	RoundRobin = "round-robin"
	// WFQ: that of the tenant whose handlers have had the processors for the least
	// time, divided by its weight (weighted fair queueing; start times as in Goyal
	// 1996).
	WFQ = "wfq"
	// WLBVT: that of the tenant with the least mean number of processors over the
	// time in which it wanted any, divided by its weight. It has at most as many
	// handlers under way as its part of the processors, rounded up, by the
	// weights of those with handlers that wait (OSMOSIS: weight-limited borrowed
	// virtual time; FMQEngine.hpp of its simulator, which counts handlers that wait
	// for memory as if they had a processor).
	WLBVT = "wlbvt"
)

// Arbiters lists the values of HPUSpec.Arbiter.
func Arbiters() []string { return []string{FIFO, RoundRobin, WFQ, WLBVT} }

const maxWeight = 1 << 16

var tenantName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Names lists the tenants in alphabetical order.
func (t Tenants) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Validate returns every violation for a device, each with the field's name in a
// profile.
func (t Tenants) Validate(h *HPUSpec, n *Spec) error {
	var wrong fields.Errors
	of := make(map[uint32]string)
	for _, name := range t.Names() {
		o := t[name]
		if !tenantName.MatchString(name) {
			wrong.Add(fmt.Sprintf("%q", name), errors.New("expected a name of letters, digits, _ and -"))
		}
		if other, taken := of[o.UID]; taken {
			wrong.Add(name+".uid", fmt.Errorf("%d, which tenant %s has: expected another", o.UID, other))
		}
		of[o.UID] = name
		fields.Between(&wrong, name+".weight", o.Weight, 1, maxWeight)
		fields.Between(&wrong, name+".handlers", o.Handlers, 0, maxHandles)
		if o.Handlers > 0 && (h.Arbiter == "" || h.Arbiter == FIFO) {
			wrong.Add(name+".handlers", fmt.Errorf("%d without an order that looks at tenants: expected hpu.arbiter %s, %s or %s", o.Handlers, RoundRobin, WFQ, WLBVT))
		}
		fields.Between(&wrong, name+".max_cycles", o.MaxCycles, 0, maxBudget)
		fields.Between(&wrong, name+".waiting_handlers", o.WaitingHandlers, 0, max(h.WaitingHandlers, 0))
		fields.Between(&wrong, name+".packet_buffer", int64(o.PacketBuffer), 0, max(int64(n.PacketBuffer), 0))
		fields.Between(&wrong, name+".dma_bytes", int64(o.DMABytes), 0, max(int64(h.DMABytes), 0))
		if o.DMABytes > 0 && (h.Arbiter == "" || h.Arbiter == FIFO) {
			wrong.Add(name+".dma_bytes", fmt.Errorf("%v without an order that looks at tenants: expected hpu.arbiter %s, %s or %s", o.DMABytes, RoundRobin, WFQ, WLBVT))
		}
		fields.Between(&wrong, name+".handler_commands", o.HandlerCommands, 0, max(n.HandlerCommands, 0))
		fields.Between(&wrong, name+".node_memory", int64(o.NodeMemory), 0, max(int64(h.NodeMemory), 0))
	}
	return wrong.Join()
}
