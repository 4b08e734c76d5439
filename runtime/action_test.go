package runtime_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The parts of which times are composed (sPIN'17 §4), for messages of one packet.

func (r *rig) net(bytes int) sim.Time { // wire, two cables, a switch
	f := &r.prof.Fabric
	return f.Rate.Time(int64(bytes)) + 2*f.Wire + f.Switch
}

func (r *rig) bus(bytes int) sim.Time   { return r.prof.DMA.Bandwidth.Time(int64(bytes)) }
func (r *rig) fetch(bytes int) sim.Time { return 2*r.prof.DMA.Latency + r.bus(bytes) }
func (r *rig) store(bytes int) sim.Time { return r.prof.DMA.Latency + r.bus(bytes) }

// asked is a handler's own time of its only call of an operation.
func (r *rig) asked(op hpu.Op) sim.Time {
	steps := r.stepsOf(nic.StepActed, op)
	require.Len(r, steps, 1)
	return steps[0].At
}

func (r *rig) answered(op hpu.Op) sim.Time {
	steps := r.stepsOf(nic.StepAnswered, op)
	require.Len(r, steps, 1)
	return steps[0].At
}

// A put from the device leaves at the handler's own time with the bytes of that
// moment; its user header comes first.
func TestPutFromDevice(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		r := conduct(t, setup{
			profile: profile, header: []rec{do(hpu.OpPutFromDevice, opAt(0)), also(opStore, scratch, 0), end(hpu.Proceed)},
			build: func(r *rig) {
				r.ops = []hpu.Operation{{
					Local: scratch, Length: 1000, TargetNID: 2, AckReq: uint32(portals.Ack), MatchBits: 0, RemoteOffset: 64, HdrData: 0xfeed,
					UserPtr: 123, MD: uint32(r.md), UserHdr: scratch + 2000, UserHdrLen: 24,
				}}
			},
		})
		r.noHandlerErrors()
		require.Equal(t, hpu.OK, r.result(headerAt, 0))
		sent := r.asked(hpu.OpPutFromDevice)
		arrived := sent + r.net(1024) + r.prof.NIC.MatchHeader + r.store(1024)
		put := only(t, r.peers, portals.EventPut)
		require.Equal(t, arrived, put.at)
		require.Equal(t, []uint64{0xfeed, 1024, 64}, []uint64{put.HdrData, put.MLength, put.RemoteOffset})
		require.Equal(t, portals.PhysID(1, 0), put.Initiator)
		require.Equal(t, pattern(4096, 50)[2000:2024], r.peerMem[64:88])
		require.Equal(t, pattern(1000, 50), r.peerMem[88:1088])
		ack := only(t, r.targets, portals.EventAck)
		require.Equal(t, uint64(123), ack.UserPtr)
		require.Equal(t, arrived+r.net(0)+r.prof.NIC.MatchPacket+r.store(0), ack.at)
		require.Equal(t, sent+r.store(0), only(t, r.targets, portals.EventSend).at, "the buffer is free at once")
	})
}

// A put from host is what the host would have posted, o apart: two latencies
// and the transfer before the wire.
func TestPutFromHost(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		for space := range uint32(2) {
			r := conduct(t, setup{
				profile: profile, header: []rec{do(hpu.OpPutFromHost, opAt(0)), end(hpu.Proceed)},
				ops: []hpu.Operation{{Space: space, Offset: 100, Length: 2000, TargetNID: 2}},
				target: func(_ *runtime.Proc, r *rig) error {
					copy(r.memory.host.Raw(), pattern(hostBytes, 3))
					copy(r.memory.extra.Raw(), pattern(extraBytes, 4))
					return nil
				},
			})
			r.noHandlerErrors()
			put := only(t, r.peers, portals.EventPut)
			require.Equal(t, r.asked(hpu.OpPutFromHost)+r.fetch(2000)+r.net(2000)+r.prof.NIC.MatchHeader+r.store(2000), put.at)
			require.Equal(t, pattern(hostBytes, byte(3+space))[100:2100], r.peerMem[:2000])
			require.Empty(t, all(r.targets, portals.EventSend), "no descriptor, no events")
		}
	})
}

