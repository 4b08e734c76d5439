package smmu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// many checks an SMMU with many requests under way. A driver changes tables,
// invalidates what it must, and handles faults some time later.
type many struct {
	t       *rapid.T
	spec    *smmu.Spec
	node    *smmutest.Node
	world   *world
	banks   []bankModel
	open    map[*ask]bool // without an answer
	flying  []*ask        // answered with OK, not done
	missing map[spot]sim.Time
	bound   map[spot]sim.Time // likewise, for pages that may not be written
	reads   []sim.Time        // ends of the walks' reads
	retired int               // ranges of frames that wait for a Sync
	gone    []span            // ranges of frames that were given away
	latest  [8]*ask
	asked   int
	told    int
	moves   bool // banks change their processes
}

// ask is a request.
type ask struct {
	smmu.Request
	at   sim.Time
	bank int
}

// bankModel is the expected state of a bank's registers.
type bankModel struct {
	fsr, fsynr uint32
	far        uint64
	since      sim.Time // FSR is not 0
	line       bool     // an interrupt waits for the driver
	pdid       uint16
	moved      sim.Time // when it got its process
}

type spot struct {
	bank int
	va   uint64
}

type span struct{ first, size uint64 }

func newMany(t *rapid.T) *many {
	m := &many{t: t, open: map[*ask]bool{}, missing: map[spot]sim.Time{}, bound: map[spot]sim.Time{}}
	m.spec = randomSpec(
		t,
		fmt.Sprintf("walks=%d", 1+below(t, "walks", 4)), fmt.Sprintf("outstanding=%d", 1+below(t, "outstanding", 8)),
		fmt.Sprintf("channels=%d", 1+below(t, "channels", 2)), fmt.Sprintf("stall_limit=%d", 1+below(t, "limit", 3)),
		"walks_full="+rapid.SampledFrom([]string{smmu.Block, smmu.Queue}).Draw(t, "full"),
		"on_fault="+rapid.SampledFrom([]string{smmu.Terminate, smmu.Stall}).Draw(t, "fault"),
		fmt.Sprintf("hit_under_fault=%v", rapid.Bool().Draw(t, "hupcf")), "stale=poison",
		fmt.Sprintf("l2_latency=%dns", rapid.SampledFrom([]int{30, 800}).Draw(t, "second")),
	)
	m.node = smmutest.NewNode(m.spec, 70*sim.Nanosecond, m)
	m.node.Memory.Rate = sim.NewRate(sim.Nanosecond, 64)
	m.node.Memory.Read = func(uint64, int) { m.read() }
	m.node.Lines.Told = func(bank int) {
		require.False(t, m.banks[bank].line, "a line that is up rises")
		m.banks[bank].line = true
	}
	m.world, m.moves = newWorld(m.spec, 2), below(t, "moves", 4) == 0
	m.banks = make([]bankModel, 2)
	for i := range m.banks {
		m.assign(i, uint16(i))
	}
	return m
}

func (m *many) now() sim.Time { return m.node.Engine.Now() }

func (m *many) assign(bank int, pdid uint16) {
	require.NoError(m.t, m.node.SMMU.Assign(bank, pdid, m.world.tables[bank]))
	m.banks[bank] = bankModel{pdid: pdid, moved: m.now()}
}

// read is a read of a walk. There are never more at a time than walks.
func (m *many) read() {
	left := m.reads[:0]
	for _, end := range m.reads {
		if end > m.now() {
			left = append(left, end)
		}
	}
	m.reads = append(left, m.now()+m.node.Memory.Latency)
	require.LessOrEqual(m.t, len(m.reads), m.spec.Walks)
	require.LessOrEqual(m.t, m.node.SMMU.Walking(), m.spec.Walks)
}

