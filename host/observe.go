package host

import "bytes"

// Observe returns a copy of the n bytes at addr that a program would read now,
// wherever they are stored, or false if they are not within one range. It is
// for observers outside the simulation: it takes no time and touches nothing.
func (a *AddressSpace) Observe(addr, n uint64) ([]byte, bool) {
	b, ok := a.Bytes(addr, n)
	if !ok {
		return nil, false
	}
	all := bytes.Clone(b)
	if a.process == nil {
		return all, true
	}
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		from, to := max(va, addr), min(va+PageBytes, addr+n)
		a.process.pager.observe(va, int(from-va), all[from-addr:to-addr])
	}
	return all, true
}

// observe fills into with the bytes of a page from off on. It does nothing if
// they are in the process's own backing.
func (p *pager) observe(va uint64, off int, into []byte) {
	k, e := p.kernel, p.tables.pte(va)
	var from []byte // bytes after its end are zeros
	switch {
	case e.flags&pteBusy != 0:
		switch g := k.memory.page(e.frame); {
		case len(g.maps) > 0: // in transfer to storage or to another frame
			from = g.bytes()
		case g.slot == 0:
			return
		default:
			from = k.swap.data(g.slot)
		}
	case e.flags&pteSwap != 0:
		from = k.swap.data(e.frame)
	case e.flags&pteZero != 0:
	case e.flags&pteLent != 0:
		from = k.memory.page(e.frame).bytes()
	case e.flags&pteMapped != 0:
		return
	default:
		if m := p.mappings.find(va); m == nil {
			return
		} else if m.file != nil {
			from = m.file.observe(m.first + uint32((va-m.start)/PageBytes))
		}
	}
	n := copy(into, from[min(off, len(from)):])
	clear(into[n:])
}

// observe returns the bytes of a page of a file, wherever they are stored.
func (f *File) observe(i uint32) []byte {
	if fr, is := f.pages[i]; is && f.kernel.memory.page(fr).filled {
		return f.bytes(i)
	}
	if s := f.slots[i]; s != 0 {
		return f.kernel.swap.data(s)
	}
	from := min(int(i)*PageBytes, len(f.disk))
	return f.disk[from:min(from+PageBytes, len(f.disk))]
}
