package nic

import (
	"math"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// The least values of an interface (Portals 4.x §3.6.1).
const leastPTIndex, leastWAW, leastWAR = 63, 64, 8

// LimitsSpec are the limits of a device's Portals interfaces (ptl_ni_limits_t,
// Portals 4.x §3.6.1, with the additions of sPIN'17). It is the limits section
// of a profile. The standard leaves the values to the device, and there are no
// defaults. Counts and sizes are at most 2^31 - 1. The other limits of an
// interface follow from the MTU and the HPUs: see Limits.
type LimitsSpec struct {
	// MaxEntries is how many list and match list entries may be allocated at
	// one time, at least 1.
	MaxEntries int `yaml:"max_entries"`
	// MaxUnexpectedHeaders is how many headers the unexpected lists may hold at
	// one time, at least 1.
	MaxUnexpectedHeaders int `yaml:"max_unexpected_headers"`
	// MaxMDs is how many memory descriptors may be bound at one time, at least
	// 1.
	MaxMDs int `yaml:"max_mds"`
	// MaxEQs is how many event queues may be allocated at one time, at least 1.
	MaxEQs int `yaml:"max_eqs"`
	// MaxCTs is how many counting events may be allocated at one time, at least
	// 1.
	MaxCTs int `yaml:"max_cts"`
	// MaxPTIndex is the largest portal table index, 63 (the least of an
	// interface) to 65,535.
	MaxPTIndex int `yaml:"max_pt_index"`
	// MaxIOVecs is how many vectors one descriptor or entry may have, at least
	// 1.
	MaxIOVecs int `yaml:"max_iovecs"`
	// MaxListSize is how many entries one list of a portal table entry may
	// have, at least 1.
	MaxListSize int `yaml:"max_list_size"`
	// MaxTriggeredOps is how many triggered operations may be pending at one
	// time, at least 1.
	MaxTriggeredOps int `yaml:"max_triggered_ops"`
	// MaxMsgSize is the largest put, get or reply, bytes, at least 1.
	MaxMsgSize sim.Size `yaml:"max_msg_size"`
	// MaxAtomicSize is the largest Atomic, bytes, 0 to MaxMsgSize.
	MaxAtomicSize sim.Size `yaml:"max_atomic_size"`
	// MaxFetchAtomicSize is the largest FetchAtomic or Swap, bytes, 0 to
	// MaxMsgSize.
	MaxFetchAtomicSize sim.Size `yaml:"max_fetch_atomic_size"`
	// MaxWAWOrderedSize is the largest message, bytes, whose write or read
	// keeps its order behind a write of the same initiator to the same bytes: a
	// put or atomic, then a put, atomic or get. 64 (the least of an interface)
	// to MaxMsgSize.
	MaxWAWOrderedSize sim.Size `yaml:"max_waw_ordered_size"`
	// MaxWAROrderedSize is the largest message, bytes, whose write keeps its
	// order behind a read: a get, then a put or atomic. 8 (the least of an
	// interface) to MaxMsgSize. The write waits at the NIC until the get has
	// read those of its bytes that are ordered.
	MaxWAROrderedSize sim.Size `yaml:"max_war_ordered_size"`
	// MaxVolatileSize is the largest message captured from a VOLATILE
	// descriptor, bytes, 0 to MaxMsgSize.
	MaxVolatileSize sim.Size `yaml:"max_volatile_size"`
	// MaxUserHdrSize is the largest user header that an entry may declare
	// (sPIN), bytes. Bytes beyond a packet are not part of it.
	MaxUserHdrSize sim.Size `yaml:"max_user_hdr_size"`
	// MaxInitialState is how many bytes may be copied to HPU memory when
	// handlers are installed (sPIN).
	MaxInitialState sim.Size `yaml:"max_initial_state"`
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

// Limits are the limits in the form of package portals. Some follow from the
// network, whose packets have up to mtu bytes, and from the HPUs.
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
		MinFragmentationLimit: fragment(mtu), MaxCyclesPerByte: uint64(hpus.MaxCyclesPerByte),
		// Atomics change host memory in place, at one moment. Data is not
		// totally ordered: a get longer than the ordered sizes may read bytes
		// that a later put has written.
		Features: portals.FeatureTargetBindInaccessible | portals.FeatureCoherentAtomics,
	}
}

// fragment is the unit of payloads, bytes. The packets of a message are whole
// except the last. A user header at its beginning may have any number of units,
// and it moves all packet ends that handlers see. The unit divides mtu and is
// at most 8 bytes, which hold the widest number.
func fragment(mtu int32) uint64 {
	const number = 8
	return uint64(min(mtu&-mtu, number))
}
