package nic

import (
	"math"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// An interface has no less (Portals 4.x §3.6.1).
const leastPTIndex, leastWAW, leastWAR = 63, 64, 8

// LimitsSpec are the limits of a device's Portals interfaces (ptl_ni_limits_t, Portals 4.x §3.6.1): counts of objects, from 1 (the
// portal table index: from 0, at most 65,535), and sizes in bytes, from 0; each at most 2^31 - 1.
type LimitsSpec struct {
	MaxEntries           int      `yaml:"max_entries"`
	MaxUnexpectedHeaders int      `yaml:"max_unexpected_headers"`
	MaxMDs               int      `yaml:"max_mds"`
	MaxEQs               int      `yaml:"max_eqs"`
	MaxCTs               int      `yaml:"max_cts"`
	MaxPTIndex           int      `yaml:"max_pt_index"`
	MaxIOVecs            int      `yaml:"max_iovecs"`
	MaxListSize          int      `yaml:"max_list_size"`
	MaxTriggeredOps      int      `yaml:"max_triggered_ops"`
	MaxMsgSize           sim.Size `yaml:"max_msg_size"`
	MaxAtomicSize        sim.Size `yaml:"max_atomic_size"`
	MaxFetchAtomicSize   sim.Size `yaml:"max_fetch_atomic_size"`
	MaxWAWOrderedSize    sim.Size `yaml:"max_waw_ordered_size"`
	MaxWAROrderedSize    sim.Size `yaml:"max_war_ordered_size"`
	MaxVolatileSize      sim.Size `yaml:"max_volatile_size"`
	MaxUserHdrSize       sim.Size `yaml:"max_user_hdr_size"` // and at most one packet
	MaxInitialState      sim.Size `yaml:"max_initial_state"`
}

// Validate returns every violation, each with the field's name in a profile.
func (l *LimitsSpec) Validate() error {
	var wrong fields.Errors
	for _, f := range []struct {
		name  string
		value int
	}{
		{"max_entries", l.MaxEntries},
		{"max_unexpected_headers", l.MaxUnexpectedHeaders},
		{"max_mds", l.MaxMDs},
		{"max_eqs", l.MaxEQs},
		{"max_cts", l.MaxCTs},
		{"max_iovecs", l.MaxIOVecs},
		{"max_list_size", l.MaxListSize},
		{"max_triggered_ops", l.MaxTriggeredOps},
	} {
		fields.Between(&wrong, f.name, f.value, 1, math.MaxInt32)
	}
	fields.Between(&wrong, "max_pt_index", l.MaxPTIndex, leastPTIndex, math.MaxUint16)
	message := int64(l.MaxMsgSize)
	for _, f := range []struct {
		name        string
		value       sim.Size
		least, most int64
	}{
		{"max_msg_size", l.MaxMsgSize, 1, math.MaxInt32},
		{"max_atomic_size", l.MaxAtomicSize, 0, message},
		{"max_fetch_atomic_size", l.MaxFetchAtomicSize, 0, message},
		{"max_waw_ordered_size", l.MaxWAWOrderedSize, leastWAW, max(leastWAW, message)},
		{"max_war_ordered_size", l.MaxWAROrderedSize, leastWAR, max(leastWAR, message)},
		{"max_volatile_size", l.MaxVolatileSize, 0, message},
		{"max_user_hdr_size", l.MaxUserHdrSize, 0, math.MaxInt32},
		{"max_initial_state", l.MaxInitialState, 0, math.MaxInt32},
	} {
		fields.Between(&wrong, f.name, int64(f.value), f.least, f.most)
	}
	return wrong.Join()
}

// Limits are the limits as package portals takes them, with those that the network, whose packets have up to mtu bytes, and the HPUs
// decide.
func (l *LimitsSpec) Limits(mtu int32, hpus *HPUSpec) portals.Limits {
	return portals.Limits{
		MaxEntries: l.MaxEntries, MaxUnexpectedHeaders: l.MaxUnexpectedHeaders,
		MaxMDs: l.MaxMDs, MaxEQs: l.MaxEQs, MaxCTs: l.MaxCTs, MaxPTIndex: l.MaxPTIndex, MaxIOVecs: l.MaxIOVecs,
		MaxListSize: l.MaxListSize, MaxTriggeredOps: l.MaxTriggeredOps,
		MaxMsgSize: uint64(l.MaxMsgSize), MaxAtomicSize: uint64(l.MaxAtomicSize),
		MaxFetchAtomicSize: uint64(l.MaxFetchAtomicSize), MaxWAWOrderedSize: uint64(l.MaxWAWOrderedSize),
		MaxWAROrderedSize: uint64(l.MaxWAROrderedSize), MaxVolatileSize: uint64(l.MaxVolatileSize),
		MaxUserHdrSize: uint64(min(l.MaxUserHdrSize, sim.Size(mtu))), MaxPayloadSize: uint64(mtu),
		MaxHandlerMem: uint64(hpus.MaxHPUMemory), MaxInitialState: uint64(l.MaxInitialState),
		MinFragmentationLimit: uint64(mtu), MaxCyclesPerByte: uint64(hpus.MaxCyclesPerByte),
		// Atomics change host memory in place, at one moment. Data is not totally ordered: on a full-duplex bus a get may read
		// memory before a put ahead of it has landed.
		Features: portals.FeatureTargetBindInaccessible | portals.FeatureCoherentAtomics,
	}
}
