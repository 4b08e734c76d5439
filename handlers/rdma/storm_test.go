package rdma_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/rdma/channels"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	stormTransfers = flag.Int("storm.transfers", 600, "transfers of TestStorm")
	stormSeed      = flag.Uint64("storm.seed", 1, "seed of the first network of TestStorm")
)

// Random transfers on networks that lose, damage, double and delay cells: every byte is where it belongs when the notification says so, and what the
// receiver does with it afterwards stays, as do the bytes around; every notification comes once; every transfer ends; no block that was
// acknowledged is sent again.
func TestStorm(t *testing.T) {
	var all rdma.Sent
	var got rdma.Received
	for done, seed := 0, *stormSeed; done < *stormTransfers; seed++ {
		s := newStorm(t, seed)
		s.run()
		done += len(s.moves)
		for _, g := range s.pages {
			c := g.Counts()
			all.Retransmitted += c.Sent.Retransmitted
			all.Nacks += c.Sent.Nacks
			all.Outdated += c.Sent.Outdated
			got.Duplicates += c.Received.Duplicates
			got.Outdated += c.Received.Outdated
			got.Damaged += c.Received.Damaged
			got.NoContext += c.Received.NoContext
			require.Zero(t, c.Sent.Failed+c.Sent.Busy+c.Sent.Strange+c.Received.Strange+c.Received.Foreign+c.Received.Denied+c.Received.NoPeer, "seed %d: %+v", seed, c)
		}
		require.NoError(t, s.c.Close())
	}
	for _, n := range []uint64{all.Retransmitted, all.Nacks, all.Outdated, got.Duplicates, got.Outdated, got.Damaged, got.NoContext} {
		require.Positive(t, n, "the test meets everything: %+v %+v", all, got)
	}
}

// move is a transfer and where it goes.
type move struct {
	from, to int // processes
	read     bool
	source   int // in the data of from
	dest     int // in the area of to
	length   int
	value    uint64
}

const margin = 40 // bytes around each destination that nobody writes

type storm struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	c        *runtime.Cluster
	engine   *channels.Engine
	nodes    int
	moves    []move
	data     []runtime.View // of each process: what others get
	area     []runtime.View // where others write
	flags    []runtime.View
	pages    []*channels.Page
	window   int
	ended    int
	owner    map[[2]int64]uint32 // of a handler of a node, by its number: its process
	finished map[string]bool     // blocks that were acknowledged
	again    []string
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), finished: map[string]bool{}, owner: map[[2]int64]uint32{}}
	s.nodes = 1 + s.rng.IntN(5)
	procs := s.nodes + s.rng.IntN(4)
	chance := []float64{0, 0.002, 0.01, 0.05}[s.rng.IntN(4)]
	system := [][2]string{{"linux", "mmu-500"}, {"none", "none"}}[s.rng.IntN(2)] // pages that are there when somebody has asked for them, or all
	p, err := profile.Load("exanest-qfdb", "os.kind="+system[0], "smmu.kind="+system[1],
		fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: %dns}", chance, chance/2, chance, chance, 1+s.rng.IntN(200000)),
		fmt.Sprintf("serve.rdma.header=%s", []string{"r5", "r5", "hpu"}[s.rng.IntN(3)]),
		fmt.Sprintf("serve.rdma.payload=%s", []string{"cells", "cells", "hpu"}[s.rng.IntN(3)]))
	require.NoError(t, err)
	s.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: s.nodes, Seed: seed, Watch: s.watch})
	require.NoError(t, err)
	s.engine, err = channels.Load(s.c)
	require.NoError(t, err)
	s.data, s.area, s.flags = make([]runtime.View, procs), make([]runtime.View, procs), make([]runtime.View, procs)
	s.pages = make([]*channels.Page, procs)
	s.window = 1 + s.rng.IntN(rdma.Writes)
	ends := make([]int, procs)
	for i := range 20 + s.rng.IntN(40) {
		m := move{from: s.rng.IntN(procs), to: s.rng.IntN(procs), read: s.rng.IntN(3) == 0, value: uint64(i + 1), length: s.length()}
		m.source = s.rng.IntN(dataBytes - m.length + 1)
		m.dest = ends[m.to] + margin
		ends[m.to] = m.dest + m.length + margin + s.rng.IntN(300)
		s.moves = append(s.moves, m)
	}
	options := channels.Options{PDID: uint16(seed), State: map[string]any{
		"timeout": uint64(20000 + s.rng.IntN(500000)), "sequence": uint64([]int{0, 16383, 16380, 8190, s.rng.IntN(16384)}[s.rng.IntN(5)]),
		"contexts": uint64([]int{256, 256, 1, 5}[s.rng.IntN(4)]), "in_flight": uint64(1 + s.rng.IntN(32)), "align_source": uint64(s.rng.IntN(2)),
		"block": uint64(256 << s.rng.IntN(7)),
	}}
	for i := range procs {
		require.NoError(t, s.c.Spawn(i%s.nodes, fmt.Sprintf("p%d", i), func(p *runtime.Proc) error { return s.program(p, i, ends[i], options) }))
	}
	return s
}

