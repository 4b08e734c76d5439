package runtime

import "github.com/spinsim/spinsim/portals"

// The calls of the standard that take no virtual time: they are those of portals.NI, which says more about each, its errors included.

// Kind returns which of the four interfaces it is.
func (ni *NI) Kind() portals.NIKind { return ni.core.Kind() }

// Options returns the options that NIInit opens it with.
func (ni *NI) Options() portals.NIOptions { return ni.core.Options() }

// Handle returns the interface's handle, the same number in every process that opened its interfaces equally often.
func (ni *NI) Handle() portals.Handle { return ni.core.Handle() }

// Limits returns the limits granted.
func (ni *NI) Limits() portals.Limits { return ni.core.Limits() }

// NIFini (PtlNIFini) undoes one NIInit; the last one releases every object.
func (ni *NI) NIFini() error { return ni.core.NIFini() }

// NIStatus (PtlNIStatus) reads a status register.
func (ni *NI) NIStatus(r portals.StatusRegister) (uint64, error) { return ni.core.NIStatus(r) }

// UID (PtlGetUid) returns the user id of the process.
func (ni *NI) UID() (uint32, error) { return ni.core.UID() }

// ID (PtlGetId) returns the name of the process on this interface: NID and PID, or the rank.
func (ni *NI) ID() (portals.ID, error) { return ni.core.ID() }

// PhysID (PtlGetPhysId) returns NID and PID on any interface.
func (ni *NI) PhysID() (portals.ID, error) { return ni.core.PhysID() }

// GetMap (PtlGetMap) copies the map into dst as far as it fits and returns its full size.
func (ni *NI) GetMap(dst []portals.ID) (int, error) { return ni.core.GetMap(dst) }

// StartBundle (PtlStartBundle) hints that a group of operations begins; calls nest.
func (ni *NI) StartBundle() error { return ni.core.StartBundle() }

// EndBundle (PtlEndBundle) ends one StartBundle.
func (ni *NI) EndBundle() error { return ni.core.EndBundle() }

// AtomicSync (PtlAtomicSync) makes host accesses to memory touched by atomics safe.
func (ni *NI) AtomicSync() error { return ni.core.AtomicSync() }

// PTAlloc (PtlPTAlloc) allocates a portal table entry: the one asked for, or with PTAny the free one of lowest index.
func (ni *NI) PTAlloc(options portals.PTOptions, eq portals.Handle, index uint32) (uint32, error) {
	return ni.core.PTAlloc(options, eq, index)
}

// PTFree (PtlPTFree) releases a portal table entry.
func (ni *NI) PTFree(index uint32) error { return ni.core.PTFree(index) }

// PTEnable (PtlPTEnable) makes a portal table entry accept messages.
func (ni *NI) PTEnable(index uint32) error { return ni.core.PTEnable(index) }

// PTBusy returns how many messages are being delivered through a portal table entry; 0 for an index that is not allocated.
func (ni *NI) PTBusy(index uint32) int { return ni.core.PTBusy(index) }

// PTEnabled reports whether a portal table entry is allocated and accepts messages.
func (ni *NI) PTEnabled(index uint32) bool { return ni.core.PTEnabled(index) }

// PTOptions returns the options a portal table entry was allocated with, 0 when it is not allocated.
func (ni *NI) PTOptions(index uint32) portals.PTOptions { return ni.core.PTOptions(index) }

// MDBind (PtlMDBind) makes a memory descriptor.
func (ni *NI) MDBind(d *portals.MD) (portals.Handle, error) { return ni.core.MDBind(d) }

// MDRelease (PtlMDRelease) releases a memory descriptor.
func (ni *NI) MDRelease(h portals.Handle) error { return ni.core.MDRelease(h) }

// MEUnlink (PtlMEUnlink) removes a match list entry.
func (ni *NI) MEUnlink(h portals.Handle) error { return ni.core.MEUnlink(h) }

// LEUnlink (PtlLEUnlink) removes a list entry; errors as MEUnlink.
func (ni *NI) LEUnlink(h portals.Handle) error { return ni.core.LEUnlink(h) }

// MESearch (PtlMESearch) searches the unexpected list with the criteria of a match list entry (Portals 4.x §3.12.4).
func (ni *NI) MESearch(ptIndex uint32, m *portals.ME, op portals.SearchOp, userPtr uint64) error {
	return ni.core.MESearch(ptIndex, m, op, userPtr)
}

// LESearch (PtlLESearch) searches the unexpected list of a non-matching interface; see MESearch.
func (ni *NI) LESearch(ptIndex uint32, l *portals.LE, op portals.SearchOp, userPtr uint64) error {
	return ni.core.LESearch(ptIndex, l, op, userPtr)
}

// EQAlloc (PtlEQAlloc) makes an event queue of at least count events; a count of 0 gives one.
func (ni *NI) EQAlloc(count uint64) (portals.Handle, error) { return ni.core.EQAlloc(count) }

// EQFree (PtlEQFree) releases an event queue.
func (ni *NI) EQFree(h portals.Handle) error { return ni.core.EQFree(h) }

// EQGet (PtlEQGet) takes the oldest event.
func (ni *NI) EQGet(h portals.Handle) (portals.Event, error) { return ni.core.EQGet(h) }

// EQLen returns the number of events waiting in a queue, 0 for a handle that names none.
func (ni *NI) EQLen(h portals.Handle) int { return ni.core.EQLen(h) }

