package portals

// NI is a network interface (Portals 4.x §3.6) as programs see it: the API of
// the standard. After the last NIFini its methods return ErrNoInit, and
// messages that still arrive for it are dropped.
type NI struct{ Objects }

// Objects are an interface and its objects: portal table entries, descriptors,
// list entries, counters and queues. Its calls take no part in a transfer, so
// they take no time of a device. Package runtime passes it to programs
// unchanged.
type Objects struct{ *state }

// Port returns the interface as the transport sees it.
func (ni *NI) Port() *Port { return ni.port }

// Process returns the process the interface belongs to.
func (ni *NI) Process() *Process { return ni.proc }

// Kind returns which of the four interfaces it is.
func (ni *Objects) Kind() NIKind { return ni.kind }

// Options returns the options of NIInit for this interface.
func (ni *Objects) Options() NIOptions {
	o := OptNINoMatching
	if ni.kind.Matching() {
		o = OptNIMatching
	}
	if ni.kind.Logical() {
		return o | OptNILogical
	}
	return o | OptNIPhysical
}

// Handle returns the interface's handle. It is the same number in processes
// that have opened their interfaces equally often.
func (ni *Objects) Handle() Handle { return ni.handle }

// Limits returns the limits granted.
func (ni *Objects) Limits() Limits { return *ni.limits }

// NIFini (PtlNIFini) undoes one NIInit; the last one releases every object.
// Errors: ErrNoInit.
func (ni *Objects) NIFini() error {
	if ni.dead {
		return ErrNoInit
	}
	if ni.refs--; ni.refs == 0 {
		ni.shutdown()
	}
	return nil
}

// shutdown forgets every object. Operations already in the outbox still leave.
func (ni *Objects) shutdown() {
	ni.dead = true
	ni.refs = 0
	generation := &ni.proc.node.generations[ni.kind]
	*generation = max(*generation, ni.pending.clear())
	ni.counters.ready, ni.counters.fired = nil, false
	ni.proc.closed(ni.kind)
	ni.witness.interrupted(InvalidHandle)
}

// NIStatus (PtlNIStatus) reads a status register.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *Objects) NIStatus(r StatusRegister) (uint64, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	if r >= srCount {
		return 0, invalid("NIStatus", "status register %d, there are %d", r, srCount)
	}
	return ni.status[r], nil
}

// UID (PtlGetUid) returns the user id of the process. Errors: ErrNoInit.
func (ni *Objects) UID() (uint32, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	return ni.uid, nil
}

// ID (PtlGetId) returns the name of the process on this interface: NID and PID,
// or the rank. Errors: ErrNoInit; ErrArgInvalid on a logical interface whose map
// does not contain the process.
func (ni *Objects) ID() (ID, error) {
	if ni.dead {
		return ID{}, ErrNoInit
	}
	if !ni.kind.Logical() {
		return ni.names.self, nil
	}
	if ni.names.self.Rank == RankAny {
		return ID{}, invalid("GetId", "process %v has no rank", ni.names.self)
	}
	return RankID(ni.names.self.Rank), nil
}

// PhysID (PtlGetPhysId) returns NID and PID on any interface. Errors: ErrNoInit.
func (ni *Objects) PhysID() (ID, error) {
	if ni.dead {
		return ID{}, ErrNoInit
	}
	return PhysID(ni.names.self.NID, ni.names.self.PID), nil
}

// SetMap (PtlSetMap) sets the map from ranks to physical identifiers. Errors:
// ErrNoInit; ErrArgInvalid on a physical interface or for an empty map;
// ErrIgnored if the run-time system has set the map.
func (ni *NI) SetMap(mapping []ID) error {
	if ni.dead {
		return ErrNoInit
	}
	if !ni.kind.Logical() {
		return invalid("SetMap", "the interface is physical")
	}
	if len(mapping) == 0 {
		return invalid("SetMap", "the map is empty")
	}
	if ni.proc.cfg.Map != nil {
		return ErrIgnored
	}
	ni.names.setMap(mapping)
	return nil
}

// GetMap (PtlGetMap) copies as much of the map as fits into dst, and returns
// its full size. Errors: ErrNoInit; ErrArgInvalid on a physical interface.
func (ni *Objects) GetMap(dst []ID) (int, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	if !ni.kind.Logical() {
		return 0, invalid("GetMap", "the interface is physical")
	}
	for i := range min(len(dst), len(ni.names.ranks)) {
		dst[i] = PhysID(ni.names.ranks[i].NID, ni.names.ranks[i].PID)
	}
	return len(ni.names.ranks), nil
}

// StartBundle (PtlStartBundle) hints that a group of operations begins; calls
// nest. Errors: ErrNoInit.
func (ni *Objects) StartBundle() error {
	if ni.dead {
		return ErrNoInit
	}
	ni.bundles++
	return nil
}

// EndBundle (PtlEndBundle) ends one StartBundle. Errors: ErrNoInit;
// ErrArgInvalid without a matching StartBundle.
func (ni *Objects) EndBundle() error {
	if ni.dead {
		return ErrNoInit
	}
	if ni.bundles == 0 {
		return invalid("EndBundle", "no bundle is open")
	}
	ni.bundles--
	return nil
}

// AtomicSync (PtlAtomicSync) makes host accesses to memory of atomics safe.
// Atomics are applied in place here, so it has nothing to wait for. Errors:
// ErrNoInit.
func (ni *Objects) AtomicSync() error {
	if ni.dead {
		return ErrNoInit
	}
	return nil
}
