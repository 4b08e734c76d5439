package nic

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// alone is what a stage needs to run by itself: a clock, a bus, and a process
// with memory and an interface. Events of kinds that the stage does not own go
// to what stands for its neighbours.
type alone struct {
	env
	t      require.TestingT
	buses  host.Bus
	free   Core
	rep    Report
	space  *host.AddressSpace
	base   uint64 // of its memory
	ni     *portals.NI
	iface  *Interface
	eq     portals.Handle
	kinds  sim.Kind           // of the stage
	stage  func(e *sim.Event) // handles events of these kinds
	others func(e *sim.Event) // and all but those of the bus
	events []portals.Event    // of the interface, once collect was called
	at     []sim.Time         // when they were posted
}

const (
	aloneBytes = 1 << 16
	aloneEntry = 4096 // bytes of each entry
)

func newAlone(t require.TestingT, kinds sim.Kind) *alone {
	x := &alone{t: t, kinds: kinds, space: host.NewAddressSpace(nil)}
	eng := sim.New(1)
	x.env = env{
		engine: eng, id: eng.Add("stage", x), spec: &Spec{FaultPause: 700 * sim.Nanosecond, FaultTries: 3}, hpu: &HPUSpec{}, bus: &x.buses, record: 16,
		core: &x.free, report: &x.rep,
	}
	x.buses.Init(eng, x.id, &host.BusSpec{Latency: 250 * sim.Nanosecond, Bandwidth: sim.NewRate(64, 1), FullDuplex: true, Charge: host.ChargeFull}, nil)
	x.base = x.space.Alloc(aloneBytes)
	limits := portals.Limits{
		MaxEntries: 64, MaxUnexpectedHeaders: 64, MaxMDs: 64, MaxEQs: 8, MaxCTs: 8, MaxPTIndex: 63, MaxIOVecs: 64, MaxListSize: 64, MaxTriggeredOps: 8,
		MaxMsgSize: 1 << 20, MaxAtomicSize: 1 << 20, MaxFetchAtomicSize: 1 << 20, MaxWAWOrderedSize: 64, MaxWAROrderedSize: 64, MaxPayloadSize: 512,
	}
	ni, _, err := portals.NewNI(portals.NIConfig{
		NID: 1, Options: portals.OptNIMatching | portals.OptNIPhysical, Device: limits, Memory: anyDirection{x.space},
		Hooks: portals.Hooks{EventPosted: func(*portals.NI, portals.Handle) { x.at = append(x.at, x.now()) }},
	})
	require.NoError(t, err)
	x.ni = ni
	x.eq, err = ni.EQAlloc(256)
	require.NoError(t, err)
	_, err = ni.PTAlloc(0, x.eq, 0)
	require.NoError(t, err)
	x.iface = &Interface{NI: ni, Port: ni.Port(), Space: x.space, Own: portals.PhysID(1, 0), env: &x.env}
	return x
}

// Handle passes events on.
func (x *alone) Handle(e *sim.Event) {
	switch e.Kind &^ (stageOf - 1) {
	case host.KindBus:
		x.buses.Handle(e)
	case x.kinds:
		x.stage(e)
	default:
		x.others(e)
	}
}

// entry appends an entry for the messages with these match bits, to its own part of memory.
func (x *alone) entry(bits uint64, length uint64, options portals.EntryOptions, spin *portals.Spin) (addr uint64) {
	addr = x.base + bits*aloneEntry
	_, err := x.ni.MEAppend(0, &portals.ME{
		Start: addr, Length: length, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits, Spin: spin,
		Options: options | portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, bits)
	require.NoError(x.t, err)
	return addr
}

// frame is a message of a source node, whose byte k is k and more.
func (x *alone) frame(h portals.Header, source int32, length, mtu int) *Frame {
	f := x.free.frame(length, mtu)
	h.NI, h.Initiator, h.Target, h.RLength = x.ni.Kind(), portals.PhysID(uint32(source), 0), portals.PhysID(1, 0), uint64(length)
	f.Header, f.Source, f.Number = h, source, h.MatchBits+1
	for k := range f.Data {
		f.Data[k] = byte(k) ^ byte(k>>8) ^ byte(h.MatchBits*7) | 1
	}
	return f
}

// memory is what is at an address.
func (x *alone) memory(addr, n uint64) []byte {
	b, ok := x.space.Bytes(addr, n)
	require.True(x.t, ok)
	return slices.Clone(b)
}

// collect reads the event queue to its end.
func (x *alone) collect() {
	for {
		e, err := x.ni.EQGet(x.eq)
		if err != nil {
			require.ErrorIs(x.t, err, portals.ErrEQEmpty)
			break
		}
		x.events = append(x.events, e)
	}
	require.Len(x.t, x.at, len(x.events))
}

// run lets everything happen, and looks whether anything was not given back.
func (x *alone) run() {
	require.NoError(x.t, x.engine.Run())
	x.collect()
	require.NoError(x.t, x.free.Balanced())
}

// anyDirection is an address space all of which may be read and written.
type anyDirection struct{ *host.AddressSpace }

// Bytes implements portals.Memory.
func (m anyDirection) Bytes(addr, n uint64, _ bool) ([]byte, bool) {
	return m.AddressSpace.Bytes(addr, n)
}

// Store implements portals.Memory.
func (m anyDirection) Store(addr uint64, b []byte) int {
	to, _ := m.AddressSpace.Bytes(addr, uint64(len(b)))
	return copy(to, b)
}

// Accessible implements portals.Memory.
func (m anyDirection) Accessible(addr, n uint64, _ bool) uint64 {
	b, _ := m.AddressSpace.Bytes(addr, n)
	return uint64(len(b))
}
