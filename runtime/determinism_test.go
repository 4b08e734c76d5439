package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// crowd is ranks that all send to each other, through handlers that use the
// bus, atomics, counters, timers and the wire, on devices too small for it, so
// that flow control triggers.
const crowd = 6

// quiet is a timeline that nobody looks at.
type quiet struct{ spans int }

func (q *quiet) Track(string, int, string) sim.TrackID                            { return 0 }
func (q *quiet) Span(sim.TrackID, string, sim.Time, sim.Time, uint64, ...sim.Arg) { q.spans++ }
func (q *quiet) Instant(sim.TrackID, string, sim.Time, uint64, ...sim.Arg)        {}
func (q *quiet) Counter(sim.TrackID, string, sim.Time, float64)                   {}

// history sums up every step of every interface with its time, node by node.
type history struct {
	c    *runtime.Cluster
	sums [crowd]hash.Hash64
	all  hash.Hash64 // of all nodes, in the order of handling
	n    int
	err  error
}

func (h *history) Trace(ni *portals.NI, r *portals.TraceRecord) {
	h.n++
	id, err := ni.PhysID()
	h.err = errors.Join(h.err, err)
	sum := io.MultiWriter(h.sums[id.NID], h.all)
	_, err = fmt.Fprintln(sum, h.c.Engine().Now(), id, r.What, r.PT, r.Handle, r.Verdict, r.Counter, r.Text)
	if r.Event != nil && err == nil {
		_, err = fmt.Fprintln(sum, *r.Event)
	}
	h.err = errors.Join(h.err, err)
}

// mill runs the crowd and returns everything that can be seen of it. Events of
// one time at different nodes come in the order that interleave says.
func mill(t *testing.T, tracer sim.Tracer, watch func(*nic.HandlerStep), interleave uint32, overrides ...string) (seen string, order uint64) {
	return millOn(t, runtime.Config{Tracer: tracer, Watch: watch}, interleave, overrides...)
}

func millOn(t *testing.T, cfg runtime.Config, interleave uint32, overrides ...string) (seen string, order uint64) {
	overrides = append([]string{"fabric.mtu=256", "hpu.cores=2", "nic.packet_buffer=2048", "nic.egress_packets=2"}, overrides...)
	p, err := profile.Load("spin-int", overrides...)
	require.NoError(t, err)
	h := &history{all: fnv.New64a()}
	for i := range h.sums {
		h.sums[i] = fnv.New64a()
	}
	cfg.Profile, cfg.Nodes, cfg.Seed, cfg.Engine = p, crowd, 3, labEngine
	if cfg.Cores == 0 {
		cfg.Explain = h
	}
	h.c, err = runtime.NewCluster(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.c.Close()) }()
	h.c.Engine().Interleave(interleave)
	for rank := range crowd {
		require.NoError(t, h.c.Spawn(rank, "member", member))
	}
	end := h.c.Run(context.Background())
	if cfg.Cores == 0 {
		require.NoError(t, end)
	}
	require.NoError(t, h.err)
	errs, n := h.c.HandlerErrors()
	var sums []uint64
	for _, sum := range h.sums {
		sums = append(sums, sum.Sum64())
	}
	lost, m := h.c.LostMessages()
	return fmt.Sprintf("%v, %d steps, sums %x, ends at %v, %+v, %d errors %v, %d lost %v", end, h.n, sums, h.c.Engine().Now(), h.c.Stats(), n, errs, m, lost), h.all.Sum64()
}

func member(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(1024)
	if err != nil {
		return err
	}
	for pt := range uint32(2) {
		if _, err := ni.Objects().PTAlloc(portals.OptPTFlowCtrl, eq, pt); err != nil {
			return err
		}
	}
	memory := p.Alloc(hostBytes)
	addr := memory.Addr()
	copy(memory.Raw(), pattern(hostBytes, byte(p.Rank())))
	me := portals.ME{Start: addr, Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEOpGet}
	if _, err := ni.MEAppend(1, &me, portals.PriorityList, 1); err != nil {
		return err
	}
	next := uint32(p.Rank()+1) % crowd
	spin, hpuMemory, err := scripts(p, nil, []rec{
		do(hpu.OpDMAToHostNB, 0, 64, scratch, 128), do(hpu.OpFAdd, scratch2, 1), do(hpu.OpDMAFAdd, 0, 8, 1, scratch2+8),
		do(hpu.OpPutFromDevice, opAt(0)), do(hpu.OpYield), do(hpu.OpDMAFromHost, 0, 0, scratch2+64, 64), do(hpu.OpPutFromDevice, opAt(0)),
		do(hpu.OpPutFromDevice, opAt(0)), do(hpu.OpTimer, 300, opAt(1)), do(hpu.OpGetFromDevice, opAt(2)), end(hpu.Success),
	}, []rec{do(hpu.OpCAS, scratch2+16, 0, 1), end(hpu.Success)})
	if err != nil {
		return err
	}
	me.Spin = spin
	for i, d := range []hpu.Operation{
		{Local: scratch, Length: 200, TargetNID: next, PTIndex: 1},
		{Local: scratch, Length: 8, PTIndex: 1},
		{Local: scratch2 + 128, Length: 500, TargetNID: next, PTIndex: 1},
	} {
		writeOperation(hpuMemory.Bytes()[opAt(i)-hpuBase:], &d)
	}
	if _, err := ni.MEAppend(0, &me, portals.PriorityList, 0); err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: addr, Length: hostBytes, EQ: eq})
	if err != nil {
		return err
	}
	for i := range uint32(12) {
		to := portals.PhysID((uint32(p.Rank())+i)%crowd, 0)
		if err := ni.Put(portals.Put{MD: md, Length: uint64(100 + 300*i), Ack: portals.Ack, Target: to, RemoteOffset: 1024, UserPtr: uint64(i)}); err != nil {
			return err
		}
		if i%4 == 3 {
			if err := ni.Objects().PTEnable(0); err != nil {
				return err
			}
			p.Compute(3 * sim.Microsecond)
		}
	}
	return nil
}

