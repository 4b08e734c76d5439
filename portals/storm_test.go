package portals

import (
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var stormCount = flag.Int("storm.count", 3000, "random storms of TestStorm; the promise is a hundred thousand")

// storm is many initiators against one target with flow control and too little
// of everything: queue slots, unexpected headers, entries.
type storm struct {
	t       *testing.T
	rng     *rand.Rand
	target  *NI
	q       Handle
	comm    Handle // counts deliveries
	over    Handle // counts overflow events
	senders []*stormSender
	open    []*Delivery
	bytes   map[*Delivery][]byte

	attempts   int
	puts       map[uint64]int  // PUT events by hdr_data
	inOverflow map[uint64]bool // of those, delivered into the overflow list
	overflows  map[uint64]int  // PUT_OVERFLOW events by hdr_data
	told       map[uint64]FailType
	acked      map[uint64]bool
	disabled   int // PT_DISABLED events
	expected   int // disablings by flow control
	autoUnlink int // of overflow entries
	autoFree   int
}

type stormSender struct {
	ni    *NI
	md    Handle
	q, ct Handle
	inbox []message
	oks   uint64
	fails uint64
}

type message struct {
	hdr  Header
	data []byte
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), bytes: map[*Delivery][]byte{}, puts: map[uint64]int{},
		inOverflow: map[uint64]bool{}, overflows: map[uint64]int{}, told: map[uint64]FailType{}, acked: map[uint64]bool{},
	}
	r := s.rng
	limits := deviceLimits
	limits.MaxPTIndex, limits.MaxUnexpectedHeaders, limits.MaxEntries = 0, 1+r.IntN(5), 2+r.IntN(8)
	newNI := func(nid uint32) *NI {
		ni, _, err := NewNI(NIConfig{NID: nid, PID: nid, Options: OptNIMatching | OptNIPhysical, Device: limits, Memory: make(flatMemory, 1024)})
		require.NoError(t, err)
		return ni
	}
	var err error
	s.target = newNI(99)
	s.q, err = s.target.EQAlloc(uint64(3 + r.IntN(6)))
	require.NoError(t, err)
	s.comm, err = s.target.CTAlloc()
	require.NoError(t, err)
	s.over, err = s.target.CTAlloc()
	require.NoError(t, err)
	_, err = s.target.PTAlloc(OptPTFlowCtrl, s.q, 0)
	require.NoError(t, err)
	for i := range 1 + r.IntN(4) {
		x := &stormSender{ni: newNI(uint32(i))}
		x.q, err = x.ni.EQAlloc(1000)
		require.NoError(t, err)
		x.ct, err = x.ni.CTAlloc()
		require.NoError(t, err)
		x.md, err = x.ni.MDBind(&MD{Length: 64, EQ: x.q, CT: x.ct, Options: OptMDEventCTAck})
		require.NoError(t, err)
		s.senders = append(s.senders, x)
	}
	return s
}

func (s *storm) sender() *stormSender { return s.senders[s.rng.IntN(len(s.senders))] }

func (s *storm) put(x *stormSender) {
	s.attempts++
	err := x.ni.Put(Put{MD: x.md, Length: uint64(1 + s.rng.IntN(8)), Ack: Ack, Target: PhysID(99, 99), MatchBits: uint64(s.rng.IntN(3)), HdrData: uint64(s.attempts)})
	require.NoError(s.t, err)
}

// transmit moves one operation of an initiator into the network.
func (s *storm) transmit(x *stormSender) bool {
	op := x.ni.Port().NextOp()
	if op == nil {
		return false
	}
	m := message{op.Header, make([]byte, op.Length())}
	require.True(s.t, x.ni.Port().Read(op, 0, m.data))
	x.ni.Port().Sent(op, NIOK)
	x.ni.Port().Release(op)
	x.inbox = append(x.inbox, m)
	return true
}

