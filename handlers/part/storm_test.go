package part_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/part/faults"
	"github.com/spinsim/spinsim/handlers/rdma/channels"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/host/hosttest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	stormTransfers = flag.Int("storm.transfers", 300, "transfers of TestStorm")
	stormSeed      = flag.Uint64("storm.seed", 1, "seed of the first network of TestStorm")
)

// Random writes into memory whose pages are absent, come and go again, from memory that is absent for a while, on networks that lose, damage, double and
// delay cells, with all policies: every byte is where it belongs when the notification says so, the bytes around are as they were, every notification
// comes once and every transfer ends.
func TestStorm(t *testing.T) {
	var pushed, resumed, outdated uint64
	for done, seed := 0, *stormSeed; done < *stormTransfers; seed++ {
		s := newStorm(t, seed)
		require.NoError(t, s.c.Run(context.Background()), "seed %d", seed)
		failures, n := s.c.Failures()
		require.Zero(t, n, "seed %d: %v", seed, failures)
		for i, g := range s.pages {
			for name, sum := range map[string]*uint64{"pushed": &pushed, "resumed": &resumed, "outdated": &outdated} {
				n, err := g.Installed().Number("faults." + name)
				require.NoError(t, err)
				*sum += n.(uint64)
			}
			require.Equal(t, bytes.Repeat([]byte{0xee}, s.area[i].Len()), s.area[i].Snapshot(), "seed %d: process %d: a write beside a destination, or after its notification", seed, i)
			require.Equal(t, make([]byte, s.flags[i].Len()), s.flags[i].Snapshot(), "seed %d: a notification came twice", seed)
		}
		done += len(s.moves)
		require.NoError(t, s.c.Close())
	}
	require.Positive(t, min(pushed, resumed, outdated))
}

// move is a write and where it goes.
type move struct{ from, to, source, dest, length int }

type storm struct {
	seed    uint64
	rng     *rand.Rand
	c       *runtime.Cluster
	engine  *channels.Engine
	moves   []move
	present []map[uint64]bool // pages of each process's area that are there; the process brings them in
	until   []sim.Time        // when the data of each process is there
	data    []runtime.View
	area    []runtime.View
	flags   []runtime.View
	pages   []*channels.Page
}

const (
	dataBytes = 1 << 16
	margin    = 40
)

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{seed: seed, rng: rand.New(rand.NewPCG(seed, 11))}
	procs := 1 + s.rng.IntN(4)
	chance := []float64{0, 0.002, 0.02}[s.rng.IntN(3)]
	p, err := profile.Load("exanest-qfdb", "os.kind=none", "smmu.kind=none", // memory is absent for the translator below
		fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: %dns}", chance, chance/2, chance, chance, 1+s.rng.IntN(100000)))
	require.NoError(t, err)
	s.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: procs, Seed: seed, Translator: s.translator})
	require.NoError(t, err)
	s.engine, err = faults.Load(s.c)
	require.NoError(t, err)
	s.data, s.area, s.flags = make([]runtime.View, procs), make([]runtime.View, procs), make([]runtime.View, procs)
	s.pages, s.until = make([]*channels.Page, procs), make([]sim.Time, procs)
	ends := make([]int, procs)
	for range 5 + s.rng.IntN(20) {
		m := move{from: s.rng.IntN(procs), to: s.rng.IntN(procs), length: []int{s.rng.IntN(300), s.rng.IntN(9000), s.rng.IntN(dataBytes)}[s.rng.IntN(3)]}
		m.source = s.rng.IntN(dataBytes - m.length + 1)
		m.dest = ends[m.to] + margin
		ends[m.to] = m.dest + m.length + margin + s.rng.IntN(5000)
		s.moves = append(s.moves, m)
	}
	options := channels.Options{PDID: uint16(seed), State: map[string]any{
		"rdma.timeout": uint64(60000 + s.rng.IntN(1000000)), "nto": uint64(s.rng.IntN(2)), "guard": uint64(3000000), "rdma.sequence": uint64(16380 * s.rng.IntN(2)),
	}}
	for i := range procs {
		s.present = append(s.present, map[uint64]bool{})
		s.until[i] = sim.Time(s.rng.IntN(2)) * sim.Time(s.rng.IntN(2000)) * sim.Microsecond
		require.NoError(t, s.c.Spawn(i, fmt.Sprintf("p%d", i), func(p *runtime.Proc) error { return s.program(p, i, ends[i]+margin, options) }))
	}
	return s
}