// A get from the device suspends the handler until the bytes are in HPU memory:
// request, data from the peer's memory, reply. It does not cross the own bus.
func TestGetFromDevice(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		r := conduct(t, setup{
			profile: profile, header: []rec{do(hpu.OpGetFromDevice, opAt(0)), end(hpu.Proceed)},
			build: func(r *rig) {
				r.ops = []hpu.Operation{{Local: scratch2, Length: 3000, TargetNID: 2, RemoteOffset: 8, MD: uint32(r.md), UserPtr: 5}}
			},
		})
		r.noHandlerErrors()
		require.Equal(t, hpu.OK, r.result(headerAt, 0))
		asked := r.asked(hpu.OpGetFromDevice)
		there := asked + r.net(0) + r.prof.NIC.MatchHeader + r.fetch(3000) + r.net(3000) + r.prof.NIC.MatchPacket
		require.Equal(t, there, r.answered(hpu.OpGetFromDevice))
		require.Equal(t, pattern(peerBytes, 100)[8:3008], r.hpu.Bytes()[scratch2-hpuBase:][:3000])
		reply := only(t, r.targets, portals.EventReply)
		require.Equal(t, []uint64{5, 3000}, []uint64{reply.UserPtr, reply.MLength})
		require.Equal(t, there+r.store(0), reply.at)
	})
}

// A get from host deposits the reply in the entry, which is there with the REPLY event.
func TestGetFromHost(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		r := conduct(t, setup{
			profile: profile, header: []rec{do(hpu.OpGetFromHost, opAt(0)), end(hpu.Proceed)},
			build: func(r *rig) {
				r.ops = []hpu.Operation{{Offset: 512, Length: 3000, TargetNID: 2, RemoteOffset: 8, MD: uint32(r.md)}}
			},
		})
		r.noHandlerErrors()
		require.Equal(t, r.asked(hpu.OpGetFromHost)+r.net(0)+r.prof.NIC.MatchHeader+r.fetch(3000)+r.net(3000)+r.prof.NIC.MatchPacket+r.store(3000),
			only(t, r.targets, portals.EventReply).at)
		require.Equal(t, pattern(peerBytes, 100)[8:3008], r.host[512:3512])
	})
}

// word64 are the bytes of a word.
func word64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// atomicForm is an atomic on a word of rank 2 that is 1000, with the operand 7.
type atomicForm struct {
	name    string
	act     hpu.Op
	op      hpu.Operation
	event   portals.EventType
	peer    uint64 // afterwards; before it is 1000
	fetched uint64 // at scratch2 or in the host memory at 512
}

func atomicForms() []atomicForm {
	const sum, cswap, swap = uint32(portals.OpSUM), uint32(portals.OpCSWAP), uint32(portals.OpSWAP)
	return []atomicForm{
		{"sum from device", hpu.OpAtomicFromDevice, hpu.Operation{Local: scratch, AtomicOp: sum}, portals.EventAtomic, 1007, 0},
		{"fetching sum from device", hpu.OpAtomicFromDevice, hpu.Operation{Local: scratch, AtomicOp: sum, Fetch: scratch2}, portals.EventFetchAtomic, 1007, 1000},
		{"swap from device", hpu.OpAtomicFromDevice, hpu.Operation{Local: scratch, AtomicOp: swap, Fetch: scratch2}, portals.EventFetchAtomic, 7, 1000},
		{"swap from device, value unwanted", hpu.OpAtomicFromDevice, hpu.Operation{Local: scratch, AtomicOp: swap}, portals.EventFetchAtomic, 7, 0},
		{"compare and swap from device", hpu.OpAtomicFromDevice, hpu.Operation{Local: scratch, AtomicOp: cswap, Operand: scratch + 8, Fetch: scratch2}, portals.EventFetchAtomic, 7, 1000},
		{"compare and not swap", hpu.OpAtomicFromDevice, hpu.Operation{Local: scratch, AtomicOp: cswap, Operand: scratch + 16, Fetch: scratch2}, portals.EventFetchAtomic, 1000, 1000},
		{"sum from host", hpu.OpAtomicFromHost, hpu.Operation{Offset: 64, AtomicOp: sum, FetchOffset: math.MaxUint64}, portals.EventAtomic, 1007, 0},
		{"fetching sum from host", hpu.OpAtomicFromHost, hpu.Operation{Offset: 64, AtomicOp: sum, FetchOffset: 512}, portals.EventFetchAtomic, 1007, 1000},
		{"swap from host, value unwanted", hpu.OpAtomicFromHost, hpu.Operation{Offset: 64, AtomicOp: swap, FetchOffset: math.MaxUint64}, portals.EventFetchAtomic, 7, 0},
	}
}

