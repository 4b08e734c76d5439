package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// counted lets rank 0 do op once with a descriptor that counts acknowledgements
// and replies, and returns what was counted.
func counted(op func(ni *runtime.NI, md portals.Handle) error) (initiator func(*runtime.Proc, portals.Handle, *rig) error, counts *portals.CTEvent) {
	counts = new(portals.CTEvent)
	return func(p *runtime.Proc, _ portals.Handle, r *rig) error {
		ni := p.NI()
		eq, err := ni.Objects().EQAlloc(16)
		if err != nil {
			return err
		}
		ct, err := ni.Objects().CTAlloc()
		if err != nil {
			return err
		}
		data := p.Alloc(1 << 16)
		copy(data.Raw(), r.message)
		md, err := ni.Objects().MDBind(&portals.MD{
			Start: data.Addr(), Length: 1 << 16, EQ: eq, CT: ct, Options: portals.OptMDEventCTAck | portals.OptMDEventCTReply,
		})
		if err != nil {
			return err
		}
		if err := op(ni, md); err != nil {
			return err
		}
		if _, err := ni.CTWait(ct, 1); err != nil {
			return err
		}
		*counts, err = ni.Objects().CTGet(ct)
		return err
	}, counts
}

const (
	lossyMTU, lossyPackets = 4096, 16
	lossyKept              = 5
)

// lossy are the operations whose data is lost in part.
var lossy = []struct {
	name    string
	op      func(ni *runtime.NI, md portals.Handle) error
	length  uint64
	at      portals.EventType // at the target
	answer  portals.EventType // at the initiator
	partial uint64            // bytes that the answer reports
}{
	{"put", func(ni *runtime.NI, md portals.Handle) error {
		return ni.Put(portals.Put{MD: md, Length: lossyPackets * lossyMTU, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5})
	}, lossyPackets * lossyMTU, portals.EventPut, portals.EventAck, lossyKept * lossyMTU},
	{"atomic", func(ni *runtime.NI, md portals.Handle) error {
		return ni.Atomic(portals.Atomic{MD: md, Length: lossyPackets * lossyMTU, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, Op: portals.OpSUM, Type: portals.Uint64})
	}, lossyPackets * lossyMTU, portals.EventAtomic, portals.EventAck, lossyKept * lossyMTU},
	{"fetching atomic", func(ni *runtime.NI, md portals.Handle) error {
		return ni.FetchAtomic(portals.FetchAtomic{GetMD: md, MD: md, Length: lossyPackets * lossyMTU, Target: portals.PhysID(1, 0), MatchBits: 5, Op: portals.OpSUM, Type: portals.Uint64})
	}, lossyPackets * lossyMTU, portals.EventFetchAtomic, portals.EventReply, 0},
}

