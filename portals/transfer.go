package portals

// Put (PtlPut) sends bytes of a descriptor to a target. SEND follows when the
// bytes have left. ACK, if requested, follows when the target has them. Errors:
// ErrNoInit, ErrArgInvalid.
func (ni *NI) Put(o Put) error {
	x := o.transfer()
	return ni.start("Put", &x)
}

// Get (PtlGet) reads bytes of a target into a descriptor. REPLY follows. Errors:
// ErrNoInit, ErrArgInvalid.
func (ni *NI) Get(o Get) error {
	x := o.transfer()
	return ni.start("Get", &x)
}

// Atomic (PtlAtomic) combines bytes of a descriptor with the target's memory,
// element by element. It has the events of Put, with ATOMIC at the target.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Atomic(o Atomic) error {
	x := o.transfer()
	return ni.start("Atomic", &x)
}

// FetchAtomic (PtlFetchAtomic) is Atomic, and returns the target's old values.
// SEND follows on the descriptor with the bytes and REPLY on the other one.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) FetchAtomic(o FetchAtomic) error {
	x := o.transfer()
	return ni.start("FetchAtomic", &x)
}

// Swap (PtlSwap) replaces the target's values and returns the old ones. It has
// the events of FetchAtomic. Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Swap(o Swap) error {
	x := o.transfer()
	return ni.start("Swap", &x)
}
