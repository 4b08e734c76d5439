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

// twin is an SMMU with its answers.
type twin struct {
	*smmutest.Node
	plain  bool // nothing stays in front of its TLB
	told   []string
	flying []*smmu.Request
}

// Translated implements smmu.Client.
func (w *twin) Translated(r *smmu.Request, res smmu.Result) {
	w.told = append(w.told, fmt.Sprint(w.Engine.Now(), r.PDID, r.Addr, r.Write, res, r.Frames))
	if res == smmu.OK {
		w.flying = append(w.flying, r)
	}
}

func (w *twin) ask(r smmu.Request) {
	if w.plain {
		w.SMMU.Forget()
	}
	r.Client, r.Frames = w, make([]uint64, 3)
	if res, answered := w.SMMU.Translate(&r); answered {
		w.Translated(&r, res)
	}
}

// twins are two SMMUs with the same requests. One has no entries in front of
// its TLB.
type twins struct {
	t      *rapid.T
	world  *world
	all    [2]*twin
	pdids  [2]uint16    // of each bank
	off    [2]bool      // SCTLR.M of each bank
	latest [2][2]uint64 // of each bank: what was read, and what was written
}

func newTwins(t *rapid.T) *twins {
	spec := randomSpec(
		t, fmt.Sprintf("outstanding=%d", 1+below(t, "outstanding", 8)), fmt.Sprintf("channels=%d", 1+below(t, "channels", 2)),
		fmt.Sprintf("walks=%d", 1+below(t, "walks", 2)), "walks_full="+rapid.SampledFrom([]string{smmu.Block, smmu.Queue}).Draw(t, "full"),
		"on_fault="+rapid.SampledFrom([]string{smmu.Terminate, smmu.Stall}).Draw(t, "fault"), fmt.Sprintf("hit_under_fault=%v", rapid.Bool().Draw(t, "hupcf")),
	)
	w := &twins{t: t, world: newWorld(spec, 2), all: [2]*twin{{}, {plain: true}}, pdids: [2]uint16{0, 1}}
	for _, x := range w.all {
		x.Node = smmutest.NewNode(spec, 70*sim.Nanosecond, nil)
	}
	w.both(w.assign)
	for _, tables := range w.world.tables {
		for i := range uint64(12) {
			tables.Map(i*4096, 3, w.world.frame(3), true)
			tables.Map(2<<20+i*4096, 3, w.world.frame(3), true)
		}
		tables.Map(1<<30, 2, w.world.frame(2), true)
	}
	return w
}

// both does something to both SMMUs and requires the same answers and counts.
func (w *twins) both(f func(x *twin)) {
	for _, x := range w.all {
		f(x)
	}
	require.Equal(w.t, w.all[1].told, w.all[0].told)
	require.Equal(w.t, w.all[1].SMMU.Counters(), w.all[0].SMMU.Counters())
	for _, x := range w.all {
		x.told = x.told[:0]
	}
}

func (w *twins) assign(x *twin) {
	for bank, pdid := range w.pdids {
		if x.SMMU.BankOf(pdid) < 0 {
			require.NoError(w.t, x.SMMU.Assign(bank, pdid, w.world.tables[pdid%2]))
		}
	}
}

// request repeats the latest request, or makes a new one.
func (w *twins) request(bank int) {
	way := below(w.t, "way", 2)
	if below(w.t, "elsewhere", 3) == 0 {
		w.latest[bank][way] = address(w.t)
	}
	r := smmu.Request{
		PDID: w.pdids[bank], Addr: w.latest[bank][way] + uint64(below(w.t, "offset", 64)), Write: way == 1,
		Length: rapid.SampledFrom([]int{0, 1, 64, 64, 64, 4096, 5000}).Draw(w.t, "length"),
	}
	w.both(func(x *twin) { x.ask(r) })
}

