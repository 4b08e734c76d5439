package part

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// run is one write of a node to another, of pages that may be absent.
type run struct {
	Options
	bytes  int
	source bool // its pages are absent, too
	dest   bool
	state  map[string]any
	set    []string
	fails  error
	tracer sim.Tracer
	// done before, to the destination or the source
	wreck, wreckSource func(p *runtime.Proc, addr uint64) error
}

type outcome struct {
	parts   *Part
	c       *runtime.Cluster
	pages   [2]*rdma.Page
	arrived sim.Time // from the post until the target has seen the notification
}

func (r run) do(t *testing.T) *outcome {
	t.Helper()
	prof, err := profile.Load("exanest-qfdb", r.set...)
	require.NoError(t, err)
	o := &outcome{}
	o.c, err = runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2, Tracer: r.tracer})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.c.Close()) })
	o.parts, err = Load(o.c, r.Options)
	require.NoError(t, err)
	var dst runtime.View
	r.spawn(t, o, &dst)
	require.NoError(t, o.c.Run(context.Background()))
	failures, n := o.c.Failures()
	require.Zero(t, n, "%v", failures)
	if r.fails == nil {
		for i, b := range dst.Snapshot() {
			want := byte(i*7 + i>>8)
			if r.source {
				want = 0
			}
			if b != want {
				require.Equal(t, want, b, "byte %d", i)
			}
		}
	}
	return o
}

// spawn makes the two processes.
func (r run) spawn(t *testing.T, o *outcome, dst *runtime.View) {
	open := func(p *runtime.Proc) (err error) {
		o.pages[p.Rank()], err = o.parts.Open(p, rdma.Options{PDID: 9, State: r.state})
		return err
	}
	var flag runtime.View
	const begin = 100 * sim.Microsecond
	require.NoError(t, o.c.Spawn(0, "writer", func(p *runtime.Proc) error {
		src := p.Alloc(r.bytes)
		if !r.source {
			for i, b := 0, src.Raw(); i < len(b); i++ {
				b[i] = byte(i*7 + i>>8)
			}
		}
		if err := open(p); err != nil {
			return err
		}
		if r.wreckSource != nil {
			if err := r.wreckSource(p, src.Addr()); err != nil {
				return err
			}
		}
		p.SleepUntil(max(begin, p.Now()))
		w, err := o.pages[0].Write(rdma.Transfer{NID: 1, Source: src.Addr(), Destination: dst.Addr(), Length: uint64(r.bytes), Notify: flag.Addr(), Value: 1})
		if err != nil {
			return err
		}
		if r.fails == nil {
			return w.Wait()
		}
		require.ErrorIs(t, w.Wait(), r.fails)
		return nil
	}))
	require.NoError(t, o.c.Spawn(1, "target", func(p *runtime.Proc) error {
		*dst, flag = p.Alloc(r.bytes), p.Alloc(8)
		flag.Raw()
		if !r.dest {
			dst.Raw()
		}
		if err := open(p); err != nil {
			return err
		}
		if r.wreck != nil {
			if err := r.wreck(p, dst.Addr()); err != nil {
				return err
			}
		}
		if r.fails != nil {
			return nil
		}
		defer func() { o.arrived = p.Now() - begin }()
		return o.pages[1].AwaitNotification(flag, 1)
	}))
}

func (o *outcome) stats(node int) Stats { return o.parts.Driver(node).Stats() }

