package nic

import (
	"math"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// An interface has no less (Portals 4.x §3.6.1).
const leastPTIndex, leastWAW, leastWAR = 63, 64, 8

// LimitsSpec are the limits of a device's Portals interfaces (ptl_ni_limits_t,
// Portals 4.x §3.6.1, with the additions of sPIN'17). It is the limits section
// of a profile; the standard leaves the values to the device, and there are no
// defaults. Counts and sizes are at most 2^31 - 1. What else an interface says
// of itself follows from the MTU and the HPUs: see Limits.
type LimitsSpec struct {
	// MaxEntries is the list and match list entries allocated at one time, at least 1.
	MaxEntries int `yaml:"max_entries"`
	// MaxUnexpectedHeaders is the headers in the unexpected lists at one time, at least 1.
	MaxUnexpectedHeaders int `yaml:"max_unexpected_headers"`
	// MaxMDs is the memory descriptors bound at one time, at least 1.
	MaxMDs int `yaml:"max_mds"`
	// MaxEQs is the event queues allocated at one time, at least 1.
	MaxEQs int `yaml:"max_eqs"`
	// MaxCTs is the counting events allocated at one time, at least 1.
	MaxCTs int `yaml:"max_cts"`
	// MaxPTIndex is the largest portal table index, 63 (the least that an interface has) to 65,535.
	MaxPTIndex int `yaml:"max_pt_index"`
	// MaxIOVecs is the vectors of one descriptor or entry, at least 1.
	MaxIOVecs int `yaml:"max_iovecs"`
	// MaxListSize is the entries linked into one list of one portal table entry, at least 1.
	MaxListSize int `yaml:"max_list_size"`
	// MaxTriggeredOps is the triggered operations pending at one time, at least 1.
	MaxTriggeredOps int `yaml:"max_triggered_ops"`
	// MaxMsgSize is the bytes of one put, get or reply, at least 1.
	MaxMsgSize sim.Size `yaml:"max_msg_size"`
	// MaxAtomicSize is the bytes of one Atomic, 0 to MaxMsgSize.
	MaxAtomicSize sim.Size `yaml:"max_atomic_size"`
	// MaxFetchAtomicSize is the bytes of one FetchAtomic or Swap, 0 to MaxMsgSize.
	MaxFetchAtomicSize sim.Size `yaml:"max_fetch_atomic_size"`
	// MaxWAWOrderedSize is the bytes of the largest message with the order of a
	// write behind a write, or a read behind a write, of the same initiator to
	// the same bytes: put or atomic, then put, atomic or get; 64 (the least
	// that an interface has) to MaxMsgSize.
	MaxWAWOrderedSize sim.Size `yaml:"max_waw_ordered_size"`
	// MaxWAROrderedSize is the bytes of the largest message with the order of a
	// write behind a read: get, then put or atomic; 8 (the least that an
	// interface has) to MaxMsgSize. The write waits at the NIC until what the
	// get is to read of its bytes is there.
	MaxWAROrderedSize sim.Size `yaml:"max_war_ordered_size"`
	// MaxVolatileSize is the bytes of the largest message captured from a
	// VOLATILE descriptor, 0 to MaxMsgSize.
	MaxVolatileSize sim.Size `yaml:"max_volatile_size"`
	// MaxUserHdrSize is the bytes of a message that may be declared as user
	// header (sPIN); beyond a packet they are none.
	MaxUserHdrSize sim.Size `yaml:"max_user_hdr_size"`
	// MaxInitialState is the bytes copied to HPU memory when handlers are installed (sPIN).
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

// Limits are the limits as package portals takes them, with those that the
// network, whose packets have up to mtu bytes, and the HPUs decide.
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
		// totally ordered: what a get that is longer than the ordered sizes
		// reads may be what a put behind it has written.
		Features: portals.FeatureTargetBindInaccessible | portals.FeatureCoherentAtomics,
	}
}

// fragment is what payload comes in multiples of, bytes: the packets of a
// message are whole ones but for the last, and a user header at its beginning,
// which may be of any number of such units, moves all ends of what handlers
// see. As large as user headers allow: what holds the largest number.
func fragment(mtu int32) uint64 {
	const number = 8
	return uint64(min(mtu&-mtu, number))
}