// rare does to a bank what seldom happens, so that there are hits between.
func (w *twins) rare(bank int) {
	switch below(w.t, "rare", 6) {
	case 0:
		w.both(func(x *twin) { x.SMMU.InvalidateBank(bank) })
	case 1:
		w.both(func(x *twin) { x.SMMU.InvalidateAll() })
	case 2:
		w.pdids[bank] += 2
		w.both(func(x *twin) {
			x.SMMU.Release(bank)
			w.assign(x)
		})
	default:
		m := uint64(smmu.SCTLRM)
		if w.off[bank] = !w.off[bank] && below(w.t, "off", 4) == 0; w.off[bank] {
			m = 0
		}
		w.both(func(x *twin) {
			x.SMMU.Write(bank, smmu.SCTLR, x.SMMU.Bank(bank).Read(smmu.SCTLR)&^uint64(smmu.SCTLRM)|m)
		})
	}
}

// The entries in front of the TLB change nothing: results, their times, frames
// and counters equal an SMMU's that looks up everything. Meanwhile other
// requests walk, wait for their channel or are stalled, entries are replaced,
// and banks fault, stop and get other processes.
func TestFrontsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		for range rapid.SampledFrom([]int{30, 1000}).Draw(t, "steps") {
			bank := below(t, "bank", 2)
			switch below(t, "op", 30) {
			case 0, 1:
				va := address(t)
				needed, way := w.world.change(t, bank, va)
				if needed && below(t, "forget", 4) > 0 {
					w.both(func(x *twin) { x.SMMU.Invalidate(bank, va, !way) })
				}
			case 2, 3, 4, 5, 6, 7, 8:
				wait := rapid.SampledFrom([]sim.Time{10, 40, 100, 300, 700, 1000, 2000}).Draw(t, "wait") * sim.Nanosecond
				w.both(func(x *twin) { require.NoError(t, x.Engine.RunUntil(x.Engine.Now()+wait)) })
			case 9:
				w.both(func(x *twin) {
					for _, r := range x.flying {
						x.SMMU.Done(r)
					}
					x.flying = x.flying[:0]
				})
			case 10:
				how := uint64(below(t, "how", 2))
				w.both(func(x *twin) {
					x.SMMU.Write(bank, smmu.FSR, 1<<32-1)
					x.SMMU.Write(bank, smmu.RESUME, how)
				})
			case 11, 12:
				w.rare(bank)
			default:
				w.request(bank)
			}
		}
	})
}

// Two events remove an entry from the front of the TLB: its replacement during
// other walks, and a channel that a miss blocks.
func TestFrontsAreForgotten(t *testing.T) {
	ask := func(n *smmutest.Node, page uint64, write bool) *smmutest.Answer {
		a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: base + page*4096, Length: 8, Write: write}}
		n.Ask(a)
		return a
	}
	start := func(overrides ...string) (*smmutest.Node, *smmu.Spec) {
		n, tables, spec := node(t, overrides...)
		for i := range uint64(8) {
			tables.Map(base+i*4096, 3, i*4096, true)
		}
		return n, spec
	}
	n, _ := start("l1_entries=1")
	n.Access(pdid, base, 8, false)
	ask(n, 1, false)
	require.False(t, ask(n, 0, false).Open)
	drain(t, n)
	require.True(t, ask(n, 0, false).Open, "page 1 has taken its place")

	// the page that is read is used before the one that is written, or after it
	for first := range uint64(2) {
		n, _ = start("l1_entries=2")
		n.Access(pdid, base, 8, false)
		n.Access(pdid, base+4096, 8, true)
		for range 2 {
			ask(n, first, first == 1)
			ask(n, 1-first, first == 0)
		}
		n.Access(pdid, base+2*4096, 8, false)
		require.False(t, ask(n, 1-first, first == 0).Open)
		require.True(t, ask(n, first, first == 1).Open, "the page used longest ago makes room")
	}

	n, spec := start("walks=1", "walks_full=block")
	n.Access(pdid, base, 8, false)
	ask(n, 1, false)
	ask(n, 2, false)
	require.False(t, ask(n, 0, false).Open)
	require.NoError(t, n.Engine.RunUntil(n.Engine.Now()+spec.L2Latency))
	require.True(t, ask(n, 0, false).Open, "page 2 waits for a walk")
}

