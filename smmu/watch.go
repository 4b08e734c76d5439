package smmu

import "github.com/spinsim/spinsim/sim"

// Counters are totals of an SMMU so far. A piece is the part of a request in
// one page.
type Counters struct {
	Requests uint64 // calls of Translate, and hits
	Queued   uint64 // requests that waited for their channel
	// requests, or pieces, whose PDID has no bank, or whose bank does not
	// translate
	Denied        uint64
	L1Hits        uint64 // pieces
	L1Misses      uint64 // look-ups of the first TLB that went on to the second
	L2Hits        uint64
	L2Misses      uint64
	Merged        uint64 // misses that another request's walk has answered
	WalksFull     uint64 // misses that waited for a walk
	Walks         uint64
	WalkCacheHits uint64
	Reads         uint64 // descriptors read from memory
	Restarts      uint64 // walks that an invalidation has sent back
	Prefetched    uint64 // pages put into the second TLB without a request
	// requests looked up again because of an invalidation between their pieces
	Redone           uint64
	Faults           uint64 // translation faults
	PermissionFaults uint64
	Recorded         uint64 // faults with their address in the registers; the others set MULTI
	Terminated       uint64 // pieces that ended because of another piece's fault, or by RESUME
	Stalled          uint64 // pieces
	Interrupts       uint64 // rising lines
	Stale            uint64 // translations found stale, with Poison
	Invalidations    uint64
	MostWalks        int // at a time
	MostOutstanding  int // transactions of a channel at a time
}

// Counters returns the totals so far.
func (s *SMMU) Counters() Counters {
	c := s.count
	for i := range s.banks {
		c.Requests += s.banks[i].hits
		c.L1Hits += s.banks[i].hits
	}
	return c
}

// Walking is the number of walks under way.
func (s *SMMU) Walking() int { return s.walking }

// Outstanding is the number of transactions that wait for their translation or
// are stalled.
func (s *SMMU) Outstanding() int { return s.channels[0].used + s.channels[1].used }

// Watcher observes an SMMU, for a timeline. A call comes when the
// reported action ends.
type Watcher interface {
	// Walked reports a walk that is over.
	Walked(w WalkInfo)
	// Faulted reports a fault, also one of which the registers keep only MULTI.
	Faulted(f FaultInfo)
	// Stalled reports a transaction that goes on after it was stalled.
	Stalled(t StallInfo)
	// Stale reports a translation that differs from the tables, with Spec.Stale
	// Poison.
	Stale(f StaleInfo)
}

// WalkInfo is a walk of tables.
type WalkInfo struct {
	Bank     int
	Addr     uint64 // of the page
	Flow     uint64 // of the first request that waited for it
	From, To sim.Time
	Reads    int    // descriptors read
	Cached   bool   // the walk cache had the last table
	Level    int    // of the last descriptor
	Result   Result // OK: there is a page
}

// FaultInfo is a fault.
type FaultInfo struct {
	Bank     int
	PDID     uint16
	Write    bool
	Flow     uint64
	Addr     uint64
	Level    int    // of the descriptor
	Kind     Result // Fault or Permission
	Recorded bool   // its address is in the registers
	At       sim.Time
}

// StallInfo is a transaction that was stalled.
type StallInfo struct {
	Bank     int
	PDID     uint16
	Flow     uint64
	Addr     uint64
	From, To sim.Time
}

// StaleInfo is a translation that was used although it differs from the tables.
// The translation, or the table in the walk cache, was changed without an
// invalidation.
type StaleInfo struct {
	Bank  int
	PDID  uint16
	Flow  uint64
	Addr  uint64
	Write bool
	Had   Entry // in the TLB or the walk cache
	Is    Entry // in the tables
	Level int   // of the descriptor in the TLB or the walk cache
	At    sim.Time
}

func (s *SMMU) tellWalk(w *walk, res Result) {
	var flow uint64
	if w.first >= 0 {
		flow = s.slots[w.first].r.Flow
	}
	s.watch.Walked(WalkInfo{
		Bank: int(w.bank), Addr: w.va, Flow: flow, From: w.from, To: s.engine.Now(), Reads: w.reads, Cached: w.cached, Level: w.level, Result: res,
	})
}

// truth returns the descriptor of va in the tables, down to a level, and its
// level.
func (s *SMMU) truth(b *bank, va uint64, last int) (e Entry, level int) {
	table := b.tables.Root()
	for level = s.top; ; level++ {
		e = b.tables.Entry(table, level, va)
		if e.Kind != Table || level == last {
			return e, level
		}
		table = e.Addr
	}
}

// stale reports whether an access ends differently with a translation from a
// TLB than with one from the tables.
func (s *SMMU) stale(r *Request, b *bank, va uint64, l leaf, at int) bool {
	e, level := s.truth(b, va, lastLevel)
	is := leafOf(e)
	page := e.Kind == Page && level > 0
	switch {
	case page && !l.allows(r.Write) && !is.allows(r.Write): // denied by both
		return false
	case page && l.allows(r.Write) && is.allows(r.Write) && l.frame(at, va) == is.frame(level, va):
		return false
	}
	s.found(r, b, va, at, Entry{Page, l&writable != 0, uint64(l &^ pageMask)}, e)
	return true
}

// staleTable reports whether the walk cache has sent a walk to a table that is
// not in the tables.
func (s *SMMU) staleTable(b *bank, w *walk) bool {
	e, level := s.truth(b, w.va, lastLevel-1)
	if e.Kind == Table && level == lastLevel-1 && e.Addr == w.table {
		return false
	}
	s.found(s.slots[w.first].r, b, w.va, lastLevel-1, Entry{Table, false, w.table}, e)
	return true
}

func (s *SMMU) found(r *Request, b *bank, va uint64, level int, had, is Entry) {
	s.count.Stale++
	if s.watch != nil {
		s.watch.Stale(StaleInfo{
			Bank: int(b.index), PDID: r.PDID, Flow: r.Flow, Addr: va, Write: r.Write, Had: had, Is: is, Level: level, At: s.engine.Now(),
		})
	}
}
