package runtime_test

import (
	"context"
	"encoding/binary"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The tests of actions let rank 0 send to rank 1, whose entry has the handlers
// of testdata/actions: they do what scripts in HPU memory say.

// rec is a line of a script: an import of the ABI, or one of the operations
// below, and its arguments.
type rec struct {
	op   int
	args []uint64
}

// Operations of testdata/actions/actions.wat beside the imports.
const (
	opEnd  = iota + 0
	opSpin = iota + 29
	opTrap
	opForever
	opRecurse
	opLoad
	opCopy
	opStore
	opPayload
	opSkip
)

func do(op hpu.Op, args ...uint64) rec { return rec{int(op), args} }

func also(op int, args ...uint64) rec { return rec{op, args} }

func end(code hpu.Code) rec { return rec{opEnd, []uint64{uint64(uint32(code))}} }

// The map of the HPU memory of these tests.
const (
	hpuBase      = 1 << 16 // the module has a page of its own
	hpuBytes     = 1 << 16
	scriptBytes  = 0x800
	headerAt     = hpuBase + 0x100
	completionAt = hpuBase + 0x1000
	payloadAt    = hpuBase + 0x2000 // 16 scripts
	scratch      = hpuBase + 0xa000 // for data
	scratch2     = hpuBase + 0xc000
	operations   = hpuBase + 0xf000 // operation records
	recordSize   = 64
	// actionsMemory is all of the memory on the built-in profiles: own, HPU
	// memory, 8 contexts of stack, record and packet.
	actionsMemory = (hpuBase + hpuBytes + 8*(4096+256+4096) + 32 + 1<<16 - 1) >> 16 << 16
	hostBytes     = 1 << 16 // of the entry
	extraBytes    = 1 << 12 // of the handler host memory
	peerBytes     = 1 << 16 // of rank 2's entry
)

// setup is one experiment of the laboratory.
type setup struct {
	profile    string           // "": spin-dis
	overrides  []string         // of the profile
	loaded     *profile.Profile // instead of both, if it is not nil
	header     []rec
	payload    []rec // of all packets that payloads does not list
	payloads   map[int][]rec
	completion []rec
	ops        []hpu.Operation // records, see opAt
	build      func(r *rig)    // fills in what needs handles
	message    []byte
	messages   int // 0: one
	length     int // of the message if message is nil
	userHdr    uint64
	entry      func(me *portals.ME, rig *rig)
	target     func(p *runtime.Proc, rig *rig) error // rank 1, once the entry is there
	initiator  func(p *runtime.Proc, md portals.Handle, rig *rig) error
	peer       func(p *runtime.Proc, rig *rig) error // rank 2 before it waits
	ptOptions  portals.PTOptions
	noFlow     bool // the portal table entry has no flow control
	stuck      bool // the run is to end with a process that waits
	cfg        func(*runtime.Config)
	cleanup    func(func()) // of the test if nil; one of many random runs must not live that long
}

// event is an event of a queue with the moment of its posting.
type event struct {
	portals.Event
	at sim.Time
}

// step is a HandlerStep that outlives its call.
type step struct {
	nic.HandlerStep
	act hpu.Action
}

// rig is what a setup became.
type rig struct {
	*testing.T
	setup
	prof   *profile.Profile
	c      *runtime.Cluster
	hpu    *nic.Memory
	memory struct {
		host  runtime.View // of the entry of rank 1
		extra runtime.View // handler host memory of rank 1
		peer  runtime.View // of the entry of rank 2
	}
	host       []byte         // what is in them after the run
	extra      []byte         //
	peerMem    []byte         //
	addr       uint64         // of the entry of rank 1
	eq, ct     portals.Handle // of rank 1, as the next two
	md, me     portals.Handle
	initEQ     portals.Handle // of rank 0
	multiplier *portals.Spin  // handlers that entry may use
	targets    []event        // rank 1
	inits      []event        // rank 0
	peers      []event        // rank 2
	steps      []step
	err        error
}

// Trace collects the events of all queues.
func (r *rig) Trace(ni *portals.NI, t *portals.TraceRecord) {
	if t.What != portals.TraceEvent {
		return
	}
	id, err := ni.PhysID()
	require.NoError(r, err)
	e := event{*t.Event, r.c.Engine().Now()}
	switch id.NID {
	case 0:
		r.inits = append(r.inits, e)
	case 1:
		r.targets = append(r.targets, e)
	default:
		r.peers = append(r.peers, e)
	}
}

func opAt(i int) uint64 { return uint64(operations + i*128) }

func readModule(path string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", path)) }

// conduct runs a setup on three ranks.
func conduct(t *testing.T, s setup) *rig {
	if s.profile == "" {
		s.profile = "spin-dis"
	}
	r := &rig{T: t, setup: s}
	var err error
	if r.prof = s.loaded; r.prof == nil {
		r.prof, err = profile.Load(s.profile, s.overrides...)
		require.NoError(t, err)
	}
	cfg := runtime.Config{Profile: r.prof, Nodes: 3, Engine: labEngine, Explain: r, Watch: func(h *nic.HandlerStep) {
		k := step{HandlerStep: *h}
		if h.Action != nil {
			k.act = *h.Action
		}
		k.Record = append([]byte(nil), h.Record...)
		r.steps = append(r.steps, k)
	}}
	if s.cfg != nil {
		s.cfg(&cfg)
	}
	r.c, err = runtime.NewCluster(cfg)
	require.NoError(t, err)
	if s.cleanup == nil {
		s.cleanup = t.Cleanup
	}
	s.cleanup(func() { require.NoError(t, r.c.Close()) })
	if r.message == nil {
		r.message = pattern(s.length, 1)
	}
	require.NoError(t, r.c.Spawn(1, "target", r.runTarget))
	require.NoError(t, r.c.Spawn(0, "initiator", r.runInitiator))
	require.NoError(t, r.c.Spawn(2, "peer", r.runPeer))
	r.err = r.c.Run(context.Background())
	if !s.stuck {
		require.NoError(t, r.err)
	}
	r.host, r.extra, r.peerMem = r.memory.host.Snapshot(), r.memory.extra.Snapshot(), r.memory.peer.Snapshot()
	return r
}

// pattern is n bytes that tell where they are.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) + byte(i>>8)*7 + seed
	}
	return b
}