func (s *storm) receive(x *stormSender) bool {
	if len(x.inbox) == 0 {
		return false
	}
	m := x.inbox[0]
	x.inbox = x.inbox[1:]
	was := s.target.PTEnabled(0)
	d := s.target.Port().Receive(&m.hdr)
	if was && !s.target.PTEnabled(0) {
		s.expected++
	}
	s.open = append(s.open, d)
	s.bytes[d] = m.data
	return true
}

func (s *storm) finish() bool {
	if len(s.open) == 0 {
		return false
	}
	i := s.rng.IntN(len(s.open))
	d := s.open[i]
	s.open = append(s.open[:i:i], s.open[i+1:]...)
	s.target.Port().Write(d, 0, s.bytes[d])
	delete(s.bytes, d)
	s.target.Port().Finish(d, d.Done())
	return true
}

// answer carries one acknowledgement home.
func (s *storm) answer() bool {
	op := s.target.Port().NextOp()
	if op == nil {
		return false
	}
	h := op.Header
	s.target.Port().Sent(op, NIOK)
	s.target.Port().Release(op)
	x := s.senders[h.Target.NID]
	x.ni.Port().Acked(&h)
	for {
		ev, err := x.ni.EQGet(x.q)
		if errors.Is(err, ErrEQEmpty) {
			return true
		}
		require.NoError(s.t, err)
		if ev.Type != EventAck {
			continue
		}
		require.NotContains(s.t, s.told, h.HdrData)
		require.False(s.t, s.acked[h.HdrData])
		if ev.Fail == NIOK {
			s.acked[h.HdrData] = true
			x.oks++
		} else {
			s.told[h.HdrData] = ev.Fail
			x.fails++
		}
	}
}

// read takes one event at the target.
func (s *storm) read() bool {
	ev, err := s.target.EQGet(s.q)
	if errors.Is(err, ErrEQEmpty) {
		return false
	}
	require.NoError(s.t, err, "an event was lost in spite of flow control")
	switch ev.Type {
	case EventPut:
		require.Equal(s.t, NIOK, ev.Fail)
		s.puts[ev.HdrData]++
		s.inOverflow[ev.HdrData] = ev.List == OverflowList
	case EventPutOverflow:
		s.overflows[ev.HdrData]++
	case EventPTDisabled:
		s.disabled++
	case EventAutoUnlink:
		if ev.List == OverflowList {
			s.autoUnlink++
		}
	case EventAutoFree:
		s.autoFree++
	default:
		require.Fail(s.t, "event nobody expected", "%+v", ev)
	}
	return true
}

func (s *storm) append(me ME, list List) error {
	me.UID, me.MatchID, me.Options = UIDAny, AnyID, me.Options|OptMEOpPut|OptMEEventLinkDisable|OptMEEventCTComm|OptMEEventCTOverflow
	me.CT = s.comm
	if list == PriorityList && me.Options&OptMEEventCTComm != 0 {
		// Deliveries and overflow matches are counted apart.
		me.Options &^= OptMEEventCTOverflow
		if me.Options&OptMEUseOnce != 0 && s.rng.IntN(2) == 0 {
			me.CT, me.Options = s.over, me.Options&^OptMEEventCTComm|OptMEEventCTOverflow
		}
	}
	_, err := s.target.MEAppend(0, &me, list, 0)
	return err
}

func (s *storm) step() {
	switch s.rng.IntN(18) {
	case 0, 1, 2:
		s.put(s.sender())
	case 3, 4:
		s.transmit(s.sender())
	case 5, 6:
		s.receive(s.sender())
	case 7, 8:
		s.finish()
	case 9:
		s.answer()
	case 10, 11, 12:
		s.read()
	case 13, 14, 15:
		s.host()
	default:
		require.NoError(s.t, s.target.PTEnable(0))
	}
}

