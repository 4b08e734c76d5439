package runtime

import (
	"math"

	"github.com/spinsim/spinsim/portals"
)

// LimitsSpec are the limits of a device's Portals interfaces (ptl_ni_limits_t, Portals 4.x §3.6.1): counts of objects, from 1 (the
// portal table index: from 0, at most 65,535), and sizes in bytes, from 0; each at most 2^31 - 1.
type LimitsSpec struct {
	MaxEntries           int  `yaml:"max_entries"`
	MaxUnexpectedHeaders int  `yaml:"max_unexpected_headers"`
	MaxMDs               int  `yaml:"max_mds"`
	MaxEQs               int  `yaml:"max_eqs"`
	MaxCTs               int  `yaml:"max_cts"`
	MaxPTIndex           int  `yaml:"max_pt_index"`
	MaxIOVecs            int  `yaml:"max_iovecs"`
	MaxListSize          int  `yaml:"max_list_size"`
	MaxTriggeredOps      int  `yaml:"max_triggered_ops"`
	MaxMsgSize           Size `yaml:"max_msg_size"`
	MaxAtomicSize        Size `yaml:"max_atomic_size"`
	MaxFetchAtomicSize   Size `yaml:"max_fetch_atomic_size"`
	MaxWAWOrderedSize    Size `yaml:"max_waw_ordered_size"`
	MaxWAROrderedSize    Size `yaml:"max_war_ordered_size"`
	MaxVolatileSize      Size `yaml:"max_volatile_size"`
	MaxUserHdrSize       Size `yaml:"max_user_hdr_size"` // and at most one packet
	MaxInitialState      Size `yaml:"max_initial_state"`
}

func (l *LimitsSpec) check(c *checker) {
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
		c.between("limits."+f.name, int64(f.value), 1, math.MaxInt32)
	}
	// An interface has no less (Portals 4.x §3.6.1).
	const leastPTIndex, leastWAW, leastWAR = 63, 64, 8
	c.between("limits.max_pt_index", int64(l.MaxPTIndex), leastPTIndex, math.MaxUint16)
	c.between("limits.max_msg_size", int64(l.MaxMsgSize), 1, math.MaxInt32)
	c.between("limits.max_atomic_size", int64(l.MaxAtomicSize), 0, int64(l.MaxMsgSize))
	c.between("limits.max_fetch_atomic_size", int64(l.MaxFetchAtomicSize), 0, int64(l.MaxMsgSize))
	c.between("limits.max_waw_ordered_size", int64(l.MaxWAWOrderedSize), leastWAW, max(leastWAW, int64(l.MaxMsgSize)))
	c.between("limits.max_war_ordered_size", int64(l.MaxWAROrderedSize), leastWAR, max(leastWAR, int64(l.MaxMsgSize)))
	c.between("limits.max_volatile_size", int64(l.MaxVolatileSize), 0, int64(l.MaxMsgSize))
	c.between("limits.max_user_hdr_size", int64(l.MaxUserHdrSize), 0, math.MaxInt32)
	c.between("limits.max_initial_state", int64(l.MaxInitialState), 0, math.MaxInt32)
}

// portals are the limits as package portals takes them, with those that other parts of the profile decide.
func (l *LimitsSpec) portals(p *Profile) portals.Limits {
	return portals.Limits{
		MaxEntries: l.MaxEntries, MaxUnexpectedHeaders: l.MaxUnexpectedHeaders,
		MaxMDs: l.MaxMDs, MaxEQs: l.MaxEQs, MaxCTs: l.MaxCTs, MaxPTIndex: l.MaxPTIndex, MaxIOVecs: l.MaxIOVecs,
		MaxListSize: l.MaxListSize, MaxTriggeredOps: l.MaxTriggeredOps,
		MaxMsgSize: uint64(l.MaxMsgSize), MaxAtomicSize: uint64(l.MaxAtomicSize),
		MaxFetchAtomicSize: uint64(l.MaxFetchAtomicSize), MaxWAWOrderedSize: uint64(l.MaxWAWOrderedSize),
		MaxWAROrderedSize: uint64(l.MaxWAROrderedSize), MaxVolatileSize: uint64(l.MaxVolatileSize),
		MaxUserHdrSize: uint64(min(l.MaxUserHdrSize, Size(p.Fabric.MTU))), MaxPayloadSize: uint64(p.Fabric.MTU),
		MaxHandlerMem: uint64(p.HPU.MaxHPUMemory), MaxInitialState: uint64(l.MaxInitialState),
		MinFragmentationLimit: uint64(p.Fabric.MTU), MaxCyclesPerByte: uint64(p.HPU.MaxCyclesPerByte),
		// Atomics change host memory in place, at one moment. Data is not totally ordered: on a full-duplex bus a get may read
		// memory before a put ahead of it has landed.
		Features: portals.FeatureTargetBindInaccessible | portals.FeatureCoherentAtomics,
	}
}
