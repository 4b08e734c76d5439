package smmu_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// known is a line of a reference cache, read from a descriptor of a level.
type known struct {
	bank  int
	level int
	first uint64 // address
	entry smmu.Entry
}

func (k *known) covers(bank int, va uint64, level int) bool {
	return k.bank == bank && k.level == level && va&^(smmutest.Size(level)-1) == k.first
}

// recent is a reference cache of some lines: a list, the one used last in
// front.
type recent struct {
	most  int
	lines []known
}

func (c *recent) look(bank int, va uint64, level int) (known, bool) {
	for i, k := range c.lines {
		if k.covers(bank, va, level) {
			c.lines = slices.Insert(slices.Delete(c.lines, i, i+1), 0, k)
			return k, true
		}
	}
	return known{}, false
}

func (c *recent) insert(k known) {
	c.lines = slices.DeleteFunc(c.lines, func(o known) bool { return o.covers(k.bank, k.first, k.level) })
	c.lines = slices.Insert(c.lines, 0, k)
	c.lines = c.lines[:min(len(c.lines), c.most)]
}

// sets is a reference cache of sets, each of which is a list.
type sets []recent

func newSets(entries, ways int) sets {
	s := make(sets, entries/max(1, ways))
	for i := range s {
		s[i].most = ways
	}
	return s
}

func (s sets) of(va uint64, level int) *recent {
	if len(s) == 0 {
		return new(recent)
	}
	return &s[va/smmutest.Size(level)%uint64(len(s))]
}

// reference is an SMMU that serves one access after the other. It uses lists
// and follows the package documentation sentence by sentence.
type reference struct {
	spec   *smmu.Spec
	memory sim.Time
	tables []*smmutest.Tables // of each bank
	l1     recent
	l2     sets
	walks  sets
}

func newReference(spec *smmu.Spec, memory sim.Time, tables []*smmutest.Tables) *reference {
	return &reference{
		spec: spec, memory: memory, tables: tables, l1: recent{most: spec.L1Entries},
		l2: newSets(spec.L2Entries, spec.L2Ways), walks: newSets(spec.WalkCache, spec.WalkCacheWays),
	}
}

// forget drops the lines of all caches that meet a condition; of the walk cache
// only if way.
func (r *reference) forget(drop func(known) bool, way bool) {
	r.l1.lines = slices.DeleteFunc(r.l1.lines, drop)
	for i := range r.l2 {
		r.l2[i].lines = slices.DeleteFunc(r.l2[i].lines, drop)
	}
	for i := range r.walks {
		if way {
			r.walks[i].lines = slices.DeleteFunc(r.walks[i].lines, drop)
		}
	}
}

func (r *reference) invalidate(bank int, va uint64, leaf bool) {
	r.forget(func(k known) bool { return k.covers(bank, va, k.level) }, !leaf)
}

func (r *reference) invalidateBank(bank int) {
	r.forget(func(k known) bool { return k.bank == bank }, true)
}

// outcome is the result of an access.
type outcome struct {
	res   smmu.Result
	frame uint64
	took  sim.Time
}

func (k *known) use(va uint64, write bool, took sim.Time) outcome {
	if write && !k.entry.Write {
		return outcome{smmu.Permission, 0, took}
	}
	return outcome{smmu.OK, k.entry.Addr + va%smmutest.Size(k.level)&^4095, took}
}

func (r *reference) access(bank int, va uint64, write bool) outcome {
	took := r.spec.L1Latency
	for level := 3; level > 0; level-- {
		if k, hit := r.l1.look(bank, va, level); hit {
			return k.use(va, write, took)
		}
	}
	took += r.spec.L2Latency
	for level := 3; level > 0; level-- {
		if k, hit := r.l2.of(va, level).look(bank, va, level); hit {
			r.l1.insert(k)
			return k.use(va, write, took)
		}
	}
	return r.walk(bank, va, write, took)
}

