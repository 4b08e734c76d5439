package networks

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// congested is a running measurement.
type congested struct {
	*experiment.Point
	c                   *runtime.Cluster
	parts               *part.Part
	size, burst, rounds int
	slots               int // writes of a sender that may be under way
	senders             []*sender
	hot                 portals.ID // of the process that they write to
	pages               []*rdma.Page
	victim              struct {
		id             portals.ID // of the process that it writes to
		src, dst, flag runtime.View
	}
	took   []sim.Time // of the victim's operations
	share  sim.Time   // how many latencies each is: a round trip 2
	over   bool       // the victim has ended
	last   bool       // and nobody begins another burst
	ended  sim.Time   // when it had
	bursts int64      // that had arrived then
	late   int64      // of them, with background
}

// sender writes to node 0.
type sender struct {
	node  int
	id    portals.ID // of its process
	src   runtime.View
	dst   runtime.View         // at node 0, a range for each slot
	flag  runtime.View         // at node 0: the number of the burst that has arrived
	ready runtime.View         // at the sender: the number of the burst that may begin
	under [slots]*rdma.Pending // of background, by slot
}

// slots is how many writes of a sender are under way at most beside a victim in
// background traffic.
const slots = 16

// warmup is how many operations of the victim are not measured.
const warmup = 2

func newCongested(p *experiment.Point) *congested {
	w := &congested{Point: p, size: p.Int("size"), burst: p.Int("burst"), rounds: p.Int("rounds"), slots: 1, share: 1}
	nodes, n := p.Int("nodes"), p.Int("senders")
	switch p.Text("beside") {
	case besideNone:
		return w
	case besideBackground:
		w.slots = slots
	}
	for i := range n {
		w.senders = append(w.senders, &sender{node: 2 + i*(nodes-3)/n})
	}
	return w
}

// policies are what PART brings in, by the values of the axis beside with absent
// pages.
var policies = map[string]part.Policy{besidePIO: part.PIO, besidePIA: part.PIA}

// faults reports whether the pages of node 0 are absent.
func (w *congested) faults() bool { return policies[w.Text("beside")] != nil }

// spawn starts the programs.
func (w *congested) spawn(c *runtime.Cluster) (err error) {
	w.c = c
	if w.parts, err = part.Load(c, part.Options{Policy: policies[w.Text("beside")]}); err != nil {
		return err
	}
	victims := w.ranks
	if w.Text("victim") == victimRDMA {
		victims = w.writer
	}
	if err := victims(); err != nil {
		return err
	}
	if len(w.senders) == 0 {
		return nil
	}
	if err := c.Spawn(0, "receiver", w.receive); err != nil {
		return err
	}
	for i, s := range w.senders {
		if err := c.Spawn(s.node, "sender", func(p *runtime.Proc) error {
			s.src, s.ready = p.AllocAligned(w.slots*w.burst, rdma.MaxBlock), notified(p)
			clear(s.src.Raw())
			g, err := w.open(p)
			if err != nil {
				return err
			}
			s.id = g.ID()
			if w.Text("beside") == besideBackground {
				return w.background(p, g, i)
			}
			return w.bursting(g, i)
		}); err != nil {
			return err
		}
	}
	return nil
}

// notified allocates a word for notifications.
func notified(p *runtime.Proc) runtime.View {
	v := p.Alloc(8)
	clear(v.Raw())
	return v
}

// open opens a page, and waits until all have.
func (w *congested) open(p *runtime.Proc) (*rdma.Page, error) {
	g, err := w.parts.Open(p, rdma.Options{PDID: 1})
	if err != nil {
		return nil, err
	}
	w.pages = append(w.pages, g)
	p.Compute(sim.Nanosecond)
	return g, nil
}

// partner is the node that the victim works with.
func (w *congested) partner() int {
	if w.Text("partner") == partnerTarget {
		return 0
	}
	return 1
}

// measured notes an operation of the victim.
func (w *congested) measured(p *runtime.Proc, round int, from sim.Time) {
	if round >= warmup {
		w.took = append(w.took, p.Now()-from)
		w.Operation(p, from)
	}
	if round < warmup+w.rounds-1 {
		return
	}
	for _, s := range w.senders {
		for _, t := range s.under {
			if t != nil && t.Done() {
				w.arrived()
			}
		}
	}
	w.over, w.ended = true, p.Now()
}

