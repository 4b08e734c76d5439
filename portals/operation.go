package portals

// Operation is an operation that a counter can trigger: Put, Get, Atomic,
// FetchAtomic, Swap, CTInc, CTSet or MEUnlink. See Objects.Triggered.
type Operation interface{ operation() }

// Put are the arguments of NI.Put (PtlPut, Portals 4.x §3.15.2). An omitted
// field is zero: offset 0, no acknowledgement, portal table entry 0.
type Put struct {
	MD           Handle // the descriptor that has the bytes
	Offset       uint64 // of the first byte in the descriptor
	Length       uint64 // bytes
	Ack          AckReq
	Target       ID
	PT           uint32 // portal table index at the target
	MatchBits    uint64
	RemoteOffset uint64 // in the target's entry, unless the entry manages its own
	UserPtr      uint64 // returned in the events here
	HdrData      uint64 // delivered in the events there
}

// Get are the arguments of NI.Get (PtlGet, Portals 4.x §3.15.3).
type Get struct {
	MD           Handle // the descriptor that the bytes come into
	Offset       uint64 // of the first byte in the descriptor
	Length       uint64 // bytes
	Target       ID
	PT           uint32 // portal table index at the target
	MatchBits    uint64
	RemoteOffset uint64 // in the target's entry, unless the entry manages its own
	UserPtr      uint64 // returned in the events here
}

// Atomic are the arguments of NI.Atomic, which combines data with the target's
// memory (PtlAtomic, Portals 4.x §3.15.4). The fields mean the same as in Put.
type Atomic struct {
	MD           Handle
	Offset       uint64
	Length       uint64
	Ack          AckReq
	Target       ID
	PT           uint32
	MatchBits    uint64
	RemoteOffset uint64
	UserPtr      uint64
	HdrData      uint64
	Op           AtomicOp
	Type         Datatype
}

// FetchAtomic is an Atomic that also returns the old values of the target
// (PtlFetchAtomic, Portals 4.x §3.15.4).
type FetchAtomic struct {
	GetMD        Handle // the descriptor that the old values come into
	GetOffset    uint64 // of their first byte in that descriptor
	MD           Handle
	Offset       uint64
	Length       uint64
	Target       ID
	PT           uint32
	MatchBits    uint64
	RemoteOffset uint64
	UserPtr      uint64
	HdrData      uint64
	Op           AtomicOp
	Type         Datatype
}

// Swap replaces values of the target and returns the old ones (PtlSwap, Portals
// 4.x §3.15.4). OpSWAP has no condition and any length. The other operators
// swap one element, depending on Operand.
type Swap struct {
	GetMD        Handle // the descriptor that the old values come into
	GetOffset    uint64 // of their first byte in that descriptor
	MD           Handle
	Offset       uint64
	Length       uint64
	Target       ID
	PT           uint32
	MatchBits    uint64
	RemoteOffset uint64
	UserPtr      uint64
	HdrData      uint64
	Operand      []byte // one element of Type; OpSWAP ignores it
	Op           AtomicOp
	Type         Datatype
}

// CTInc adds Increment to a counter (PtlTriggeredCTInc, Portals 4.x §3.16).
type CTInc struct {
	CT        Handle
	Increment CTEvent // of successes or of failures, not of both
}

// CTSet sets a counter to Value (PtlTriggeredCTSet, Portals 4.x §3.16).
type CTSet struct {
	CT    Handle
	Value CTEvent
}

// MEUnlink unlinks an entry (PtlTriggeredMEUnlink, Portals 4.x §3.16).
type MEUnlink struct{ ME Handle }

func (Put) operation()         {}
func (Get) operation()         {}
func (Atomic) operation()      {}
func (FetchAtomic) operation() {}
func (Swap) operation()        {}
func (CTInc) operation()       {}
func (CTSet) operation()       {}
func (MEUnlink) operation()    {}

func (o *Put) transfer() transfer {
	return transfer{
		kind: OpPut, putMD: o.MD, putOff: o.Offset, length: o.Length, ack: o.Ack, target: o.Target, pt: o.PT,
		matchBits: o.MatchBits, remoteOffset: o.RemoteOffset, userPtr: o.UserPtr, hdrData: o.HdrData,
	}
}

func (o *Get) transfer() transfer {
	return transfer{
		kind: OpGet, getMD: o.MD, getOff: o.Offset, length: o.Length, target: o.Target, pt: o.PT,
		matchBits: o.MatchBits, remoteOffset: o.RemoteOffset, userPtr: o.UserPtr,
	}
}

func (o *Atomic) transfer() transfer {
	return transfer{
		kind: OpAtomic, putMD: o.MD, putOff: o.Offset, length: o.Length, ack: o.Ack, target: o.Target, pt: o.PT,
		matchBits: o.MatchBits, remoteOffset: o.RemoteOffset, userPtr: o.UserPtr, hdrData: o.HdrData,
		op: o.Op, typ: o.Type,
	}
}

func (o *FetchAtomic) transfer() transfer {
	return transfer{
		kind: OpFetchAtomic, getMD: o.GetMD, getOff: o.GetOffset, putMD: o.MD, putOff: o.Offset, length: o.Length,
		target: o.Target, pt: o.PT, matchBits: o.MatchBits, remoteOffset: o.RemoteOffset, userPtr: o.UserPtr,
		hdrData: o.HdrData, op: o.Op, typ: o.Type,
	}
}

func (o *Swap) transfer() transfer {
	x := transfer{
		kind: OpSwap, getMD: o.GetMD, getOff: o.GetOffset, putMD: o.MD, putOff: o.Offset, length: o.Length,
		target: o.Target, pt: o.PT, matchBits: o.MatchBits, remoteOffset: o.RemoteOffset, userPtr: o.UserPtr,
		hdrData: o.HdrData, op: o.Op, typ: o.Type, operandLen: len(o.Operand),
	}
	copy(x.operand[:], o.Operand)
	return x
}
