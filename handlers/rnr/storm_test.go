package rnr

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var storms = flag.Int("rnr.storms", 8, "random connections")

// Two processes send, write and read with memory that is taken away again and
// again, over networks that lose, with numbers of packets and messages that
// pass 2^24. What they find is what the plain model has: messages come once and
// in order, a read sees the writes before it, and nothing else of memory has
// changed.
func TestStorm(t *testing.T) {
	var all EndStats
	for seed := range uint64(*storms) {
		s := newStorm(seed)
		s.run(t)
		for i := range s.state {
			x, r := &all, &s.state[i].Stats
			x.Packets += r.Packets
			x.Again += r.Again
			x.Duplicates += r.Duplicates
			x.RNR += r.RNR
			x.Naks += r.Naks
			x.NotReady += r.NotReady
			x.Faults += r.Faults
			x.Reported += r.Reported
			x.Rewinds += r.Rewinds
			x.Timeouts += r.Timeouts
			require.Zero(t, r.Foreign, "seed %d", seed)
		}
	}
	t.Logf("%+v", all)
	for _, n := range []uint64{all.Again, all.Duplicates, all.RNR, all.Naks, all.NotReady, all.Faults - all.Reported, all.Rewinds, all.Timeouts} {
		require.Positive(t, n, "the test meets everything: %+v", all)
	}
}

const (
	areaBytes = 96 << 10 // what the other end writes to and reads from, and what is sent
	slots     = 8        // receives, and reads, at a time
	slotBytes = 40 << 10
)

// storm is a random pair.
type storm struct {
	pair
	sides [2]side
}

// side is one end of it.
type side struct {
	storm  *storm
	number int
	rng    *rand.Rand
	proc   *runtime.Proc
	conn   *Conn
	ops    int
	depth  int // work requests at a time
	out    int // one of so many turns takes memory away
	posted int // receives at a time
	slow   sim.Time
	begin  [2]uint64 // numbers of the first packet and of the first work request

	area    runtime.View // the other end writes here: model is what it should have
	model   []byte
	source  runtime.View // what is sent and written is from here
	mirror  []byte
	inbox   runtime.View // of receives
	landing runtime.View // of reads

	sent     []int    // lengths, by message
	expect   [][]byte // messages of the other end
	got      int      // messages
	receives []*receive
	flying   []*op
	free     []int // slots of landing
	last     bool  // the other end's last message has come
}

type receive struct {
	work *Work
	slot int
}

// op is a send, write or read under way.
type op struct {
	work *Work
	slot int // of a read
	want []byte
}

func newStorm(seed uint64) *storm {
	rng := rand.New(rand.NewPCG(seed, 5))
	some := func(of ...int) int { return of[rng.IntN(len(of))] }
	s := &storm{}
	s.seed = seed
	s.o = Options{OnePage: rng.IntN(4) == 0, Pause: some(0, 1, 3, 9), Timeout: sim.Time(some(2, 5)) * sim.Millisecond}
	s.set = []string{"storage.read_latency=30us", "storage.write_latency=10us", "storage.bandwidth=2GB/s", fmt.Sprintf("fabric.mtu=%d", some(256, 1024, 4096))}
	if rng.IntN(2) == 0 {
		s.set = append(s.set, "fabric.faults={loss: 0.01, corrupt: 0.01, duplicate: 0.02, delay: 0.02, max_delay: 3us}")
		s.o.Timeout = sim.Millisecond
	} else if rng.IntN(2) == 0 {
		s.set = append(s.set, "os.kind=none", "smmu.kind=none")
	}
	if rng.IntN(3) == 0 {
		s.set = append(s.set, fmt.Sprintf("pools.firmware.invocation=%dus", some(1, 20)))
	}
	if rng.IntN(4) == 0 {
		s.set = append(s.set, fmt.Sprintf("pools.hardware.depth=%d", some(2, 4)))
	}
	begin := [2]uint64{uint64(some(0, 1<<24-20, 1<<25-300, 1<<40-100)), uint64(some(0, 1<<24-20, 1<<32-20))}
	for i := range s.sides {
		s.sides[i] = side{
			storm: s, number: i, rng: rand.New(rand.NewPCG(seed, uint64(10+i))), ops: 40, depth: some(1, 4, 30), out: some(1, 3, 10, 1000), posted: some(1, 2, slots),
			slow: sim.Time(some(0, 0, 5, 50)) * sim.Microsecond, begin: begin,
		}
		s.main[i] = s.sides[i].main
	}
	return s
}

func (s *side) other() *side { return &s.storm.sides[1-s.number] }

func (s *side) main(p *runtime.Proc, c *Conn) error {
	s.proc, s.conn = p, c
	c.Begin(s.begin[0], s.begin[1])
	s.area, s.source = p.Alloc(areaBytes), p.Alloc(areaBytes)
	s.inbox, s.landing = p.Alloc(slots*slotBytes), p.Alloc(slots*slotBytes)
	s.model, s.mirror = make([]byte, areaBytes), make([]byte, areaBytes)
	for i := range s.mirror {
		s.mirror[i] = byte(s.rng.Uint32())
	}
	copy(s.source.Write(), s.mirror)
	for i := range slots {
		s.free = append(s.free, i)
	}
	p.SleepUntil(sim.Millisecond) // both have their memory
	for i := range s.posted {
		if err := s.receive(i); err != nil {
			return err
		}
	}
	for turn := 0; ; turn++ {
		v, err := c.NI().Objects().CTGet(c.Signal())
		if err != nil {
			return err
		}
		moved, err := s.step()
		if err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		if s.ops == 0 && len(s.flying) == 0 && s.last {
			break
		}
		if !moved {
			if _, err := c.NI().CTWait(c.Signal(), v.Success+1); err != nil {
				return err
			}
		}
		if s.slow > 0 {
			p.Compute(sim.Time(s.rng.Int64N(int64(s.slow))))
		}
	}
	if got := s.area.Read(); string(got) != string(s.model) {
		return fmt.Errorf("what the other end has written is not what it should be")
	}
	p.Sleep(2 * sim.Millisecond) // the other end's last acknowledgement may be lost
	return nil
}

