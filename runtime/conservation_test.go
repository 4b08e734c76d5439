package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// size is a message of three packets of 256 B, the last of which is one byte:
// the first that gets lost where somebody counts wrongly.
const size = 513

// fates are the bytes of a run by what became of them, without those that were
// deposited or offered to a handler, and how many these are.
func fates(c *runtime.Cluster) (good int64, other map[string]int64, posted int64) {
	other = map[string]int64{}
	books := c.Books(true)
	books.Fates(func(name string, bytes int64) {
		switch {
		case name == "deposited" || name == "offered to a handler":
			good += bytes
		case bytes != 0:
			other[name] = bytes
		}
	})
	return good, other, books.Posted()
}

// broken is the network of a run, with faults.
func broken(spec fabric.FaultSpec) func(*runtime.Config) {
	return func(cfg *runtime.Config) {
		cfg.Fabric = func(eng *sim.Engine, s fabric.Spec, nodes int) (fabric.Fabric, error) {
			inner, err := fabric.New(eng, s, nodes)
			if err != nil {
				return nil, err
			}
			return fabric.NewFaulty(eng, inner, spec)
		}
	}
}

// putTo puts a message to a process, with match bits.
func putTo(pid uint32, bits uint64) func(*runtime.Proc, portals.Handle, *rig) error {
	return func(p *runtime.Proc, md portals.Handle, _ *rig) error {
		return p.NI().Put(portals.Put{MD: md, Length: size, Ack: portals.Ack, Target: portals.PhysID(1, pid), MatchBits: bits, UserPtr: 9})
	}
}

// success is a handler that takes what it sees.
var success = []rec{end(hpu.Success)}

// refuses is a bus that ends all accesses for data in one direction so: to the
// memory of rank 1, or from that of rank 0.
func refuses(s host.Status, d host.Direction) func(*runtime.Config) {
	return onRank(map[host.Direction]int{host.FromMemory: 0, host.ToMemory: 1}[d], forGood(s, func(a *host.Access, off int) bool {
		return a.Direction() == d && a.Length > 64
	}))
}

