package smmu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

const (
	memory = 150 * sim.Nanosecond
	page   = 4096
	pdid   = 7
	base   = 0x40_0000_0000
)

// node is an SMMU with process 7 in bank 0 and empty tables.
func node(t testing.TB, overrides ...string) (*smmutest.Node, *smmutest.Tables, *smmu.Spec) {
	t.Helper()
	spec, err := smmutest.Spec(overrides...)
	require.NoError(t, err)
	n := smmutest.NewNode(spec, memory, nil)
	tables := smmutest.NewTables(spec.AddressBits)
	require.NoError(t, n.SMMU.Assign(0, pdid, tables))
	return n, tables, spec
}

func read(n *smmutest.Node, va uint64) *smmutest.Answer  { return n.Access(pdid, va, 64, false) }
func write(n *smmutest.Node, va uint64) *smmutest.Answer { return n.Access(pdid, va, 64, true) }

func took(a *smmutest.Answer) sim.Time { return a.At - a.Asked }

// The times of docs/memory.md. A cold miss reads a descriptor of each level. A
// miss with the last table in the walk cache reads one. A block is found a
// level earlier. A hit in the second TLB costs its look-up, a hit in the first
// nothing.
func TestTimes(t *testing.T) {
	n, tables, spec := node(t, "l1_entries=1")
	const mb2 = 2 << 20
	tables.Map(base, 3, page, true)
	tables.Map(base+page, 3, 2*page, true)
	tables.Map(base+mb2, 2, mb2, true)

	cold := read(n, base+100)
	require.Equal(t, smmu.OK, cold.Result)
	require.Equal(t, uint64(page), cold.Frames[0])
	require.Equal(t, spec.WalkTime(3, memory), took(cold))
	require.Equal(t, 600*sim.Nanosecond, took(cold), "P: about 600 ns")
	require.Equal(t, sim.Time(0), took(write(n, base)))

	warm := write(n, base+page)
	require.Equal(t, spec.WalkTime(1, memory), took(warm))
	require.Equal(t, 220*sim.Nanosecond, took(warm))
	require.Equal(t, spec.L2Latency, took(read(n, base)), "the first TLB has one entry")

	block := read(n, base+mb2+5*page)
	require.Equal(t, spec.WalkTime(2, memory), took(block))
	require.Equal(t, uint64(mb2+5*page), block.Frames[0])
	require.Equal(t, sim.Time(0), took(read(n, base+2*mb2-64)), "all of the block is known")

	c := n.SMMU.Counters()
	require.Equal(t, uint64(3), c.Walks)
	require.Equal(t, uint64(6), c.Reads)
	require.Equal(t, 6, n.Memory.Reads())
	require.Equal(t, uint64(1), c.WalkCacheHits)
	require.Equal(t, uint64(1), c.L2Hits)
	require.Equal(t, uint64(2), c.L1Hits)
}

// Four levels for 48 bits; latencies of the TLBs add up.
func TestFourLevels(t *testing.T) {
	n, tables, spec := node(t, "address_bits=48", "l1_latency=3ns", "walk_cache=0")
	const high = 0xffff_ffff_f000
	tables.Map(high, 3, page, false)
	require.Equal(t, 4, spec.Levels())
	require.Equal(t, spec.WalkTime(4, memory), took(read(n, high)))
	require.Equal(t, 3*sim.Nanosecond, took(read(n, high)))
}

// Three pages of a request are walked at the same time; a fourth, already
// there, hits.
func TestRangeOfPages(t *testing.T) {
	n, tables, spec := node(t)
	for i := range uint64(4) {
		tables.Map(base+i*page, 3, (10+3*i)*page, true)
	}
	read(n, base+page)
	n.SMMU.Invalidate(0, base, true) // another page of the same table: the walk cache stays
	a := n.Access(pdid, base+4000, 3*page, true)
	require.Equal(t, smmu.OK, a.Result)
	require.Equal(t, spec.WalkTime(1, memory), took(a))
	require.Equal(t, []uint64{10 * page, 13 * page, 16 * page, 19 * page}, a.Frames[:4])

	tables.Unmap(base + 2*page)
	n.SMMU.Invalidate(0, base+2*page, true)
	a = n.Access(pdid, base+4000, 3*page, true)
	require.Equal(t, smmu.Fault, a.Result)
	require.Equal(t, uint64(base+2*page), a.Failed())
	require.Zero(t, n.SMMU.Bank(0).InFlight())
}

