package part

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// plain are the choices of exanest-qfdb@2026-11.
var plain = []string{"os.fault_ask=block", "os.fault_touch=write", "os.fault_search=0us", "os.netlink_wake=0us"}

// fault writes pages, all absent, with choices about the driver.
func fault(t *testing.T, p Policy, pages int, set ...string) (s Stats, resent uint64, at sim.Time) {
	t.Helper()
	o := run{Options: Options{Policy: p}, bytes: pages * 4096, dest: true, set: append(slices.Clone(plain), set...)}.do(t)
	return o.stats(1), o.pages[0].Counts().Sent.Retransmitted, o.arrived
}

// A block is asked for once; with each page, of which those for an attempt that
// is over have no effect; or with one message for all blocks of a run.
func TestWhenABlockIsAskedFor(t *testing.T) {
	block, again, _ := fault(t, PIO, 4)
	require.Equal(t, []int64{1, 1}, []int64{block.Messages, block.Requests})
	require.EqualValues(t, 1, again)
	each, again, _ := fault(t, PIO, 4, "os.fault_ask=page")
	require.GreaterOrEqual(t, each.Requests, int64(4), "one for each page")
	require.Equal(t, each.Messages, each.Requests)
	require.Less(t, int64(again), each.Requests, "the source ignores some")
	all, again, _ := fault(t, PIO, 8, "os.fault_ask=run")
	require.Less(t, all.Messages, all.Requests, "two blocks with one message")
	require.EqualValues(t, all.Requests, again)
}

// Pages side by side need one call of get_user_pages. The four pages of a block
// fault during the call for the first one.
func TestPagesSideBySide(t *testing.T) {
	os := &must(profile.Load("exanest-qfdb")).OS
	each, _, before := fault(t, PIO, 4)
	one, _, after := fault(t, PIO, 4, "os.fault_gather=true")
	require.Equal(t, []int64{4, 4}, []int64{each.Ranges, each.Pages})
	require.Less(t, one.Ranges, each.Ranges)
	require.EqualValues(t, 4, one.Pages)
	require.Equal(t, sim.Time(each.Ranges-one.Ranges)*os.GupCall, before-after)
}

// A run that reads the FIFO at its beginning only leaves later entries to
// another run, and none is forgotten.
func TestLooksOnce(t *testing.T) {
	again, _, _ := fault(t, PIO, 16, "os.fault_batch=0")
	once, _, _ := fault(t, PIO, 16, "os.fault_batch=0", "os.fault_look=once")
	require.Equal(t, again.Entries, once.Entries)
	require.Greater(t, once.Receives, again.Receives)
}

// The search of PIA and the wake-up of the thread add their times; PIO does not
// search.
func TestTimesOfThreadAndSearch(t *testing.T) {
	const two = 2 * sim.Microsecond
	_, _, pio := fault(t, PIO, 1)
	_, _, pia := fault(t, PIA, 1)
	_, _, same := fault(t, PIO, 1, "os.fault_search=2us")
	_, _, searched := fault(t, PIA, 1, "os.fault_search=2us")
	_, _, woken := fault(t, PIO, 1, "os.netlink_wake=2us")
	require.Equal(t, pio, same)
	require.Equal(t, pia+two, searched)
	require.Equal(t, pio+two, woken)
}

// On the core of interrupts the thread waits for the tasklet's end, and on that
// of the program for nobody.
func TestCoreOfTheThread(t *testing.T) {
	_, _, next := fault(t, PIO, 1)
	_, _, process := fault(t, PIO, 1, "os.netlink_core=process")
	_, _, interrupt := fault(t, PIO, 1, "os.netlink_core=interrupt")
	require.LessOrEqual(t, next, process)
	require.Greater(t, interrupt, next)
}

// The hardware may make an entry for each cell, and may drop cells behind one
// that was refused. A driver that forgets its blocks handles more entries.
func TestEntriesOfCells(t *testing.T) {
	one, _, _ := fault(t, PIO, 1)
	every, _, _ := fault(t, PIO, 1, "pools.r5.state.every=1")
	require.EqualValues(t, 1, one.Entries)
	require.EqualValues(t, 16, every.Entries, "cells of a page")
	require.Equal(t, one.Pages, every.Pages, "the page comes once")
	dropped, _, _ := fault(t, PIO, 1, "pools.r5.state.every=1", "pools.r5.state.drop=1")
	require.Less(t, dropped.Entries, every.Entries)
	pages, resent, _ := fault(t, PIO, 4, "pools.r5.state.drop=1")
	require.EqualValues(t, 4, pages.Pages)
	require.EqualValues(t, 1, resent)
	pages, resent, _ = fault(t, PIO, 4, "pools.r5.state.drop=2")
	require.EqualValues(t, 4, pages.Pages)
	require.EqualValues(t, 4, resent, "each page is met by an attempt of its own")
}

// A transfer that is suspended while one of its blocks has failed has no third
// block under way, so that a later end of the page-in delays all others.
func TestSuspendedTransfer(t *testing.T) {
	_, _, on := fault(t, PIO, 32)
	_, _, suspended := fault(t, PIO, 32, "pools.r5.state.suspend=1")
	require.Greater(t, suspended, on)
}

// A NACK may start the time-out again: a page-in that takes longer than the
// time-out, but not by as much as the NACK came later, then needs no second
// attempt. Attempts that were asked for do not lengthen time-outs.
func TestTimeoutAfterANACK(t *testing.T) {
	sent := func(set ...string) uint64 {
		o := run{bytes: 4096, dest: true, set: append(slices.Clone(plain), set...), state: map[string]any{"rdma.timeout": 24_000}}.do(t)
		return o.pages[0].Counts().Sent.Timeouts
	}
	require.Zero(t, sent("pools.r5.state.restart=1"))
	require.NotZero(t, sent())
}

// A thread that reads a page before it writes it meets two page faults.
func TestTouchReadsAndWrites(t *testing.T) {
	os := &must(profile.Load("exanest-qfdb")).OS
	at := func(set ...string) sim.Time {
		return run{Options: Options{Method: Touch}, bytes: 4096, dest: true, set: append(slices.Clone(plain), set...)}.do(t).arrived
	}
	require.Equal(t, os.FaultZero+os.FaultCopy-os.FaultAbsent, at("os.fault_touch=read-write")-at())
}

// A fault names the owner of its page, the attempt, and the time. No page of a
// block is reported twice in one attempt, times never decrease, and the node is
// the destination.
func TestFaultsAreNamed(t *testing.T) {
	type asked struct {
		block Block
		page  uint64
	}
	seen, at := map[asked]bool{}, sim.Time(0)
	transactions := map[uint32]bool{}
	run{bytes: 256 << 10, dest: true, Options: Options{Policy: func(f Fault) Plan {
		require.Equal(t, []any{1, "target", uint32(0), true, false}, []any{f.Node, f.Process.Name(), f.Block.Node, f.Block.Known, f.Source})
		require.GreaterOrEqual(t, f.At, at)
		at = f.At
		require.False(t, seen[asked{f.Block, f.Page}], "%+v", f)
		seen[asked{f.Block, f.Page}] = true
		transactions[f.Block.Transaction] = true
		return PIO(f)
	}}}.do(t)
	require.Len(t, seen, 64)
	require.Greater(t, len(transactions), 1)
}
