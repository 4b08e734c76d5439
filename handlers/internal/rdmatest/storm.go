// Package rdmatest is a random test of libraries that are an RDMA engine. It
// makes random transfers between processes on random networks. Memory may be
// absent at any time.
//
// At a notification every byte is in its place. What the receiver writes
// afterwards stays, and so do the bytes around. Every notification comes once.
// Every transfer ends. No acknowledged block is sent again.
package rdmatest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time" //lint:clock a network that does not end is a finding

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Opener opens the page of a process.
type Opener func(p *runtime.Proc, o rdma.Options) (*rdma.Page, error)

// Kind is a library and its random parameters.
type Kind struct {
	Library string // its name in profiles, "serve"
	Prefix  string // of the engine's fields in its state
	Load    func(s *Storm, c *runtime.Cluster) (Opener, error)
	Profile func(s *Storm) []string       // overrides of exanest-qfdb
	State   func(s *Storm) map[string]any // besides the engine's
	// bytes that a process on each node has and uses all the time; nil: there
	// is none
	Hog func(s *Storm) int
}

// Storm is a network with its processes.
type Storm struct {
	Seed  uint64
	Rand  *rand.Rand
	Moves []Move
	Pages []*rdma.Page
	C     *runtime.Cluster

	t        testing.TB
	kind     *Kind
	open     Opener
	nodes    int
	data     []runtime.View // of each process: others read it
	area     []runtime.View // others write here
	flags    []runtime.View
	window   int
	ended    int
	left     int
	owner    map[[2]int64]uint32 // maps a handler of a node, by its number, to its process
	finished map[string]bool     // blocks that were acknowledged
	again    []string
	drawn    []any
}

// Move is a transfer and its place.
type Move struct {
	from, to int // processes
	read     bool
	source   int // in the data of from
	dest     int // in the area of to
	length   int
	value    uint64
}

const (
	margin    = 40 // bytes around each destination that nobody writes
	dataBytes = 1 << 18
)

// New makes the network of a seed.
func New(t testing.TB, seed uint64, kind *Kind) *Storm {
	s := &Storm{t: t, Seed: seed, Rand: rand.New(rand.NewPCG(seed, 7)), kind: kind, finished: map[string]bool{}, owner: map[[2]int64]uint32{}}
	s.nodes = 1 + s.Rand.IntN(5)
	procs := s.nodes + s.Rand.IntN(4)
	chance := []float64{0, 0.002, 0.01, 0.05}[s.Rand.IntN(4)]
	overrides := append(kind.Profile(s),
		fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: %dns}", chance, chance/2, chance, chance, 1+s.Rand.IntN(200000)),
		fmt.Sprintf("serve.%s.header=%s", kind.Library, []string{"r5", "r5", "hpu"}[s.Rand.IntN(3)]),
		fmt.Sprintf("serve.%s.payload=%s", kind.Library, []string{"cells", "cells", "hpu"}[s.Rand.IntN(3)]))
	p, err := profile.Load("exanest-qfdb", overrides...)
	require.NoError(t, err)
	s.drawn = append(s.drawn, overrides)
	s.C, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: s.nodes, Seed: seed, Watch: s.watch})
	require.NoError(t, err)
	s.open, err = kind.Load(s, s.C)
	require.NoError(t, err)
	s.data, s.area, s.flags = make([]runtime.View, procs), make([]runtime.View, procs), make([]runtime.View, procs)
	s.Pages, s.left = make([]*rdma.Page, procs), procs
	s.window = 1 + s.Rand.IntN(rdma.Writes)
	ends := s.draw(procs)
	options := s.options()
	for i := range procs {
		require.NoError(t, s.C.Spawn(i%s.nodes, fmt.Sprintf("p%d", i), func(p *runtime.Proc) error { return s.program(p, i, ends[i], options) }))
	}
	for n := range s.nodes {
		if kind.Hog != nil {
			bytes := kind.Hog(s)
			require.NoError(t, s.C.Spawn(n, "hog", func(p *runtime.Proc) error { return s.hog(p, bytes) }))
		}
	}
	return s
}