// An access without a bank is denied at once; so is one of a bank that does not
// translate.
func TestDenied(t *testing.T) {
	n, tables, _ := node(t)
	tables.Map(base, 3, page, true)
	a := n.Access(pdid+1, base, 1, false)
	require.Equal(t, smmu.Denied, a.Result)
	require.Zero(t, took(a))
	require.Equal(t, smmu.OK, read(n, base).Result)
	n.SMMU.Write(0, smmu.SCTLR, 0)
	require.Equal(t, smmu.Denied, read(n, base).Result)
	require.Empty(t, n.Lines.Rose)
	require.Zero(t, n.SMMU.Bank(0).Read(smmu.FSR))
	require.Equal(t, uint64(2), n.SMMU.Counters().Denied)
}

// Banks are given and taken. A request that waits for a translation in a bank
// that is taken is denied, even if another process has the bank by then.
func TestBanks(t *testing.T) {
	n, tables, _ := node(t, "banks=2", "on_fault=stall")
	require.ErrorContains(t, n.SMMU.Assign(0, 9, tables), "bank 0 belongs to PDID 7")
	require.ErrorContains(t, n.SMMU.Assign(1, 7, tables), "PDID 7 has bank 0")
	require.ErrorContains(t, n.SMMU.Assign(2, 9, tables), "bank 2, expected 0 to 1")
	require.Equal(t, 1, n.SMMU.Vacant())
	require.NoError(t, n.SMMU.Assign(1, 9, tables))
	require.Equal(t, -1, n.SMMU.Vacant())
	require.Equal(t, 1, n.SMMU.BankOf(9))

	stalled := read(n, base)
	require.True(t, stalled.Open)
	tables.Map(base+page, 3, page, true)
	walking := &smmutest.Answer{Request: smmu.Request{PDID: 9, Addr: base + page, Length: 1}}
	n.Ask(walking)
	n.SMMU.Release(0)
	n.SMMU.Release(1)
	require.NoError(t, n.SMMU.Assign(1, 11, tables))
	require.NoError(t, n.Engine.Run())
	require.Equal(t, smmu.Denied, stalled.Result)
	require.Equal(t, smmu.Denied, walking.Result)
	require.Equal(t, smmu.Denied, n.Access(9, base+page, 1, false).Result)
	require.Equal(t, smmu.OK, n.Access(11, base+page, 1, false).Result)
	require.Zero(t, n.SMMU.Outstanding())
}

// A request of a process whose bank is taken is denied, even if the TLBs still
// have its page. Its walk does not serve the next process.
func TestReleaseUnderWay(t *testing.T) {
	n, tables, spec := node(t, "l1_entries=1")
	tables.Map(base, 3, page, true)
	tables.Map(base+page, 3, 2*page, true)
	read(n, base)
	read(n, base+page)
	// in the second TLB
	known := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: base, Length: 1}}
	n.Ask(known)
	n.SMMU.Release(0)
	require.NoError(t, n.Engine.Run())
	require.Equal(t, smmu.Denied, known.Result)

	require.NoError(t, n.SMMU.Assign(0, 9, tables))
	n.SMMU.InvalidateBank(0)
	before := &smmutest.Answer{Request: smmu.Request{PDID: 9, Addr: base, Length: 1}}
	n.Ask(before)
	require.NoError(t, n.Engine.RunUntil(n.Engine.Now()+100*sim.Nanosecond))
	n.SMMU.Release(0)
	require.NoError(t, n.SMMU.Assign(0, 11, tables))
	after := n.Access(11, base, 1, false)
	require.Equal(t, smmu.OK, after.Result)
	require.Equal(t, spec.WalkTime(3, memory), took(after))
	require.Equal(t, smmu.Denied, before.Result)
}

// huge asks for more pages than Frames has room for.
func huge(n *smmutest.Node, va uint64, length int) *smmutest.Answer {
	a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: va, Length: length}}
	n.Ask(a)
	for at, more := n.Engine.Next(); more; at, more = n.Engine.Next() {
		if err := n.Engine.RunUntil(at); err != nil {
			panic(err)
		}
	}
	return a
}

// Beyond the last address there is nothing. A range that runs over it, or
// begins there, faults and is not looked up page by page.
func TestBeyondAddresses(t *testing.T) {
	for _, bits := range []uint64{39, 48} {
		n, tables, spec := node(t, "address_bits="+map[uint64]string{39: "39", 48: "48"}[bits])
		end := uint64(1) << bits
		tables.Map(end-page, 3, page, true)
		a := huge(n, end-10, 1<<40)
		require.Equal(t, smmu.Fault, a.Result)
		require.Equal(t, end, a.Failed())
		require.Equal(t, spec.WalkTime(spec.Levels(), memory), took(a))
		require.Equal(t, end&(1<<48-1), n.SMMU.Bank(0).Read(smmu.FAR))
		require.Equal(t, uint64(2), n.SMMU.Counters().L1Misses)

		a = huge(n, ^uint64(0)-10, 1<<20)
		require.Equal(t, smmu.Fault, a.Result)
		require.Equal(t, ^uint64(0)-10, a.Failed())
	}
}