// Atomics of handlers, from device and from host, with and without the values before them.
func TestAtomicsOfHandlers(t *testing.T) {
	for _, c := range atomicForms() {
		t.Run(c.name, func(t *testing.T) {
			eachProfile(t, func(t *testing.T, profile string) {
				c.op.Length, c.op.Datatype, c.op.TargetNID = 8, uint32(portals.Uint64), 2
				r := conduct(t, setup{
					profile: profile, build: func(r *rig) {
						c.op.MD = uint32(r.md)
						r.ops = []hpu.Operation{c.op}
					},
					header: []rec{
						also(opStore, scratch, 7), also(opStore, scratch+8, 1000), also(opStore, scratch+16, 1), also(opStore, scratch2, 0),
						do(c.act, opAt(0)), end(hpu.Proceed),
					},
					target: func(_ *runtime.Proc, r *rig) error { copy(r.memory.host.Raw()[64:], word64(7)); return nil },
					peer:   func(_ *runtime.Proc, r *rig) error { copy(r.memory.peer.Raw(), word64(1000)); return nil },
				})
				r.noHandlerErrors()
				require.Equal(t, hpu.OK, r.result(headerAt, 4))
				require.Equal(t, c.peer, binary.LittleEndian.Uint64(r.peerMem))
				require.Equal(t, word64(0), r.hpu.Program().Memory()[:8], "nothing is written to address 0")
				leaves := r.asked(c.act)
				if c.act == hpu.OpAtomicFromHost {
					require.Equal(t, c.fetched, binary.LittleEndian.Uint64(r.host[512:]))
					leaves += r.fetch(8)
				} else {
					require.Equal(t, c.fetched, r.word(scratch2))
				}
				arrived := leaves + r.net(8) + r.prof.NIC.MatchHeader
				require.Equal(t, arrived+r.store(8), only(t, r.peers, c.event).at)
				if c.event == portals.EventFetchAtomic {
					reply := only(t, r.targets, portals.EventReply)
					require.Equal(t, portals.NIOK, reply.Fail, "also if nobody wants the values")
					landed := r.store(0)
					if c.op.FetchOffset == 512 {
						landed = r.store(8)
					}
					require.Equal(t, arrived+r.store(8)+r.net(8)+r.prof.NIC.MatchPacket+landed, reply.at, "8 bytes on the bus only if they go to the host")
				}
				if c.op.Fetch != 0 {
					require.Equal(t, arrived+r.store(8)+r.net(8)+r.prof.NIC.MatchPacket, r.answered(c.act), "the values come back without the bus")
				}
			})
		})
	}
}

// limit is an operation record at one of its limits, with the result of the call.
type limit struct {
	name string
	act  hpu.Op
	op   hpu.Operation
	want int64
}