// draw draws the transfers, and returns the length of each process's area.
func (s *Storm) draw(procs int) []int {
	ends := make([]int, procs)
	for i := range 50 + s.Rand.IntN(150) {
		m := Move{from: s.Rand.IntN(procs), to: s.Rand.IntN(procs), read: s.Rand.IntN(3) == 0, value: uint64(i + 1), length: s.length()}
		m.source = s.Rand.IntN(dataBytes - m.length + 1)
		m.dest = ends[m.to] + margin
		ends[m.to] = m.dest + m.length + margin + []int{s.Rand.IntN(300), s.Rand.IntN(9000)}[s.Rand.IntN(2)]
		s.Moves = append(s.Moves, m)
	}
	return ends
}

func (s *Storm) options() rdma.Options {
	state := s.kind.State(s)
	for name, v := range map[string]int{ //lint:maporder they are set by name
		"timeout": 20000 + s.Rand.IntN(500000), "sequence": []int{0, 16383, 16380, 8190, s.Rand.IntN(16384)}[s.Rand.IntN(5)],
		"contexts": []int{256, 256, 1, 5}[s.Rand.IntN(4)], "in_flight": 1 + s.Rand.IntN(32), "align_source": s.Rand.IntN(2), "block": 256 << s.Rand.IntN(7),
		"retries": 4000,
	} {
		state[s.kind.Prefix+name] = uint64(v)
	}
	s.drawn = append(s.drawn, state)
	return rdma.Options{PDID: uint16(s.Seed), State: state}
}

// length draws a length: mostly short, or near cells and blocks, or any.
func (s *Storm) length() int {
	switch s.Rand.IntN(5) {
	case 0:
		return s.Rand.IntN(20)
	case 1:
		return max(0, 256*(1+s.Rand.IntN(3))+s.Rand.IntN(5)-2)
	case 2:
		return max(0, 16384*(1+s.Rand.IntN(3))+s.Rand.IntN(515)-257)
	case 3:
		return s.Rand.IntN(5000)
	}
	return s.Rand.IntN(dataBytes / 2)
}

// content returns a part of the data of a process: pages of its own bytes, and
// some pages that it has never touched.
func content(process, from, to int) []byte {
	b := make([]byte, to-from)
	for page := from >> 12; page<<12 < to; page++ {
		if !written(process, page) {
			continue
		}
		for i := max(from, page<<12); i < min(to, (page+1)<<12); i++ {
			b[i-from] = byte(i) + byte(i>>8)*7 + byte(i>>16)*3 + byte(process*11)
		}
	}
	return b
}

func written(process, page int) bool { return (page*5+process)%4 > 0 }

