package exanet_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	stormMessages = flag.Int("storm.messages", 4000, "messages of TestStorm")
	stormSeed     = flag.Uint64("storm.seed", 1, "seed of the first network of TestStorm")
)

// Random traffic goes through small mailboxes, on networks that lose, damage,
// duplicate and delay cells. Some receivers are in other protection domains.
// Every acknowledged message is in its mailbox, once and whole, in the order of
// its channel. No refused message is.
func TestStorm(t *testing.T) {
	var sent mailbox.Sent
	var got mailbox.Received
	for done, seed := 0, *stormSeed; done < *stormMessages; seed++ {
		s := newStorm(t, seed)
		s.c.run()
		done += s.check()
		for _, p := range s.procs {
			c := p.page.Counts()
			sent.Retransmitted += c.Sent.Retransmitted
			sent.Relaunched += c.Sent.Relaunched
			sent.TimedOut += c.Sent.TimedOut
			sent.Outdated += c.Sent.Outdated
			got.Duplicates += c.Received.Duplicates
			got.Outdated += c.Received.Outdated
			got.Damaged += c.Received.Damaged
			got.Foreign += c.Received.Foreign
			got.Full += c.Received.Full
			require.Zero(t, c.Sent.Busy+c.Sent.Strange+c.Received.Strange+c.Received.NoPeer+c.Received.Denied, "seed %d: %+v", seed, c)
		}
	}
	for _, n := range []uint64{sent.Retransmitted, sent.Relaunched, sent.TimedOut, sent.Outdated, got.Duplicates, got.Outdated, got.Damaged, got.Foreign, got.Full} {
		require.Positive(t, n, "the test meets everything: %+v %+v", sent, got)
	}
}

type storm struct {
	t     *testing.T
	seed  uint64
	c     *cluster
	procs []*stormProc
}

type stormProc struct {
	*storm
	me       int
	rng      *rand.Rand
	pdid     exanet.PDID
	page     *exanet.Interface
	plan     []int // receivers, in the order of launching
	expected int
	// for each receiver and channel: the messages sent, in order
	launched [][exanet.Channels][]uint32
	arrived  [][exanet.Channels][]uint32 // for each sender and channel
	now      [exanet.Channels]int        // receiver of the channel's message
	pauses   [exanet.Channels]sim.Time   // do not resend before this time
	ended    int
	taken    int
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{t: t, seed: seed}
	rng := rand.New(rand.NewPCG(seed, 3))
	nodes, procs := 1+rng.IntN(4), 2+rng.IntN(6)
	chance := []float64{0, 0.01, 0.1, 0.25}[rng.IntN(4)]
	system := [][2]string{{"linux", "mmu-500"}, {"none", "none"}}[rng.IntN(2)]
	s.c = newCluster(t, nodes, func(c *runtime.Config) { c.Seed = seed }, "os.kind="+system[0], "smmu.kind="+system[1],
		fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: %dns}", chance, chance/2, chance, chance, 1+rng.IntN(300000)),
		"serve.mailbox.payload="+[]string{"mailbox", "mailbox", "hpu"}[rng.IntN(3)], "serve.mailbox.header="+[]string{"packetizer", "packetizer", "hpu"}[rng.IntN(3)])
	o := exanet.Options{Depth: []int{1, 4, 256}[rng.IntN(3)], State: map[string]any{
		"timeout": uint64(5000 + rng.IntN(200000)), "retries": uint64(rng.IntN(6)), "back_off": uint64(rng.IntN(4)),
		"sequence": uint64([]uint32{0, 1<<32 - 3, 1<<31 - 2, rng.Uint32()}[rng.IntN(4)]),
	}}
	foreign := rng.IntN(4) == 0
	for i := range procs {
		p := &stormProc{storm: s, me: i, rng: rand.New(rand.NewPCG(seed, uint64(100+i))), pdid: 9}
		if foreign && i == procs-1 {
			p.pdid = 10
		}
		p.launched, p.arrived = make([][exanet.Channels][]uint32, procs), make([][exanet.Channels][]uint32, procs)
		s.procs = append(s.procs, p)
	}
	for _, p := range s.procs {
		for range rng.IntN(60) {
			to := rng.IntN(procs)
			p.plan = append(p.plan, to)
			if s.procs[to].pdid == p.pdid {
				s.procs[to].expected++
			}
		}
	}
	for i, p := range s.procs {
		s.c.spawn(i%nodes, p.pdid, func(proc *runtime.Proc) error { return p.program(proc, o) })
	}
	return s
}