// step does what can be done, and takes memory away now and then.
func (s *side) step() (moved bool, err error) {
	for len(s.receives) > 0 && s.receives[0].work.Done() {
		moved = true
		if err := s.received(); err != nil {
			return false, err
		}
	}
	for len(s.flying) > 0 && s.flying[0].work.Done() {
		moved = true
		if err := s.finished(); err != nil {
			return false, err
		}
	}
	if s.proc.OS() != nil && s.rng.IntN(s.out) == 0 {
		v := []runtime.View{s.area, s.source, s.inbox, s.landing}[s.rng.IntN(4)]
		from := s.rng.IntN(v.Len()) &^ 4095
		n := min(v.Len()-from, (1+s.rng.IntN(12))<<12)
		if err := s.proc.OS().PageOut(s.proc.Thread(), v.Addr()+uint64(from), uint64(n)); err != nil {
			return false, err
		}
	}
	if s.ops > 0 && len(s.flying) < s.depth && (s.ops > 1 || len(s.flying) == 0) {
		return true, s.post()
	}
	return moved, nil
}

// post posts a random work request; the last is a message that says so.
func (s *side) post() error {
	s.ops--
	kind := s.rng.IntN(3)
	if s.ops == 0 {
		kind = 0
	}
	views, bytes := s.ranges()
	o := &op{}
	var err error
	switch kind {
	case 0:
		s.sent = append(s.sent, len(bytes))
		s.other().expect = append(s.other().expect, bytes)
		o.work, err = s.conn.PostSend(views...)
	case 1:
		if s.reading() {
			s.ops++
			return s.wait()
		}
		at := s.rng.IntN(areaBytes - len(bytes) + 1)
		copy(s.other().model[at:], bytes)
		o.work, err = s.conn.PostWrite(s.other().area.Addr()+uint64(at), views...)
	default:
		if len(s.free) == 0 {
			s.ops++
			return s.wait()
		}
		o.slot = s.free[0] + 1
		s.free = s.free[1:]
		n := s.rng.IntN(slotBytes + 1)
		at := s.rng.IntN(areaBytes - n + 1)
		o.want = append([]byte(nil), s.other().model[at:at+n]...)
		cut := s.rng.IntN(n + 1)
		v := s.landing.Slice((o.slot-1)*slotBytes, (o.slot-1)*slotBytes+n)
		o.work, err = s.conn.PostRead(s.other().area.Addr()+uint64(at), v.Slice(0, cut), v.Slice(cut, n))
	}
	s.flying = append(s.flying, o)
	return err
}

// reading reports whether a read is under way: a write may overtake it.
func (s *side) reading() bool {
	for _, o := range s.flying {
		if o.slot > 0 {
			return true
		}
	}
	return false
}

// wait waits for the oldest work request.
func (s *side) wait() error {
	if _, err := s.flying[0].work.Wait(); err != nil {
		return err
	}
	return s.finished()
}

// ranges draws what is sent.
func (s *side) ranges() (views []runtime.View, bytes []byte) {
	left := s.rng.IntN(slotBytes + 1)
	if s.rng.IntN(3) == 0 {
		left = s.rng.IntN(300)
	}
	for range 1 + s.rng.IntN(MaxRanges) {
		n := s.rng.IntN(left + 1)
		at := s.rng.IntN(areaBytes - n + 1)
		views = append(views, s.source.Slice(at, at+n))
		bytes = append(bytes, s.mirror[at:at+n]...)
		left -= n
	}
	return views, bytes
}

func (s *side) receive(slot int) error {
	v := s.inbox.Slice(slot*slotBytes, (slot+1)*slotBytes)
	cut := s.rng.IntN(slotBytes)
	w, err := s.conn.PostReceive(v.Slice(0, cut), v.Slice(cut, slotBytes))
	s.receives = append(s.receives, &receive{w, slot})
	return err
}

// received takes the oldest message.
func (s *side) received() error {
	r := s.receives[0]
	s.receives = s.receives[1:]
	n, err := r.work.Wait()
	if err != nil {
		return err
	}
	want := s.expect[s.got]
	if got := s.inbox.Slice(r.slot*slotBytes, r.slot*slotBytes+n).Read(); string(got) != string(want) {
		return fmt.Errorf("message %d of %d bytes is not the one of %d bytes that was sent", s.got, n, len(want))
	}
	s.got++
	o := s.other()
	s.last = o.ops == 0 && s.got == len(o.sent)
	if s.last {
		return nil
	}
	return s.receive(r.slot)
}

// finished takes the oldest work request.
func (s *side) finished() error {
	o := s.flying[0]
	s.flying = s.flying[1:]
	if _, err := o.work.Wait(); err != nil {
		return err
	}
	if o.slot > 0 {
		at := (o.slot - 1) * slotBytes
		if got := s.landing.Slice(at, at+len(o.want)).Read(); string(got) != string(o.want) {
			return fmt.Errorf("a read of %d bytes is not what was there", len(o.want))
		}
		s.free = append(s.free, o.slot-1)
	}
	return nil
}
