package host

// reach makes the client change the bytes of an atomic.
func (b *Bus) reach(a *Access) {
	if a.flight != lost {
		a.Client.Reached(a)
		return
	}
	b.aside(a, 0, a.Length, func() { a.Client.Reached(a) })
}

// pretend ends an Ignored access, or piece i of a stream: the device reads
// zeros, and its writes are lost.
func (b *Bus) pretend(a *Access, i int) {
	from, to := a.part(i)
	if a.way == anAtomic { // its bytes moved at memory
		a.Client.Ended(a, i, OK)
		return
	}
	b.aside(a, from, to, func() { a.Client.Ended(a, i, OK) })
}

// aside runs f while a part of an access reads as zeros, and then restores the
// bytes.
func (b *Bus) aside(a *Access, from, to int, f func()) {
	type part struct{ memory, kept []byte }
	var parts []part
	for from < to {
		addr, n := a.At(from)
		n = min(n, to-from)
		from += n
		if memory, ok := a.Space.Bytes(addr, uint64(n)); ok {
			parts = append(parts, part{memory, append([]byte(nil), memory...)})
			clear(memory)
		}
	}
	f()
	for _, p := range parts {
		copy(p.memory, p.kept)
	}
}