// A packet buffer for 4 packets of 4 KiB, one HPU that is busy: of 16 packets
// that come at once one is with the handler and four wait. The other 11 are
// lost, and everybody learns of it: the event, the acknowledgement, both
// counters, the run.
func TestLossIsNoSuccess(t *testing.T) {
	const mtu, packets, kept = lossyMTU, lossyPackets, lossyKept
	for _, noFlow := range []bool{true, false} {
		for _, c := range lossy {
			t.Run(fmt.Sprintf("%s, flow control %t", c.name, !noFlow), func(t *testing.T) {
				initiator, counts := counted(c.op)
				var entry portals.Handle
				r := conduct(t, setup{
					overrides: []string{
						"hpu.cores=1", "hpu.contexts=1", "nic.packet_buffer=16KiB", "limits.max_atomic_size=65536", "limits.max_fetch_atomic_size=65536",
					},
					payload: []rec{also(opSpin, 20000), end(hpu.Success)}, noFlow: noFlow, initiator: initiator,
					entry: func(me *portals.ME, r *rig) {
						me.CT, entry = r.ct, r.ct
						me.Options |= portals.OptMEEventCTComm
					},
					target: func(p *runtime.Proc, r *rig) error {
						v, err := p.NI().CTWait(r.ct, 1)
						require.Equal(r, portals.CTEvent{Failure: 1}, v)
						return err
					},
				})
				r.noHandlerErrors()
				require.NotZero(t, entry)
				ev := only(t, r.targets, c.at)
				require.Equal(t, []any{portals.NIDropped, uint64(kept * mtu)}, []any{ev.Fail, ev.MLength})
				ev = only(t, r.inits, c.answer)
				require.Equal(t, []any{portals.NIDropped, c.partial}, []any{ev.Fail, ev.MLength})
				require.Equal(t, portals.CTEvent{Failure: 1}, *counts)
				require.Equal(t, portals.NIOK, only(t, r.inits, portals.EventSend).Fail, "the data has left")
				require.Len(t, all(r.targets, portals.EventPTDisabled), map[bool]int{true: 0, false: 1}[noFlow])
				lost, n := r.c.LostMessages()
				require.Equal(t, 1, n)
				require.Equal(t, []any{1, packets - kept, packets, uint64((packets - kept) * mtu), c.length, uint64(5), uint32(0)},
					[]any{lost[0].Rank, lost[0].Packets, lost[0].Of, lost[0].Bytes, lost[0].Length, lost[0].MatchBits, lost[0].Initiator.NID})
				failures, n := r.c.Failures()
				require.Equal(t, 1, n)
				require.ErrorContains(t, failures[0], "11 of 16 packets (45056 of 65536 B)")
				require.ErrorContains(t, failures[0], "the packet buffer was full (nic.packet_buffer, 16 KiB)")
				stats := r.c.Node(1).Stats()
				require.Equal(t, []int64{packets - kept, 1}, []int64{stats.PacketsDropped, stats.MessagesLost})
			})
		}
	}
}

// Sixteen ranks send 64 packets each to one whose buffer holds four: every
// message that is not whole says so, at both ends.
func TestIncastLosesNothingInSilence(t *testing.T) {
	const senders, size = 16, 64 * 256
	p, err := profile.Load("spin-dis", "fabric.mtu=256", "nic.packet_buffer=1KiB", "hpu.cores=1", "hpu.contexts=1")
	require.NoError(t, err)
	whole, damaged := map[portals.EventType]int{}, map[portals.EventType]int{}
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: senders + 1, Engine: labEngine, Explain: tracer(func(_ *portals.NI, r *portals.TraceRecord) {
		switch e := r.Event; {
		case r.What != portals.TraceEvent || e.Type != portals.EventPut && e.Type != portals.EventAck:
		case e.Fail == portals.NIOK && e.MLength == size:
			whole[e.Type]++
		default:
			require.Equal(t, portals.NIDropped, e.Fail)
			require.Less(t, e.MLength, uint64(size))
			damaged[e.Type]++
		}
	})})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Spawn(0, "target", slowTarget(size)))
	for rank := 1; rank <= senders; rank++ {
		require.NoError(t, c.Spawn(rank, "sender", func(p *runtime.Proc) error {
			eq, err := p.NI().Objects().EQAlloc(8)
			if err != nil {
				return err
			}
			addr := p.Alloc(size).Addr()
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: size, EQ: eq})
			if err != nil {
				return err
			}
			return p.NI().Put(portals.Put{MD: md, Length: size, Ack: portals.Ack, Target: portals.PhysID(0, 0)})
		}))
	}
	require.NoError(t, c.Run(context.Background()))
	lost, n := c.LostMessages()
	require.Equal(t, senders, n, "%v", lost)
	require.Empty(t, whole)
	require.Equal(t, map[portals.EventType]int{portals.EventPut: senders, portals.EventAck: senders}, damaged)
	packets := 0
	for _, l := range lost {
		packets += l.Packets
	}
	require.Equal(t, int(c.Stats().PacketsDropped), packets)
	require.Greater(t, packets, senders*64*9/10)
}

