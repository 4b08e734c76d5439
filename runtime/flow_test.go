package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// slow is one HPU with one context and room for two packets of 256 bytes, which
// a payload handler holds up for long.
var slow = []string{"hpu.cores=1", "hpu.contexts=1", "fabric.mtu=256", "nic.packet_buffer=512"}

// Flow control in the middle of a message: the packets that find no room are
// dropped, the completion handler learns of it and of the bytes, the event
// counts what was delivered, and messages are refused until PTEnable (sPIN'17
// §2).
func TestFlowControlWithinMessage(t *testing.T) {
	enabled := false
	r := conduct(t, setup{
		overrides: slow, length: 2560, payload: []rec{also(opSpin, 3000), end(hpu.Success)}, completion: []rec{end(hpu.Success)},
		target: func(p *runtime.Proc, r *rig) error {
			p.Sleep(20 * sim.Microsecond)
			enabled = true
			return p.NI().Objects().PTEnable(0)
		},
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			for _, size := range []uint64{2560, 100, 100} { // the second comes while the entry is disabled
				if err := p.NI().Put(portals.Put{MD: md, Length: size, Ack: portals.Ack, Target: portals.PhysID(1, 0), UserPtr: size}); err != nil {
					return err
				}
				p.Sleep(15 * sim.Microsecond)
			}
			return nil
		},
	})
	r.noHandlerErrors()
	require.True(t, enabled)
	// One packet is with the handler and two wait; the others come within its time.
	const delivered = 3 * 256
	var completions []step
	for _, s := range r.stepsOf(nic.StepBegan, hpu.OpNone) {
		if s.Handler == "completion" {
			completions = append(completions, s)
		}
	}
	require.Len(t, completions, 2)
	le := binary.LittleEndian
	require.Equal(t, []uint64{2560 - delivered, 1}, []uint64{le.Uint64(completions[0].Record), le.Uint64(completions[0].Record[8:])})
	require.Equal(t, []uint64{0, 0}, []uint64{le.Uint64(completions[1].Record), le.Uint64(completions[1].Record[8:])})
	only(t, r.targets, portals.EventPTDisabled)
	puts, acks := all(r.targets, portals.EventPut), all(r.inits, portals.EventAck)
	require.Equal(t, []uint64{delivered, 100}, []uint64{puts[0].MLength, puts[1].MLength})
	require.Equal(t, []portals.FailType{portals.NIDropped, portals.NIOK}, []portals.FailType{puts[0].Fail, puts[1].Fail})
	require.Len(t, puts, 2)
	require.Len(t, acks, 3)
	for _, ack := range acks {
		switch {
		case ack.UserPtr == 2560:
			require.Equal(t, []uint64{delivered, uint64(portals.NIDropped)}, []uint64{ack.MLength, uint64(ack.Fail)})
		case ack.Fail == portals.NIPTDisabled:
			require.Zero(t, ack.MLength)
		default:
			require.Equal(t, uint64(100), ack.MLength)
		}
	}
	stats := r.c.Node(1).Stats()
	require.Equal(t, []int64{7, 1}, []int64{stats.PacketsDropped, stats.FlowControl})
}

// Packets that find no room while the header handler runs are lost, whatever it
// decides; the event counts exactly the bytes that are in host memory, user
// header included.
func TestFlowControlBehindHeaderHandler(t *testing.T) {
	const skip = 40
	for _, buffer := range []int{256, 512} {
		for _, busy := range []bool{false, true} {
			r := conduct(t, setup{
				overrides: append(slow[:3:3], fmt.Sprintf("nic.packet_buffer=%d", buffer)), message: solid(900), messages: 1, userHdr: skip,
				header: []rec{also(opSpin, 3000), end(hpu.Proceed)},
				initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
					// a first message just fills the buffer, so that the second
					// loses its header packet too
					if busy {
						if err := p.NI().Put(portals.Put{MD: md, Length: uint64(buffer), Target: portals.PhysID(1, 0), RemoteOffset: 8192}); err != nil {
							return err
						}
					}
					return p.NI().Put(portals.Put{MD: md, Length: 900, Ack: portals.Ack, Target: portals.PhysID(1, 0), UserPtr: 1})
				},
				entry: func(me *portals.ME, _ *rig) { me.Options |= portals.OptMEEventFlowCtrlDisable },
			})
			r.noHandlerErrors()
			puts := all(r.targets, portals.EventPut)
			last := puts[len(puts)-1]
			there := 0
			for _, b := range r.host[:900] {
				if b != 0 {
					there++
				}
			}
			require.Equal(t, uint64(there), last.MLength, "buffer %d, busy %t", buffer, busy)
			if busy {
				require.Zero(t, there)
			} else {
				require.Equal(t, buffer, there)
			}
		}
	}
}

// storm is many ranks sending to one, whose queue, packet buffer and HPUs are too small for them.
type storm struct {
	senders, messages int
	size              int
	handler           string // "": none
	queue             uint64
	overrides         []string

	c         *runtime.Cluster
	delivered map[uint64]int // whole messages by number
	partly    map[uint64]int // events of messages of which bytes were dropped
	told      map[uint64]int // initiators that learnt that a message was not, or not wholly, delivered
	accepted  map[uint64]int
	resent    int
}

