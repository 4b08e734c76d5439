package mpirun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

const (
	zoneBits = 36 // 64 GiB
	// of a process: heap, stack, mappings. With what the simulator allocates they
	// fit into 39 bits.
	zones     = 6
	zoneBytes = 1 << zoneBits
	pageBytes = host.PageBytes
)

// memory is the memory of a rank's process, in the simulation. The bytes stay in
// the process. Its addresses have 47 bits, those of a simulated processor perhaps
// 39: each zone of its addresses that is in use has a zone there.
type memory struct {
	link    *link
	r       mpi.Tagged
	base    uint64          // in the simulation, of the first zone
	zones   []uint64        // in the process, the beginnings
	pagemap *os.File        // nil: all pages are present
	entries []byte          // of pagemap, of the latest look
	seen    map[uint64]bool // pages of the simulation that the process has had; see sync
	absent  int64           // pages of buffers that were absent when the process posted them
	pages   int64           // of buffers
	fail    func(error)     // ends the run
}

// adopt makes the memory of a process memory of its rank. absent: its pages are
// absent in the simulation until the process has them. After an error the memory
// has no pages.
func adopt(l *link, r mpi.Tagged, absent bool, fail func(error)) (*memory, error) {
	m := &memory{link: l, r: r, fail: fail}
	if absent {
		f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", l.pid)) //lint:files of the kernel
		if err != nil {
			return m, fmt.Errorf("mpirun: rank %d: %w", l.rank, err)
		}
		m.pagemap, m.seen = f, make(map[uint64]bool)
	}
	var err error
	m.base, err = r.Adopt(zones<<zoneBits, m)
	return m, err
}

func (m *memory) close() error {
	if m.pagemap == nil {
		return nil
	}
	return m.pagemap.Close()
}

// view returns n bytes, at least 1, of the process.
func (m *memory) view(addr, n uint64) (runtime.View, error) {
	m.link.uses(addr, n)
	start := addr &^ (zoneBytes - 1)
	if n > zoneBytes || addr+n > start+zoneBytes {
		return runtime.View{}, fmt.Errorf("%d B at %#x cross a multiple of %d GiB, which is not supported", n, addr, zoneBytes>>30)
	}
	for i := 0; ; i++ {
		if i == len(m.zones) {
			if i == zones {
				return runtime.View{}, fmt.Errorf("buffers in more than %d zones of %d GiB, which is not supported", zones, zoneBytes>>30)
			}
			m.zones = append(m.zones, start)
		}
		if m.zones[i] == start {
			return m.r.Proc().View(m.base+uint64(i)<<zoneBits+addr-start, int(n))
		}
	}
}

// real returns the address in the process.
func (m *memory) real(off uint64) uint64 {
	if i := off >> zoneBits; i < uint64(len(m.zones)) {
		return m.zones[i] + off%zoneBytes
	}
	return 0 // no process has memory there
}

// Load implements host.Elsewhere.
func (m *memory) Load(off uint64, b []byte) bool { return m.done(m.link.read(m.real(off), b)) }

// Store implements host.Elsewhere.
func (m *memory) Store(off uint64, b []byte) bool { return m.done(m.link.write(m.real(off), b)) }

func (m *memory) done(err error) bool {
	if errors.Is(err, unix.ESRCH) {
		select { // it has ended, and watch says how
		case <-m.link.over:
		case <-time.After(patience):
			m.fail(m.link.early())
		}
	} else if err != nil {
		m.fail(fmt.Errorf("mpirun: rank %d: a device or MPI reaches for %w: the process has no memory there (any more)", m.link.rank, err))
	}
	return err == nil
}

// sync brings the pages of a buffer up to date. The program may have touched
// them since, or its allocator may have given them back. count: it is posted now.
// It returns how many are absent.
func (m *memory) sync(v runtime.View, count bool) (absent int, err error) {
	if m.pagemap == nil {
		v.Present()
		return 0, nil
	}
	first, last := v.Addr()/pageBytes, (v.Addr()+uint64(v.Len())-1)/pageBytes
	n := int(last - first + 1)
	m.entries = slices.Grow(m.entries[:0], 8*n)[:8*n]
	entries := m.entries
	if _, err := m.pagemap.ReadAt(entries, int64(8*(m.real(first*pageBytes-m.base)/pageBytes))); err != nil {
		return 0, fmt.Errorf("pages of process %d: %w", m.link.pid, err)
	}
	for i := range n {
		va := (first + uint64(i)) * pageBytes
		const presentOrSwapped = 3 << 62
		there, had := binary.LittleEndian.Uint64(entries[8*i:])&presentOrSwapped != 0, m.seen[va]
		switch {
		case there && !had:
			m.seen[va] = true
			err = m.present(va)
		case !there && had:
			delete(m.seen, va)
			err = m.r.Proc().OS().Discard(m.r.Proc().Thread(), va, pageBytes)
		}
		if err != nil {
			return 0, err
		}
		if !there && !m.r.Proc().OS().Present(va, false) {
			absent++
		}
	}
	if count {
		m.pages += int64(n)
		m.absent += int64(absent)
	}
	if absent > 0 {
		err = m.bound(first*pageBytes, (last+1)*pageBytes)
	}
	return absent, err
}

// bound gives the simulation the mappings of the process at some addresses: a
// policy may bring in pages up to the end of one.
func (m *memory) bound(from, to uint64) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", m.link.pid)) //lint:files of the kernel
	if err != nil {
		return fmt.Errorf("mappings of process %d: %w", m.link.pid, err)
	}
	zone := (from - m.base) >> zoneBits << zoneBits
	low, high := m.real(zone), m.real(zone)+zoneBytes
	from, to = m.real(from-m.base), m.real(from-m.base)+to-from
	for line := range strings.Lines(string(b)) {
		var start, end uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return fmt.Errorf("mappings of process %d: %q", m.link.pid, line)
		}
		if start, end = max(start, low), min(end, high); start < to && from < end && start < end {
			m.r.Proc().OS().Bound(m.base+zone+start-low, m.base+zone+end-low)
		}
	}
	return nil
}

// present gives the simulation a page that the process has touched meanwhile.
// The touch is the program's: it takes no time.
func (m *memory) present(va uint64) error {
	if m.r.Proc().OS().Present(va, true) {
		return nil
	}
	page, err := m.r.Proc().View(va, pageBytes)
	if err != nil {
		return err
	}
	page.Present()
	return nil
}
