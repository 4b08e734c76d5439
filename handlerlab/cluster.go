package handlerlab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Config says what to run.
type Config struct {
	Module  Module
	Profile *profile.Profile
	Engine  string // "wazero" (also the empty string) or "wasmtime"
	// Header, Payload and Completion are the exports that handle messages; "": the export of that name if there is one;
	// "-": none.
	Header, Payload, Completion string
	Messages                    []Message
	UserHeader                  int // bytes of each message that are its user header
	State                       State
	HPUMemory                   int           // bytes, at least as many as the state; 0: DefaultHPUMemory, or the device's limit
	Host                        []byte        // content of the entry's host memory; its length is the size of the entry
	HandlerHost                 []byte        // content of the handler host memory
	Nodes                       int           // besides the device, at least 1; those that send are there anyway
	Ack                         bool          // senders ask for acknowledgements
	Faults                      map[int]int64 // results of DMA operations of handlers by their number, from 1, in place of moving data
	Limits                      sim.Limits    // of the run
}

// DefaultHPUMemory is the HPU memory of a run that does not ask for more, bytes.
const DefaultHPUMemory = 64 << 10

const (
	device     = 0        // the node with the handlers
	peerMemory = 64 << 10 // bytes that handlers reach at every other node, through any portal table index
	peerPTs    = 256
	eventSlots = 1 << 20 // of the queues, which nobody empties: more than a run has
)

// experiment is a run under way.
type experiment struct {
	*Config
	cluster *runtime.Cluster
	module  *hpu.Module
	names   [3]string // exports: header, payload, completion
	memory  *nic.Memory
	host    runtime.View
	handler runtime.View // handler host memory
	ni      *runtime.NI
	cts     []portals.Handle
	record  *recorder
}

// Run sends the messages and reports what the handlers did. The error is one of the configuration, for which nothing was run;
// what goes wrong with handlers stands in the report.
func Run(ctx context.Context, cfg *Config) (*Report, error) {
	x := &experiment{Config: cfg}
	if err := x.check(); err != nil {
		return nil, err
	}
	x.record = newRecorder(x)
	var err error
	x.cluster, err = runtime.NewCluster(runtime.Config{
		Profile: cfg.Profile, Nodes: 1 + x.nodes(), Seed: 1, Engine: cfg.Engine,
		Explain: x.record, Watch: x.record.watch, InjectDMA: x.record.inject, Limits: cfg.Limits,
	})
	if err != nil {
		return nil, err
	}
	report, err := x.run(ctx)
	return report, errors.Join(err, x.cluster.Close())
}

// check resolves the handlers and checks what the cluster would not.
func (x *experiment) check() error {
	m, err := hpu.Load(x.Module.Name, x.Module.Wasm, x.Profile.Device())
	if err != nil {
		return err
	}
	x.module = m
	if x.names, err = handlersOf(m, x.Header, x.Payload, x.Completion); err != nil {
		return err
	}
	limits := &x.Profile.Limits
	if x.UserHeader > min(int(limits.MaxUserHdrSize), int(x.Profile.Fabric.MTU)) {
		return fmt.Errorf("user header of %d bytes, at most %d in profile %s (limits.max_user_hdr_size, fabric.mtu)", x.UserHeader, min(int(limits.MaxUserHdrSize), int(x.Profile.Fabric.MTU)), x.Profile.Name)
	}
	if x.HPUMemory == 0 {
		x.HPUMemory = min(max(DefaultHPUMemory, len(x.State.Bytes)), int(x.Profile.HPU.MaxHPUMemory))
	}
	if len(x.State.Bytes) > x.HPUMemory {
		return fmt.Errorf("state of %d bytes in HPU memory of %d", len(x.State.Bytes), x.HPUMemory)
	}
	if _, err := m.Layout(uint32(min(int64(x.HPUMemory), 1<<32-1))); err != nil {
		return err
	}
	for i := range x.Messages {
		if n := len(x.Messages[i].Data); n > int(limits.MaxMsgSize) {
			return fmt.Errorf("message %d of %d bytes, at most %d in profile %s (limits.max_msg_size)", i+1, n, limits.MaxMsgSize, x.Profile.Name)
		}
	}
	return nil
}

// handlersOf chooses the exports that handle messages.
func handlersOf(m *hpu.Module, header, payload, completion string) (names [3]string, err error) {
	wanted := [3]string{header, payload, completion}
	none := true
	for i, usual := range Kinds {
		switch name := wanted[i]; name {
		case "-":
			none = false
		case "":
			if _, err := m.Export(usual); err == nil {
				names[i], none = usual, false
			}
		default:
			if _, err := m.Export(name); err != nil {
				return names, err
			}
			names[i], none = name, false
		}
	}
	if none {
		_, err := m.Export(Kinds[1])
		return names, fmt.Errorf("no handler to run: %w", err)
	}
	return names, nil
}

// Kinds are the kinds of handlers, and the names of the exports that are taken if no others are given.
var Kinds = [3]string{"header", "payload", "completion"}

