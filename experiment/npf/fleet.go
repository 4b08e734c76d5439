package npf

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Several key-value servers of NPF'17 on node 0, each with its own memory and
// ring, and a load for each on node 1.

// Values of the axis mode: how absent memory is dealt with.
const (
	fleetNPF    = "npf"
	fleetPinned = "pinned"
)

const fleetModesHelp = `  npf     nothing is pinned: frames for absent memory go to the backup ring (handlers/backupring), and the kernel brings in pages that a program touches
  pinned  all memory of a server is pinned from the beginning, as interfaces without page faults need`

// Our choices for rings and loads, which the paper leaves open.
const (
	fleetRing       = 64
	fleetBuffer     = 2 << 10
	fleetBitmap     = 4096
	fleetSlots      = 512
	fleetClientRing = 1024
	fleetPort       = 11211
	fleetServerTCP  = "lwip"
	// of a server's TCP within the counted time, if frames may be lost
	leastTimeouts = 10
	fleetBegin    = 100 * sim.Microsecond // servers listen by then
)

// fleetAxes are the axes for choices that the paper leaves open.
func fleetAxes(connections string) []experiment.Axis {
	return []experiment.Axis{
		{Name: "connections", Kind: report.Count, Least: "1", Most: "256", Default: connections, Help: "connections of the load of a server, each with one operation in flight; the paper gives no number, memaslap's default is 16"},
		{Name: "operation", Kind: report.Duration, Unit: "us", Least: "0ns", Most: "1ms", Default: "0ns", Help: "time of a server's instructions for an operation, besides packets (host.message), copies and accesses to memory"},
	}
}

// fleet is a running measurement.
type fleet struct {
	*experiment.Point
	operation sim.Time // memcached.Server.Operation
	pinned    bool
	other     int   // bytes of node 0's memory that another process has locked
	vm        int64 // memory of a pinned server
	limit     int64 // of its items
	hash      int   // memcached.Config.HashPower
	ring      int   // descriptors of a load
	loads     [][]*memaslap.Client
	ends      []sim.Time              // of slices with counted operations, from fleetBegin on
	begins    func(server, slice int) // called at the beginning of a slice; nil: not called

	counts   [][]memaslap.Stats // of each server, until the end of each slice
	kernel   host.KernelStats
	resident int64 // bytes of the servers at the end
	absent   int64 // frames
	rings    []*backupring.Ring
	procs    []*runtime.Proc
}

// fleetOperation describes the operation that --breakdown divides.
const fleetOperation = "the mean of operations of connections that have ended in the time in which they are counted, each from the end of the one before"

// outlastsLosses returns an error if frames may be lost and the counted time is
// too short to show the effect. A time-out of TCP is 0.2 to 0.5 s, and between
// two time-outs every connection is at full speed.
func outlastsLosses(p *experiment.Point, counted sim.Time, flag string) error {
	if !p.Profile.Fabric.Faults.Loses() {
		return nil
	}
	s, err := inet.Load(fleetServerTCP)
	if err != nil {
		return err
	}
	if least := leastTimeouts * s.RTOLeast; counted < least {
		return fmt.Errorf("profile %s: fabric.faults loses frames, and TCP waits %v or longer for each: %s is %v, expected at least %v",
			p.Profile.Origin.Name, s.RTOLeast, flag, counted, least)
	}
	return nil
}

// errCannotPin is the error if there is less memory than the servers would pin.
var errCannotPin = errors.New("the memory of the servers cannot be pinned")

// fleetLoad is the name of a server's load.
func fleetLoad(i int) string { return fmt.Sprintf("load %d", i) }

func fleetAddr(node, i int) inet.Addr { return inet.Addr{10, 0, byte(node), byte(i + 1)} }

// run simulates.
func (f *fleet) run(ctx context.Context) (runtime.Stats, error) {
	f.counts = make([][]memaslap.Stats, len(f.loads))
	stats, err := experiment.SimulateTCP(ctx, f.Config(ctx, 2), func(c *runtime.Cluster) error { return f.spawn(ctx, c) }, func() error {
		f.kernel = f.procs[0].Node().Kernel().Stats()
		for i, p := range f.procs {
			f.resident += int64(p.OS().Resident()) * host.PageBytes
			f.absent += int64(f.rings[i].Stats().Absent)
		}
		return nil
	})
	if errors.Is(err, host.ErrNoMemory) && !f.pinned {
		err = fmt.Errorf("what the servers store in the beginning has no room in the memory of node 0 (os.memory) and its swap (storage.swap): %w", err)
	}
	return stats, err
}

