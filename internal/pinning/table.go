package pinning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
)

// table keeps pinned memory for reuse, in segments. It implements three
// strategies. The pin-down cache has a bound on all pinned bytes and segments
// of a page. Firehose's table of buckets has a bound on unleased buckets.
// Static pinning has segments as large as mappings and no bound. Of unleased
// segments the one whose last lease ended first is unpinned first: LRU by the
// end of use. (Tezuka et al. name LRU; NPF'17 names no policy. For Firehose's
// victims it is their FIFO.)
type table struct {
	pinner
	lock host.Mutex
	// size of aligned segments, as far as they are mapped; 0: whole mappings
	bucket  uint64
	bound   uint64 // of pinned bytes
	idling  uint64 // bound of pinned bytes without a lease
	cells   map[uint64]*segment
	first   *segment // first segment without a lease: unpinned first
	last    *segment
	idle    uint64 // bytes without a lease
	gone    []*segment
	pinning []*flight
	leaving int            // threads that unpin segments no longer in the table
	waiting []*host.Thread // threads that wait for them
}

// segment is adjacent pages that were pinned together.
type segment struct {
	start, end uint64
	pin        host.Pin
	writable   bool
	leases     int
	dead       bool // the mapping changed after the pin: it is leased no more
	listed     bool // has no lease
	next, prev *segment
	other      *segment // next of the same cell
}

func (s *segment) bytes() uint64 { return s.end - s.start }

// flight is pages that are being pinned.
type flight struct {
	start, end uint64
	hit        bool // the pages changed meanwhile
}

func newTable(p *host.Process, bucket, bound, idling uint64) *table {
	c := &table{pinner: pinner{process: p}, bucket: bucket, bound: bound, idling: idling, cells: map[uint64]*segment{}}
	p.Tables().Register(c)
	return c
}

func (c *table) cell(addr uint64) uint64 {
	if c.bucket == 0 {
		return 0
	}
	return addr / c.bucket
}

// find returns a segment that a device may use for a page; nil: there is none.
func (c *table) find(va uint64, write bool) *segment {
	for s := c.cells[c.cell(va)]; s != nil; s = s.other {
		if s.start <= va && va < s.end && (s.writable || !write) {
			return s
		}
	}
	return nil
}

// Acquire implements Strategy.
func (c *table) Acquire(t *host.Thread, r Region, d Direction) (*Lease, error) {
	c.lock.Lock(t, lockWait)
	defer c.lock.Unlock(t)
	c.flush(t)
	before := c.stats.PinCalls
	for {
		held, err := c.hold(t, r, d.writes())
		changed := slices.ContainsFunc(held, func(s *segment) bool { return s.dead })
		if err != nil || changed {
			c.drop(t, held)
			if err != nil {
				return nil, err
			}
			continue
		}
		if c.stats.PinCalls == before {
			c.stats.Hits++
		}
		l := c.lease(r, d)
		l.held = held
		return l, nil
	}
}

// hold leases the segments of a region, and pins the missing ones.
func (c *table) hold(t *host.Thread, r Region, write bool) (held []*segment, err error) {
	for va := pageOf(r.Addr); r.Length > 0 && va < r.end(); {
		s := c.find(va, write)
		if s == nil {
			if err := c.bring(t, va, r.end(), write); err != nil {
				return held, fmt.Errorf("pinning %v: %w", r, err)
			}
			continue
		}
		if s.leases++; s.listed {
			c.unlist(s)
		}
		held = append(held, s)
		va = s.end
	}
	return held, nil
}

// bring pins missing pages from va on, at most up to end, and the rest of their
// buckets, with one call.
func (c *table) bring(t *host.Thread, va, end uint64, write bool) error {
	from, to, ok := c.process.Mapping(va)
	if !ok {
		return fmt.Errorf("process %s: %#x: %w", c.process.Name(), va, host.ErrNoMapping)
	}
	if c.bucket > 0 {
		stop := va + host.PageBytes
		for stop < end && c.find(stop, write) == nil {
			stop += host.PageBytes
		}
		from = max(from, va/c.bucket*c.bucket)
		to = min(to, (stop+c.bucket-1)/c.bucket*c.bucket)
	}
	if err := c.room(t, to-from); err != nil {
		return err
	}
	var pin host.Pin
	writable, err := c.pages(t, from, to, write, &pin)
	if err != nil {
		return err
	}
	for at := from; at < to; {
		stop := to
		if c.bucket > 0 {
			stop = min(to, (at/c.bucket+1)*c.bucket)
		}
		s := &segment{start: at, end: stop, writable: writable, other: c.cells[c.cell(at)]}
		pin.Split(int((stop-at)/host.PageBytes), &s.pin)
		c.cells[c.cell(at)] = s
		c.list(s)
		at = stop
	}
	return nil
}

// pages pins pages, and again if they change meanwhile
// (mmu_interval_read_retry). If memory is short, it unpins unleased segments.
func (c *table) pages(t *host.Thread, start, end uint64, write bool, pin *host.Pin) (writable bool, err error) {
	f := &flight{start: start, end: end}
	c.pinning = append(c.pinning, f)
	defer func() { c.pinning = slices.DeleteFunc(c.pinning, func(o *flight) bool { return o == f }) }()
	for {
		f.hit = false
		writable, err = c.take(t, start, end, write, pin)
		switch {
		case err == nil && !f.hit:
			return writable, nil
		case err == nil:
			c.give(t, []*host.Pin{pin}, 1, true)
		case !errors.Is(err, host.ErrNoMemory) || c.first == nil:
			return false, err
		default:
			c.evict(t, max(end-start, c.idle/2))
		}
	}
}