// nodes is the number of nodes besides the device.
func (x *experiment) nodes() int {
	n := max(x.Nodes, 1)
	for i := range x.Messages {
		n = max(n, x.Messages[i].Source)
	}
	return n
}

func (x *experiment) run(ctx context.Context) (*Report, error) {
	module, err := x.cluster.LoadModule(x.Module.Name, x.Module.Wasm)
	if err != nil {
		return nil, err
	}
	x.module = module
	ready := error(nil)
	if err := x.cluster.Spawn(device, "device", func(p *runtime.Proc) error {
		ready = x.install(p)
		return ready
	}); err != nil {
		return nil, err
	}
	for node := 1; node <= x.nodes(); node++ {
		if err := x.cluster.Spawn(node, "peer", func(p *runtime.Proc) error { return x.peer(p) }); err != nil {
			return nil, err
		}
	}
	err = x.cluster.Run(ctx)
	if ready != nil {
		return nil, ready
	}
	var stuck *sim.StuckError
	var limit *sim.LimitError
	if err != nil && !errors.As(err, &stuck) && !errors.As(err, &limit) {
		return nil, err
	}
	if x.memory == nil { // a limit has ended the run before it began
		return nil, err
	}
	return x.report(err), nil
}

// install makes the entry with the handlers.
func (x *experiment) install(p *runtime.Proc) (err error) {
	x.ni = p.NI()
	if x.memory, err = p.HPUAllocMem(x.module, x.HPUMemory); err != nil {
		return err
	}
	s, err := x.memory.Spin(x.names[0], x.names[1], x.names[2])
	if err != nil {
		return err
	}
	if s.InitialState, err = x.initialState(); err != nil {
		return err
	}
	s.UserHdrLen = uint64(x.UserHeader)
	x.handler = prepared(p, x.HandlerHost)
	s.HostMem = portals.Region{Start: x.handler.Addr(), Length: uint64(x.handler.Len())}
	x.host = prepared(p, x.Host)
	eq, err := x.ni.EQAlloc(eventSlots)
	if err != nil {
		return err
	}
	pt, err := x.ni.PTAlloc(portals.OptPTFlowCtrl, eq, 0) // a handler that is killed disables it
	if err != nil {
		return err
	}
	_, err = x.ni.MEAppend(pt, &portals.ME{
		Start: x.host.Addr(), Length: uint64(x.host.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: ^uint64(0),
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable, Spin: s,
	}, portals.PriorityList, 0)
	return err
}

// prepared is memory of a process that has its content from the beginning.
func prepared(p *runtime.Proc, content []byte) runtime.View {
	v := p.Alloc(len(content))
	copy(v.Raw(), content)
	return v
}

// initialState is the state with the handles of the counters that it names.
func (x *experiment) initialState() ([]byte, error) {
	state := append([]byte(nil), x.State.Bytes...)
	for _, c := range x.State.Counters {
		for len(x.cts) <= c.Counter {
			ct, err := x.ni.CTAlloc()
			if err != nil {
				return nil, err
			}
			x.ni.Label(ct, fmt.Sprintf("state counter %d", len(x.cts)))
			x.cts = append(x.cts, ct)
		}
		binary.LittleEndian.PutUint32(state[c.Offset:], uint32(x.cts[c.Counter]))
	}
	x.record.before = make([]byte, x.HPUMemory)
	copy(x.record.before, state)
	return state, nil
}

// peer is the program of every other node: it offers memory to the handlers' operations and sends the node's messages.
func (x *experiment) peer(p *runtime.Proc) error {
	ni := p.NI()
	memory := p.Alloc(peerMemory)
	for i, b := 0, memory.Raw(); i < len(b); i++ {
		b[i] = byte(i)
	}
	eq, err := ni.EQAlloc(eventSlots)
	if err != nil {
		return err
	}
	for pt := range uint32(min(peerPTs, x.Profile.Limits.MaxPTIndex+1)) {
		if _, err := ni.PTAlloc(0, eq, pt); err != nil {
			return err
		}
		if _, err := ni.MEAppend(pt, &portals.ME{
			Start: memory.Addr(), Length: peerMemory, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: ^uint64(0),
			Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 0); err != nil {
			return err
		}
	}
	ack := portals.NoAck
	if x.Ack {
		ack = portals.Ack
	}
	type message struct {
		*Message
		md portals.Handle
	}
	var own []message
	for i := range x.Messages {
		m := &x.Messages[i]
		if m.Source != p.Rank() {
			continue
		}
		data := prepared(p, m.Data)
		md, err := ni.MDBind(&portals.MD{Start: data.Addr(), Length: uint64(data.Len()), EQ: eq})
		if err != nil {
			return err
		}
		own = append(own, message{m, md})
	}
	for _, m := range own {
		p.SleepUntil(max(m.At, p.Now()))
		if err := ni.Put(m.md, 0, uint64(len(m.Data)), ack, portals.PhysID(device, 0), 0, m.MatchBits, m.Offset, 0, m.HdrData); err != nil {
			return err
		}
	}
	return nil
}