func (s *Storm) program(p *runtime.Proc, me, area int, o rdma.Options) (err error) {
	defer func() { s.left-- }()
	s.data[me], s.area[me], s.flags[me] = p.Alloc(dataBytes), p.Alloc(area+margin), p.Alloc(8*len(s.Moves)+8)
	for page := range dataBytes >> 12 {
		if from, to := page<<12, (page+1)<<12; written(me, page) {
			copy(s.data[me].Slice(from, to).Raw(), content(me, from, to))
		}
	}
	if s.Pages[me], err = s.open(p, o); err != nil {
		return err
	}
	p.Sleep(sim.Microsecond)
	if s.kind.Hog != nil {
		p.Sleep(sim.Time(s.Rand.IntN(5000)) * sim.Microsecond)
	}
	g := s.Pages[me]
	var open []*rdma.Pending
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
	// all its memory is copied on write until the child ends
	if s.kind.Hog != nil && s.Rand.IntN(3) == 0 {
		child, err := p.OS().Fork(p.Thread(), "child")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, child.Exit(p.Thread())) }()
	}
	for i := range s.Moves {
		if m := &s.Moves[i]; m.read && m.to != me || !m.read && m.from != me {
			continue
		}
		if err := wait(s.window - 1); err != nil {
			return err
		}
		w, err := s.begin(g, i)
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

func (s *Storm) begin(g *rdma.Page, i int) (*rdma.Pending, error) {
	m := &s.Moves[i]
	t := rdma.Transfer{
		Source: s.data[m.from].Addr() + uint64(m.source), Destination: s.area[m.to].Addr() + uint64(m.dest), Length: uint64(m.length),
		Notify: s.flags[m.to].Addr() + uint64(8*i), Value: m.value,
	}
	begin, other := g.Write, m.to
	if m.read {
		begin, other = g.Read, m.from
	}
	t.NID, t.PID = s.Pages[other].ID().NID, s.Pages[other].ID().PID
	return begin(t)
}

// receive waits for a notification, checks the data at this moment, and then
// uses the memory for something else.
func (s *Storm) receive(g *rdma.Page, me int) error {
	for i, m := range s.Moves {
		if m.to != me {
			continue
		}
		flag := s.flags[me].Slice(8*i, 8*i+8)
		if err := g.AwaitNotification(flag, m.value); err != nil {
			return err
		}
		place := s.area[me].Slice(m.dest, m.dest+m.length)
		if want, got := content(m.from, m.source, m.source+m.length), place.Snapshot(); !bytes.Equal(want, got) {
			return fmt.Errorf("seed %d: move %d %+v: not what was sent: %s", s.Seed, i, m, difference(want, got))
		}
		clear(flag.Write())
		fill(place.Write())
	}
	return nil
}

// difference describes where two texts of the same length differ.
func difference(want, got []byte) string {
	first, last, n := -1, 0, 0
	for i := range want {
		if want[i] != got[i] {
			if first < 0 {
				first = i
			}
			last = i
			n++
		}
	}
	return fmt.Sprintf("%d bytes from %d to %d: the first is %#x in the place of %#x", n, first, last, got[first], want[first])
}

// filler is a byte that nobody sends; memory that nobody has written is zero.
const filler = 0xee

func fill(b []byte) {
	for i := range b {
		b[i] = filler
	}
}

// hog touches a part of its memory, again and again, so that there is too
// little memory for all.
func (s *Storm) hog(p *runtime.Proc, n int) error {
	mine := p.Alloc(n)
	for at := 0; at < n; at += 4096 {
		clear(mine.Slice(at, min(at+4096, n)).Write())
	}
	rng := rand.New(rand.NewPCG(s.Seed, uint64(p.Rank())))
	for s.left > 0 {
		at := rng.IntN(n)
		clear(mine.Slice(at, min(at+(1+rng.IntN(16))<<12, n)).Write())
		p.Sleep(sim.Time(1+rng.IntN(300)) * sim.Microsecond)
	}
	return nil
}

// watch looks for blocks that are sent again after the firmware has seen their
// acknowledgement.
func (s *Storm) watch(h *nic.HandlerStep) {
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

// Run runs the network, and checks the result.
func (s *Storm) Run() {
	t := s.t
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("seed", s.Seed, s.drawn)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // of real time
	defer cancel()
	require.NoError(t, s.C.Run(ctx), "seed %d", s.Seed)
	failures, n := s.C.Failures()
	require.Zero(t, n, "seed %d: %v", s.Seed, failures)
	require.Equal(t, len(s.Moves), s.ended, "seed %d", s.Seed)
	require.Empty(t, s.again, "seed %d", s.Seed)
	for i := range s.area {
		want := make([]byte, s.area[i].Len())
		for _, m := range s.Moves {
			if m.to == i {
				fill(want[m.dest : m.dest+m.length])
			}
		}
		require.True(t, bytes.Equal(want, s.area[i].Snapshot()), "seed %d: process %d: a write after the notification, or beside the destination", s.Seed, i)
		require.Equal(t, make([]byte, s.flags[i].Len()), s.flags[i].Snapshot(), "seed %d: a notification came twice", s.Seed)
		require.True(t, bytes.Equal(content(i, 0, dataBytes), s.data[i].Snapshot()), "seed %d: process %d: what others get has changed", s.Seed, i)
	}
	for _, g := range s.Pages {
		c := g.Counts()
		require.Zero(t, c.Sent.Failed+c.Sent.Busy+c.Sent.Strange+c.Received.Strange+c.Received.Foreign+c.Received.Denied+c.Received.NoPeer, "seed %d: %+v", s.Seed, c)
	}
}
