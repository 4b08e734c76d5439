package host

// reach makes the client change the bytes of an atomic.
func (a *Access) reach() {
	if a.flight != lost {
		a.Client.Reached(a)
		return
	}
	a.aside(0, a.Length, func() { a.Client.Reached(a) })
}

// pretend ends an Ignored access, or piece i of a stream: the device reads
// zeros, and its writes are lost.
func (a *Access) pretend(i int) {
	from, to := a.part(i)
	if a.way == anAtomic { // its bytes moved at memory
		a.Client.Ended(a, i, OK)
		return
	}
	a.aside(from, to, func() { a.Client.Ended(a, i, OK) })
}

// aside runs f while a part of an access reads as zeros, and then restores the
// bytes.
func (a *Access) aside(from, to int, f func()) {
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