// slowTarget offers an entry of size bytes whose payload handler takes 3,000 cycles.
func slowTarget(size int) func(p *runtime.Proc) error {
	return func(p *runtime.Proc) error {
		eq, err := p.NI().Objects().EQAlloc(64)
		if err != nil {
			return err
		}
		if _, err := p.NI().Objects().PTAlloc(0, eq, 0); err != nil {
			return err
		}
		spin, _, err := scripts(p, nil, []rec{also(opSpin, 3000), end(hpu.Success)}, nil)
		if err != nil {
			return err
		}
		addr := p.Alloc(size).Addr()
		_, err = p.NI().MEAppend(0, &portals.ME{
			Start: addr, Length: uint64(size), UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut, Spin: spin,
		}, portals.PriorityList, 0)
		return err
	}
}

type tracer func(*portals.NI, *portals.TraceRecord)

func (f tracer) Trace(ni *portals.NI, r *portals.TraceRecord) { f(ni, r) }

// What a handler chooses to drop is not lost, even if there was no room for it.
func TestDroppedByChoiceIsNotLost(t *testing.T) {
	r := conduct(t, setup{
		overrides: slow, length: 2560, noFlow: true, header: []rec{also(opSpin, 3000), end(hpu.Drop)},
	})
	r.noHandlerErrors()
	require.Positive(t, r.c.Node(1).Stats().PacketsDropped)
	_, n := r.c.LostMessages()
	require.Zero(t, n)
	put := only(t, r.targets, portals.EventPut)
	require.Equal(t, []any{portals.NIOK, uint64(0)}, []any{put.Fail, put.MLength})
}

// A handler that acknowledges with OK a message of which packets were lost is
// corrected; one that has done so before is not, but the owner's event and the
// run still know.
func TestHandlerCannotAcknowledgeWhatWasLost(t *testing.T) {
	for _, c := range []struct {
		header, completion []rec
		want               portals.FailType
	}{
		{nil, []rec{do(hpu.OpAck, uint64(portals.NIOK)), end(hpu.Success)}, portals.NIDropped},
		{nil, []rec{do(hpu.OpAck, uint64(portals.NIPermViolation)), end(hpu.Success)}, portals.NIPermViolation},
		{[]rec{do(hpu.OpAck, uint64(portals.NIOK)), end(hpu.ProcessData)}, nil, portals.NIOK},
	} {
		r := conduct(t, setup{
			overrides: append(slow[:4:4], "fabric.gap=100ns"), length: 2560, noFlow: true, header: c.header, payload: []rec{also(opSpin, 3000), end(hpu.Success)}, completion: c.completion,
		})
		r.noHandlerErrors()
		require.Equal(t, c.want, only(t, r.inits, portals.EventAck).Fail)
		require.Equal(t, portals.NIDropped, only(t, r.targets, portals.EventPut).Fail)
		_, n := r.c.LostMessages()
		require.Equal(t, 1, n)
	}
}

// A message for a process that does not exist is lost, whether its initiator
// has asked to be told or not.
func TestUnknownProcessIsALoss(t *testing.T) {
	for _, ack := range []portals.AckReq{portals.NoAck, portals.Ack} {
		r := conduct(t, setup{initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			return p.NI().Put(portals.Put{MD: md, Length: 100, Ack: ack, Target: portals.PhysID(1, 7), MatchBits: 5})
		}})
		failures, n := r.c.Failures()
		require.Equal(t, 1, n)
		require.ErrorContains(t, failures[0], "1 of 1 packets (100 of 100 B) of a put from rank 0 were dropped: there is no process 7 with such an interface")
		if ack == portals.Ack {
			require.Equal(t, portals.NIUndeliverable, only(t, r.inits, portals.EventAck).Fail)
		}
	}
}

