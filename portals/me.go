package portals

// MEAppend (PtlMEAppend) appends a match list entry. An entry for the priority
// list first takes matching headers from the unexpected list. With USE_ONCE it
// takes one header, and is then not linked. Otherwise it takes all, and is
// linked.
//
// The handle of an entry that was not linked is stale, unless the message that
// it took is still arriving. Errors: ErrNoInit, ErrArgInvalid; ErrNoSpace if
// there are max_entries entries, or if the events of the taken headers have no
// room in the queue of a flow-controlled portal table entry (then nothing has
// happened); ErrListTooLong if max_list_size entries are linked.
func (ni *NI) MEAppend(ptIndex uint32, m *ME, list List, userPtr uint64) (Handle, error) {
	return ni.appendEntry("MEAppend", ptIndex, m, list, userPtr, KindME)
}

// LEAppend (PtlLEAppend) appends a list entry on a non-matching interface. The
// entry takes every request. Otherwise it is like MEAppend.
func (ni *NI) LEAppend(ptIndex uint32, l *LE, list List, userPtr uint64) (Handle, error) {
	m := l.asME()
	return ni.appendEntry("LEAppend", ptIndex, &m, list, userPtr, KindLE)
}

// MEUnlink (PtlMEUnlink) removes a match list entry. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while a message is delivered to it, unexpected
// headers of its messages exist, or its triggered append has not fired.
func (ni *Objects) MEUnlink(h Handle) error { return ni.unlinkEntry("MEUnlink", h, KindME) }

// LEUnlink (PtlLEUnlink) removes a list entry; errors as MEUnlink.
func (ni *Objects) LEUnlink(h Handle) error { return ni.unlinkEntry("LEUnlink", h, KindLE) }
