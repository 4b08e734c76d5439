package portals

// Node hands out process identifiers to the processes of one node.
type Node struct {
	nid    uint32
	pidMax uint32
	taken  map[uint32]bool
	// generations are where interfaces of each kind begin to count those of
	// their pending operations. An answer for an interface that is closed may
	// still come when the process, or another that has its identifier now, has
	// opened the next: it must not find an operation there.
	generations [niKinds]uint32
}

// NewNode makes a node with identifiers 0 to pidMax.
func NewNode(nid, pidMax uint32) *Node {
	return &Node{nid: nid, pidMax: pidMax, taken: make(map[uint32]bool)}
}

func (n *Node) takePID(pid uint32) (uint32, error) {
	if pid == PIDAny {
		for pid = 0; n.taken[pid]; pid++ {
			if pid == n.pidMax {
				return 0, ErrNoSpace
			}
		}
	}
	if pid > n.pidMax {
		return 0, invalid("NIInit", "pid %d, largest is %d", pid, n.pidMax)
	}
	if n.taken[pid] {
		return 0, ErrPIDInUse
	}
	n.taken[pid] = true
	return pid, nil
}

// Hooks tell the owner of a process what changed. They are called
// synchronously, in the middle of the operation that caused the change, and
// must not call into the interface: they note that somebody has to be woken.
// Nil hooks are not called.
type Hooks struct {
	EventPosted    func(ni *NI, eq Handle) // an event entered the queue
	CounterChanged func(ni *NI, ct Handle) // the counter's value changed
	OpQueued       func(port *Port)        // NextOp has something
	// PTIdle: the last message under way at a disabled portal table entry is
	// through.
	PTIdle func(ni *NI, index uint32)
	// Interrupted: a waiter must look again, because the queue or counter was
	// freed, or, with InvalidHandle, because of Abort or NIFini.
	Interrupted func(ni *NI, h Handle)
}

// ProcessConfig describes a process.
type ProcessConfig struct {
	Hooks  Hooks
	UID    uint32 // user id, part of every request
	Memory Memory
	// what the device has; every limit granted stays within. Those below the
	// floors of §3.6.1 count as these
	Device Limits
	// Map, when not nil, is the logical map set by the run-time system;
	// SetMap then returns ErrIgnored.
	Map    []ID
	Tracer Tracer // nil: no trace
	Spare  *Spare // nil: the process has its own
}

// Process is a user of the library: what PtlInit initialises. Its interfaces
// share one physical identifier.
type Process struct {
	aborted bool
	cfg     ProcessConfig // its hooks are called often
	node    *Node
	inits   int
	id      ID
	hasPID  bool
	nis     [niKinds]*NI
	serials [niKinds]uint32
}

// NewProcess adds a process to the node. It has no identifier until its first
// NIInit.
func (n *Node) NewProcess(cfg ProcessConfig) *Process {
	if cfg.Spare == nil {
		cfg.Spare = new(Spare)
	}
	return &Process{node: n, cfg: cfg}
}

// SetUID gives the process another user id, which its messages have from now on, as the system does
// when it starts one: programs have no such call.
func (p *Process) SetUID(uid uint32) {
	p.cfg.UID = uid
	for _, ni := range p.nis {
		if ni != nil {
			ni.uid = uid
		}
	}
}

// Init (PtlInit) initialises the library for the process; calls are counted.
func (p *Process) Init() error {
	p.inits++
	return nil
}

// Fini (PtlFini) undoes one Init; the last one shuts all interfaces down.
// Without a matching Init it does nothing.
func (p *Process) Fini() {
	if p.inits == 0 {
		return
	}
	if p.inits--; p.inits > 0 {
		return
	}
	for _, ni := range p.nis {
		if ni != nil {
			ni.shutdown()
		}
	}
}

// Abort (PtlAbort) makes every blocked and every later blocking call of the
// process return ErrAborted (Portals 4.x §3.4.3).
func (p *Process) Abort() {
	p.aborted = true
	for _, ni := range p.nis {
		if ni != nil {
			ni.witness.interrupted(InvalidHandle)
		}
	}
}