// request asks about a range of one to three pages.
func (m *many) request() {
	a := &ask{at: m.now()}
	var va uint64
	a.bank, va = m.target()
	a.Request = smmu.Request{
		PDID: m.banks[a.bank].pdid, Addr: va + uint64(below(m.t, "offset", 4096)), Length: 1 + below(m.t, "length", 2*4096),
		Write: rapid.Bool().Draw(m.t, "write"), Frames: make([]uint64, 3), Client: m, Ref: a,
	}
	m.open[a] = true
	m.latest[m.asked%len(m.latest)] = a
	m.asked++
	if res, answered := m.node.SMMU.Translate(&a.Request); answered {
		m.Translated(&a.Request, res)
	}
}

// Translated implements smmu.Client.
func (m *many) Translated(r *smmu.Request, res smmu.Result) {
	a, _ := r.Ref.(*ask)
	require.True(m.t, m.open[a], "a second answer")
	delete(m.open, a)
	m.told++
	b := &m.banks[a.bank]
	failed := spot{a.bank, r.Failed() &^ 4095}
	if res != smmu.OK {
		require.GreaterOrEqual(m.t, r.Failed(), r.Addr)
		require.Less(m.t, r.Failed(), r.Addr+uint64(r.Length))
	}
	switch res {
	case smmu.OK:
		m.allowed(a)
		require.Equal(m.t, b.pdid, r.PDID)
		m.flying = append(m.flying, a)
	case smmu.Fault:
		require.GreaterOrEqual(m.t, m.last(m.missing, failed, m.absent(failed)), a.at, "the page was there all the time")
	case smmu.Permission:
		require.True(m.t, r.Write)
		require.GreaterOrEqual(m.t, m.last(m.bound, failed, !m.mayWrite(failed)), a.at, "the page could be written all the time")
	case smmu.Terminated:
		require.True(m.t, !m.spec.HitUnderFault || m.spec.OnFault == smmu.Stall)
	case smmu.Denied:
		require.GreaterOrEqual(m.t, b.moved, a.at, "its bank was its own all the time")
	default:
		m.t.Fatalf("%v", res)
	}
	if res == smmu.OK && b.fsr != 0 && !m.spec.HitUnderFault && m.spec.L1Latency == 0 && r.Addr/4096 == (r.Addr+uint64(r.Length)-1)/4096 {
		require.Equal(m.t, m.now(), b.since, "processed under a fault")
	}
}

// allowed checks that the answer agrees with the tables at that time.
func (m *many) allowed(a *ask) {
	n := 0
	for va := a.Addr &^ 4095; va < a.Addr+uint64(a.Length); va += 4096 {
		want := m.world.truth(a.bank, va, a.Write)
		require.Equal(m.t, smmu.OK, want.res, "%#x of bank %d", va, a.bank)
		require.Equal(m.t, want.frame, a.Frames[n], "%#x of bank %d", va, a.bank)
		n++
	}
}

func (m *many) absent(p spot) bool { return m.world.truth(p.bank, p.va, false).res != smmu.OK }

func (m *many) mayWrite(p spot) bool { return m.world.truth(p.bank, p.va, true).res == smmu.OK }

// last returns the last time at which a condition held.
func (m *many) last(when map[spot]sim.Time, p spot, is bool) sim.Time {
	if is {
		return m.now()
	}
	at, known := when[p]
	if !known {
		return -1
	}
	return at
}

// target picks a page; half the time, of one of the latest requests.
func (m *many) target() (bank int, va uint64) {
	if below(m.t, "used", 2) == 0 {
		return below(m.t, "bank", 2), address(m.t)
	}
	a := m.latest[below(m.t, "latest", len(m.latest))]
	if a == nil {
		return below(m.t, "bank", 2), address(m.t)
	}
	pages := (a.Addr%4096 + uint64(a.Length) + 4095) / 4096
	return a.bank, a.Addr&^4095 + uint64(below(m.t, "page", int(pages)))*4096
}

// note notes which pages of a bank are missing and which may not be written,
// before a change.
func (m *many) note(bank int) {
	for _, region := range []uint64{0, 2 << 20, 1 << 30, 255 << 30} {
		for i := range uint64(16) {
			p := spot{bank, region + i*4096}
			if m.absent(p) {
				m.missing[p] = m.now()
			}
			if !m.mayWrite(p) {
				m.bound[p] = m.now()
			}
		}
	}
}

