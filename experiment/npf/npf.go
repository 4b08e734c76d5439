package npf

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

// Publication is the publication with the experiments of this package, one in
// each file.
var Publication = &experiment.Publication{
	Name: "npf", Title: "Page fault support for network controllers (ASPLOS'17)", Sources: []string{"NPF'17"}, Minutes: 7,
	Experiments: []*experiment.Experiment{
		npfLatency,
		coldRing,
		ringSize,
		instances,
		workingSet,
		npfStorage,
		npfIMB,
		npfBeff,
		npfPinning,
		syntheticEthernet,
		npfLineRate,
		syntheticInfiniBand,
		npfVersus,
	},
	Runs: []experiment.PublicationRun{
		{Experiment: "npf-latency", Quick: experiment.Choice{Values: "size=4KiB"}, Without: "messages of 4 MiB"},
		{Experiment: "npf-latency", Preset: "waterfall", Quick: experiment.Choice{Values: "size=4KiB"}, Without: "how parts of a fault of 4 MiB would have to vary"},
		{Experiment: "npf-latency", Preset: "invalidation"},
		{Experiment: "npf-cold-ring", Quick: experiment.Choice{Values: "at=5s,60s"}},
		{Experiment: "npf-cold-ring", Preset: "waterfall"},
		{Experiment: "npf-cold-ring", Preset: "choices", Quick: experiment.Choice{Skip: true}, Without: "choices that the paper leaves open"},
		{Experiment: "npf-cold-ring", Preset: "gives-up", Quick: experiment.Choice{Values: "timeout=100ms descriptor=skips ring=32,128"}, Without: "most of when TCP gives up"},
		{Experiment: "npf-ring-size", Quick: experiment.Choice{Values: "ring=16 mode=drop,backup"}, Without: "rings of more than 16 buffers"},
		{Experiment: "npf-ring-size", Preset: "waterfall"},
		{Experiment: "npf-synthetic", Quick: experiment.Choice{Values: "fault=minor every=0,50"}, Without: "most of a stream of TCP into a ring"},
		{Experiment: "npf-synthetic", Preset: "udp", Quick: experiment.Choice{Values: "every=1000"}},
		{Experiment: "npf-line-rate", Quick: experiment.Choice{Values: "rate=400 rings=1 hpus=4,28,32"}},
		{Experiment: "npf-instances", Quick: experiment.Choice{Values: "instances=1"}, Without: "2, 3 and 4 servers"},
		{Experiment: "npf-instances", Preset: "waterfall", Quick: experiment.Choice{Values: "instances=1"}, Without: "what an operation takes of 2, 3 and 4 servers"},
		{Experiment: "npf-working-set", Quick: experiment.Choice{Skip: true}, Without: "working sets that change"},
		{Experiment: "npf-working-set", Preset: "swap", Quick: experiment.Choice{Skip: true}, Without: "storage of other speeds under them"},
		{Experiment: "npf-storage", Quick: experiment.Choice{Skip: true}, Without: "the storage target"},
		{Experiment: "npf-storage", Preset: "waterfall", Quick: experiment.Choice{Skip: true}, Without: "the way to its published speedup"},
		{Experiment: "npf-storage", Preset: "initiators", Quick: experiment.Choice{Skip: true}, Without: "its memory by the number of initiators"},
		{Experiment: "npf-imb", Quick: experiment.Choice{Values: "benchmark=sendrecv size=4KiB"}, Without: "bcast, alltoall, and messages of more than 4 KiB"},
		{Experiment: "npf-imb", Preset: "bound", Quick: experiment.Choice{Values: "size=256KiB"}},
		{Experiment: "npf-beff", Quick: experiment.Choice{Skip: true}, Without: "effective bandwidth"},
		{Experiment: "npf-pinning", Quick: experiment.Choice{Values: "size=4KiB,64KiB"}},
		{Experiment: "npf-synthetic-ib", Quick: experiment.Choice{Values: "mode=drop frequency=0%,1%"}, Without: "pauses of the sender"},
		{Experiment: "npf-versus-part"},
	},
}

const npfSource = "NPF'17"

// Values of the axis mode: how an interface treats a frame whose memory is
// absent.
const (
	npfDrop   = "drop"
	npfBackup = "backup"
	npfPinned = "pinned"
)

func npfModes() []string { return []string{npfDrop, npfBackup, npfPinned} }

const npfModesHelp = `  drop    a frame whose descriptor or buffer is absent is dropped, and the page is brought in; the next frame that finds the page present uses the descriptor, unless it is skipped
  backup  the frame goes to a pinned ring of the kernel, which brings the page in and copies the frame (handlers/backupring)
  pinned  descriptors and buffers are present from the beginning, and stay`