// A block becomes pages between the reads of two walks for it, without an
// invalidation. The page has priority over the block.
func TestFrontOfABlock(t *testing.T) {
	n, tables, _ := node(t)
	block := uint64(2 << 20)
	tables.Map(block, 2, block, true)
	ask := func(page uint64) *smmutest.Answer {
		a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: block + page*4096, Length: 8, Frames: make([]uint64, 1)}}
		n.Ask(a)
		return a
	}
	first := ask(0)
	require.NoError(t, n.Engine.RunUntil(50*sim.Nanosecond))
	second := ask(1)
	for first.Open {
		at, _ := n.Engine.Next()
		require.NoError(t, n.Engine.RunUntil(at))
	}
	require.True(t, second.Open)
	tables.Map(block+4096, 3, 7*4096, true)
	require.Equal(t, block+2*4096, ask(2).Frames[0])
	drain(t, n)
	require.Equal(t, block+2*4096, ask(2).Frames[0])
	require.Equal(t, uint64(7*4096), ask(1).Frames[0])
}

// An invalidation that removes an entry removes it from the front of the TLB
// too: a page or a block, seen as a page of it or whole, by any of its
// addresses. Entries of another bank stay hits.
func TestFrontsAreInvalidated(t *testing.T) {
	const other = pdid + 1
	for _, x := range []struct {
		name   string
		forget func(n *smmutest.Node, tables *smmutest.Tables, last uint64)
		all    bool
	}{
		{"by its address", func(n *smmutest.Node, _ *smmutest.Tables, _ uint64) { n.SMMU.Invalidate(0, base, true) }, false},
		{"by its last address", func(n *smmutest.Node, _ *smmutest.Tables, last uint64) { n.SMMU.Invalidate(0, last, false) }, false},
		{"bank", func(n *smmutest.Node, _ *smmutest.Tables, _ uint64) { n.SMMU.InvalidateBank(0) }, false},
		{"all", func(n *smmutest.Node, _ *smmutest.Tables, _ uint64) { n.SMMU.InvalidateAll() }, true},
		{"process", func(n *smmutest.Node, tables *smmutest.Tables, _ uint64) {
			n.SMMU.Release(0)
			n.SMMU.InvalidateBank(0)
			require.NoError(t, n.SMMU.Assign(0, pdid, tables))
		}, false},
	} {
		for level := 1; level <= 3; level++ {
			for _, whole := range []bool{false, true} {
				n, tables, _ := node(t)
				require.NoError(t, n.SMMU.Assign(1, other, tables))
				size := smmutest.Size(level)
				tables.Map(base, level, size, true)
				tables.Map(base+1<<30, 3, 4096, true)
				if !whole { // blocks are looked at as pages from here on
					n.Access(pdid, base+1<<30, 8, false)
				}
				ask := func(pdid uint16, write bool) bool {
					a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: base, Length: 8, Write: write}}
					n.Ask(a)
					return !a.Open
				}
				n.Access(pdid, base, 8, false)
				n.Access(other, base, 8, false)
				for _, write := range []bool{false, true} {
					require.True(t, ask(other, write))
					require.True(t, ask(pdid, write))
				}
				x.forget(n, tables, base+size-1)
				for _, write := range []bool{false, true} {
					require.False(t, ask(pdid, write), "%s, level %d, whole %v, write %v", x.name, level, whole, write)
					require.Equal(t, !x.all, ask(other, write), "%s, level %d, whole %v, write %v", x.name, level, whole, write)
				}
			}
		}
	}
}

