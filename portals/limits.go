package portals

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

	Features Features // what the implementation offers

	MaxUserHdrSize        uint64 // bytes of a message declared as user header (sPIN)
	MaxPayloadSize        uint64 // bytes of one packet's payload, and of one put from the device (sPIN)
	MaxHandlerMem         uint64 // bytes of HPU memory (sPIN)
	MaxInitialState       uint64 // bytes copied to HPU memory at installation (sPIN)
	MinFragmentationLimit uint64 // alignment in bytes of the payload a handler sees (sPIN)
	MaxCyclesPerByte      uint64 // handler budget in cycles per payload byte, 0 unlimited (sPIN)
}

// grant returns the limits granted for a wish: never more than desired, never
// more than the device has. A nil wish means the device's limits, and a desired
// MaxTriggeredOps of 0 the device's default.
func (device Limits) grant(desired *Limits) (Limits, error) {
	if desired == nil {
		return device, nil
	}
	got := device
	counts := []struct {
		name      string
		want, dev *int
	}{
		{"MaxEntries", &desired.MaxEntries, &got.MaxEntries},
		{"MaxUnexpectedHeaders", &desired.MaxUnexpectedHeaders, &got.MaxUnexpectedHeaders},
		{"MaxMDs", &desired.MaxMDs, &got.MaxMDs},
		{"MaxEQs", &desired.MaxEQs, &got.MaxEQs},
		{"MaxCTs", &desired.MaxCTs, &got.MaxCTs},
		{"MaxPTIndex", &desired.MaxPTIndex, &got.MaxPTIndex},
		{"MaxIOVecs", &desired.MaxIOVecs, &got.MaxIOVecs},
		{"MaxListSize", &desired.MaxListSize, &got.MaxListSize},
		{"MaxTriggeredOps", &desired.MaxTriggeredOps, &got.MaxTriggeredOps},
	}
	for _, c := range counts {
		if *c.want < 0 {
			return Limits{}, invalid("NIInit", "desired %s is %d, want 0 or more", c.name, *c.want)
		}
		if c.dev == &got.MaxTriggeredOps && *c.want == 0 {
			continue
		}
		*c.dev = min(*c.dev, *c.want)
	}
	sizes := [][2]*uint64{
		{&desired.MaxMsgSize, &got.MaxMsgSize},
		{&desired.MaxAtomicSize, &got.MaxAtomicSize},
		{&desired.MaxFetchAtomicSize, &got.MaxFetchAtomicSize},
		{&desired.MaxWAWOrderedSize, &got.MaxWAWOrderedSize},
		{&desired.MaxWAROrderedSize, &got.MaxWAROrderedSize},
		{&desired.MaxVolatileSize, &got.MaxVolatileSize},
		{&desired.MaxUserHdrSize, &got.MaxUserHdrSize},
		{&desired.MaxPayloadSize, &got.MaxPayloadSize},
		{&desired.MaxHandlerMem, &got.MaxHandlerMem},
		{&desired.MaxInitialState, &got.MaxInitialState},
	}
	for _, s := range sizes {
		*s[1] = min(*s[1], *s[0])
	}
	return got, nil
}