func (r *reference) walk(bank int, va uint64, write bool, took sim.Time) outcome {
	t := r.tables[bank]
	level, table := 4-r.spec.Levels(), t.Root()
	if k, hit := r.walks.of(va, 2).look(bank, va, 2); hit {
		level, table = 3, k.entry.Addr
	}
	for ; ; level++ {
		took += r.memory + r.spec.WalkStep
		e := t.Entry(table, level, va)
		k := known{bank, level, va &^ (smmutest.Size(level) - 1), e}
		switch {
		case e.Kind == smmu.Table && level < 3:
			table = e.Addr
			if level == 2 && len(r.walks) > 0 {
				r.walks.of(va, 2).insert(k)
			}
		case e.Kind == smmu.Page && level > 0:
			r.prefetch(bank, table, level, va)
			r.l2.of(va, level).insert(k)
			r.l1.insert(k)
			return k.use(va, write, took)
		default:
			return outcome{smmu.Fault, 0, took}
		}
	}
}

// prefetch takes the pages behind, whose descriptors are in the same 64 bytes.
// The nearest is the newest.
func (r *reference) prefetch(bank int, table uint64, level int, va uint64) {
	page := va / 4096
	for next := page + uint64(r.spec.Prefetch); next > page && level == 3; next-- {
		if next/8 != page/8 {
			continue
		}
		if e := r.tables[bank].Entry(table, 3, next*4096); e.Kind == smmu.Page {
			r.l2.of(next*4096, 3).insert(known{bank, 3, next * 4096, e})
		}
	}
}

// below draws a number from 0 up to n with equal probabilities: rapid.IntRange
// prefers small ones.
func below(t *rapid.T, what string, n int) int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return rapid.SampledFrom(all).Draw(t, what)
}

// randomSpec is an SMMU with caches so small that they matter.
func randomSpec(t *rapid.T, overrides ...string) *smmu.Spec {
	power := func(name string, most int) int { return 1 << below(t, name, most+1) }
	ways, cacheWays := power("ways", 2), power("cache ways", 1)
	all := []string{
		fmt.Sprintf("address_bits=%d", rapid.SampledFrom([]int{39, 48}).Draw(t, "bits")),
		fmt.Sprintf("l1_entries=%d", power("l1", 3)),
		fmt.Sprintf("l1_latency=%dns", rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "latency")),
		fmt.Sprintf("l2_entries=%d", ways*power("sets", 3)), fmt.Sprintf("l2_ways=%d", ways),
		fmt.Sprintf("walk_cache=%d", rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "walk cache")*cacheWays), fmt.Sprintf("walk_cache_ways=%d", cacheWays),
		fmt.Sprintf("prefetch=%d", rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "prefetch")),
	}
	spec, err := smmutest.Spec(append(all, overrides...)...)
	require.NoError(t, err)
	return spec
}

// world is two processes and the changes that a driver makes to their tables.
type world struct {
	tables []*smmutest.Tables
	frames uint64 // frames of 4 KiB given so far; each is given once
}

func newWorld(spec *smmu.Spec, processes int) *world {
	w := &world{frames: 512}
	for range processes {
		w.tables = append(w.tables, smmutest.NewTables(spec.AddressBits))
	}
	return w
}

// address draws one of few: pages and blocks of four regions. Two of the
// regions share the table of level 2.
func address(t *rapid.T) uint64 {
	region := rapid.SampledFrom([]uint64{0, 2 << 20, 1 << 30, 255 << 30}).Draw(t, "region")
	return region + uint64(below(t, "page", 12))*4096
}

// change changes the tables of a process at random, and returns the
// invalidation it needs: none, the page only, or its way too.
func (w *world) change(t *rapid.T, process int, va uint64) (needed, way bool) {
	tables := w.tables[process]
	old, level := tables.Find(va)
	was := old.Kind == smmu.Page
	write := rapid.Bool().Draw(t, "write")
	switch below(t, "change", 7) {
	case 0, 1:
		tables.Map(va&^4095, 3, w.frame(3), write)
		return was, was && level < 3
	case 2:
		tables.Map(va&^(2<<20-1), 2, w.frame(2), write)
		return true, true
	case 3:
		tables.Unmap(va)
		return was, false
	case 4:
		tables.Protect(va, write)
		return was && old.Write != write, false
	case 5:
		tables.Map(va&^(1<<30-1), 1, w.frame(1), write)
		return true, true
	default:
		tables.Prune(va, 1+below(t, "level", 2))
		return true, true
	}
}

