package portals

import "github.com/spinsim/spinsim/internal/used"

// Node gives process identifiers to the processes of one node.
type Node struct {
	nid    uint32
	pidMax uint32
	low    uint64          // a bit for each identifier below 64 that is taken
	taken  map[uint32]bool // the others
	// generations are the first generations of pending operations for
	// interfaces of each kind. An answer may arrive after its interface was
	// closed, and after the process, or a later one with the same identifier,
	// has opened another. There it must not find an operation.
	generations [niKinds]uint32
}

// NewNode makes a node with identifiers 0 to pidMax.
func NewNode(nid, pidMax uint32) *Node {
	return &Node{nid: nid, pidMax: pidMax}
}

func (n *Node) isTaken(pid uint32) bool {
	if pid < 64 {
		return n.low>>pid&1 != 0
	}
	return n.taken[pid]
}

func (n *Node) take(pid uint32) {
	switch {
	case pid < 64:
		n.low |= 1 << pid
	case n.taken == nil:
		n.taken = map[uint32]bool{pid: true}
	default:
		n.taken[pid] = true
	}
}

func (n *Node) give(pid uint32) {
	if pid < 64 {
		n.low &^= 1 << pid
	}
	delete(n.taken, pid)
}

func (n *Node) takePID(pid uint32) (uint32, error) {
	if pid == PIDAny {
		for pid = 0; n.isTaken(pid); pid++ {
			if pid == n.pidMax {
				return 0, ErrNoSpace
			}
		}
	}
	if pid > n.pidMax {
		return 0, invalid("NIInit", "pid %d, largest is %d", pid, n.pidMax)
	}
	if n.isTaken(pid) {
		return 0, ErrPIDInUse
	}
	n.take(pid)
	return pid, nil
}

// Hooks report changes to the owner of a process. They are called in the middle
// of the operation that causes the change, and must not call the interface:
// they only note what to wake. Nil hooks are not called.
type Hooks struct {
	EventPosted    func(ni *NI, eq Handle) // an event entered the queue
	CounterChanged func(ni *NI, ct Handle) // the counter's value changed
	OpQueued       func(port *Port)        // NextOp has something
	// PTIdle: the last message in delivery at a disabled portal table entry has
	// ended.
	PTIdle func(ni *NI, index uint32)
	// Interrupted: a waiting call must look again. The queue or counter was
	// freed; with InvalidHandle the reason is Abort or NIFini.
	Interrupted func(ni *NI, h Handle)
}

// ProcessConfig describes a process.
type ProcessConfig struct {
	Hooks  Hooks
	UID    uint32 // user id, part of every request
	Memory Memory
	// limits of the device; no limit granted is larger. They are at least the
	// minimum of §3.6.1
	Device Limits
	// Map, if not nil, is the logical map that the run-time system has set.
	// SetMap then returns ErrIgnored.
	Map    []ID
	Tracer Tracer // nil: no trace
	Spare  *Spare // nil: the process has its own
}

// Process is a user of the library, initialised by PtlInit. Its interfaces
// share one physical identifier.
type Process struct {
	aborted bool
	used    used.Set
	cfg     processConfig // its hooks are called often
	device  *Limits
	node    *Node
	inits   int
	id      ID
	hasPID  bool
	nis     [niKinds]*NI
	serials [niKinds]uint32
}

// processConfig is a ProcessConfig without the limits of the device, which many
// processes share.
type processConfig struct {
	Hooks  Hooks
	UID    uint32
	Memory Memory
	Map    []ID
	Tracer Tracer
	Spare  *Spare
}

// NewProcess adds a process to the node. It has no identifier until its first
// NIInit.
func (n *Node) NewProcess(cfg ProcessConfig) *Process {
	if cfg.Spare == nil {
		cfg.Spare = new(Spare)
	}
	return &Process{
		node: n, device: cfg.Spare.keep(&cfg.Device),
		cfg: processConfig{cfg.Hooks, cfg.UID, cfg.Memory, cfg.Map, cfg.Tracer, cfg.Spare},
	}
}

// Used returns what the interfaces of the process have been used for so far: the
// facts with which their limits count.
func (p *Process) Used() used.Set { return p.used }

// UID is the user id of the process.
func (p *Process) UID() uint32 { return p.cfg.UID }

// SetUID gives the process another user id for its later messages. The system
// does this when it starts a process; programs have no such call.
func (p *Process) SetUID(uid uint32) {
	p.cfg.UID = uid
	for _, ni := range p.nis {
		if ni != nil {
			ni.uid = uid
		}
	}
}

// Init (PtlInit) initialises the library for the process. Calls nest.
func (p *Process) Init() error {
	p.inits++
	return nil
}

// Fini (PtlFini) undoes one Init. The last one shuts all interfaces down.
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

// NIInit (PtlNIInit) opens an interface. If it is open, NIInit counts one more
// user and ignores desired. pid requests a process identifier; PIDAny stands
// for any.
//
// NIInit returns the interface and the limits granted. Each is the smaller one
// of the desired limit and the device's. (A desired MaxPTIndex below 63 is
// granted too, although a device offers at least 63.) These stand for the
// device's limit: a negative count, a MaxTriggeredOps of 0, and 0 for
// MaxWAWOrderedSize, MaxWAROrderedSize or MaxVolatileSize. A MaxFetchAtomicSize
// of 0 stands for the MaxAtomicSize granted. Features are granted if desired.
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
		return ni, *ni.limits, nil
	}
	limits := p.device.grant(desired)
	if err := p.identify(pid); err != nil {
		return nil, Limits{}, err
	}
	ni := newNI(p, kind, p.cfg.Spare.keep(&limits))
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
	p.node.give(p.id.PID)
	p.hasPID = false
}

// NI returns the interface of a handle of any kind, even if the object no
// longer exists; nil if the interface is not open.
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

// NewNI makes a new process with one interface, for a transport that manages
// nodes and processes itself. NI.Process().NIInit opens further interfaces of
// that process.
func NewNI(cfg NIConfig) (*NI, Limits, error) {
	p := NewNode(cfg.NID, cfg.PID).NewProcess(ProcessConfig{
		UID: cfg.UID, Memory: cfg.Memory, Device: cfg.Device, Hooks: cfg.Hooks, Map: cfg.Map, Tracer: cfg.Tracer,
	})
	if err := p.Init(); err != nil {
		return nil, Limits{}, err
	}
	return p.NIInit(IfaceDefault, cfg.Options, cfg.PID, cfg.Desired)
}