func (s *storm) run(t require.TestingT) {
	p, err := profile.Load("spin-int", append([]string{"fabric.mtu=256", "hpu.cores=2", "hpu.contexts=2"}, s.overrides...)...)
	require.NoError(t, err)
	s.delivered, s.partly, s.told, s.accepted = map[uint64]int{}, map[uint64]int{}, map[uint64]int{}, map[uint64]int{}
	s.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: s.senders + 1, Engine: labEngine})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.c.Close()) }()
	require.NoError(t, s.c.Spawn(0, "target", s.target))
	for rank := 1; rank <= s.senders; rank++ {
		require.NoError(t, s.c.Spawn(rank, "sender", s.sender))
	}
	require.NoError(t, s.c.Run(context.Background()))
}

func (s *storm) target(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(s.queue)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(portals.OptPTFlowCtrl, eq, 0); err != nil {
		return err
	}
	addr := p.Alloc(hostBytes).Addr()
	me := portals.ME{Start: addr, Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable}
	script := []rec{also(opSpin, 300), end(map[string]hpu.Code{"header": hpu.Proceed}[s.handler])}
	switch s.handler {
	case "header":
		me.Spin, err = scripted(script, nil, nil)(p)
	case "payload":
		me.Spin, err = scripted(nil, script, nil)(p)
	}
	if err != nil {
		return err
	}
	if _, err := ni.MEAppend(0, &me, portals.PriorityList, 0); err != nil {
		return err
	}
	for {
		ev, _, err := ni.EQPoll([]portals.Handle{eq}, 10*sim.Microsecond)
		switch {
		case errors.Is(err, portals.ErrEQEmpty) && len(s.accepted) == s.senders*s.messages:
			return nil
		case errors.Is(err, portals.ErrEQEmpty):
			continue
		case err != nil:
			return err
		case ev.Type == portals.EventPTDisabled:
			if err := ni.Objects().PTEnable(0); err != nil {
				return err
			}
		case ev.Fail == portals.NIOK:
			if ev.MLength != ev.RLength {
				return fmt.Errorf("%d of %d bytes, and the event says OK", ev.MLength, ev.RLength)
			}
			s.delivered[ev.HdrData]++
		default:
			s.partly[ev.HdrData]++
		}
		p.Compute(200 * sim.Nanosecond) // slower than they come
	}
}

// sender sends all its messages at once, each again until it was taken.
func (s *storm) sender(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(1024)
	if err != nil {
		return err
	}
	addr := p.Alloc(s.size).Addr()
	md, err := ni.Objects().MDBind(&portals.MD{Start: addr, Length: uint64(s.size), EQ: eq, Options: portals.OptMDEventSendDisable})
	if err != nil {
		return err
	}
	send := func(number uint64) error {
		return ni.Put(portals.Put{MD: md, Length: uint64(s.size), Ack: portals.Ack, Target: portals.PhysID(0, 0), UserPtr: number, HdrData: number})
	}
	for i := range s.messages {
		if err := send(uint64(p.Rank()*1000 + i)); err != nil {
			return err
		}
	}
	for left := s.messages; left > 0; {
		ev, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		if ev.Fail == portals.NIOK {
			if ev.MLength != ev.RLength {
				return fmt.Errorf("%d of %d bytes, and the acknowledgement says OK", ev.MLength, ev.RLength)
			}
			s.accepted[ev.UserPtr]++
			left--
			continue
		}
		s.told[ev.UserPtr]++
		s.resent++
		// not in step with the others
		p.Sleep(sim.Time(500*s.told[ev.UserPtr]*p.Rank()+int(137*ev.UserPtr%1000)) * sim.Nanosecond)
		if err := send(ev.UserPtr); err != nil {
			return err
		}
	}
	return nil
}

// In a storm every message is delivered once, or its initiator was told and may
// send it again; and flow control does trigger.
func TestStorms(t *testing.T) {
	resent := 0
	rapid.Check(t, func(t *rapid.T) {
		s := &storm{
			senders: rapid.IntRange(1, 6).Draw(t, "senders"), messages: rapid.IntRange(1, 10).Draw(t, "messages"),
			size:    rapid.SampledFrom([]int{0, 1, 256, 700, 3000}).Draw(t, "size"),
			handler: rapid.SampledFrom([]string{"", "header", "payload"}).Draw(t, "handler"),
			queue:   rapid.SampledFrom([]uint64{1, 3, 64}).Draw(t, "queue"),
			overrides: []string{
				fmt.Sprintf("nic.packet_buffer=%d", rapid.SampledFrom([]int{3072, 5000, 100_000}).Draw(t, "buffer")),
				fmt.Sprintf("hpu.waiting_handlers=%d", rapid.SampledFrom([]int{12, 40, 65536}).Draw(t, "queue of handlers")),
			},
		}
		s.run(t)
		require.Len(t, s.accepted, s.senders*s.messages)
		for number, times := range s.accepted {
			require.Equal(t, 1, times, "message %d", number)
			require.Equal(t, 1, s.delivered[number], "message %d", number)
		}
		for number, times := range s.partly {
			require.LessOrEqual(t, times, s.told[number], "message %d: bytes dropped, and its initiator did not learn of it", number)
		}
		_, lost := s.c.LostMessages()
		require.Equal(t, len(s.partly) > 0, lost > 0)
		resent += s.resent
		for rank := range s.c.Nodes() {
			require.Zero(t, s.c.Node(rank).Stats().LostActions)
		}
	})
	require.Positive(t, resent, "no storm was too much for its target")
}
