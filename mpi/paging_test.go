package mpi_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const pageBytes = 4096

// demand is a page table whose pages come when they are touched. The tests also
// guard memory (package guard), which finds an access without a touch.
type demand struct {
	read, written map[uint64]bool
	cost          sim.Time   // of a page fault
	thief         *rand.Rand // takes pages away at page faults; may be nil
	firsts        int        // number of pages that came
}

func newDemand(cost sim.Time) *demand {
	return &demand{read: map[uint64]bool{}, written: map[uint64]bool{}, cost: cost}
}

func (d *demand) Touch(addr, n uint64, write bool) (absent host.Pages) {
	for page := addr / pageBytes; page <= (addr+n-1)/pageBytes; page++ {
		switch there := d.written[page] || !write && d.read[page]; {
		case there && absent.Count > 0:
			return absent
		case there:
		case absent.Count == 0:
			absent = host.Pages{First: page * pageBytes, Count: 1}
		default:
			absent.Count++
		}
	}
	return absent
}

func (d *demand) Fault(t *host.Thread, p host.Pages, write bool) error {
	d.firsts += p.Count
	for page := p.First / pageBytes; page < p.First/pageBytes+uint64(p.Count); page++ {
		d.read[page] = true
		d.written[page] = d.written[page] || write
	}
	if d.thief != nil {
		for page := uint64(16); page < 256; page++ {
			switch d.thief.IntN(12) { // rare enough that two pages can be present at once
			case 0:
				delete(d.read, page)
				delete(d.written, page)
			case 1:
				delete(d.written, page)
			}
		}
	}
	if t != nil {
		t.Run(d.cost, "page fault")
	}
	return nil
}

// drawPaging draws page tables for ranks, or none.
func drawPaging(rt *rapid.T) func(rank int) host.PageTable {
	if !rapid.Bool().Draw(rt, "paging") {
		return nil
	}
	cost := rapid.SampledFrom([]sim.Time{0, 100 * sim.Nanosecond, 50 * sim.Microsecond}).Draw(rt, "fault")
	thieves := rapid.Bool().Draw(rt, "thieves")
	return func(rank int) host.PageTable {
		d := newDemand(cost)
		if thieves {
			d.thief = rand.New(rand.NewPCG(uint64(rank), 7))
		}
		return d
	}
}

// The pages that the ranks of one message touch first. Each costs what the page
// table charges, and nothing else does.
//
// The sender writes its message and, for a large one, the announcement. The
// receiver reads its two pages at the end. If its core takes part, it first
// reads the data in a buffer (one page) and copies it to its own memory. The
// first page of that memory is then present, so the total is one page more. An
// announcement is also read in the buffer. If a core fetches the message, it
// copies the data in the announcement, if there is any. Nobody touches data
// that the NIC writes to its place.
func TestFirstTouches(t *testing.T) {
	const small, large = 700, 5000
	for _, c := range []struct {
		form             mpi.Matching
		bytes            int
		late             bool
		sender, receiver int
	}{
		{mpi.Offload, small, false, 1, 2},
		{mpi.Offload, small, true, 1, 1 + 1 + 1},
		{mpi.Offload, large, false, 2 + 1, 2},
		{mpi.Offload, large, true, 2 + 1, 1 + 1 + 1},
		{mpi.Host, small, false, 1, 1 + 1 + 1},
		{mpi.Host, small, true, 1, 1 + 1 + 1},
		{mpi.Host, large, false, 2 + 1, 1 + 2},
		{mpi.Host, large, true, 2 + 1, 1 + 2},
		{mpi.Offload, 0, false, 0, 2},
		{mpi.Host, 0, true, 0, 2},
	} {
		t.Run(fmt.Sprintf("%s/%d/%v", c.form, c.bytes, c.late), func(t *testing.T) {
			ends := map[string]sim.Time{}
			for _, cost := range []sim.Time{-1, 0, sim.Microsecond} {
				var tables []*demand
				cfg := runtime.Config{}
				if cost >= 0 {
					cfg.Pages = func(rank int) host.PageTable {
						require.Len(t, tables, rank)
						tables = append(tables, newDemand(cost))
						return tables[rank]
					}
				}
				w := newWorld(t, 2, options(c.form), cfg)
				exchange(t, w, c.bytes, c.late, 0, 7)
				ends[cost.String()] = w.Cluster().Engine().Now()
				if cost >= 0 {
					require.Equal(t, []int{c.sender, c.receiver}, []int{tables[0].firsts, tables[1].firsts})
				}
			}
			require.Equal(t, ends[sim.Time(-1).String()], ends[sim.Time(0).String()], "faults that cost nothing change no time")
			require.Less(t, ends[sim.Time(0).String()], ends[sim.Microsecond.String()])
		})
	}
}

// A storm on one buffer arrives whole although thieves take pages at every page
// fault.
func TestStormWithThieves(t *testing.T) {
	const senders, each, n = 6, 10, 3000
	for _, form := range mpi.Forms() {
		o := options(form)
		o.Buffers, o.BufferBytes = 1, o.Eager+16
		tables := make([]*demand, senders+1)
		w := newWorld(t, senders+1, o, runtime.Config{Pages: func(rank int) host.PageTable {
			tables[rank] = newDemand(sim.Microsecond)
			tables[rank].thief = rand.New(rand.NewPCG(uint64(rank), 1))
			return tables[rank]
		}})
		for rank := 1; rank <= senders; rank++ {
			require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error { return storm(r, each, n) }))
		}
		require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error { return shelter(r, senders, each, n) }))
		require.NoError(t, w.Run(context.Background()))
		require.EqualValues(t, senders*each, w.Stats().Received)
		require.Greater(t, tables[0].firsts, 10, "the thieves take too little to say anything")
	}
}