// The sequence of all steps, the counts and the end are the same in every run,
// with one processor and two, with and without a timeline and somebody who
// watches the handlers.
func TestSameSeedSameSteps(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(0))
	want, order := mill(t, nil, nil, 0)
	same := func(seen string, in uint64) {
		require.Equal(t, want, seen)
		require.Equal(t, order, in)
	}
	require.Contains(t, want, "0 errors")
	require.NotContains(t, want, "FlowControl:0")
	watched := 0
	for i := range 10 {
		goruntime.GOMAXPROCS(1 + i%2)
		q := &quiet{}
		same(mill(t, q, nil, 0))
		require.Positive(t, q.spans)
		same(mill(t, nil, func(*nic.HandlerStep) { watched++ }, 0))
	}
	require.Positive(t, watched)
}

// A node owns its state: in whatever order the events of one time at different
// nodes, links and switches are handled, every node sees the same steps at the
// same times. Networks with bounded buffers, with faults and with a reliable
// transport included, several pools of processors, and memory that fails, so
// that handlers and messages do.
func TestNodesShareNothing(t *testing.T) {
	for name, overrides := range map[string][]string{
		"lossless": nil,
		"credits":  {"fabric.buffer=[1KiB, 1KiB]"},
		"faults":   {"fabric.faults={duplicate: 0.1, delay: 0.1, max_delay: 3us}"},
		"reliable": {"transport={kind: reliable, timeout: 20us, window: 8, retries: 100, ack_bytes: 0}", "fabric.faults={loss: 0.05, corrupt: 0.05, duplicate: 0.1, max_delay: 3us}"},
		"pools":    {"pools={r5: {kind: firmware, cores: 2, contexts: 2, invocation: 300ns, other_share: 0.3, other_time: 200ns}, cells: {kind: hardware, latency: 60ns, depth: 3}}", "serve.actions={header: cells, completion: r5}"},
		"memory":   {"nic.fault_tries=1", "nic.fault_pause=300ns"},
		"late":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			memory := map[string]hosttest.Chances{"memory": {Fault: 0.3, Most: 3, Deny: 0.02}, "late": {Fault: 0.1, Most: 2, Late: 0.3, Delay: sim.Microsecond}}
			mill := func(mask uint32) (string, uint64) {
				var cfg runtime.Config
				if chances, fails := memory[name]; fails {
					cfg.Translator = (&hosttest.Nodes{Chances: chances}).Make
				}
				return millOn(t, cfg, mask, overrides...)
			}
			want, order := mill(0)
			require.Equal(t, name != "memory", strings.Contains(want, " 0 errors"))
			// with translators every other number is one
			for _, mask := range []uint32{2, 3, 5, 0xffff_ffff} {
				seen, in := mill(mask)
				require.Equal(t, want, seen, "mask %#x", mask)
				require.NotEqual(t, order, in, "mask %#x changes no order", mask)
			}
		})
	}
}

// Nor does it matter how many cores the nodes are divided among. Three switches
// have two nodes each.
func TestCoresChangeNothing(t *testing.T) {
	for name, overrides := range map[string][]string{
		"lossless":     nil,
		"credits":      {"fabric.buffer=[1KiB, 1KiB]"},
		"faults":       {"fabric.faults={loss: 0.02, corrupt: 0.02, duplicate: 0.1, delay: 0.1, max_delay: 3us}"},
		"reliable":     {"transport={kind: reliable, timeout: 20us, window: 8, retries: 100, ack_bytes: 0}", "fabric.faults={loss: 0.05, corrupt: 0.05, duplicate: 0.1, max_delay: 3us}"},
		"a link down":  {"fabric.faults={down: [{link: \"Switch[0][1].Up[0]\", from: 4us, to: 6us}]}"},
		"stored whole": {"fabric.store_and_forward=true"},
		"pools":        {"pools={r5: {kind: firmware, cores: 2, contexts: 2, invocation: 300ns, other_share: 0.3, other_time: 200ns}}", "serve.actions={completion: r5}"},
	} {
		t.Run(name, func(t *testing.T) {
			var want string
			for _, cores := range []int{1, 2, 3, 8} {
				seen, _ := millOn(t, runtime.Config{Cores: cores}, 0, append([]string{"fabric.radix=4"}, overrides...)...)
				if cores == 1 {
					want = seen
				}
				require.Equal(t, want, seen, "%d cores", cores)
			}
		})
	}
}
