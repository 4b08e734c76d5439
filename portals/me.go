package portals

// MEAppend (PtlMEAppend) appends a match list entry. An entry for the priority
// list first takes what it matches from the unexpected list: with USE_ONCE one
// header, and it is not linked; otherwise all, and it is linked.
//
// The handle of an entry that was not linked is stale unless the message it
// took is still arriving. Errors: ErrNoInit, ErrArgInvalid; ErrNoSpace with
// max_entries entries, or when the events of the headers taken have no room in
// the queue of a flow-controlled portal table entry (nothing is done then);
// ErrListTooLong with max_list_size entries linked.
func (ni *NI) MEAppend(ptIndex uint32, m *ME, list List, userPtr uint64) (Handle, error) {
	return ni.appendEntry("MEAppend", ptIndex, m, list, userPtr, KindME)
}

// LEAppend (PtlLEAppend) appends a list entry on a non-matching interface; it
// takes every request. Behaviour and errors are as for MEAppend.
func (ni *NI) LEAppend(ptIndex uint32, l *LE, list List, userPtr uint64) (Handle, error) {
	m := l.asME()
	return ni.appendEntry("LEAppend", ptIndex, &m, list, userPtr, KindLE)
}

// MEUnlink (PtlMEUnlink) removes a match list entry. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while a message is being delivered to it, unexpected
// headers of its messages exist, or its triggered append has not fired.
func (ni *Objects) MEUnlink(h Handle) error { return ni.unlinkEntry("MEUnlink", h, KindME) }

// LEUnlink (PtlLEUnlink) removes a list entry; errors as MEUnlink.
func (ni *Objects) LEUnlink(h Handle) error { return ni.unlinkEntry("LEUnlink", h, KindLE) }