// host appends an entry, or the device runs out of contexts.
func (s *storm) host() {
	var err error
	switch s.rng.IntN(10) {
	case 0, 1, 2, 3:
		err = s.append(ME{Length: 64, MatchBits: uint64(s.rng.IntN(3)), Options: OptMEUseOnce}, PriorityList)
	case 4, 5, 6:
		err = s.append(ME{Length: 16, IgnoreBits: 3, MinFree: 8, Options: OptMEManageLocal}, OverflowList)
	case 7, 8:
		err = s.append(ME{Length: 64, MatchBits: uint64(s.rng.IntN(3)), Options: OptMEUseOnce}, OverflowList)
	default:
		if s.target.PTEnabled(0) {
			s.expected++
		}
		s.target.Port().DisableForFlowControl(0)
	}
	if err != nil {
		require.ErrorIs(s.t, err, ErrNoSpace)
	}
}

// calm lets everything come to rest and takes every unexpected header.
func (s *storm) calm() {
	for busy := true; busy; {
		busy = false
		for _, x := range s.senders {
			busy = s.transmit(x) || s.receive(x) || busy
		}
		busy = s.finish() || busy
		busy = s.answer() || busy
		busy = s.read() || busy
	}
	for s.target.unexpectedCount > 0 {
		before := s.target.unexpectedCount
		err := s.target.MESearch(0, &ME{UID: UIDAny, MatchID: AnyID, IgnoreBits: 3, CT: s.over, Options: OptMEOpPut | OptMEUseOnce | OptMEEventCTOverflow}, SearchDelete, 0)
		require.NoError(s.t, err)
		require.Equal(s.t, before-1, s.target.unexpectedCount)
		for s.read() {
		}
	}
}

func (s *storm) check() {
	delivered, overflowed := 0, 0
	for id := uint64(1); id <= uint64(s.attempts); id++ {
		_, told := s.told[id]
		require.Equal(s.t, told, s.puts[id] == 0, "message %d: delivered %d times, told %v", id, s.puts[id], told)
		require.LessOrEqual(s.t, s.puts[id], 1, "message %d", id)
		require.Equal(s.t, s.acked[id], !told, "message %d: acknowledged or told, never both or neither", id)
		delivered += s.puts[id]
		if s.inOverflow[id] {
			overflowed++
			require.Equal(s.t, 1, s.overflows[id], "header of message %d", id)
		} else {
			require.Zero(s.t, s.overflows[id], "header of message %d", id)
		}
	}
	require.Equal(s.t, s.expected, s.disabled, "PT_DISABLED events")
	require.Equal(s.t, s.autoUnlink, s.autoFree, "overflow entries unlinked and freed")
	comm, err := s.target.CTGet(s.comm)
	require.NoError(s.t, err)
	over, err := s.target.CTGet(s.over)
	require.NoError(s.t, err)
	require.LessOrEqual(s.t, comm.Success, uint64(delivered))
	require.LessOrEqual(s.t, over.Success, uint64(overflowed))
	require.Zero(s.t, comm.Failure+over.Failure)
	for _, x := range s.senders {
		v, err := x.ni.CTGet(x.ct)
		require.NoError(s.t, err)
		require.Equal(s.t, CTEvent{x.oks, x.fails}, v)
		require.NoError(s.t, x.ni.MDRelease(x.md), "an operation is still pending")
	}
	require.Zero(s.t, s.target.queues.all.get(s.q).promised, "slots promised to nobody")
}

// TestStorm proves that nothing is lost: every message is delivered exactly once
// or its initiator is told, no event of an accepted message is lost, and no
// counter disagrees with the events.
func TestStorm(t *testing.T) {
	delivered, told, disabled := 0, 0, 0
	for seed := range uint64(*stormCount) {
		s := newStorm(t, seed)
		for range 60 + s.rng.IntN(100) {
			s.step()
		}
		s.calm()
		s.check()
		if t.Failed() {
			t.Fatalf("storm %d", seed)
		}
		delivered, told, disabled = delivered+len(s.acked), told+len(s.told), disabled+s.disabled
	}
	t.Logf("%d delivered, %d refused, %d times disabled", delivered, told, disabled)
	require.Positive(t, delivered)
	require.Positive(t, disabled)
}