func (r *rig) runTarget(p *runtime.Proc) error {
	binary, err := readModule("actions/actions.wasm")
	if err != nil {
		return err
	}
	module, err := r.c.LoadModule("actions", binary)
	if err != nil {
		return err
	}
	if r.hpu, err = p.HPUAllocMem(module, hpuBytes); err != nil {
		return err
	}
	addr, size := r.hpu.Program().HPUMemory()
	require.Equal(r, [2]uint32{hpuBase, hpuBytes}, [2]uint32{addr, size})
	ni := p.NI()
	if r.eq, err = ni.Objects().EQAlloc(256); err != nil {
		return err
	}
	if r.ct, err = ni.Objects().CTAlloc(); err != nil {
		return err
	}
	options := r.ptOptions | portals.OptPTFlowCtrl
	if r.noFlow {
		options = r.ptOptions
	}
	if _, err := ni.Objects().PTAlloc(options, r.eq, 0); err != nil {
		return err
	}
	r.memory.host, r.memory.extra = p.Alloc(hostBytes), p.Alloc(extraBytes)
	r.addr = r.memory.host.Addr()
	if r.md, err = ni.Objects().MDBind(&portals.MD{Start: r.addr, Length: hostBytes, EQ: r.eq}); err != nil {
		return err
	}
	if r.build != nil {
		r.build(r)
	}
	me, err := r.entryOf()
	if err != nil {
		return err
	}
	if r.entry != nil {
		if r.multiplier, err = multiplying(p); err != nil {
			return err
		}
		r.entry(&me, r)
	}
	if r.me, err = ni.MEAppend(0, &me, portals.PriorityList, 77); err != nil {
		return err
	}
	if r.target != nil {
		return r.target(p, r)
	}
	return nil
}

// entryOf is the entry of rank 1, with those handlers that have scripts.
func (r *rig) entryOf() (me portals.ME, err error) {
	writeScripts(r.hpu, r.prof, r.header, r.completion, func(k int) []rec {
		if s, ok := r.payloads[k]; ok {
			return s
		}
		return r.payload
	})
	for i := range r.ops {
		writeOperation(r.hpu.Bytes()[opAt(i)-hpuBase:], &r.ops[i])
	}
	copy(r.hpu.Bytes()[scratch-hpuBase:], pattern(4096, 50))
	me = portals.ME{
		Start: r.addr, Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax,
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
	}
	names := [3]string{"header", "payload", "completion"}
	for i, absent := range [3]bool{r.header == nil, r.payload == nil && r.payloads == nil, r.completion == nil} {
		if absent {
			names[i] = ""
		}
	}
	if names == [3]string{} {
		return me, nil
	}
	if me.Spin, err = r.hpu.Spin(names[0], names[1], names[2]); err != nil {
		return me, err
	}
	me.Spin.UserHdrLen = r.userHdr
	me.Spin.HostMem = portals.Region{Start: r.memory.extra.Addr(), Length: extraBytes}
	return me, nil
}