// CTAlloc (PtlCTAlloc) makes a counting event of value zero.
func (ni *NI) CTAlloc() (portals.Handle, error) { return ni.core.CTAlloc() }

// CTFree (PtlCTFree) releases a counting event and drops the triggered operations that wait for it.
func (ni *NI) CTFree(h portals.Handle) error { return ni.core.CTFree(h) }

// CTCancelTriggered (PtlCTCancelTriggered) drops the triggered operations that wait for a counting event.
func (ni *NI) CTCancelTriggered(h portals.Handle) error { return ni.core.CTCancelTriggered(h) }

// CTGet (PtlCTGet) returns the value of a counting event.
func (ni *NI) CTGet(h portals.Handle) (portals.CTEvent, error) { return ni.core.CTGet(h) }

// CTSet (PtlCTSet) sets a counting event; triggered operations whose threshold the new value has reached fire.
func (ni *NI) CTSet(h portals.Handle, value portals.CTEvent) error { return ni.core.CTSet(h, value) }

// CTInc (PtlCTInc) adds to a counting event: to the successes or to the failures, not to both.
func (ni *NI) CTInc(h portals.Handle, increment portals.CTEvent) error {
	return ni.core.CTInc(h, increment)
}

// TriggeredPut (PtlTriggeredPut) is Put once the counter's successes and failures together reach threshold.
func (ni *NI) TriggeredPut(mdh portals.Handle, localOffset, length uint64, ack portals.AckReq, target portals.ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64, trigCT portals.Handle, threshold uint64,
) error {
	return ni.core.TriggeredPut(mdh, localOffset, length, ack, target, ptIndex, matchBits, remoteOffset, userPtr, hdrData, trigCT, threshold)
}

// TriggeredGet (PtlTriggeredGet) is Get once the counter reaches threshold.
func (ni *NI) TriggeredGet(mdh portals.Handle, localOffset, length uint64, target portals.ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr uint64, trigCT portals.Handle, threshold uint64,
) error {
	return ni.core.TriggeredGet(mdh, localOffset, length, target, ptIndex, matchBits, remoteOffset, userPtr, trigCT, threshold)
}

// TriggeredAtomic (PtlTriggeredAtomic) is Atomic once the counter reaches threshold.
func (ni *NI) TriggeredAtomic(mdh portals.Handle, localOffset, length uint64, ack portals.AckReq, target portals.ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64, op portals.AtomicOp, typ portals.Datatype, trigCT portals.Handle, threshold uint64,
) error {
	return ni.core.TriggeredAtomic(mdh, localOffset, length, ack, target, ptIndex, matchBits, remoteOffset, userPtr, hdrData, op, typ, trigCT, threshold)
}

// TriggeredFetchAtomic (PtlTriggeredFetchAtomic) is FetchAtomic once the counter reaches threshold.
func (ni *NI) TriggeredFetchAtomic(getMD portals.Handle, getOffset uint64, putMD portals.Handle, putOffset, length uint64,
	target portals.ID, ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, op portals.AtomicOp, typ portals.Datatype,
	trigCT portals.Handle, threshold uint64,
) error {
	return ni.core.TriggeredFetchAtomic(getMD, getOffset, putMD, putOffset, length, target, ptIndex, matchBits, remoteOffset, userPtr, hdrData, op, typ, trigCT, threshold)
}

// TriggeredSwap (PtlTriggeredSwap) is Swap once the counter reaches threshold; the operand is taken at the call.
func (ni *NI) TriggeredSwap(getMD portals.Handle, getOffset uint64, putMD portals.Handle, putOffset, length uint64,
	target portals.ID, ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, operand []byte, op portals.AtomicOp,
	typ portals.Datatype, trigCT portals.Handle, threshold uint64,
) error {
	return ni.core.TriggeredSwap(getMD, getOffset, putMD, putOffset, length, target, ptIndex, matchBits, remoteOffset, userPtr, hdrData, operand, op, typ, trigCT, threshold)
}

// TriggeredCTInc (PtlTriggeredCTInc) is CTInc once the counter trigCT reaches threshold.
func (ni *NI) TriggeredCTInc(h portals.Handle, increment portals.CTEvent, trigCT portals.Handle, threshold uint64) error {
	return ni.core.TriggeredCTInc(h, increment, trigCT, threshold)
}

// TriggeredCTSet (PtlTriggeredCTSet) is CTSet once the counter trigCT reaches threshold.
func (ni *NI) TriggeredCTSet(h portals.Handle, value portals.CTEvent, trigCT portals.Handle, threshold uint64) error {
	return ni.core.TriggeredCTSet(h, value, trigCT, threshold)
}

// TriggeredMEUnlink (PtlTriggeredMEUnlink) is MEUnlink once the counter reaches threshold.
func (ni *NI) TriggeredMEUnlink(h portals.Handle, trigCT portals.Handle, threshold uint64) error {
	return ni.core.TriggeredMEUnlink(h, trigCT, threshold)
}

// Label notes what an event queue or counter is for; reports of what is waited for say it.
func (ni *NI) Label(h portals.Handle, label string) { ni.core.Label(h, label) }

// Title is what people know an event queue or counter by: its kind, its number in the order of allocation on
// the interface, from 0, and its label.
func (ni *NI) Title(h portals.Handle) string { return ni.core.Title(h) }