// npfRingAxes are the axes of the server's ring.
func npfRingAxes(ring experiment.Axis) []experiment.Axis {
	ring.Name, ring.Kind, ring.Least, ring.Most = "ring", report.Count, "1", fmt.Sprint(backupring.MaxSize)
	ring.Help = "descriptors of the server's receive ring"
	return []experiment.Axis{
		ring,
		{Name: "buffer", Kind: report.Size, Least: "1500", Most: "1MiB", Default: "2KiB", Help: "size of each buffer of the ring, one after the other; a frame has up to 1,500 B. The paper gives no size; 2 KiB is the smallest power of two with room for a frame"},
		{Name: "bitmap", Kind: report.Count, Least: "1", Most: fmt.Sprint(backupring.MaxSize), Default: "4096", Help: "backup: most frames that the kernel holds for the ring (bm_size)"},
		{Name: "backup-slots", Column: "slots", Kind: report.Count, Least: "1", Most: "65536", Default: "512", Help: "backup: frames that the backup ring holds"},
	}
}

// Values of the axis descriptor: how an interface that drops a frame treats its
// descriptor.
const (
	npfStays = "stays"
	npfSkips = "skips"
)

// npfDescriptorAxis is for experiments with mode drop.
func npfDescriptorAxis() experiment.Axis {
	return experiment.Axis{
		Name: "descriptor", Kind: report.Text, Of: []string{npfStays, npfSkips}, Default: npfStays,
		Help: "of drop: the interface stays at the descriptor whose frame it has dropped, or skips it: the server is told of an empty one. The paper's prototype skips none (§5)",
	}
}

// npfRing has the options of the server's ring at a point.
func npfRing(p *experiment.Point) backupring.RingOptions {
	o := backupring.RingOptions{Size: p.Int("ring"), Buffer: p.Int("buffer"), Pinned: p.Text("mode") == npfPinned}
	switch p.Text("mode") {
	case npfBackup:
		o.BitmapSize = p.Int("bitmap")
	case npfDrop:
		o.Skip = p.Text("descriptor") == npfSkips
	}
	return o
}

// hasNPF returns an error if a profile cannot have interfaces with absent
// memory.
func hasNPF(p *experiment.Point) error {
	switch d := p.Profile; {
	case d.HPU.DMAWrite != nic.Landed:
		return fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s: a handler must know that a page was absent", d.Origin.Name, d.HPU.DMAWrite, nic.Landed)
	case !d.OS.On() || !d.SMMU.On():
		return fmt.Errorf("profile %s: no pages that could be absent (os.kind, smmu.kind)", d.Origin.Name)
	}
	return nil
}

// hasStack returns an error if a profile cannot run TCP on such interfaces.
func hasStack(p *experiment.Point) error {
	if err := hasNPF(p); err != nil {
		return err
	}
	if err := stack.CheckMTU(int(p.Profile.Fabric.MTU)); err != nil {
		return fmt.Errorf("profile %s: %w", p.Profile.Origin.Name, err)
	}
	return nil
}

// npfNetwork makes the interfaces of two nodes for TCP/IP stacks of programs.
// Each has an IOprovider with a backup ring of some slots.
func npfNetwork(c *runtime.Cluster, slots int) (n *stack.Network, providers [2]*backupring.Provider, err error) {
	lib, err := backupring.Load(c)
	if err != nil {
		return nil, providers, err
	}
	for i := range providers {
		if providers[i], err = lib.Serve(i, backupring.Options{Slots: slots}); err != nil {
			return nil, providers, err
		}
	}
	return stack.New(lib), providers, nil
}

// npfOpen gives a program TCP with a set of parameters and overrides.
func npfOpen(n *stack.Network, p *runtime.Proc, provider *backupring.Provider, set string, o stack.Options, overrides ...string) (*stack.Stack, error) {
	// memcached and its clients set TCP_NODELAY
	spec, err := inet.Load(set, append(overrides, "nagle=false")...)
	if err != nil {
		return nil, err
	}
	o.Spec = *spec
	return n.Open(p, provider, o)
}

// npfServe serves the connections to a port, without end.
func npfServe(s *stack.Stack, server *memcached.Server, port uint16, backlog int) error {
	server.Begin()
	l, err := s.Listen(port, backlog)
	if err != nil {
		return err
	}
	for {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
		for c := l.Accept(); c != nil; c = l.Accept() {
			c.Of = memcached.NewSession(server.Store)
		}
		for c := s.Next(); c != nil; c = s.Next() {
			x, is := c.Of.(*memcached.Session)
			switch {
			case c.Err() != nil:
				c.Forget()
			case is && server.Advance(x, c):
				c.Of = nil
			}
		}
	}
}