func limits() []limit {
	base := hpu.Operation{Local: scratch, Length: 64, TargetNID: 2, FetchOffset: math.MaxUint64, Datatype: uint32(portals.Uint64)}
	with := func(change func(*hpu.Operation)) hpu.Operation {
		o := base
		change(&o)
		return o
	}
	return []limit{
		{"node that does not exist", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.TargetNID = 3 }), hpu.Invalid},
		{"any node", hpu.OpPutFromHost, with(func(o *hpu.Operation) { o.TargetNID = portals.NIDAny }), hpu.Invalid},
		{"any process", hpu.OpGetFromHost, with(func(o *hpu.Operation) { o.TargetPID = portals.PIDAny }), hpu.Invalid},
		{"acknowledgement of no kind", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.AckReq = 4 }), hpu.Invalid},
		{"acknowledgement beyond a byte", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.AckReq = 0x100 }), hpu.Invalid},
		{"descriptor that does not exist", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.MD = 0xdead }), hpu.Invalid},
		{"a packet", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.Length = 4096 }), hpu.OK},
		{"more than a packet", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.Length = 4097 }), hpu.Invalid},
		{"a packet with its header", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.Length, o.UserHdr, o.UserHdrLen = 4000, scratch, 96 }), hpu.OK},
		{"more than a packet with its header", hpu.OpPutFromDevice, with(func(o *hpu.Operation) { o.Length, o.UserHdr, o.UserHdrLen = 4000, scratch, 97 }), hpu.Invalid},
		{"user header from host", hpu.OpPutFromHost, with(func(o *hpu.Operation) { o.UserHdr, o.UserHdrLen = scratch, 1 }), hpu.NotSupported},
		{"user header of a get", hpu.OpGetFromDevice, with(func(o *hpu.Operation) { o.UserHdr, o.UserHdrLen = scratch, 1 }), hpu.NotSupported},
		{"user header of an atomic", hpu.OpAtomicFromDevice, with(func(o *hpu.Operation) { o.UserHdr, o.UserHdrLen = scratch, 1 }), hpu.NotSupported},
		{"last byte of the entry", hpu.OpPutFromHost, with(func(o *hpu.Operation) { o.Offset, o.Length = hostBytes-1, 1 }), hpu.OK},
		{"past the entry", hpu.OpPutFromHost, with(func(o *hpu.Operation) { o.Offset, o.Length = hostBytes-1, 2 }), hpu.Denied},
		{"offset that wraps", hpu.OpPutFromHost, with(func(o *hpu.Operation) { o.Offset = math.MaxUint64 }), hpu.Denied},
		{"length that wraps", hpu.OpGetFromHost, with(func(o *hpu.Operation) { o.Offset, o.Length = 1, math.MaxUint64 }), hpu.Denied},
		{"space that does not exist", hpu.OpPutFromHost, with(func(o *hpu.Operation) { o.Space, o.Length = 2, 0 }), hpu.Denied},
		{"past the handler host memory", hpu.OpGetFromHost, with(func(o *hpu.Operation) { o.Space, o.Offset = 1, extraBytes-63 }), hpu.Denied},
		{"atomic past the entry", hpu.OpAtomicFromHost, with(func(o *hpu.Operation) { o.Offset = hostBytes - 63 }), hpu.Denied},
		{"fetch past the entry", hpu.OpAtomicFromHost, with(func(o *hpu.Operation) { o.FetchOffset = hostBytes - 63 }), hpu.Denied},
		{"atomic of no operation", hpu.OpAtomicFromDevice, with(func(o *hpu.Operation) { o.AtomicOp = 200 }), hpu.Invalid},
		{"atomic of no type", hpu.OpAtomicFromDevice, with(func(o *hpu.Operation) { o.Datatype = 200 }), hpu.Invalid},
		{"atomic of half an element", hpu.OpAtomicFromDevice, with(func(o *hpu.Operation) { o.Length = 12 }), hpu.Invalid},
		{"logic on floats", hpu.OpAtomicFromDevice, with(func(o *hpu.Operation) {
			o.AtomicOp, o.Datatype = uint32(portals.OpLAND), uint32(portals.Double)
		}), hpu.Invalid},
		{"conditional swap without operand", hpu.OpAtomicFromDevice, with(func(o *hpu.Operation) { o.AtomicOp, o.Length = uint32(portals.OpCSWAP), 8 }), hpu.Invalid},
		{"timer of a second", hpu.OpTimer, with(func(o *hpu.Operation) { o.Length = 0 }), hpu.OK},
	}
}

// Every limit of an operation record has its result, and what was refused leaves no trace.
func TestLimitsOfOperations(t *testing.T) {
	for _, c := range limits() {
		t.Run(c.name, func(t *testing.T) {
			act := do(c.act, opAt(0))
			if c.act == hpu.OpTimer {
				act = do(c.act, 1e9, opAt(0))
			}
			r := conduct(t, setup{ops: []hpu.Operation{c.op}, header: []rec{
				also(opSkip, scratch2, 2), also(opStore, scratch2, 1), act, end(hpu.Proceed),
			}})
			r.noHandlerErrors()
			require.Equal(t, c.want, r.result(headerAt, 2))
			if c.want != hpu.OK {
				require.Empty(t, r.peers)
				require.Equal(t, int64(1), r.c.Node(1).Stats().PacketsSent, "the acknowledgement")
				require.Len(t, r.targets, 1)
			}
		})
	}
}