// Header handlers wait for an HPU whatever the size of their messages:
// hpu.waiting_handlers bounds them. What comes beyond is dropped as if the
// packet buffer were full: no handler of it runs, nothing is delivered, its
// initiator is told. That holds for gets and for entries with a completion
// handler only.
func TestWaitingHandlersAreLimited(t *testing.T) {
	const limit, messages = 8, 40
	busy := []rec{also(opSpin, 50000), end(hpu.Proceed)}
	for _, c := range []struct {
		name               string
		header, completion []rec
		get                bool
		noFlow             bool
	}{
		{name: "empty puts", header: busy, noFlow: true},
		{name: "empty puts, flow control", header: busy},
		{name: "completion handlers", completion: []rec{also(opSpin, 50000), end(hpu.Success)}, noFlow: true},
		{name: "gets", header: busy, get: true, noFlow: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := conduct(t, setup{
				overrides: []string{"hpu.cores=1", "hpu.contexts=1", fmt.Sprintf("hpu.waiting_handlers=%d", limit)},
				header:    c.header, completion: c.completion, noFlow: c.noFlow,
				initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
					for range messages {
						var err error
						if c.get {
							err = p.NI().Get(portals.Get{MD: md, Length: 64, Target: portals.PhysID(1, 0), MatchBits: 5})
						} else {
							err = p.NI().Put(portals.Put{MD: md, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5})
						}
						if err != nil {
							return err
						}
					}
					return nil
				},
			})
			r.noHandlerErrors()
			answers := append(all(r.inits, portals.EventAck), all(r.inits, portals.EventReply)...)
			require.Len(t, answers, messages)
			by := map[portals.FailType]int{}
			for _, e := range answers {
				by[e.Fail]++
			}
			lost, n := r.c.LostMessages()
			const taken = 1 + limit // one runs
			if c.noFlow {
				require.Equal(t, map[portals.FailType]int{portals.NIOK: taken, portals.NIDropped: messages - taken}, by)
				require.Equal(t, messages-taken, n)
			} else { // the first that finds no room disables the entry
				require.Equal(t, map[portals.FailType]int{portals.NIOK: taken, portals.NIDropped: 1, portals.NIPTDisabled: messages - taken - 1}, by)
				require.Equal(t, 1, n)
				only(t, r.targets, portals.EventPTDisabled)
			}
			require.ErrorContains(t, lost[0], "too many handlers waited for an HPU (hpu.waiting_handlers, 8)")
			require.Len(t, r.stepsOf(nic.StepBegan, hpu.OpNone), taken)
		})
	}
}

// Packets of one byte take a place each.
func TestWaitingPayloadHandlersAreLimited(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"hpu.cores=1", "hpu.contexts=1", "hpu.waiting_handlers=8", "fabric.mtu=64"}, length: 64 * 40, noFlow: true,
		payload: []rec{also(opSpin, 50000), end(hpu.Success)}, completion: []rec{end(hpu.Success)},
	})
	r.noHandlerErrors()
	lost, n := r.c.LostMessages()
	require.Equal(t, 1, n)
	require.Equal(t, 40-9, lost[0].Packets)
	put := only(t, r.targets, portals.EventPut)
	require.Equal(t, []any{portals.NIDropped, uint64(9 * 64)}, []any{put.Fail, put.MLength})
}

// hpu.node_memory is for all programs of a node: the one that does not fit is
// refused, with the name of the limit, until another is freed.
func TestNodeMemoryIsLimited(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"hpu.node_memory=320KiB"},
		// the laboratory's own has a page of its own and 64 KiB
		target: func(p *runtime.Proc, r *rig) error {
			binary, err := readModule("actions/actions.wasm")
			require.NoError(r, err)
			module, err := p.Cluster().LoadModule("more", binary)
			require.NoError(r, err)
			second, err := p.HPUAllocMem(module, 64<<10)
			require.NoError(r, err)
			_, err = p.HPUAllocMem(module, 1)
			require.ErrorIs(r, err, portals.ErrNoSpace)
			require.ErrorContains(r, err, "module more needs 65537 bytes of NIC memory on rank 1, 65536 of its own and 1 of HPU memory; 65536 of 327680 are left (hpu.node_memory)")
			_, err = p.HPUAllocMem(module, 16<<20+1)
			require.ErrorContains(r, err, "(hpu.max_hpu_memory)")
			_, err = p.HPUAllocMem(module, 0)
			require.NoError(r, err)
			require.NoError(r, second.Free())
			_, err = p.HPUAllocMem(module, 64<<10)
			return err
		},
	})
	require.NoError(t, r.err)
}

