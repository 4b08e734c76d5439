package hosttest

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Node has cores and a kernel without anything around them. It is their actor.
type Node struct {
	Engine *sim.Engine
	ID     sim.ID
	CPU    host.CPU
	Kernel *host.Kernel
}

// NewNode returns a node with four cores.
func NewNode(spec *host.OSSpec) *Node {
	n := &Node{Engine: sim.New(1)}
	n.ID = n.Engine.Add("Node[0]", n)
	n.CPU.Init(n.Engine, n.ID, Cores, &spec.CPUSpec, "Rank", 0)
	n.Kernel = host.NewKernel(n.Engine, &n.CPU, spec)
	return n
}

const kindCall sim.Kind = 1

// Handle implements sim.Actor.
func (n *Node) Handle(e *sim.Event) {
	f, _ := e.P.(func())
	f()
}

// At calls f at time t, outside any thread.
func (n *Node) At(t sim.Time, f func()) { n.Engine.Post(t, n.ID, n.ID, kindCall, 0, 0, f) }

// Go starts a program on a core.
func (n *Node) Go(core int, name string, f func(t *host.Thread) error) *host.Thread {
	t := new(host.Thread)
	n.CPU.Spawn(t, core, name, nil, f)
	return t
}

// Walk reads tables as a device does and returns the physical address of the
// page of va. It returns false if there is no page, or it may not be written.
func Walk(t smmu.Tables, addressBits int, va uint64, write bool) (frame uint64, ok bool) {
	table, level := t.Root(), 1
	if addressBits > 39 {
		level = 0
	}
	for ; ; level++ {
		e := t.Entry(table, level, va)
		switch {
		case e.Kind == smmu.Table && level < 3:
			table = e.Addr
			continue
		case e.Kind != smmu.Page || write && !e.Write:
			return 0, false
		}
		size := uint64(1) << (12 + 9*(3-level))
		return e.Addr + va%size&^4095, true
	}
}