// Counters change at the handler's own time, in the order of the calls;
// acknowledgements leave at it, once, with the handler's word.
func TestCountersAndAck(t *testing.T) {
	const spin = 1000
	r := conduct(t, setup{build: func(r *rig) {
		ct := uint64(r.ct)
		r.header = []rec{
			do(hpu.OpCTSet, ct, 10, 1),                    // 0
			do(hpu.OpCTInc, ct, 5, 0),                     // 1
			do(hpu.OpCTGet, ct, scratch2),                 // 2
			do(hpu.OpCTInc, ct, 1, 1),                     // 3
			do(hpu.OpCTSet, 0xbad, 1, 0),                  // 4
			do(hpu.OpCTGet, ct+1000, scratch2+32),         // 5
			do(hpu.OpCTInc, ct, math.MaxUint64, 0),        // 6: wraps, as the host's would
			do(hpu.OpCTGet, ct, scratch2+16),              // 7
			do(hpu.OpAck, uint64(len(portals.FailNames))), // 8
			do(hpu.OpAck, uint64(portals.NIOpViolation)),  // 9
			do(hpu.OpAck, 0),                              // 10
			also(opSpin, spin), end(hpu.Proceed),
		}
	}})
	r.noHandlerErrors()
	var got []int64
	for i := range 11 {
		got = append(got, r.result(headerAt, i))
	}
	require.Equal(t, []int64{0, 0, 0, hpu.Invalid, hpu.Invalid, hpu.Invalid, 0, 0, hpu.Invalid, 0, hpu.Invalid}, got)
	require.Equal(t, []uint64{15, 1, 14, 1}, []uint64{r.word(scratch2), r.word(scratch2 + 8), r.word(scratch2 + 16), r.word(scratch2 + 24)})
	ack := only(t, r.inits, portals.EventAck)
	require.Equal(t, portals.NIOpViolation, ack.Fail)
	require.Equal(t, r.stepsOf(nic.StepActed, hpu.OpAck)[1].At+r.net(0)+r.prof.NIC.MatchPacket+r.store(0), ack.at,
		"ahead of the end of the handler")
}

// A message to self and a timer come back as messages of type 5, after the
// turn-round and, for the timer, its delay.
func TestMessagesToSelf(t *testing.T) {
	for _, c := range []struct {
		act   rec
		delay sim.Time
	}{{do(hpu.OpToSelf, opAt(0)), 0}, {do(hpu.OpTimer, 0, opAt(0)), 0}, {do(hpu.OpTimer, 1500, opAt(0)), 1500 * sim.Nanosecond}} {
		r := conduct(t, setup{
			header:  []rec{also(opSkip, scratch2, 2), also(opStore, scratch2, 1), c.act, end(hpu.Proceed)},
			ops:     []hpu.Operation{{Local: scratch + 8, Length: 100, MatchBits: 42, HdrData: 43, RemoteOffset: 4096, UserHdr: scratch, UserHdrLen: 8}},
			userHdr: 8,
		})
		r.noHandlerErrors()
		began := r.stepsOf(nic.StepBegan, hpu.OpNone)
		require.Len(t, began, 2)
		require.Equal(t, r.asked(hpu.Op(c.act.op))+c.delay+r.prof.NIC.Loopback+r.prof.NIC.MatchHeader, began[1].At)
		le := binary.LittleEndian
		rec := began[1].Record
		require.Equal(t, []uint32{5, 8, 1, 0, 1, 0}, []uint32{le.Uint32(rec), le.Uint32(rec[4:]), le.Uint32(rec[24:]), le.Uint32(rec[28:]), le.Uint32(rec[32:]), le.Uint32(rec[36:])})
		require.Equal(t, []uint64{108, 42, 43}, []uint64{le.Uint64(rec[8:]), le.Uint64(rec[40:]), le.Uint64(rec[56:])})
		require.Equal(t, pattern(108, 50), r.host[4096:4204], "PROCEED deposits the user header too")
		require.Equal(t, int64(1), r.c.Node(1).Stats().PacketsSent-1, "the message to self, and the acknowledgement")
	}
}

// num_hpus, my_hpu and cycles tell the truth, and log reaches who asked for it.
func TestQueries(t *testing.T) {
	var lines []string
	r := conduct(t, setup{
		overrides: []string{"hpu.cores=3"},
		header: []rec{
			do(hpu.OpNumHPUs), do(hpu.OpMyHPU), do(hpu.OpCycles), also(opSpin, 100), do(hpu.OpCycles), do(hpu.OpLog, scratch, 3), end(hpu.Proceed),
		},
		cfg: func(cfg *runtime.Config) {
			cfg.Log = func(rank int, _ sim.Time, program, line string) {
				require.Equal(t, 1, rank)
				lines = append(lines, program+": "+line)
			}
		},
	})
	r.noHandlerErrors()
	require.Equal(t, []int64{6, 0}, []int64{r.result(headerAt, 0), r.result(headerAt, 1)})
	require.Equal(t, []string{"actions: " + string(pattern(3, 50))}, lines)
	began, ended := r.stepsOf(nic.StepBegan, hpu.OpNone)[0], r.stepsOf(nic.StepEnded, hpu.OpNone)[0]
	require.Equal(t, r.prof.HPU.Clock.Cycles(ended.Cycles), ended.At-began.At, "time is cycles")
	require.Less(t, r.result(headerAt, 2)+100, r.result(headerAt, 4))
	require.LessOrEqual(t, r.result(headerAt, 4), ended.Cycles)
	require.Equal(t, ended.Cycles, r.c.Node(1).Stats().HandlerCycles)
}