const dataBytes = 1 << 18

// length draws a length: mostly short, around cells and blocks, or anything.
func (s *storm) length() int {
	switch s.rng.IntN(5) {
	case 0:
		return s.rng.IntN(20)
	case 1:
		return max(0, 256*(1+s.rng.IntN(3))+s.rng.IntN(5)-2)
	case 2:
		return max(0, 16384*(1+s.rng.IntN(3))+s.rng.IntN(515)-257)
	case 3:
		return s.rng.IntN(5000)
	}
	return s.rng.IntN(dataBytes / 2)
}

func (s *storm) program(p *runtime.Proc, me, area int, o channels.Options) (err error) {
	s.data[me], s.area[me], s.flags[me] = p.Alloc(dataBytes), p.Alloc(area+margin), p.Alloc(8*len(s.moves)+8)
	fill(s.data[me].Raw(), byte(me*11))
	clear0(s.area[me].Raw())
	if s.pages[me], err = s.engine.Open(p, o); err != nil {
		return err
	}
	p.Sleep(sim.Microsecond)
	g := s.pages[me]
	var open []*channels.Pending
	wait := func(left int) error {
		for len(open) > left {
			if err := open[0].Wait(); err != nil {
				return err
			}
			s.ended++
			open = open[1:]
		}
		return nil
	}
	for i, m := range s.moves {
		if m.read && m.to != me || !m.read && m.from != me {
			continue
		}
		if err := wait(s.window - 1); err != nil {
			return err
		}
		t := channels.Transfer{
			Source: s.data[m.from].Addr() + uint64(m.source), Destination: s.area[m.to].Addr() + uint64(m.dest), Length: uint64(m.length),
			Notify: s.flags[m.to].Addr() + uint64(8*i), Value: m.value,
		}
		begin, other := g.Write, m.to
		if m.read {
			begin, other = g.Read, m.from
		}
		t.NID, t.PID = s.pages[other].ID().NID, s.pages[other].ID().PID
		w, err := begin(t)
		if err != nil {
			return err
		}
		open = append(open, w)
	}
	if err := wait(0); err != nil {
		return err
	}
	return s.receive(g, me)
}

// receive waits for what comes to a process, looks at it, and uses the memory for something else.
func (s *storm) receive(g *channels.Page, me int) error {
	for i, m := range s.moves {
		if m.to != me {
			continue
		}
		flag := s.flags[me].Slice(8*i, 8*i+8)
		if err := g.AwaitNotification(flag, m.value); err != nil {
			return err
		}
		clear(flag.Write())
		place := s.area[me].Slice(m.dest, m.dest+m.length)
		want := make([]byte, dataBytes)
		fill(want, byte(m.from*11))
		if !bytes.Equal(want[m.source:m.source+m.length], place.Read()) {
			return fmt.Errorf("seed %d: move %d %+v: not what was sent", s.seed, i, m)
		}
		clear0(place.Write())
	}
	return nil
}

// clear0 fills memory with what nobody sends.
func clear0(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

// watch looks for blocks that are sent again although the firmware has seen their acknowledgement.
func (s *storm) watch(h *nic.HandlerStep) {
	name := func(nid, pid uint32, m rdma.Header) string {
		return fmt.Sprintf("process %d:%d to %d:%d: slot %d from %d", h.Rank, s.owner[[2]int64{int64(h.Rank), h.Number}], nid, pid, m.Slot, (m.Sequence-m.Attempt)&rdma.SequenceMask)
	}
	le := binary.LittleEndian
	switch {
	case h.What == nic.StepBegan && len(h.Record) >= hpu.HeaderSize:
		s.owner[[2]int64{int64(h.Rank), h.Number}] = le.Uint32(h.Record[36:])
		m := rdma.HeaderOf(le.Uint64(h.Record[40:]))
		if m.Kind == rdma.KindAck {
			s.finished[name(le.Uint32(h.Record[24:]), le.Uint32(h.Record[28:]), m)] = true
		}
	case h.What == nic.StepActed && h.Action.Op == hpu.OpPutFromHost:
		m, d := rdma.HeaderOf(h.Action.Desc.MatchBits), &h.Action.Desc
		if m.Attempt > 0 && s.finished[name(d.TargetNID, d.TargetPID, m)] {
			s.again = append(s.again, name(d.TargetNID, d.TargetPID, m))
		}
	}
}

func (s *storm) run() {
	require.NoError(s.t, s.c.Run(context.Background()), "seed %d", s.seed)
	failures, n := s.c.Failures()
	require.Zero(s.t, n, "seed %d: %v", s.seed, failures)
	require.Equal(s.t, len(s.moves), s.ended, "seed %d", s.seed)
	require.Empty(s.t, s.again, "seed %d", s.seed)
	for i := range s.area {
		for at, b := range s.area[i].Snapshot() {
			if b != 0xee {
				require.Fail(s.t, "a write after the notification, or beside the destination", "seed %d: process %d, byte %d", s.seed, i, at)
			}
		}
		require.Equal(s.t, make([]byte, s.flags[i].Len()), s.flags[i].Snapshot(), "seed %d: a notification came twice", s.seed)
	}
}