// change changes tables and does a driver's duty: it invalidates, and gives a
// page away when it is no longer in use.
func (m *many) change() {
	bank, va := m.target()
	m.note(bank)
	tables := m.world.tables[bank]
	old, level := tables.Find(va)
	needed, way := m.world.change(m.t, bank, va)
	is, now := tables.Find(va)
	m.invalidate(bank, va, needed, way, min(level, now))
	if old.Kind == smmu.Page && level == 3 && is.Addr != old.Addr {
		y := &smmu.Sync{Client: m, Ref: span{old.Addr, 4096}}
		m.retired++
		if m.node.SMMU.Bank(bank).Sync(y) {
			m.Synced(y)
		}
	}
}

// invalidate does the least that is needed: one page; for tables of level 3,
// the way once and each page there that a request uses; else all.
func (m *many) invalidate(bank int, va uint64, needed, way bool, level int) {
	s := m.node.SMMU
	switch {
	case !needed:
	case level < 2:
		s.InvalidateBank(bank)
	case way || level < 3:
		region := va &^ (2<<20 - 1)
		for i := range uint64(16) {
			s.Invalidate(bank, region+i*4096, i > 0)
		}
	default:
		s.Invalidate(bank, va, true)
	}
}

// Synced implements smmu.SyncClient: the page is no longer in use.
func (m *many) Synced(y *smmu.Sync) {
	s, _ := y.Ref.(span)
	m.retired--
	m.gone = append(m.gone, s)
	for _, a := range m.flying {
		for _, f := range a.Frames {
			require.False(m.t, f >= s.first && f < s.first+s.size, "page %#x is given away under an access", f)
		}
	}
}

// done ends an access that was OK.
func (m *many) done() {
	if len(m.flying) == 0 {
		return
	}
	i := below(m.t, "which", len(m.flying))
	a := m.flying[i]
	m.flying = append(m.flying[:i], m.flying[i+1:]...)
	m.node.SMMU.Done(&a.Request)
}

// drive is one look of the driver at a bank.
func (m *many) drive(bank int) {
	s, b := m.node.SMMU, &m.banks[bank]
	fsr := s.Bank(bank).Read(smmu.FSR)
	if below(m.t, "repair", 2) == 0 && fsr != 0 {
		va := s.Bank(bank).Read(smmu.FAR) &^ 4095
		if p := (spot{bank, va}); m.absent(p) {
			m.missing[p], m.bound[p] = m.now(), m.now()
			m.world.tables[bank].Map(va, 3, m.world.frame(3), true)
		}
	}
	b.line = false
	if below(m.t, "order", 2) == 0 {
		m.resume(bank)
		m.clear(bank, fsr)
	} else {
		m.clear(bank, fsr)
		m.resume(bank)
	}
	b.line = b.line || s.Bank(bank).Asserted() // a level
}

func (m *many) clear(bank int, v uint64) {
	m.banks[bank].fsr &^= uint32(v) &^ smmu.FSRSS
	m.node.SMMU.Write(bank, smmu.FSR, v)
}

func (m *many) resume(bank int) {
	m.banks[bank].fsr &^= smmu.FSRSS
	m.node.SMMU.Write(bank, smmu.RESUME, uint64(below(m.t, "terminate", 2)))
}

// check compares the registers with the model.
func (m *many) check() {
	for i := range m.banks {
		b, s := &m.banks[i], m.node.SMMU
		require.Equal(m.t, uint64(b.fsr), s.Bank(i).Read(smmu.FSR))
		require.Equal(m.t, b.far, s.Bank(i).Read(smmu.FAR))
		require.Equal(m.t, uint64(b.fsynr), s.Bank(i).Read(smmu.FSYNR))
		require.Equal(m.t, b.fsr != 0, s.Bank(i).Asserted())
	}
	require.LessOrEqual(m.t, m.node.SMMU.Outstanding(), m.spec.Channels*m.spec.Outstanding)
	require.Equal(m.t, len(m.flying), m.node.SMMU.Bank(0).InFlight()+m.node.SMMU.Bank(1).InFlight())
}