// NIInit (PtlNIInit) opens an interface, or, when it is open, counts one more
// user of it and ignores desired. pid asks for a process identifier, PIDAny for
// any. It returns the interface and the limits granted: of each the lesser of
// what is desired and what the device has (a desired MaxPTIndex below 63 is
// granted too, although a device offers at least 63). A negative count, a
// MaxTriggeredOps of 0, and a MaxWAWOrderedSize, MaxWAROrderedSize or
// MaxVolatileSize of 0 stand for what the device has, a MaxFetchAtomicSize of 0
// for the MaxAtomicSize granted. Features are granted if desired.
// Errors: ErrNoInit, ErrArgInvalid, ErrPIDInUse, ErrNoSpace.
func (p *Process) NIInit(iface uint32, options NIOptions, pid uint32, desired *Limits) (*NI, Limits, error) {
	if p.inits == 0 {
		return nil, Limits{}, ErrNoInit
	}
	if iface != IfaceDefault {
		return nil, Limits{}, invalid("NIInit", "interface %d, there is only %d", iface, IfaceDefault)
	}
	kind, err := niKind(options)
	if err != nil {
		return nil, Limits{}, err
	}
	if ni := p.nis[kind]; ni != nil {
		ni.refs++
		return ni, ni.limits, nil
	}
	limits := p.cfg.Device.grant(desired)
	if err := p.identify(pid); err != nil {
		return nil, Limits{}, err
	}
	ni := newNI(p, kind, limits)
	p.nis[kind] = ni
	return ni, limits, nil
}

func niKind(options NIOptions) (NIKind, error) {
	var k NIKind
	switch options & (OptNIMatching | OptNINoMatching) {
	case OptNIMatching:
		k |= 1
	case OptNINoMatching:
	default:
		return 0, invalid("NIInit", "options %v, want exactly one of MATCHING and NO_MATCHING", options)
	}
	switch options & (OptNILogical | OptNIPhysical) {
	case OptNILogical:
		k |= 2
	case OptNIPhysical:
	default:
		return 0, invalid("NIInit", "options %v, want exactly one of LOGICAL and PHYSICAL", options)
	}
	if options >= 1<<len(NINames) {
		return 0, invalid("NIInit", "options %#x, unknown bits", uint32(options))
	}
	return k, nil
}

func (p *Process) identify(pid uint32) error {
	if p.hasPID {
		if pid != PIDAny && pid != p.id.PID {
			return invalid("NIInit", "pid %d, the process is %d", pid, p.id.PID)
		}
		return nil
	}
	got, err := p.node.takePID(pid)
	if err != nil {
		return err
	}
	p.id, p.hasPID = PhysID(p.node.nid, got), true
	return nil
}

func (p *Process) closed(kind NIKind) {
	p.nis[kind] = nil
	for _, other := range p.nis {
		if other != nil {
			return
		}
	}
	delete(p.node.taken, p.id.PID)
	p.hasPID = false
}

// NI returns the interface of a handle of any kind, whether or not the object
// itself lives; nil when the interface is not open.
func (p *Process) NI(h Handle) *NI {
	if h == InvalidHandle {
		return nil
	}
	return p.nis[h.NI()]
}

// NIHandle (PtlNIHandle) returns the interface handle of an object.
// Errors: ErrNoInit, ErrArgInvalid.
func (p *Process) NIHandle(h Handle) (Handle, error) {
	if p.inits == 0 {
		return InvalidHandle, ErrNoInit
	}
	if ni := p.NI(h); ni != nil && ni.lives(h) {
		return ni.handle, nil
	}
	return InvalidHandle, invalid("NIHandle", "handle %#x names nothing", uint32(h))
}

// NIConfig describes a stand-alone interface for NewNI.
type NIConfig struct {
	NID, PID uint32
	Options  NIOptions
	UID      uint32
	Device   Limits  // what the device has
	Desired  *Limits // nil: all of it
	Memory   Memory
	Hooks    Hooks
	Map      []ID // logical map set by the run-time system, or nil
	Tracer   Tracer
}

// NewNI makes a process of its own with one interface: the short way for a
// transport that keeps its own books of nodes and processes. The further
// interfaces of that process come from NI.Process().NIInit.
func NewNI(cfg NIConfig) (*NI, Limits, error) {
	p := NewNode(cfg.NID, cfg.PID).NewProcess(ProcessConfig{
		UID: cfg.UID, Memory: cfg.Memory, Device: cfg.Device, Hooks: cfg.Hooks, Map: cfg.Map, Tracer: cfg.Tracer,
	})
	if err := p.Init(); err != nil {
		return nil, Limits{}, err
	}
	return p.NIInit(IfaceDefault, cfg.Options, cfg.PID, cfg.Desired)
}
