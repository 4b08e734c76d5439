package smmu_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// load asks for one translation after the other, or for n at a time, and
// allocates nothing.
type load struct {
	node *smmutest.Node
	req  []smmu.Request
	open int
}

func newLoad(t testing.TB, n int, overrides ...string) *load {
	node, tables, _ := node(t, overrides...)
	for i := range uint64(4096) {
		tables.Map(base+i*page, 3, i*page, true)
	}
	l := &load{node: node, req: make([]smmu.Request, n)}
	for i := range l.req {
		l.req[i] = smmu.Request{PDID: pdid, Addr: base + uint64(i)*page, Length: 256, Write: true, Client: l}
	}
	return l
}

// Translated implements smmu.Client.
func (l *load) Translated(r *smmu.Request, res smmu.Result) {
	if res != smmu.OK {
		panic("smmu_test: " + res.String())
	}
	l.open--
	l.node.SMMU.Done(r)
}

// ask asks for all requests as they are, and waits for the answers.
func (l *load) ask(t testing.TB) {
	for i := range l.req {
		r := &l.req[i]
		if _, answered := l.node.SMMU.Translate(r); answered {
			l.node.SMMU.Done(r)
		} else {
			l.open++
		}
	}
	if l.open > 0 {
		drain(t, l.node)
	}
	if l.open != 0 {
		t.Fatal(l.open, "without an answer")
	}
}

// drain runs until there are no more events.
func drain(t testing.TB, n *smmutest.Node) {
	for at, more := n.Engine.Next(); more; at, more = n.Engine.Next() {
		if err := n.Engine.RunUntil(at); err != nil {
			t.Fatal(err)
		}
	}
}

// away moves the requests to pages that no TLB has.
func (l *load) away() {
	for i := range l.req {
		l.req[i].Addr = base + (l.req[i].Addr-base+uint64(len(l.req))*page)%(4096*page)
	}
}

// Nothing is allocated: for a hit of the first TLB, of the second, a miss,
// misses that wait for walks and for their channel, an invalidation.
func TestNoAllocation(t *testing.T) {
	for name, l := range map[string]*load{
		"hit":     newLoad(t, 1),
		"latency": newLoad(t, 1, "l1_latency=3ns"),
		"second":  newLoad(t, 64, "l1_entries=16"),
		"miss":    newLoad(t, 64, "l1_entries=16", "l2_entries=16", "walk_cache=4"),
		"full":    newLoad(t, 300, "outstanding=16", "walks=4", "l2_entries=16"),
		"poison":  newLoad(t, 16, "stale=poison", "l1_entries=4"),
	} {
		step := func() {
			l.ask(t)
			if name == "miss" || name == "full" {
				l.away()
				l.node.SMMU.Invalidate(0, l.req[0].Addr, false)
			}
		}
		for range 100 { // after these the event queue has room
			step()
		}
		require.Zero(t, testing.AllocsPerRun(200, step), name)
	}
}

// Faults allocate nothing either, whether terminated, stalled or resumed.
func TestFaultsDoNotAllocate(t *testing.T) {
	for _, how := range []string{smmu.Terminate, smmu.Stall} {
		n, tables, _ := node(t, "on_fault="+how)
		tables.Map(base, 3, page, true)
		told := 0
		n.Lines.Told = func(int) { told++; n.Lines.Rose = n.Lines.Rose[:0] }
		a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: base + page, Length: 256}}
		step := func() {
			n.Ask(a)
			drain(t, n)
			n.SMMU.Write(0, smmu.FSR, 1<<32-1)
			n.SMMU.Write(0, smmu.RESUME, 1)
			drain(t, n)
			if a.Open || a.Result == smmu.OK {
				t.Fatal(a.Open, a.Result)
			}
		}
		for range 100 {
			step()
		}
		told = 0
		require.Zero(t, testing.AllocsPerRun(100, step), how)
		require.Equal(t, 101, told)
	}
}

// The cost of a hit for the simulator.
func BenchmarkHit(b *testing.B) {
	l := newLoad(b, 1)
	l.ask(b)
	r := &l.req[0]
	s := l.node.SMMU
	b.ReportAllocs()
	for b.Loop() {
		if _, answered := s.Translate(r); !answered {
			b.Fatal("no hit")
		}
		s.Done(r)
	}
}

// Hits of 64 pages in turn: none is in front.
func BenchmarkHitScattered(b *testing.B) {
	l := newLoad(b, 64)
	l.ask(b)
	s := l.node.SMMU
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 7) % 64 {
		if _, answered := s.Translate(&l.req[i]); !answered {
			b.Fatal("no hit")
		}
		s.Done(&l.req[i])
	}
}

// A miss with a walk of one level, 16 at a time. The result is per miss.
func BenchmarkMiss(b *testing.B) {
	l := newLoad(b, 16, "l1_entries=16", "l2_entries=16")
	b.ReportAllocs()
	for b.Loop() {
		l.ask(b)
		l.away()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/miss")
}

// The memory in these tests has the parameters of the closed forms.
func TestLoadTakesItsTime(t *testing.T) {
	l := newLoad(t, 16, "l1_entries=16", "l2_entries=16")
	l.ask(t)
	require.Equal(t, 600*sim.Nanosecond, l.node.Engine.Now())
	l.away()
	l.ask(t)
	require.Equal(t, 820*sim.Nanosecond, l.node.Engine.Now())
}

// An SMMU of the ExaNeSt node's size takes less than 64 KiB of the simulator's memory.
func TestMemoryOfTheSimulator(t *testing.T) {
	spec, err := smmutest.Spec()
	require.NoError(t, err)
	eng := sim.New(1)
	least := uint64(math.MaxUint64) // the runtime allocates now and then, too
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := new(smmu.SMMU)
		s.Init(eng, 0, &smmu.Config{Spec: spec})
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
		runtime.KeepAlive(s)
	}
	require.Less(t, least, uint64(64<<10))
}