// runsOfFates are runs of a message of size bytes, and what becomes of those
// that are neither deposited nor offered to a handler.
var runsOfFates = []struct {
	name  string
	s     setup
	other map[string]int64
}{
	{"deposited", setup{}, nil},
	{"by DMA of handlers", setup{
		header: []rec{do(hpu.OpDMAFromHost, 0, 0, scratch2, 257), end(hpu.ProcessData)}, payload: []rec{do(hpu.OpDMAToHost, 1, 0, scratch, 257), end(hpu.Success)},
	}, nil},
	{"combined", setup{initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
		return p.NI().Atomic(portals.Atomic{MD: md, Length: size, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, UserPtr: 9, Op: portals.OpSUM, Type: portals.Uint8})
	}}, nil},
	{"offered", setup{header: []rec{end(hpu.ProcessData)}, payload: success, completion: success, userHdr: 16}, nil},
	{"offered, then deposited", setup{header: []rec{end(hpu.Proceed)}, userHdr: 16}, nil},
	{"dropped", setup{header: []rec{end(hpu.Drop)}, userHdr: 16}, map[string]int64{"dropped by a header handler": size - 16}},
	{"failed", setup{header: []rec{end(hpu.Fail)}}, map[string]int64{"dropped: the handler failed": size}},
	{"payload dropped", setup{payload: []rec{end(hpu.Drop)}}, nil},
	{"truncated", setup{entry: func(me *portals.ME, _ *rig) { me.Length = 100 }}, map[string]int64{"truncated": size - 100}},
	{"truncated before handlers", setup{payload: success, entry: func(me *portals.ME, _ *rig) { me.Length = 300 }}, map[string]int64{"truncated": size - 300}},
	{"no entry", setup{entry: func(me *portals.ME, _ *rig) { me.IgnoreBits = 0 }}, map[string]int64{"refused: no entry": size}},
	{"no process", setup{initiator: putTo(3, 5)}, map[string]int64{"refused: no such process": size}},
	{
		"an answer for a handler",
		setup{header: []rec{do(hpu.OpGetFromDevice, opAt(0)), end(hpu.Proceed)}, ops: []hpu.Operation{{Local: scratch, Length: 48, TargetNID: 2}}},
		map[string]int64{"answers for a handler": 48},
	},
	{
		"unaligned",
		setup{header: []rec{end(hpu.ProcessData)}, userHdr: 8, initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			return p.NI().Atomic(portals.Atomic{MD: md, Length: 512, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, UserPtr: 9, Op: portals.OpSUM, Type: portals.DoubleComplex})
		}},
		map[string]int64{"dropped: an atomic behind an odd user header": 504},
	},
	{
		"no room for packets",
		setup{payload: []rec{also(opSpin, 1000), end(hpu.Success)}, overrides: []string{"nic.packet_buffer=256", "hpu.cores=1", "hpu.contexts=1"}},
		map[string]int64{"dropped: packet buffer full": 1},
	},
	{
		"no room for handlers",
		setup{
			payload:   []rec{also(opSpin, 1000), end(hpu.Success)},
			overrides: []string{"hpu.waiting_handlers=1", "hpu.cores=1", "hpu.contexts=1"},
		},
		map[string]int64{"dropped: too many handlers wait": 1},
	},
	{
		"no memory of messages",
		setup{header: []rec{also(opSpin, 1000), end(hpu.ProcessData)}, payload: success, messages: 2, entry: func(me *portals.ME, _ *rig) {
			me.Spin.PerMessage = portals.MessageMemory{Offset: 1 << 15, Bytes: 16, Messages: 1}
		}},
		map[string]int64{"dropped: memory of messages full": size},
	},
	{
		"a swap without an answer",
		setup{header: []rec{do(hpu.OpAtomicFromHost, opAt(0)), end(hpu.Proceed)}, ops: []hpu.Operation{
			{Length: 8, TargetNID: 2, FetchOffset: 1<<64 - 1, AtomicOp: uint32(portals.OpSWAP), Datatype: uint32(portals.Uint64)},
		}},
		map[string]int64{"answers that nobody wants": 8},
	},
	{
		"a descriptor of nothing",
		setup{initiator: func(p *runtime.Proc, _ portals.Handle, _ *rig) error {
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: 1 << 40, Length: 4096})
			if err != nil {
				return err
			}
			return putTo(0, 5)(p, md, nil)
		}},
		map[string]int64{"unreadable at the source": size},
	},
	{"datagrams", datagrams(2, &setup{cfg: broken(fabric.FaultSpec{Corrupt: 1, Only: func(p fabric.Packet) bool { return p.Dst == 2 && p.Bytes == 232 }})}), map[string]int64{"damaged on the way": 232}},
	{
		"nobody acknowledges",
		setup{overrides: []string{"transport.kind=reliable", "transport.retries=0", "transport.window=1"}, cfg: broken(fabric.FaultSpec{Loss: 1})},
		map[string]int64{"given up by the transport": size - 256},
	},
	{"ignored", setup{cfg: refuses(host.Ignored, host.ToMemory)}, map[string]int64{"ignored by the SMMU": 512}},
	{"unreadable", setup{cfg: refuses(host.Denied, host.FromMemory)}, map[string]int64{"unreadable at the source": size}},
	{"unwritable", setup{cfg: refuses(host.Denied, host.ToMemory)}, map[string]int64{"unwritable": 512}},
}

// Every byte has one fate, whatever happens to its message, and every name of a
// fate occurs: the sum over all names is what was posted, and the run itself
// ends without an error (Cluster.Run holds the books against each other).
func TestEveryByteHasAFate(t *testing.T) {
	seen := map[string]bool{"deposited": true, "offered to a handler": true}
	for _, c := range runsOfFates {
		t.Run(c.name, func(t *testing.T) {
			c.s.overrides = append(c.s.overrides, "fabric.mtu=256")
			c.s.message = solid(size)
			r := conduct(t, c.s)
			good, other, posted := fates(r.c)
			if c.other == nil {
				c.other = map[string]int64{}
			}
			require.Equal(t, c.other, other)
			for name, n := range other {
				seen[name] = true
				good += n
			}
			if c.name == "nobody acknowledges" {
				good += 256 // which the network has lost
			}
			require.Equal(t, posted, good)
		})
	}
	nic.NewBooks(true).Fates(func(name string, _ int64) { require.True(t, seen[name], "no run has bytes that are %q", name) })
}

