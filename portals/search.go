package portals

// MESearch (PtlMESearch) searches the unexpected list with the criteria of a
// match list entry (Portals 4.x §3.12.4). With SearchOnly every match posts
// SEARCH and stays; with SearchDelete every match posts its overflow event and
// is taken, as by an append. USE_ONCE ends the search at the first match. A
// search that finds nothing posts SEARCH with NO_MATCH. With EVENT_CT_OVERFLOW
// every match counts as the append would count it, and one failure is counted
// when a search with USE_ONCE finds nothing, and always at the end of a search
// without it, although then no event says so (Portals 4.3 §3.12.4). Neither
// user nor operation of a header is checked, and status registers do not
// change. Errors: ErrNoInit, ErrArgInvalid; ErrNoSpace when the events of a
// SearchDelete have no room in the queue of a flow-controlled portal table
// entry (nothing is done then).
func (ni *Objects) MESearch(ptIndex uint32, m *ME, op SearchOp, userPtr uint64) error {
	return ni.search("MESearch", ptIndex, m, op, userPtr, KindME)
}

// LESearch (PtlLESearch) searches the unexpected list of a non-matching
// interface; see MESearch.
func (ni *Objects) LESearch(ptIndex uint32, l *LE, op SearchOp, userPtr uint64) error {
	m := l.asME()
	return ni.search("LESearch", ptIndex, &m, op, userPtr, KindLE)
}
