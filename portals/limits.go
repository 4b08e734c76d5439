package portals

import "math/bits"

// Limits of an interface (ptl_ni_limits_t, Portals 4.x §3.6.1, and the fields
// sPIN adds, sPIN'17 §2). Counts are numbers of objects, sizes are bytes.
type Limits struct {
	MaxEntries           int // list and match list entries allocated at one time
	MaxUnexpectedHeaders int // headers in the unexpected lists at one time
	MaxMDs               int // memory descriptors
	MaxEQs               int // event queues
	MaxCTs               int // counting events
	MaxPTIndex           int // largest portal table index
	MaxIOVecs            int // vectors of one descriptor or entry
	MaxListSize          int // entries linked into one list of one portal table entry
	MaxTriggeredOps      int // triggered operations pending at one time

	MaxMsgSize         uint64 // bytes of one put, get or reply
	MaxAtomicSize      uint64 // bytes of one Atomic
	MaxFetchAtomicSize uint64 // bytes of one FetchAtomic or Swap
	MaxWAWOrderedSize  uint64 // largest message with write-after-write order
	MaxWAROrderedSize  uint64 // largest message with write-after-read order
	MaxVolatileSize    uint64 // largest message captured from a VOLATILE descriptor

	Features Features // device: what it has; desired: what is asked for; granted: what is both

	MaxUserHdrSize  uint64 // bytes of a message declared as user header (sPIN)
	MaxPayloadSize  uint64 // bytes of one packet's payload, and of one put from the device (sPIN)
	MaxHandlerMem   uint64 // bytes of HPU memory (sPIN)
	MaxInitialState uint64 // bytes copied to HPU memory at installation (sPIN)
	// MinFragmentationLimit divides the sizes that a handler sees (sPIN'17
	// B.2.1). A payload begins at a multiple of it and, except for the last of
	// a message, has a multiple of it as length. So has a user header, which
	// precedes the payload. It is a power of two.
	MinFragmentationLimit uint64
	MaxCyclesPerByte      uint64 // handler budget in cycles per payload byte, 0 unlimited (sPIN)
}

// The minimum of an interface (Portals 4.x §3.6.1). An interface has it even if
// its device gives less.
const (
	minPTIndex        = 63
	minWAWOrderedSize = 64
	minWAROrderedSize = 8
)

// atomic is the largest message of an atomic kind.
func (device *Limits) atomic(kind OpKind) uint64 {
	if kind == OpAtomic {
		return device.MaxAtomicSize
	}
	return device.MaxFetchAtomicSize
}

// provided returns the limits of the device, at least the minimum of the
// standard.
func (device Limits) provided() Limits {
	device.MaxPTIndex = max(device.MaxPTIndex, minPTIndex)
	device.MaxWAWOrderedSize = max(device.MaxWAWOrderedSize, minWAWOrderedSize)
	device.MaxWAROrderedSize = max(device.MaxWAROrderedSize, minWAROrderedSize)
	return device
}

// grant returns the limits for a request: never more than desired, and never
// more than the device provides. A nil request means the device's limits. So
// does a negative count, and 0 for MaxTriggeredOps, for one of the ordered
// sizes, for MaxVolatileSize and for MinFragmentationLimit. Any other
// MinFragmentationLimit is rounded down to a power of two. MaxFetchAtomicSize 0
// means the MaxAtomicSize granted, if the device allows it. A feature is
// granted if it is desired and the device has it.
func (device Limits) grant(desired *Limits) Limits {
	got := device.provided()
	if desired == nil {
		return got
	}
	for _, c := range [...]struct{ want, got *int }{
		{&desired.MaxEntries, &got.MaxEntries},
		{&desired.MaxUnexpectedHeaders, &got.MaxUnexpectedHeaders},
		{&desired.MaxMDs, &got.MaxMDs},
		{&desired.MaxEQs, &got.MaxEQs},
		{&desired.MaxCTs, &got.MaxCTs},
		{&desired.MaxPTIndex, &got.MaxPTIndex},
		{&desired.MaxIOVecs, &got.MaxIOVecs},
		{&desired.MaxListSize, &got.MaxListSize},
		{&desired.MaxTriggeredOps, &got.MaxTriggeredOps},
	} {
		if *c.want < 0 || *c.want == 0 && c.got == &got.MaxTriggeredOps {
			continue
		}
		*c.got = min(*c.got, *c.want)
	}
	for _, s := range [...]struct {
		want, got *uint64
		zero      bool // 0 means the device's
	}{
		{&desired.MaxMsgSize, &got.MaxMsgSize, false},
		{&desired.MaxAtomicSize, &got.MaxAtomicSize, false},
		{&desired.MaxFetchAtomicSize, &got.MaxFetchAtomicSize, true},
		{&desired.MaxWAWOrderedSize, &got.MaxWAWOrderedSize, true},
		{&desired.MaxWAROrderedSize, &got.MaxWAROrderedSize, true},
		{&desired.MaxVolatileSize, &got.MaxVolatileSize, true},
		{&desired.MaxUserHdrSize, &got.MaxUserHdrSize, false},
		{&desired.MaxPayloadSize, &got.MaxPayloadSize, false},
		{&desired.MaxHandlerMem, &got.MaxHandlerMem, false},
		{&desired.MaxInitialState, &got.MaxInitialState, false},
	} {
		if *s.want != 0 || !s.zero {
			*s.got = min(*s.got, *s.want)
		}
	}
	if want := desired.MinFragmentationLimit; want > 0 {
		got.MinFragmentationLimit = min(got.MinFragmentationLimit, 1<<(bits.Len64(want)-1))
	}
	if desired.MaxFetchAtomicSize == 0 {
		got.MaxFetchAtomicSize = min(got.MaxFetchAtomicSize, got.MaxAtomicSize)
	}
	got.Features &= desired.Features
	return got
}