// A page that is absent at the destination: the methods differ by what they do,
// to the picosecond, and P's sum is not far (experiment pagefault has the
// terms).
func TestOnePageOfTheDestination(t *testing.T) {
	at := map[Method]sim.Time{}
	for _, by := range []Method{GetUserPages, Touch, InKernel} {
		o := run{Options: Options{Method: by}, bytes: 4096, dest: true}.do(t)
		at[by] = o.arrived
		s := o.stats(1)
		require.Equal(t, []int64{1, 1, 1, 1}, []int64{s.Entries, s.Ranges, s.Pages, s.Requests}, by)
		require.Zero(t, o.pages[0].Counts().Sent.Timeouts)
		require.EqualValues(t, 1, o.pages[0].Counts().Sent.Retransmitted)
	}
	os := &must(profile.Load("exanest-qfdb")).OS
	require.Equal(t, os.NetlinkSend+os.NetlinkWake+os.NetlinkReceive, at[GetUserPages]-at[InKernel], "no message")
	require.Equal(t, os.GupCall+os.GupAbsent-os.FaultZero-os.FaultCopy, at[GetUserPages]-at[Touch], "faults of the thread in the place of get_user_pages")
	require.InDelta(t, 38, at[GetUserPages].Seconds()*1e6, 5, "P: measured end to end, and 40 in §6.1.1; here the SMMU knows no page")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What each policy brings in for 16 pages in four blocks.
func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		name           string
		policy         Policy
		ranges, blocks int64 // at the destination
		timeouts       uint64
	}{
		{"pio", PIO, 16, 4, 0},
		{"pi4", PI4, 4, 4, 0},
		{"pia", PIA, 1, 2, 0}, // P: no block faults but the first two
	} {
		t.Run(c.name, func(t *testing.T) {
			o := run{Options: Options{Policy: c.policy}, bytes: 1 << 16, dest: true, set: plain}.do(t)
			s := o.stats(1)
			require.Equal(t, []int64{c.ranges, 16, c.blocks}, []int64{s.Ranges, s.Pages, s.Requests})
			sent := o.pages[0].Counts().Sent
			require.Equal(t, []uint64{0, uint64(c.blocks)}, []uint64{sent.Timeouts, sent.Retransmitted})
			require.Zero(t, o.stats(0))
		})
	}
}

// At the source nobody asks for a block: each time-out brings one attempt, and
// each attempt ends at the first page that is absent (T §3.2.2).
func TestSourceWaitsForTheTimeout(t *testing.T) {
	for _, c := range []struct {
		name     string
		policy   Policy
		timeouts uint64 // of a block of four pages
	}{{"pio", PIO, 4}, {"pi4", PI4, 1}, {"pia", PIA, 1}} {
		o := run{Options: Options{Policy: c.policy}, bytes: 1 << 14, source: true}.do(t)
		require.Equal(t, c.timeouts, o.pages[0].Counts().Sent.Timeouts, c.name)
		require.EqualValues(t, c.timeouts, o.stats(0).Sends, c.name)
		require.Zero(t, o.stats(0).Requests, c.name)
		require.Greater(t, o.arrived, sim.Time(c.timeouts)*sim.Millisecond, c.name)
	}
}

// What no operating system can bring in ends the transfer with an error at its
// initiator, and at no time-out at the destination.
func TestUnresolvable(t *testing.T) {
	unmap := func(p *runtime.Proc, addr uint64) error { return p.OS().Unmap(p.Thread(), addr+4096, 4096) }
	protect := func(p *runtime.Proc, addr uint64) error {
		return p.OS().Protect(p.Thread(), addr+4096, 4096, host.ProtRead)
	}
	for _, by := range []Method{GetUserPages, Touch, InKernel} {
		for name, wreck := range map[string]func(*runtime.Proc, uint64) error{"no mapping": unmap, "no permission": protect} { //lint:maporder each by itself
			for _, dest := range []bool{false, true} {
				t.Run(by.String()+" "+name, func(t *testing.T) {
					o := run{Options: Options{Method: by}, bytes: 1 << 16, dest: dest, wreck: wreck, fails: rdma.ErrDenied}.do(t)
					if name == "no permission" { // what has no mapping the engine denies by itself
						require.EqualValues(t, 1, o.stats(1).Refused)
					}
					require.Zero(t, o.pages[0].Counts().Sent.Timeouts)
				})
			}
		}
		t.Run(by.String()+" source", func(t *testing.T) {
			o := run{Options: Options{Method: by}, bytes: 1 << 16, wreckSource: unmap, fails: rdma.ErrDenied}.do(t)
			require.EqualValues(t, 1, o.stats(0).Refused)
			require.Zero(t, o.pages[0].Counts().Sent.Timeouts)
		})
	}
}