// room unpins unleased segments until n more bytes may be pinned. It also waits
// for bytes that others are about to unpin.
func (c *table) room(t *host.Thread, n uint64) error {
	for n <= c.bound && c.stats.Pinned-c.idle > c.bound-n && (c.leaving > 0 || len(c.gone) > 0) {
		if c.flush(t); c.leaving > 0 {
			c.waiting = append(c.waiting, t)
			t.Wait("pages to be unpinned")
		}
	}
	if n > c.bound || c.stats.Pinned-c.idle > c.bound-n {
		return fmt.Errorf("%w: %d bytes of %d, of which %d are leased", ErrBound, n, c.bound, c.stats.Pinned-c.idle)
	}
	if c.stats.Pinned > c.bound-n {
		c.evict(t, c.stats.Pinned-(c.bound-n))
	}
	return nil
}

// evict unpins at least n bytes, or all that have no lease.
func (c *table) evict(t *host.Thread, n uint64) {
	var victims []*segment
	for done := uint64(0); done < n && c.first != nil; {
		s := c.first
		done += s.bytes()
		c.remove(s)
		victims = append(victims, s)
		c.stats.Evicted += int64(s.pin.Pages())
	}
	c.unpin(t, victims, false)
}

// unpin unpins segments that are no longer in the table. Adjacent ones are one
// range for the device.
func (c *table) unpin(t *host.Thread, all []*segment, told bool) {
	slices.SortFunc(all, func(a, b *segment) int { return cmp.Compare(a.start, b.start) })
	pins, ranges := make([]*host.Pin, len(all)), 0
	for i, s := range all {
		pins[i] = &s.pin
		if i == 0 || all[i-1].end != s.start {
			ranges++
		}
	}
	c.leaving++
	c.give(t, pins, ranges, told)
	c.leaving--
	for _, w := range c.waiting {
		w.Wake()
	}
	c.waiting = c.waiting[:0]
}

// Release implements Strategy.
func (c *table) Release(t *host.Thread, l *Lease) error {
	c.lock.Lock(t, lockWait)
	defer c.lock.Unlock(t)
	c.stats.Leased--
	c.drop(t, l.held)
	l.held = nil
	return nil
}

// drop ends leases of segments.
func (c *table) drop(t *host.Thread, held []*segment) {
	for _, s := range held {
		if s.leases--; s.leases > 0 {
			continue
		}
		if s.dead {
			c.gone = append(c.gone, s)
		} else {
			c.list(s)
		}
	}
	c.flush(t)
	if c.idle > c.idling {
		c.evict(t, c.idle-c.idling)
	}
}

// Close implements Strategy.
func (c *table) Close(t *host.Thread) error {
	c.lock.Lock(t, lockWait)
	defer c.lock.Unlock(t)
	if err := c.closing(); err != nil {
		return err
	}
	var all []*segment
	for c.first != nil {
		all = append(all, c.first)
		c.remove(c.first)
	}
	c.unpin(t, all, false)
	c.flush(t)
	c.process.Tables().Unregister(c)
	return nil
}

// list appends a segment without a lease to the list.
func (c *table) list(s *segment) {
	s.listed, s.prev, s.next = true, c.last, nil
	if c.last != nil {
		c.last.next = s
	} else {
		c.first = s
	}
	c.last = s
	c.idle += s.bytes()
}

func (c *table) unlist(s *segment) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		c.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		c.last = s.prev
	}
	s.listed, s.prev, s.next = false, nil, nil
	c.idle -= s.bytes()
}

// remove removes a segment from the table.
func (c *table) remove(s *segment) {
	if s.listed {
		c.unlist(s)
	}
	key := c.cell(s.start)
	if c.cells[key] == s {
		if s.other == nil {
			delete(c.cells, key)
		} else {
			c.cells[key] = s.other
		}
	} else {
		o := c.cells[key]
		for o.other != s {
			o = o.other
		}
		o.other = s.other
	}
	s.other = nil
}

// InvalidateRange implements host.Notifier: segments whose pages have changed
// are leased no more. The next caller unpins them.
func (c *table) InvalidateRange(start, end uint64, _ bool) {
	for _, f := range c.pinning {
		f.hit = f.hit || f.start < end && f.end > start
	}
	for _, key := range c.keys(start, end) {
		for s := c.cells[key]; s != nil; {
			next := s.other
			if s.start < end && s.end > start {
				c.kill(s)
			}
			s = next
		}
	}
}

// keys returns the cells in a range of addresses that have segments, sorted.
func (c *table) keys(start, end uint64) (keys []uint64) {
	first, last := c.cell(start), c.cell(end-1)
	if last-first < uint64(len(c.cells)) {
		for k := first; k <= last; k++ {
			if c.cells[k] != nil {
				keys = append(keys, k)
			}
		}
		return keys
	}
	for k := range c.cells { //lint:maporder sorted below
		if first <= k && k <= last {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (c *table) kill(s *segment) {
	idle := s.listed
	c.remove(s)
	s.dead = true
	c.stats.Invalidated += int64(s.pin.Pages())
	if idle {
		c.gone = append(c.gone, s)
	}
}

// Sync implements host.Notifier: the thread that removes memory waits until it
// is unpinned, except leased segments.
func (c *table) Sync(t *host.Thread) { c.flush(t) }

// flush unpins dead segments without a lease.
func (c *table) flush(t *host.Thread) {
	if len(c.gone) == 0 {
		return
	}
	all := c.gone
	c.gone = nil
	c.unpin(t, all, true)
}