// A handler that yields lets another context of its HPU go first, if there is
// one with something to do, and costs nothing else.
func TestYield(t *testing.T) {
	order := func(contexts string) (handlers []int) {
		r := conduct(t, setup{
			overrides: []string{"hpu.cores=1", "hpu.contexts=" + contexts, "fabric.mtu=64"}, length: 128,
			payloads: map[int][]rec{0: {also(opSpin, 100), do(hpu.OpYield), also(opSpin, 10), end(hpu.Success)}, 1: {also(opSpin, 10), end(hpu.Success)}},
		})
		r.noHandlerErrors()
		ended := r.stepsOf(nic.StepEnded, hpu.OpNone)
		cycles := sim.Time(0)
		for _, s := range ended {
			handlers = append(handlers, s.Packet)
			cycles += r.prof.HPU.Clock.Cycles(s.Cycles)
		}
		require.Equal(t, cycles, ended[len(ended)-1].At-r.stepsOf(nic.StepBegan, hpu.OpNone)[0].At)
		return handlers
	}
	require.Equal(t, []int{0, 1}, order("1"))
	require.Equal(t, []int{1, 0}, order("2"))
}

// Puts from the device block while egress_packets of them wait for the wire:
// the third packet of 4 KiB is taken when the second begins to leave.
func TestEgressBlocks(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"nic.egress_packets=1"},
		header:    []rec{do(hpu.OpPutFromDevice, opAt(0)), do(hpu.OpPutFromDevice, opAt(0)), do(hpu.OpPutFromDevice, opAt(0)), end(hpu.Proceed)},
		ops:       []hpu.Operation{{Local: scratch, Length: 4096, TargetNID: 2}},
	})
	r.noHandlerErrors()
	acted := r.stepsOf(nic.StepActed, hpu.OpPutFromDevice)
	require.Len(t, acted, 3)
	leaves := acted[0].At + r.prof.Fabric.Rate.Time(4096)
	answered := r.stepsOf(nic.StepAnswered, hpu.OpPutFromDevice)
	require.Equal(t, leaves, answered[len(answered)-1].At)
	require.Len(t, all(r.peers, portals.EventPut), 3)
}

// Messages to self do not suspend (docs/abi.md): with the egress full they
// still go, up to handler_commands of them.
func TestToSelfDoesNotBlock(t *testing.T) {
	header := []rec{also(opSkip, scratch2, 7), also(opStore, scratch2, 1), do(hpu.OpPutFromDevice, opAt(0))}
	for range 5 {
		header = append(header, do(hpu.OpToSelf, opAt(1)))
	}
	r := conduct(t, setup{
		overrides: []string{"nic.egress_packets=1", "nic.handler_commands=4"}, header: append(header, end(hpu.Proceed)),
		ops: []hpu.Operation{{Local: scratch, Length: 4096, TargetNID: 2}, {Local: scratch, Length: 8}},
	})
	r.noHandlerErrors()
	for i := range 5 {
		require.Equal(t, []int64{0, 0, 0, 0, hpu.NoSpace}[i], r.result(headerAt, 3+i))
	}
	require.Len(t, r.stepsOf(nic.StepBegan, hpu.OpNone), 1+4)
}

// A handler has handler_commands operations from host and timers pending at
// most, however many it asks for.
func TestCommandsRunOut(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"nic.handler_commands=3"},
		header: []rec{
			also(opSkip, scratch2, 9), also(opStore, scratch2, 1),
			do(hpu.OpPutFromHost, opAt(0)), do(hpu.OpGetFromHost, opAt(0)), do(hpu.OpTimer, 100000, opAt(1)), do(hpu.OpPutFromHost, opAt(0)),
			do(hpu.OpTimer, 1, opAt(1)), also(opSpin, 5000), do(hpu.OpYield), do(hpu.OpPutFromHost, opAt(0)), end(hpu.Proceed),
		},
		ops: []hpu.Operation{{Length: 8, TargetNID: 2}, {Length: 0}},
	})
	r.noHandlerErrors()
	var got []int64
	for _, i := range []int{2, 3, 4, 5, 6, 9} {
		got = append(got, r.result(headerAt, i))
	}
	require.Equal(t, []int64{0, 0, 0, hpu.NoSpace, hpu.NoSpace, 0}, got, "the first two have gone while the handler spun")
}