// What a policy wants behind a page that is read is read, too: pages of zeros
// come for it, and no frames, and memory that may only be read is no obstacle.
func TestBehindAReadNothingIsWritten(t *testing.T) {
	const pages = 32
	early := func(f Fault) Plan {
		return Plan{First: Range{Start: f.Page, End: f.Page + host.PageBytes}, Then: Range{Start: f.Page, End: f.Mapping.End}}
	}
	for _, by := range []Method{GetUserPages, Touch, InKernel} {
		var before host.KernelStats
		wreck := func(p *runtime.Proc, addr uint64) error {
			err := p.OS().Protect(p.Thread(), addr, pages*host.PageBytes, host.ProtRead)
			before = p.Node().Kernel().Stats()
			return err
		}
		o := run{Options: Options{Policy: early, Method: by}, bytes: pages * host.PageBytes, source: true, wreckSource: wreck}.do(t)
		after := o.c.Node(0).Kernel().Stats()
		require.EqualValues(t, pages, after.Zero-before.Zero, by)
		require.LessOrEqual(t, o.stats(0).Sends, int64(2), "%v: two blocks begin at once; for the other pages nobody asks", by)
		require.Zero(t, o.stats(0).Refused, by)
	}
}

// What netlink has no room for is lost; the time-out makes up for it.
func TestNetlinkDrops(t *testing.T) {
	o := run{bytes: 4096, dest: true, set: []string{"os.netlink_queue=0"}}.do(t)
	s := o.stats(1)
	require.Equal(t, []int64{1, 1, 0}, []int64{s.Messages, s.Dropped, s.Requests})
	require.EqualValues(t, 1, o.pages[0].Counts().Sent.Timeouts)
	o = run{bytes: 4096, dest: true, set: []string{"os.netlink_queue=0"}, state: map[string]any{"nto": 1, "guard": 3000000}}.do(t)
	require.InDelta(t, 3e-3, o.arrived.Seconds(), 1e-4, "with NTO the guard does")
}

// A FIFO with room for one entry: the pages for whose faults there was none
// come by the registers of the SMMU, and their blocks again by time-outs.
func TestFullFIFOOfTheDriver(t *testing.T) {
	o := run{bytes: 1 << 16, dest: true, state: map[string]any{"depth": 1}}.do(t)
	full := must(o.pages[1].Number("faults.full")).(uint64)
	require.NotZero(t, full)
	require.NotZero(t, o.pages[0].Counts().Sent.Timeouts)
}

// A time-out that is shorter than the wire sends blocks again and again; what
// arrives is right all the same, and it ends.
func TestTimeoutShorterThanTheWire(t *testing.T) {
	o := run{bytes: 1 << 16, dest: true, source: true, state: map[string]any{"rdma.timeout": 500}}.do(t)
	require.NotZero(t, o.pages[0].Counts().Sent.Timeouts)
}

// FSR that is cleared when the page has come, or accesses that stall until
// then, change times but not what arrives.
func TestWaysOfTheSMMU(t *testing.T) {
	for _, set := range [][]string{{"os.clear_fault=tasklet"}, {"smmu.on_fault=stall"}, {"smmu.hit_under_fault=false"}, {"os.clear_fault=tasklet", "smmu.hit_under_fault=false"}} {
		for _, by := range []Method{GetUserPages, Touch, InKernel} {
			t.Log(set, by)
			o := run{Options: Options{Method: by}, bytes: 40000, source: true, dest: true, set: set}.do(t)
			t.Log(o.arrived, o.stats(0), o.stats(1), o.pages[0].Counts().Sent)
			require.NotZero(t, o.stats(0).Pages, set)
		}
	}
}

// Memory that libraries without PART reach for comes, too, on a node with its driver.
func TestOtherLibraries(t *testing.T) {
	prof := must(profile.Load("exanest-qfdb"))
	c := must(runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2}))
	defer func() { require.NoError(t, c.Close()) }()
	parts := must(Load(c, Options{}))
	plain := must(rdma.Load(c))
	var dst, flag runtime.View
	require.NoError(t, c.Spawn(0, "writer", func(p *runtime.Proc) error {
		src := p.Alloc(40000)
		g, err := plain.Open(p, rdma.Options{PDID: 4})
		if err != nil {
			return err
		}
		p.Sleep(sim.Microsecond)
		w, err := g.Write(rdma.Transfer{NID: 1, PID: 1, Source: src.Addr(), Destination: dst.Addr(), Length: 40000, Notify: flag.Addr(), Value: 1})
		if err != nil {
			return err
		}
		return w.Wait()
	}))
	require.NoError(t, c.Spawn(1, "with", func(p *runtime.Proc) error {
		_, err := parts.Open(p, rdma.Options{PDID: 9})
		return err
	}))
	require.NoError(t, c.Spawn(1, "without", func(p *runtime.Proc) error {
		dst, flag = p.Alloc(40000), p.Alloc(8)
		g, err := plain.Open(p, rdma.Options{PDID: 4})
		if err != nil {
			return err
		}
		return g.AwaitNotification(flag, 1)
	}))
	require.NoError(t, c.Run(context.Background()))
	require.NotZero(t, parts.Driver(1).Stats().Sends)
}