func (s *stormProc) program(p *runtime.Proc, o exanet.Options) (err error) {
	if s.page, err = s.c.system.Open(p, o); err != nil {
		return err
	}
	p.SleepUntil(sim.Microsecond)
	next := 0
	for s.ended < len(s.plan) || s.taken < s.expected {
		if c, free := s.page.Free(); free && next < len(s.plan) {
			if err := s.launch(c, s.plan[next]); err != nil {
				return err
			}
			next++
		}
		if err := s.look(p); err != nil {
			return err
		}
		if s.rng.IntN(3) > 0 {
			if err := s.poll(); err != nil {
				return err
			}
		}
		if s.rng.IntN(20) == 0 {
			p.Compute(sim.Time(s.rng.IntN(20000)) * sim.Nanosecond)
		}
	}
	return nil
}

// launch sends a message that holds its sender, its channel, and the number of
// messages before it on that channel.
func (s *stormProc) launch(c, to int) error {
	n := uint32(len(s.launched[to][c]))
	s.launched[to][c] = append(s.launched[to][c], n)
	s.now[c] = to
	b := make([]byte, 12+(s.me+c+int(n))%53)
	binary.LittleEndian.PutUint32(b, uint32(s.me))
	binary.LittleEndian.PutUint32(b[4:], uint32(c))
	binary.LittleEndian.PutUint32(b[8:], n)
	for i := 12; i < len(b); i++ {
		b[i] = byte(i) ^ byte(n) ^ byte(s.me)
	}
	return s.page.Launch(c, s.procs[to].page.Address(), b)
}

// look handles the results of messages.
func (s *stormProc) look(p *runtime.Proc) error {
	var before [exanet.Channels]exanet.State
	for c := range before {
		before[c] = s.page.State(c)
	}
	s.page.Look()
	for c := range before {
		state, foreign := s.page.State(c), s.procs[s.now[c]].pdid != s.pdid
		switch {
		case before[c] == exanet.Ongoing && state == exanet.Acknowledged:
			require.False(s.t, foreign, "seed %d", s.seed)
			s.ended++
		case state == exanet.Refused && foreign:
			require.ErrorIs(s.t, s.page.Reason(c), exanet.ErrForeign)
			s.page.Forget(c)
			s.ended++
		case state == exanet.Refused:
			require.ErrorIs(s.t, s.page.Reason(c), exanet.ErrFull)
			if before[c] == exanet.Ongoing {
				s.pauses[c] = p.Now() + s.page.Pause(1+s.rng.IntN(5))
			} else if p.Now() >= s.pauses[c] {
				if err := s.page.Again(c); err != nil {
					return err
				}
			}
		case state == exanet.TimedOut:
			if err := s.page.Again(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stormProc) poll() error {
	b := make([]byte, exanet.MaxPayload)
	m, found, err := s.page.Poll(b)
	if err != nil || !found {
		return err
	}
	from, c, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	require.Equal(s.t, 12+int(from+c+n)%53, m.Bytes, "seed %d", s.seed)
	for i := 12; i < m.Bytes; i++ {
		require.Equal(s.t, byte(i)^byte(n)^byte(from), b[i], "seed %d", s.seed)
	}
	require.Equal(s.t, s.procs[from].page.Address().NID, m.NID)
	require.Equal(s.t, s.procs[from].page.Address().PID, m.PID)
	s.arrived[from][c] = append(s.arrived[from][c], n)
	s.taken++
	return nil
}

// check compares received messages with sent ones, and counts them.
func (s *storm) check() (n int) {
	for from, p := range s.procs {
		n += len(p.plan)
		for to, r := range s.procs {
			for c := range p.launched[to] {
				want := p.launched[to][c]
				if p.pdid != r.pdid {
					want = nil
				}
				require.Equal(s.t, want, r.arrived[from][c], "seed %d: from %d to %d, channel %d", s.seed, from, to, c)
			}
		}
	}
	return n
}
