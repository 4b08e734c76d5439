package host

import (
	"fmt"
	"slices"
)

// mapping is adjacent pages that were mapped together and have the same
// attributes (vm_area_struct).
type mapping struct {
	start, end uint64
	prot       Prot
	locked     bool
	unforked   bool // DontFork
	shared     bool
	file       *File  // nil: anonymous and private
	first      uint32 // index of the file's page at start
}

func (m *mapping) allows(write bool) bool {
	if write {
		return m.prot == ProtWrite
	}
	return m.prot&ProtRead != 0
}

// mappings are the mappings of a process, sorted by address.
type mappings []mapping

// find returns the mapping of an address, nil if there is none. The result is
// valid until mappings change.
func (ms mappings) find(va uint64) *mapping {
	i, _ := slices.BinarySearchFunc(ms, va, func(m mapping, va uint64) int {
		if m.end <= va {
			return -1
		}
		return 1
	})
	if i < len(ms) && ms[i].start <= va {
		return &ms[i]
	}
	return nil
}

// covers returns an error with the first unmapped address from start to end.
func (ms mappings) covers(start, end uint64) error {
	for va := start; va < end; {
		m := ms.find(va)
		if m == nil {
			return fmt.Errorf("%#x: %w", va, ErrNoMapping)
		}
		va = m.end
	}
	return nil
}

// split splits the mapping of an address, so that one begins at the address.
func (ms *mappings) split(va uint64) {
	m := ms.find(va)
	if m == nil || m.start == va {
		return
	}
	behind := *m
	behind.first += uint32((va - m.start) / PageBytes)
	m.end, behind.start = va, va
	i := slices.IndexFunc(*ms, func(o mapping) bool { return o.start > va })
	if i < 0 {
		i = len(*ms)
	}
	*ms = slices.Insert(*ms, i, behind)
}

// mark changes the mappings of the addresses from start to end.
func (ms *mappings) mark(start, end uint64, change func(m *mapping)) {
	ms.split(start)
	ms.split(end)
	for i := range *ms {
		if m := &(*ms)[i]; m.start >= start && m.end <= end {
			change(m)
		}
	}
}

// cut removes the addresses from start to end. It returns the files of the
// mappings that were without a name: other processes may still share them.
func (ms *mappings) cut(start, end uint64) (unnamed []*File) {
	ms.split(start)
	ms.split(end)
	*ms = slices.DeleteFunc(*ms, func(m mapping) bool {
		gone := m.start >= start && m.end <= end
		if gone && m.file != nil && m.file.anonymous {
			unnamed = append(unnamed, m.file)
		}
		return gone
	})
	return unnamed
}