// A profile without an operating system has nobody who could bring pages in.
func TestNoOperatingSystem(t *testing.T) {
	c := must(runtime.NewCluster(runtime.Config{Profile: must(profile.Load("spin-int")), Nodes: 2}))
	defer func() { require.NoError(t, c.Close()) }()
	_, err := Load(c, Options{})
	require.ErrorContains(t, err, "profile spin-int has no operating system")
}

// recorder is a timeline of which only what belongs to flows is kept.
type recorder struct {
	tracks []string
	spans  map[uint64][]string
}

func (r *recorder) Track(_ string, rank int, name string) sim.TrackID {
	r.tracks = append(r.tracks, fmt.Sprint(rank, " ", name))
	return sim.TrackID(len(r.tracks) - 1)
}

func (r *recorder) Span(t sim.TrackID, name string, _, _ sim.Time, flow uint64, args ...sim.Arg) {
	at := r.tracks[t] + ": " + name
	for _, a := range args {
		if a.Key == sim.CauseKey && a.Num != 0 {
			flow = uint64(a.Num)
		}
	}
	if all := r.spans[flow]; len(all) == 0 || all[len(all)-1] != at {
		r.spans[flow] = append(r.spans[flow], at)
	}
}

func (r *recorder) Instant(t sim.TrackID, name string, at sim.Time, flow uint64, _ ...sim.Arg) {
	r.Span(t, name, at, at, flow)
}
func (r *recorder) Counter(sim.TrackID, string, sim.Time, float64) {}

// A timeline follows a fault from the cell that met it, by interrupt, tasklet,
// pages, message and request, to the cells that come again: one flow.
func TestTimelineFollowsAFault(t *testing.T) {
	r := &recorder{spans: map[uint64][]string{}}
	run{bytes: 4096, dest: true, tracer: r}.do(t)
	delete(r.spans, 0)
	chain := []string{
		"0 link: put", "1 SMMU: fault on write", "1 CPU 0: interrupt SMMU", "1 CPU 0: fault FIFO", "1 CPU 0: get_user_pages", "1 CPU 0: netlink",
		"1 CPU 1: netlink message", "1 CPU 1: put", "1 cells 0: part payload", "1 link: put", "0 r5 0: part header", "0 link: put", "1 cells 1: part payload",
	}
	whole := 0
	for _, spans := range r.spans { //lint:maporder counted
		left := chain
		for _, s := range spans {
			if len(left) > 0 && s == left[0] {
				left = left[1:]
			}
		}
		if len(left) == 0 {
			whole++
		}
	}
	require.Equal(t, 1, whole)
}

// A FIFO without entries, or with more than the hardware has, is refused when the page is opened.
func TestDepthOfTheFIFO(t *testing.T) {
	for depth, message := range map[int]string{0: "module part: state: depth: 0, expected at least 1", 513: "module part: state: depth: 513, expected at most 512"} { //lint:maporder each by itself
		c := must(runtime.NewCluster(runtime.Config{Profile: must(profile.Load("exanest-qfdb")), Nodes: 1}))
		parts := must(Load(c, Options{}))
		require.NoError(t, c.Spawn(0, "p", func(p *runtime.Proc) error {
			_, err := parts.Open(p, rdma.Options{State: map[string]any{"depth": depth}})
			return err
		}))
		require.ErrorContains(t, c.Run(context.Background()), message)
		require.NoError(t, c.Close())
	}
}