// A block becomes read-only between the reads of two walks for it. After the
// second walk its page may not be written, although the page stands in front.
func TestFrontOfABlockThatChanges(t *testing.T) {
	n, tables, _ := node(t)
	block := uint64(2 << 20)
	tables.Map(base, 3, 0, true)
	tables.Map(block, 2, block, true)
	n.Access(pdid, base, 8, false) // from here on blocks are looked at as pages
	ask := func(page uint64, write bool) *smmutest.Answer {
		a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: block + page*4096, Length: 8, Write: write}}
		n.Ask(a)
		return a
	}
	first := ask(0, false)
	require.NoError(t, n.Engine.RunUntil(n.Engine.Now()+50*sim.Nanosecond))
	second := ask(1, false)
	for first.Open {
		at, _ := n.Engine.Next()
		require.NoError(t, n.Engine.RunUntil(at))
	}
	require.True(t, second.Open)
	for range 2 {
		require.False(t, ask(2, true).Open)
	}
	tables.Protect(block, false)
	require.False(t, ask(2, true).Open, "nobody has told the TLB")
	drain(t, n)
	require.False(t, second.Open)
	late := ask(2, true)
	require.False(t, late.Open)
	require.Equal(t, smmu.Permission, late.Result)
	require.Equal(t, smmu.OK, ask(2, false).Result)
}

// A hit is within one page, even of a block, and one process. It is in flight
// until it has landed. A Sync waits only for the accesses before it.
func TestHitIsOfOnePage(t *testing.T) {
	n, tables, _ := node(t)
	tables.Map(base, 2, 0, true)
	n.Access(pdid, base, 8, false)
	for _, x := range []struct {
		pdid uint16
		at   uint64
		n    int
		hit  bool
	}{
		{pdid, 0, 4096, true},
		{pdid, 0, 4097, false},
		{pdid, 4095, 1, true},
		{pdid, 4095, 2, false},
		{pdid, 4096, 4096, true},
		{pdid, 8, 0, false},
		{pdid, 0, 0, false},
		{pdid, 8, -1, false},
		{pdid, 2<<20 - 1, 1, true},
		{pdid, 2<<20 - 1, 2, false},
		{pdid, 2 << 20, 1, false},
		{pdid, 1 << 48, 1, false},
		{pdid, 1<<64 - base, 1, false},
		{pdid, 1<<64 - 1, 1, false},
		{0, 0, 1, false},
		{pdid + 1, 0, 1, false},
		{pdid - 1, 0, 1, false},
	} {
		for _, write := range []bool{false, true, false} {
			f := n.SMMU.Hit(x.pdid, base+x.at, x.n, write)
			require.Equal(t, x.hit, f != 0, x)
			if f != 0 {
				require.Equal(t, 1, n.SMMU.Bank(0).InFlight())
				n.SMMU.Landed(f)
			}
			require.Zero(t, n.SMMU.Bank(0).InFlight())
		}
	}

	var told synced
	before := n.SMMU.Hit(pdid, base, 8, true)
	a, b := &smmu.Sync{Client: &told, Ref: "first"}, &smmu.Sync{Client: &told, Ref: "second"}
	require.False(t, n.SMMU.Bank(0).Sync(a))
	behind := n.SMMU.Hit(pdid, base, 8, true)
	require.False(t, n.SMMU.Bank(0).Sync(b))
	last := n.SMMU.Hit(pdid, base, 8, false)
	n.SMMU.Landed(last)
	require.Empty(t, told)
	n.SMMU.Landed(before)
	require.Equal(t, synced{"first"}, told)
	n.SMMU.Landed(behind)
	require.Equal(t, synced{"first", "second"}, told)
}

// synced waits for accesses in flight and keeps the Refs it got.
type synced []any

// Synced implements smmu.SyncClient.
func (s *synced) Synced(y *smmu.Sync) { *s = append(*s, y.Ref) }