// frame returns memory that was never in use.
func (w *world) frame(level int) uint64 {
	n := smmutest.Size(level) / 4096
	w.frames = (w.frames + n - 1) / n * n
	f := w.frames * 4096
	w.frames += n
	return f
}

// For one access after the other, result, frame and time agree with the lists
// to the picosecond. This covers the contents of each TLB, the walk cache and
// the prefetch buffer, which entry is replaced, and which stay without an
// invalidation.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := randomSpec(t)
		w := newWorld(spec, 2)
		const latency = 70 * sim.Nanosecond
		n := smmutest.NewNode(spec, latency, nil)
		ref := newReference(spec, latency, w.tables)
		for i, tables := range w.tables {
			require.NoError(t, n.SMMU.Assign(i, uint16(i), tables))
		}
		for range rapid.SampledFrom([]int{30, 600}).Draw(t, "steps") {
			bank, va := below(t, "bank", 2), address(t)
			switch below(t, "op", 12) {
			case 0, 1:
				needed, way := w.change(t, bank, va)
				if needed && below(t, "forget", 4) > 0 {
					n.SMMU.Invalidate(bank, va, !way)
					ref.invalidate(bank, va, !way)
				}
			case 2:
				leaf := rapid.Bool().Draw(t, "leaf")
				n.SMMU.Invalidate(bank, va, leaf)
				ref.invalidate(bank, va, leaf)
			case 3:
				if below(t, "all", 4) > 0 {
					break
				}
				n.SMMU.InvalidateBank(bank)
				ref.invalidateBank(bank)
			default:
				write := rapid.Bool().Draw(t, "write")
				a := n.Access(uint16(bank), va, 8, write)
				is := outcome{res: a.Result, took: a.At - a.Asked}
				if a.Result == smmu.OK {
					is.frame = a.Frames[0]
				}
				require.Equal(t, ref.access(bank, va, write), is, "%#x of bank %d", va, bank)
				if a.Result != smmu.OK { // with OK the entry stays in front of the TLB
					n.SMMU.Write(bank, smmu.FSR, 1<<32-1)
				}
			}
		}
	})
}

// With poison a forgotten invalidation is found exactly when it matters: an
// access ends with STALE where the same SMMU without poison gives an answer
// that differs from the tables.
func TestPoisonFindsWhatIsForgotten(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		spec := randomSpec(t)
		poisoned := *spec
		poisoned.Stale = smmu.Poison
		w := newWorld(spec, 1)
		plain, strict := smmutest.NewNode(spec, 70, nil), smmutest.NewNode(&poisoned, 70, nil)
		nodes := []*smmutest.Node{plain, strict}
		for _, n := range nodes {
			require.NoError(t, n.SMMU.Assign(0, 1, w.tables[0]))
		}
		for range rapid.SampledFrom([]int{30, 600}).Draw(t, "steps") {
			va := address(t)
			if below(t, "op", 5) == 0 {
				needed, way := w.change(t, 0, va)
				if needed && rapid.Bool().Draw(t, "forget") {
					for _, n := range nodes {
						n.SMMU.Invalidate(0, va, !way)
					}
				}
				continue
			}
			write := rapid.Bool().Draw(t, "write")
			want := w.truth(0, va, write)
			is, checked := plain.Access(1, va, 8, write), strict.Access(1, va, 8, write)
			right := is.Result == want.res && (want.res != smmu.OK || is.Frames[0] == want.frame)
			switch {
			case right:
				require.Equal(t, want.res, checked.Result, "%#x", va)
			default:
				found++
				require.Equal(t, smmu.Stale, checked.Result, "%#x: %v %#x, expected %v %#x", va, is.Result, is.Frames, want.res, want.frame)
			}
			for _, n := range nodes {
				n.SMMU.Write(0, smmu.FSR, 1<<32-1)
				if checked.Result == smmu.Stale { // their contents differ from here on
					n.SMMU.InvalidateAll()
				}
			}
		}
	})
	require.Positive(t, found)
}

// truth is the outcome of an access according to the tables.
func (w *world) truth(process int, va uint64, write bool) outcome {
	e, level := w.tables[process].Find(va)
	if e.Kind != smmu.Page {
		return outcome{res: smmu.Fault}
	}
	k := known{level: level, entry: e}
	return k.use(va, write, 0)
}