// arrived counts a burst, until the victim has ended.
func (w *congested) arrived() {
	if !w.over {
		w.bursts++
	}
}

// writer spawns a victim that writes from the last node to node 1.
func (w *congested) writer() error {
	v, last := &w.victim, w.Int("nodes")-1
	err := w.c.Spawn(last, "victim", func(p *runtime.Proc) error {
		v.src = p.AllocAligned(w.size, rdma.MaxBlock)
		clear(v.src.Raw())
		g, err := w.open(p)
		if err != nil {
			return err
		}
		want := memory.Make[byte](w.size)
		for i := range warmup + w.rounds {
			experiment.Pattern(want, w.Seed+uint64(i))
			v.src.CopyFrom(want)
			from := p.Now()
			err := write(g, v.id, rdma.Transfer{Source: v.src.Addr(), Destination: v.dst.Addr(), Length: uint64(w.size), Notify: v.flag.Addr(), Value: uint64(i + 1)})
			if err != nil {
				return err
			}
			w.measured(p, i, from)
			if err := experiment.SameView(fmt.Sprintf("operation %d", i), v.dst, want); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.c.Spawn(w.partner(), "partner", func(p *runtime.Proc) error {
		v.dst, v.flag = p.AllocAligned(w.size, rdma.MaxBlock), notified(p)
		clear(v.dst.Raw())
		g, err := w.open(p)
		if err != nil {
			return err
		}
		v.id = g.ID()
		return g.AwaitNotification(v.flag, uint64(warmup+w.rounds))
	})
}

// ranks spawns victims of MPI.
func (w *congested) ranks() error {
	o := mpi.DefaultExaNetOptions()
	o.Places, o.Ranks = []int{w.Int("nodes") - 1, w.partner()}, 2
	o.ExaNet.Load = func(*runtime.Cluster) (mpi.PageOpener, error) { return w.parts, nil }
	world, err := mpi.New(w.c, o)
	if err != nil {
		return err
	}
	w.share = 2
	w.OperationOf(2)
	for rank := range 2 {
		if err := world.Spawn(rank, func(r *mpi.Rank) error { return w.rank(r, rank) }); err != nil {
			return err
		}
	}
	return nil
}

// rank is the program of a rank: 0 is the victim, 1 answers.
func (w *congested) rank(r *mpi.Rank, rank int) error {
	message, err := r.Alloc(w.size)
	if err != nil {
		return err
	}
	got, err := r.Alloc(w.size)
	if err != nil {
		return err
	}
	clear(message.Raw()) // their pages are there
	clear(got.Raw())
	want, world := memory.Make[byte](w.size), r.World()
	send := func() error { return world.Send(message, 1-rank, 0) }
	turns := []func() error{send, func() error {
		if _, err := world.Recv(got, 1-rank, 0); err != nil {
			return err
		}
		return experiment.SameView("message", got, want)
	}}
	if rank == 1 {
		slices.Reverse(turns)
	}
	for i := range warmup + w.rounds {
		experiment.Pattern(want, w.Seed+uint64(i))
		message.CopyFrom(want)
		from := r.Now()
		for _, turn := range turns {
			if err := turn(); err != nil {
				return fmt.Errorf("operation %d: %w", i, err)
			}
		}
		if rank == 0 {
			w.measured(r.Proc(), i, from)
		}
	}
	return nil
}

// contents are the bytes of a burst of a sender.
func (w *congested) contents(b []byte, i, burst int) {
	experiment.Pattern(b, w.Seed+uint64(i)<<32+uint64(burst)+1<<20)
}

// receive is the program of node 0.
func (w *congested) receive(p *runtime.Proc) error {
	for _, s := range w.senders {
		s.dst, s.flag = p.AllocAligned(w.slots*w.burst, rdma.MaxBlock), notified(p)
		if !w.faults() {
			clear(s.dst.Raw()) // its pages are there
		}
	}
	g, err := w.open(p)
	if err != nil {
		return err
	}
	w.hot = g.ID()
	background := w.Text("beside") == besideBackground
	for burst := 1; !w.last; burst++ {
		for i, s := range w.senders {
			if err := g.AwaitNotification(s.flag, uint64(burst)); err != nil {
				return err
			}
			if background {
				continue // its bursts were compared when they had ended
			}
			if err := w.same(i, burst, 0); err != nil {
				return err
			}
		}
		if background {
			return nil
		}
		if err := w.next(p, g, burst); err != nil {
			return err
		}
	}
	return nil
}

// next lets the senders begin another burst, into absent pages with faults.
func (w *congested) next(p *runtime.Proc, g *rdma.Page, burst int) error {
	w.last = w.over
	for _, s := range w.senders {
		if w.faults() {
			if err := p.OS().Discard(p.Thread(), s.dst.Addr(), uint64(s.dst.Len())); err != nil {
				return err
			}
		}
		if err := write(g, s.id, rdma.Transfer{Notify: s.ready.Addr(), Value: uint64(burst)}); err != nil {
			return err
		}
	}
	return nil
}

// write writes to a process and waits until all has arrived.
func write(g *rdma.Page, to portals.ID, t rdma.Transfer) error {
	t.NID, t.PID = to.NID, to.PID
	pending, err := g.Write(t)
	if err != nil {
		return err
	}
	return pending.Wait()
}

// same compares a burst of a sender with what it has sent.
func (w *congested) same(i, burst, slot int) error {
	s, want := w.senders[i], memory.Make[byte](w.burst)
	w.contents(want, i, burst)
	return experiment.SameView(fmt.Sprintf("burst %d of node %d", burst, s.node), s.dst.Slice(slot*w.burst, (slot+1)*w.burst), want)
}

// bursting is a sender of an incast.
func (w *congested) bursting(g *rdma.Page, i int) error {
	s, b := w.senders[i], memory.Make[byte](w.burst)
	for burst := 1; ; burst++ {
		w.contents(b, i, burst)
		s.src.CopyFrom(b)
		err := write(g, w.hot, rdma.Transfer{Source: s.src.Addr(), Destination: s.dst.Addr(), Length: uint64(w.burst), Notify: s.flag.Addr(), Value: uint64(burst)})
		if err == nil {
			w.arrived()
			err = g.AwaitNotification(s.ready, uint64(burst))
		}
		if err != nil || w.last {
			return err
		}
	}
}

// background is a sender of background traffic. It begins a burst at a time by
// chance, or later if slots of them are under way.
func (w *congested) background(p *runtime.Proc, g *rdma.Page, i int) error {
	s, b := w.senders[i], memory.Make[byte](w.burst)
	draws := rand.New(rand.NewPCG(w.Seed, uint64(i)))
	mean := float64(w.wire(w.burst)) * float64(len(w.senders)) / w.Float("load")
	under := &s.under
	end := func(burst int) error {
		slot := burst % slots
		if under[slot] == nil {
			return nil
		}
		if err := under[slot].Wait(); err != nil {
			return err
		}
		under[slot] = nil
		w.arrived()
		return w.same(i, burst-slots, slot)
	}
	at, burst := sim.Time(0), slots
	for ; ; burst++ {
		if at += sim.Time(draws.ExpFloat64() * mean); at > p.Now() {
			p.SleepUntil(at)
		}
		if err := end(burst); err != nil {
			return err
		}
		if w.over {
			break
		}
		if p.Now() > at+sim.Time(mean/10) {
			w.late++
		}
		w.contents(b, i, burst)
		from := burst % slots * w.burst
		s.src.Slice(from, from+w.burst).CopyFrom(b)
		t, err := g.Write(rdma.Transfer{
			NID: w.hot.NID, PID: w.hot.PID, Source: s.src.Addr() + uint64(from), Destination: s.dst.Addr() + uint64(from), Length: uint64(w.burst),
		})
		if err != nil {
			return err
		}
		under[burst%slots] = t
	}
	for range slots {
		burst++
		if err := end(burst); err != nil {
			return err
		}
	}
	return write(g, w.hot, rdma.Transfer{Notify: s.flag.Addr(), Value: 1})
}
