// Package smmutest has the surroundings of an SMMU for tests: tables, a memory
// controller, interrupt lines, an actor, and the parameters of a device.
package smmutest

import (
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Memory is a memory controller. It transfers one read after the other at Rate;
// the data arrives Latency later.
type Memory struct {
	Engine  *sim.Engine
	Latency sim.Time
	Rate    sim.Rate
	// Read, if not nil, is called for every read.
	Read func(addr uint64, n int)

	free  sim.Time
	reads int
}

// Access implements smmu.Memory.
func (m *Memory) Access(addr uint64, n int) sim.Time {
	m.reads++
	if m.Read != nil {
		m.Read(addr, n)
	}
	m.free = max(m.free, m.Engine.Now()) + m.Rate.Time(int64(n))
	return m.free + m.Latency
}

// Reads returns the number of reads so far.
func (m *Memory) Reads() int { return m.reads }

// Lines records interrupts.
type Lines struct {
	// Told, if not nil, is called for every interrupt.
	Told func(bank int)
	Rose []int // banks, in order
}

// Interrupt implements smmu.Interrupts.
func (l *Lines) Interrupt(bank int) {
	l.Rose = append(l.Rose, bank)
	if l.Told != nil {
		l.Told(bank)
	}
}

// Node is an SMMU with its surroundings. It is the actor that owns the SMMU.
type Node struct {
	Engine *sim.Engine
	ID     sim.ID
	SMMU   *smmu.SMMU
	Memory Memory
	Lines  Lines
}

// NewNode returns an SMMU without a process. Its memory has this latency and
// unlimited bandwidth.
func NewNode(spec *smmu.Spec, latency sim.Time, w smmu.Watcher) *Node {
	n := &Node{Engine: sim.New(1), SMMU: new(smmu.SMMU)}
	n.ID = n.Engine.Add("Node[0]", n)
	n.Memory = Memory{Engine: n.Engine, Latency: latency}
	n.SMMU.Init(n.Engine, n.ID, &smmu.Config{Spec: spec, Memory: &n.Memory, Interrupts: &n.Lines, Watcher: w})
	return n
}

// Handle implements sim.Actor.
func (n *Node) Handle(e *sim.Event) { n.SMMU.Handle(e) }

// Answer is the client of a request and records its result.
type Answer struct {
	smmu.Request
	Engine *sim.Engine
	Asked  sim.Time
	At     sim.Time // of the answer
	Result smmu.Result
	Open   bool // not yet answered
}

// Translated implements smmu.Client.
func (a *Answer) Translated(_ *smmu.Request, res smmu.Result) {
	a.Result, a.At, a.Open = res, a.Engine.Now(), false
}

// Ask sends a request to the SMMU at the present time.
func (n *Node) Ask(a *Answer) {
	a.Engine, a.Client, a.Open = n.Engine, a, true
	a.Asked = n.Engine.Now()
	if res, answered := n.SMMU.Translate(&a.Request); answered {
		a.Translated(&a.Request, res)
	}
}

// Access asks about a range, runs until the answer comes or no events remain,
// and calls Done.
func (n *Node) Access(pdid uint16, addr uint64, length int, write bool) *Answer {
	pages := (int(addr%Size(lastLevel))+length)/int(Size(lastLevel)) + 1
	a := &Answer{Request: smmu.Request{PDID: pdid, Addr: addr, Length: length, Write: write, Frames: make([]uint64, pages)}}
	n.Ask(a)
	for a.Open {
		at, more := n.Engine.Next()
		if !more {
			return a
		}
		if err := n.Engine.RunUntil(at); err != nil {
			panic("smmutest: " + err.Error())
		}
	}
	if a.Result == smmu.OK {
		n.SMMU.Done(&a.Request)
	}
	return a
}