// More processes than the SMMU has banks share them, with any time that one
// keeps its bank, and every method: an access waits until its process has one.
func TestMoreProcessesThanBanks(t *testing.T) {
	const processes, length = 6, 40000
	for _, set := range [][]string{{"smmu.banks=2"}, {"smmu.banks=1", "os.bank_hold=1us"}, {"smmu.banks=5", "os.bank_hold=10ms"}} {
		for _, by := range []Method{GetUserPages, Touch, InKernel} {
			c := must(runtime.NewCluster(runtime.Config{Profile: must(profile.Load("exanest-qfdb", set...)), Nodes: 2}))
			parts := must(Load(c, Options{Policy: PIA, Method: by}))
			var dst, flag [processes]runtime.View
			var pages [processes]*rdma.Page
			for i := range processes {
				o := rdma.Options{PDID: uint16(i + 1)}
				require.NoError(t, c.Spawn(0, "writer", func(p *runtime.Proc) error {
					src := p.Alloc(length)
					for k, b := 0, src.Raw(); k < length; k++ {
						b[k] = byte(k + i)
					}
					g, err := parts.Open(p, o)
					if err != nil {
						return err
					}
					p.Sleep(sim.Microsecond)
					id := pages[i].ID()
					w, err := g.Write(rdma.Transfer{NID: id.NID, PID: id.PID, Source: src.Addr(), Destination: dst[i].Addr(), Length: length, Notify: flag[i].Addr(), Value: 1})
					if err != nil {
						return err
					}
					return w.Wait()
				}))
				require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) (err error) {
					dst[i], flag[i] = p.Alloc(length), p.Alloc(8)
					if pages[i], err = parts.Open(p, o); err != nil {
						return err
					}
					return pages[i].AwaitNotification(flag[i], 1)
				}))
			}
			require.NoError(t, c.Run(context.Background()), "%v %v", set, by)
			for i := range processes {
				for k, b := range dst[i].Snapshot() {
					if b != byte(k+i) {
						require.Equal(t, byte(k+i), b, "process %d, byte %d", i, k)
					}
				}
			}
			require.NoError(t, c.Close())
		}
	}
}

// Ranges of a policy that mean nothing, or everything, are cut to the mapping.
func TestRangesOfPolicies(t *testing.T) {
	all := run{Options: Options{Policy: PIA}, bytes: 1 << 18, dest: true, set: []string{"os.fault_search=0us"}}.do(t).arrived
	one := run{Options: Options{Policy: PIO}, bytes: 1 << 18, dest: true}.do(t).arrived
	for _, c := range []struct {
		first Range
		want  sim.Time
	}{{Range{End: math.MaxUint64}, all}, {Range{End: math.MaxUint64 - 5000}, all}, {Range{}, one}, {Range{Start: math.MaxUint64, End: 5}, one}} {
		o := run{Options: Options{Policy: func(Fault) Plan { return Plan{First: c.first} }}, bytes: 1 << 18, dest: true}.do(t)
		require.Equal(t, c.want, o.arrived, "%#x", c.first)
	}
	early := func(f Fault) Plan {
		return Plan{First: Range{Start: f.Page, End: f.Page + 16*host.PageBytes}, Then: Range{Start: f.Page, End: math.MaxUint64}}
	}
	for _, by := range []Method{GetUserPages, Touch, InKernel} {
		at := map[bool]sim.Time{}
		for ahead, policy := range map[bool]Policy{true: early, false: PIA} { //lint:maporder each by itself
			at[ahead] = run{Options: Options{Policy: policy, Method: by}, bytes: 1 << 18, dest: true, state: map[string]any{"nto": 1}}.do(t).arrived
		}
		require.Less(t, at[true], at[false], "what comes behind the request saves time, by %v", by)
	}
}

// A method that is none is refused.
func TestNoSuchMethod(t *testing.T) {
	c := must(runtime.NewCluster(runtime.Config{Profile: must(profile.Load("exanest-qfdb")), Nodes: 1}))
	defer func() { require.NoError(t, c.Close()) }()
	_, err := Load(c, Options{Method: 7})
	require.EqualError(t, err, "part: method 7, expected one of get_user_pages, touch, in-kernel")
}

// Pages that are touched are not in tables of the device's own.
func TestTouchNeedsTablesOfTheProcess(t *testing.T) {
	c := must(runtime.NewCluster(runtime.Config{Profile: must(profile.Load("exanest-qfdb", "os.device_tables=own")), Nodes: 1}))
	defer func() { require.NoError(t, c.Close()) }()
	_, err := Load(c, Options{Method: Touch})
	require.EqualError(t, err, "part: profile exanest-qfdb has os.device_tables own: a page that is touched would not be in them")
}
