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
	c.Interrupts = s.lines.count
	c.Stale, c.Prefetched, c.MostOutstanding = s.audit.stale, s.walker.prefetched, s.slots.most
	for i := range s.banks {
		c.Requests += s.banks[i].hits
		c.L1Hits += s.banks[i].hits
		c.Terminated += s.banks[i].terminated
	}
	return c
}

// Walking is the number of walks under way.
func (s *SMMU) Walking() int { return s.walker.running }

// Outstanding is the number of transactions that wait for their translation or
// are stalled.
func (s *SMMU) Outstanding() int {
	return s.slots.channels[0].used + s.slots.channels[1].used
}

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
