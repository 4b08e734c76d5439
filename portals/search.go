package portals

// MESearch (PtlMESearch) searches the unexpected list with the criteria of a
// match list entry (Portals 4.x §3.12.4). With SearchOnly every match posts
// SEARCH and stays. With SearchDelete every match posts its overflow event and
// is taken, as by an append. With USE_ONCE the search ends at the first match.
// A search without a match posts SEARCH with NO_MATCH.
//
// With EVENT_CT_OVERFLOW every match counts as for an append. In addition one
// failure is counted: with USE_ONCE if the search finds nothing, and without it
// always at the end of the search, although no event reports it (Portals 4.3
// §3.12.4). A search checks neither user nor operation of a header, and does
// not change status registers.
//
// Errors: ErrNoInit, ErrArgInvalid; ErrNoSpace if the events of a SearchDelete
// have no room in the queue of a flow-controlled portal table entry (then
// nothing has happened).
func (ni *Objects) MESearch(ptIndex uint32, m *ME, op SearchOp, userPtr uint64) error {
	return ni.search("MESearch", ptIndex, m, op, userPtr, KindME)
}

// LESearch (PtlLESearch) is MESearch on a non-matching interface.
func (ni *Objects) LESearch(ptIndex uint32, l *LE, op SearchOp, userPtr uint64) error {
	m := l.asME()
	return ni.search("LESearch", ptIndex, &m, op, userPtr, KindLE)
}
