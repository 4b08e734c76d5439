package portals

// Put (PtlPut) sends length bytes of a descriptor to a target. SEND follows
// when the bytes have left, ACK, if asked for, when the target has them.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Put(mdh Handle, localOffset, length uint64, ack AckReq, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64,
) error {
	x := transfer{
		kind: OpPut, putMD: mdh, putOff: localOffset, length: length, ack: ack, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr, hdrData: hdrData,
	}
	return ni.start("Put", &x)
}

// Get (PtlGet) reads length bytes of a target into a descriptor. REPLY follows.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Get(mdh Handle, localOffset, length uint64, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr uint64,
) error {
	x := transfer{
		kind: OpGet, getMD: mdh, getOff: localOffset, length: length, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
	}
	return ni.start("Get", &x)
}

// Atomic (PtlAtomic) combines length bytes with the target's memory, element by
// element. Events are those of Put, with ATOMIC at the target. Errors:
// ErrNoInit, ErrArgInvalid.
func (ni *NI) Atomic(mdh Handle, localOffset, length uint64, ack AckReq, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64, op AtomicOp, typ Datatype,
) error {
	x := transfer{
		kind: OpAtomic, putMD: mdh, putOff: localOffset, length: length, ack: ack, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr, hdrData: hdrData, op: op, typ: typ,
	}
	return ni.start("Atomic", &x)
}

// FetchAtomic (PtlFetchAtomic) is Atomic that returns the target's old values
// into getMD. SEND on putMD and REPLY on getMD follow. Errors: ErrNoInit,
// ErrArgInvalid.
func (ni *NI) FetchAtomic(getMD Handle, getOffset uint64, putMD Handle, putOffset, length uint64, target ID,
	ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, op AtomicOp, typ Datatype,
) error {
	x := transfer{
		kind: OpFetchAtomic, getMD: getMD, getOff: getOffset, putMD: putMD, putOff: putOffset, length: length,
		target: target, pt: ptIndex, matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
		hdrData: hdrData, op: op, typ: typ,
	}
	return ni.start("FetchAtomic", &x)
}

// Swap (PtlSwap) replaces the target's values, unconditionally (OpSWAP, any
// length) or one element depending on operand (the others), and returns the old
// values into getMD. operand is one element of typ and ignored by OpSWAP.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Swap(getMD Handle, getOffset uint64, putMD Handle, putOffset, length uint64, target ID,
	ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, operand []byte, op AtomicOp, typ Datatype,
) error {
	x := transfer{
		kind: OpSwap, getMD: getMD, getOff: getOffset, putMD: putMD, putOff: putOffset, length: length,
		target: target, pt: ptIndex, matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
		hdrData: hdrData, op: op, typ: typ, operandLen: len(operand),
	}
	copy(x.operand[:], operand)
	return ni.start("Swap", &x)
}