func within(v runtime.View, addr uint64) bool {
	return v.Len() > 0 && addr >= v.Addr() && addr < v.Addr()+uint64(v.Len())
}

func (s *storm) translator(eng *sim.Engine, rank int, _ *host.Bus) host.Translator {
	return hosttest.Func(func(a *host.Access, off, _ int) host.Status {
		addr, _ := a.At(off)
		switch to := a.Direction() == host.ToMemory; {
		case to && within(s.area[rank], addr) && !s.present[rank][addr>>12], !to && within(s.data[rank], addr) && eng.Now() < s.until[rank]:
			return host.Fault
		}
		return host.OK
	})
}

func (s *storm) program(p *runtime.Proc, me, area int, o channels.Options) (err error) {
	s.data[me], s.area[me], s.flags[me] = p.Alloc(dataBytes), p.Alloc(area), p.Alloc(8*len(s.moves)+8)
	for i, b := 0, s.data[me].Raw(); i < dataBytes; i++ {
		b[i] = byte(i*7 + i>>8 + me)
	}
	copy(s.area[me].Raw(), bytes.Repeat([]byte{0xee}, area))
	if s.pages[me], err = s.engine.Open(p, o); err != nil {
		return err
	}
	q, err := faults.Open(s.pages[me])
	if err != nil {
		return err
	}
	p.Sleep(sim.Microsecond)
	var open []*channels.Pending
	incoming := map[int]bool{}
	for i, m := range s.moves {
		if m.to == me {
			incoming[i] = true
		}
		if m.from != me {
			continue
		}
		w, err := s.pages[me].Write(channels.Transfer{
			NID: uint32(m.to), Source: s.data[me].Addr() + uint64(m.source), Destination: s.area[m.to].Addr() + uint64(m.dest), Length: uint64(m.length),
			Notify: s.flags[m.to].Addr() + uint64(8*i), Value: 1,
		})
		if err != nil {
			return err
		}
		open = append(open, w)
	}
	for len(open)+len(incoming) > 0 {
		if err := s.serve(p, q, me, incoming); err != nil {
			return err
		}
		for len(open) > 0 && open[0].Done() {
			if err := open[0].Wait(); err != nil {
				return err
			}
			open = open[1:]
		}
	}
	return nil
}

// serve resolves a fault, takes pages away, or looks at what has arrived.
func (s *storm) serve(p *runtime.Proc, q *faults.Queue, me int, incoming map[int]bool) error {
	f, found := q.Next(p.Thread())
	switch {
	case found:
		p.Compute(sim.Time(1+s.rng.IntN(20)) * sim.Microsecond)
		s.present[me][f.Address>>12] = true
		if s.rng.IntN(10) > 0 { // else the time-out, or the guard
			if err := q.Resume(p.Thread(), &f); err != nil {
				return err
			}
		}
		if s.rng.IntN(20) == 0 {
			clear(s.present[me])
		}
	default:
		p.Sleep(5 * sim.Microsecond)
	}
	for i, m := range s.moves {
		flag := s.flags[me].Slice(8*i, 8*i+8)
		if !incoming[i] || binary.LittleEndian.Uint64(flag.Read()) == 0 {
			continue
		}
		delete(incoming, i)
		clear(flag.Write())
		place := s.area[me].Slice(m.dest, m.dest+m.length)
		for k, b := range place.Read() {
			if at := m.source + k; b != byte(at*7+at>>8+m.from) {
				return fmt.Errorf("seed %d: move %d: byte %d is not what was sent", s.seed, i, k)
			}
		}
		place.CopyFrom(bytes.Repeat([]byte{0xee}, m.length))
	}
	return nil
}