// hpu.dma_bytes bounds the handlers' DMA on its way: beyond it a non-blocking
// operation is NO_SPACE and a blocking one waits; an operation of more than
// that goes alone.
func TestDMABytesAreLimited(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		r := conduct(t, setup{profile: profile, overrides: []string{"hpu.dma_bytes=4096", "hpu.dma_write=landed", "fabric.mtu=64"}, length: 192, payloads: map[int][]rec{
			0: {
				do(hpu.OpDMAToHostNB, 0, 0, scratch, 4000),     // 0
				do(hpu.OpDMAFromHostNB, 0, 0, scratch2, 96),    // 1: fits exactly
				do(hpu.OpDMAToHostNB, 0, 0, scratch, 1),        // 2: no room
				do(hpu.OpDMAFAddNB, 0, 64, 1, scratch2),        // 3: nor here
				do(hpu.OpDMAToHostNB, 0, 0, scratch, 0),        // 4: nothing needs no room
				do(hpu.OpDMAWait, 0),                           // 5
				do(hpu.OpDMAWait, 1),                           // 6
				do(hpu.OpDMAWait, 2),                           // 7
				do(hpu.OpDMAToHostNB, 0, 8192, hpuBase, 30000), // 8: alone
				do(hpu.OpDMAToHost, 0, 4096, scratch, 8),       // 9: waits for it
				do(hpu.OpDMAToHostNB, 0, 0, scratch, 4096),     // 10
				do(hpu.OpDMAWait, 0), do(hpu.OpDMAWait, 1), end(hpu.Success),
			},
		}, payload: []rec{end(hpu.Success)}})
		r.noHandlerErrors()
		for i, want := range []int64{0, 1, hpu.NoSpace, hpu.NoSpace, 2, 0, 0, 0, 0, 0, 1} {
			require.Equal(t, want, r.result(payloadAt, i), "line %d", i)
		}
		long, short := r.stepsOf(nic.StepLanded, hpu.OpDMAToHost)[2], r.stepsOf(nic.StepAnswered, hpu.OpDMAToHost)[0]
		require.Equal(t, long.At+r.prof.DMA.Latency+r.prof.DMA.Bandwidth.Time(8), short.At)
	})
}

// Handlers that each have more on the bus than they may all get through: those
// that must wait do so in turn.
func TestDMAWaitsForRoomInTurn(t *testing.T) {
	payloads := map[int][]rec{}
	for packet := range 8 {
		payloads[packet] = []rec{do(hpu.OpDMAToHost, 0, uint64(4096*packet), scratch, 3000), end(hpu.Success)}
	}
	r := conduct(t, setup{overrides: []string{"hpu.dma_bytes=4096", "fabric.mtu=64", "hpu.cores=8", "hpu.contexts=1"}, length: 512, payloads: payloads})
	r.noHandlerErrors()
	landed := r.stepsOf(nic.StepLanded, hpu.OpDMAToHost)
	require.Len(t, landed, 8)
	one := r.prof.DMA.Latency + r.prof.DMA.Bandwidth.Time(3000)
	for i, s := range landed[1:] {
		require.Equal(t, landed[0].At+sim.Time(i+1)*one, s.At, "one after the other")
	}
	for packet := range 8 {
		require.Equal(t, pattern(3000, 50), r.host[4096*packet:][:3000])
	}
}