// Faulted implements smmu.Watcher and checks the registers.
func (m *many) Faulted(f smmu.FaultInfo) {
	b := &m.banks[f.Bank]
	require.Equal(m.t, b.fsr == 0, f.Recorded)
	if b.fsr != 0 && !m.spec.HitUnderFault {
		m.t.Fatal("a fault is processed under a fault")
	}
	if b.fsr == 0 {
		b.far, b.fsynr, b.since = f.Addr, uint32(f.Level), m.now()
		b.fsr = smmu.FSRTF
		if f.Kind == smmu.Permission {
			b.fsr = smmu.FSRPF
		}
		if f.Write {
			b.fsynr |= smmu.FSYNRWNR
		}
	} else {
		b.fsr |= smmu.FSRMULTI
	}
	if m.spec.OnFault == smmu.Stall {
		b.fsr |= smmu.FSRSS
	}
}

// Walked implements smmu.Watcher.
func (m *many) Walked(w smmu.WalkInfo) { require.LessOrEqual(m.t, w.From, w.To) }

// Stalled implements smmu.Watcher.
func (m *many) Stalled(s smmu.StallInfo) { require.LessOrEqual(m.t, s.From, s.To) }

// Stale implements smmu.Watcher: this driver always invalidates.
func (m *many) Stale(s smmu.StaleInfo) { m.t.Fatalf("stale: %+v", s) }

// move gives a bank to another process with the same tables.
func (m *many) move(bank int) {
	m.node.SMMU.Release(bank)
	m.node.SMMU.InvalidateBank(bank)
	m.assign(bank, m.banks[bank].pdid+2)
}

func (m *many) step() {
	switch op := below(m.t, "op", 40); {
	case op < 16:
		m.request()
	case op < 20:
		m.change()
	case op < 26:
		m.done()
	case op < 28:
		for i := range m.banks {
			if m.banks[i].line {
				m.drive(i)
			}
		}
	case op < 31 && m.moves:
		m.move(below(m.t, "bank", 2))
	default:
		require.NoError(m.t, m.node.Engine.RunUntil(m.now()+sim.Time(below(m.t, "wait", 300))*sim.Nanosecond))
	}
	m.check()
}

// finish runs everything to its end.
func (m *many) finish() {
	for round := 0; len(m.open) > 0 || len(m.flying) > 0 || m.retired > 0; round++ {
		require.Less(m.t, round, 2000, "%d requests have no answer, %d syncs no end", len(m.open), m.retired)
		for at, more := m.node.Engine.Next(); more; at, more = m.node.Engine.Next() {
			require.NoError(m.t, m.node.Engine.RunUntil(at))
		}
		for i := range m.banks {
			if m.banks[i].line {
				m.drive(i)
			}
		}
		for len(m.flying) > 0 {
			m.done()
		}
		m.check()
	}
	require.Equal(m.t, m.asked, m.told)
	require.Zero(m.t, m.node.SMMU.Outstanding())
	require.Zero(m.t, m.node.SMMU.Walking())
	c := m.node.SMMU.Counters()
	require.Equal(m.t, uint64(m.asked), c.Requests)
	require.LessOrEqual(m.t, c.MostWalks, m.spec.Walks)
	if !m.moves {
		require.Equal(m.t, c.L1Misses, c.L2Hits+c.L2Misses)
		require.Equal(m.t, c.L2Misses, c.Walks+c.Merged)
	}
}

// Many requests at a time: every answer agrees with the tables at the time of
// the answer, every request has one, registers and lines follow their rules,
// and a page is given away only when it is no longer in use.
func TestManyRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMany(t)
		for range rapid.SampledFrom([]int{50, 500}).Draw(t, "steps") {
			m.step()
		}
		m.finish()
	})
}