func (r *rig) runInitiator(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(256)
	if r.initEQ = eq; err != nil {
		return err
	}
	data := p.Alloc(max(len(r.message), 4096))
	copy(data.Raw(), r.message)
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(data.Len()), EQ: eq})
	if err != nil {
		return err
	}
	if r.initiator != nil {
		return r.initiator(p, md, r)
	}
	for range max(1, r.messages) {
		err := ni.Put(portals.Put{MD: md, Length: uint64(len(r.message)), Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, UserPtr: 9, HdrData: 0xabc})
		if err != nil {
			return err
		}
	}
	return nil
}

// runPeer offers a plain entry, for what handlers send.
func (r *rig) runPeer(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(256)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, eq, 0); err != nil {
		return err
	}
	r.memory.peer = p.Alloc(peerBytes)
	copy(r.memory.peer.Raw(), pattern(peerBytes, 100))
	if _, err = ni.MEAppend(0, &portals.ME{
		Start: r.memory.peer.Addr(), Length: peerBytes, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax,
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 88); err != nil {
		return err
	}
	if r.peer != nil {
		return r.peer(p, r)
	}
	return nil
}

// writeScripts puts state and scripts into HPU memory.
func writeScripts(memory *nic.Memory, prof *profile.Profile, header, completion []rec, payload func(packet int) []rec) {
	mem := memory.Bytes()
	le := binary.LittleEndian
	shift := bits.Len32(uint32(prof.Fabric.MTU - 1))
	le.PutUint32(mem[0:], headerAt)
	le.PutUint32(mem[4:], completionAt)
	le.PutUint32(mem[8:], uint32(shift))
	writeScript(mem, headerAt, header)
	writeScript(mem, completionAt, completion)
	for k := range 16 {
		at := uint32(payloadAt + k*scriptBytes)
		le.PutUint32(mem[16+4*k:], at)
		writeScript(mem, at, payload(k))
	}
}

func writeScript(mem []byte, at uint32, script []rec) {
	b := mem[at-hpuBase:][:scriptBytes]
	for i, s := range script {
		line := b[i*recordSize:][:recordSize]
		binary.LittleEndian.PutUint32(line, uint32(s.op))
		for k, a := range s.args {
			binary.LittleEndian.PutUint64(line[16+8*k:], a)
		}
	}
}

func writeOperation(b []byte, d *hpu.Operation) {
	le := binary.LittleEndian
	for at, v := range map[int]uint32{
		0: d.Local, 4: d.Space, 24: d.TargetNID, 28: d.TargetPID, 32: d.PTIndex, 36: d.AckReq, 72: d.MD, 76: d.Options, 80: d.AtomicOp,
		84: d.Datatype, 88: d.Operand, 92: d.Fetch, 104: d.UserHdr, 108: d.UserHdrLen,
	} {
		le.PutUint32(b[at:], v)
	}
	for at, v := range map[int]uint64{
		8: d.Offset, 16: d.Length, 40: d.MatchBits, 48: d.RemoteOffset, 56: d.HdrData, 64: d.UserPtr, 96: d.FetchOffset,
	} {
		le.PutUint64(b[at:], v)
	}
}

// result is what line i of a script returned.
func (r *rig) result(script, i int) int64 {
	return int64(binary.LittleEndian.Uint64(r.hpu.Bytes()[script-hpuBase+i*recordSize+8:]))
}

// word is 64 bits of HPU memory.
func (r *rig) word(at int) uint64 { return binary.LittleEndian.Uint64(r.hpu.Bytes()[at-hpuBase:]) }

// stepsOf are the steps of that kind, of one operation if op is not OpNone.
func (r *rig) stepsOf(what nic.StepKind, op hpu.Op) (found []step) {
	for _, s := range r.steps {
		if s.What == what && (op == hpu.OpNone || s.Op == op) {
			found = append(found, s)
		}
	}
	return found
}

// only is the one event of a type.
func only(tb testing.TB, events []event, kind portals.EventType) event {
	found := all(events, kind)
	require.Len(tb, found, 1, "%v events in %v", kind, events)
	return found[0]
}

func all(events []event, kind portals.EventType) (found []event) {
	for _, e := range events {
		if e.Type == kind {
			found = append(found, e)
		}
	}
	return found
}

func (r *rig) noHandlerErrors() {
	errs, n := r.c.HandlerErrors()
	require.Zero(r, n, "%v", errs)
}