func (f *fleet) spawn(ctx context.Context, c *runtime.Cluster) error {
	network, providers, err := npfNetwork(c, fleetSlots)
	if err != nil {
		return err
	}
	if f.other > 0 {
		if err := c.SpawnService(0, "somebody else", func(p *runtime.Proc) error {
			p.Alloc(f.other).Lock()
			p.Thread().Wait("the end")
			return nil
		}); err != nil {
			return err
		}
	}
	for i := range f.loads {
		if err := c.SpawnService(0, fmt.Sprintf("server %d", i), func(p *runtime.Proc) error {
			ring := backupring.RingOptions{Size: fleetRing, Buffer: fleetBuffer, Pinned: f.pinned}
			if !f.pinned {
				ring.BitmapSize = fleetBitmap
			}
			s, err := npfOpen(network, p, providers[0], fleetServerTCP, stack.Options{Addr: fleetAddr(0, i), Ring: ring, Secret: f.Seed})
			if err != nil {
				return err
			}
			f.rings, f.procs = append(f.rings, s.Ring()), append(f.procs, p)
			return f.serve(ctx, p, s, i)
		}); err != nil {
			return err
		}
	}
	for i := range f.loads {
		if err := c.Spawn(1, fleetLoad(i), func(p *runtime.Proc) error {
			s, err := npfOpen(network, p, providers[1], "linux", stack.Options{
				Addr: fleetAddr(1, i), Ring: backupring.RingOptions{Size: f.ring, Buffer: fleetBuffer, Pinned: true}, Secret: f.Seed, Send: 256,
			})
			if err != nil {
				return err
			}
			return f.load(p, s, i)
		}); err != nil {
			return err
		}
	}
	return nil
}

// serve is the program of a server. It stores the initial items, which takes
// seconds without an event that could be interrupted. So it looks at ctx.
func (f *fleet) serve(ctx context.Context, p *runtime.Proc, s *stack.Stack, i int) error {
	server, err := memcached.NewServer(p, memcached.Config{Limit: f.limit, HashPower: f.hash})
	if err != nil {
		return err
	}
	server.Operation = f.operation
	if f.pinned {
		if err := fleetPin(p, f.vm); err != nil {
			return err
		}
	}
	for _, x := range f.loads[i] {
		if x.Each(func(key, value []byte) error {
			// items without room are evicted, as if a client had stored them
			server.Store.Set(key, value)
			return ctx.Err()
		}) != nil {
			break // the run ends at its next event
		}
	}
	return npfServe(s, server, fleetPort, len(f.loads[i]))
}

// fleetPin pins all memory of a process, and more up to the size of its virtual
// machine.
func fleetPin(p *runtime.Proc, vm int64) error {
	own := p.Alloc(host.PageBytes)
	top, have := own.Addr(), int64(0)
	for at := uint64(0); at < top; at += host.PageBytes {
		if start, end, ok := p.OS().Mapping(at); ok {
			have += int64(end - start)
			if err := fleetLock(p, start, end-start); err != nil {
				return err
			}
			at = end - host.PageBytes
		}
	}
	if have >= vm {
		return nil
	}
	rest := p.Alloc(int(vm - have))
	return fleetLock(p, rest.Addr(), uint64(rest.Len()))
}

func fleetLock(p *runtime.Proc, addr, n uint64) error {
	err := p.OS().Lock(nil, addr, n)
	if errors.Is(err, host.ErrNoMemory) {
		return fmt.Errorf("%w: %w", errCannotPin, err)
	}
	return err
}

// load is the load of a server.
func (f *fleet) load(p *runtime.Proc, s *stack.Stack, i int) error {
	p.Sleep(fleetBegin)
	// since is when the operation of each connection began
	buffer, since := make([]byte, 32<<10), make([]sim.Time, len(f.loads[i]))
	for n := range f.loads[i] {
		c, err := s.Dial(fleetAddr(0, i), fleetPort)
		if err != nil {
			return err
		}
		c.Of, since[n] = n, p.Now()
	}
	for slice, end := range f.ends {
		if f.begins != nil {
			f.begins(i, slice)
		}
		for end += fleetBegin; p.Now() < end; {
			if err := s.Wait(end); err != nil {
				return err
			}
			for c := s.Next(); c != nil; c = s.Next() {
				n := c.Of.(int)
				before := f.loads[i][n].Stats.Ops()
				if err := advance(c, f.loads[i][n], buffer); err != nil {
					return fmt.Errorf("load of server %d, connection %d: %w", i, n, err)
				}
				if f.loads[i][n].Stats.Ops() > before {
					f.Operation(p, since[n])
					since[n] = p.Now()
				}
			}
		}
		var all memaslap.Stats
		for _, x := range f.loads[i] {
			all.Add(&x.Stats)
		}
		f.counts[i] = append(f.counts[i], all)
	}
	return nil
}

// advance handles a connection of the load where something has happened.
func advance(c *stack.Conn, x *memaslap.Client, buffer []byte) error {
	if err := c.Err(); err != nil {
		return err
	}
	for n := c.Read(buffer); n > 0; n = c.Read(buffer) {
		x.Feed(buffer[:n])
	}
	for out := x.Output(); c.Established() && len(out) > 0; out = x.Output() {
		n := c.Write(out)
		if n == 0 {
			break
		}
		x.Sent(n)
	}
	if x.Stats.Wrong > 0 {
		return fmt.Errorf("%d values are not those that were stored", x.Stats.Wrong)
	}
	return x.Err()
}