// What the network loses is lost under its name: the run goes on, and the books balance.
func TestTheNetworkAccountsForItsLosses(t *testing.T) {
	for _, c := range []struct {
		spec      fabric.FaultSpec
		overrides []string
	}{
		{fabric.FaultSpec{Loss: 0.3}, nil},
		{fabric.FaultSpec{Corrupt: 0.3}, nil},
		{fabric.FaultSpec{Delay: 0.5, MaxDelay: sim.Microsecond}, nil},
		{fabric.FaultSpec{Duplicate: 0.5, MaxDelay: sim.Microsecond}, nil},
		{fabric.FaultSpec{Loss: 0.1, Corrupt: 0.1, Duplicate: 0.2, Delay: 0.2, MaxDelay: 30 * sim.Microsecond}, []string{"transport.kind=reliable"}},
		{fabric.FaultSpec{Loss: 0.1}, []string{"transport.kind=reliable", "transport.window=2"}},
		{fabric.FaultSpec{Loss: 1}, []string{"transport.kind=reliable", "transport.retries=2"}},
	} {
		r := conduct(t, setup{
			overrides: append(c.overrides, "fabric.mtu=256"), message: solid(size), messages: 20, stuck: true, cfg: broken(c.spec),
		})
		require.NoError(t, r.err)
		good, other, posted := fates(r.c)
		for _, n := range other {
			good += n
		}
		if len(c.overrides) == 0 || c.spec.Loss == 1 {
			require.LessOrEqual(t, good, posted)
		} else {
			require.Equal(t, posted, good)
		}
	}
}

// Links with buffers that end, which make packets wait for credit, lose nothing either.
func TestTheNetworkLosesNothingForWantOfRoom(t *testing.T) {
	r := conduct(t, setup{profile: "exanest", message: solid(size), messages: 20})
	good, other, posted := fates(r.c)
	require.Empty(t, other)
	require.Equal(t, posted, good)
}

// A run that a limit ends has bytes on their way, and no book says that they have vanished.
func TestEarlyEndsAreNoLosses(t *testing.T) {
	for _, message := range []int{8, 60000} { // of one packet mostly a single event is to come
		for events := uint64(1); ; events++ {
			r := conduct(t, setup{message: solid(message), stuck: true, cfg: func(cfg *runtime.Config) {
				cfg.Limits = sim.Limits{Events: events}
			}})
			var limit *sim.LimitError
			if !errors.As(r.err, &limit) {
				require.Greater(t, events, uint64(10))
				break
			}
			require.NotContains(t, r.err.Error(), "vanished")
		}
	}
}

// A fabric of somebody else's that loses a packet and does not say so fails the run.
func TestAFabricThatLosesInSilence(t *testing.T) {
	device, err := profile.Load("spin-dis")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Engine: labEngine, Fabric: func(eng *sim.Engine, s fabric.Spec, nodes int) (fabric.Fabric, error) {
		f, err := fabric.New(eng, s, nodes)
		return silent{f}, err
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Spawn(1, "target", func(*runtime.Proc) error { return nil }))
	require.NoError(t, c.Spawn(0, "initiator", func(p *runtime.Proc) error {
		data := p.Alloc(100)
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 100})
		if err != nil {
			return err
		}
		return p.NI().Put(portals.Put{MD: md, Length: 100, Target: portals.PhysID(1, 0), MatchBits: 5, UserPtr: 9})
	}))
	require.ErrorContains(t, c.Run(context.Background()), "the network has brought 1 packets and 100 B less than it was given, and knows of 0 packets and 0 B")
}

// silent loses all packets, and has lost none.
type silent struct{ fabric.Fabric }

func (s silent) Attach(node int, id sim.ID) fabric.Port { return silentPort{s.Fabric.Attach(node, id)} }

type silentPort struct{ fabric.Port }

func (silentPort) Send(fabric.Packet) {}
