package part

import (
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ready reserves the buffers of a process and opens its way. The pages of a
// buffer come when they are touched. Exchanges share the buffer of a side whose
// pages are present, so that the SMMU knows them. Buffers are aligned to
// blocks, so that a buffer of 16 KiB is one block (P: transfers of up to 16 KB
// are one block, of 4 pages).
func (w *faulting) ready(p *runtime.Proc, source, destination bool) error {
	buffer := func(side int, fresh bool) runtime.View {
		if fresh {
			return w.buffer(p)
		}
		if w.kept[side].Len() == 0 {
			w.kept[side] = w.buffer(p)
		}
		return w.kept[side]
	}
	for i := range w.exchanges {
		x := &w.exchanges[i]
		if source {
			x.src = buffer(0, x.holes[0] != nil)
		}
		if destination {
			x.dst = buffer(1, x.holes[1] != nil)
		}
	}
	return w.way.open(p)
}

// buffer allocates a buffer.
func (w *faulting) buffer(p *runtime.Proc) runtime.View {
	before := 0
	if w.Text("align") == alignPage {
		before = pageBytes
	}
	return p.AllocAligned(before+w.bytes, rdma.MaxBlock).Slice(before, before+w.bytes)
}

// expected returns the bytes of a transfer. An absent page of the source is
// zeros.
func (w *faulting) expected(n int, x *exchange, i int) []byte {
	b := memory.Make[byte](n)
	experiment.Pattern(b, w.Seed+uint64(i))
	for k, hole := range x.holes[0] {
		if hole {
			clear(b[k*pageBytes : min(len(b), (k+1)*pageBytes)])
		}
	}
	return b
}

// fill writes the present pages of the source.
func (w *faulting) fill(x *exchange, i int) {
	b := w.expected(x.src.Len(), x, i)
	each(x.src, x.holes[0], func(v runtime.View, from int) { v.CopyFrom(b[from : from+v.Len()]) })
}

// lay writes the present pages of the destination, with bytes that differ from
// the data.
func (w *faulting) lay(x *exchange) {
	each(x.dst, x.holes[1], func(v runtime.View, _ int) {
		b := v.Write()
		for i := range b {
			b[i] = 0xee
		}
	})
}

// each calls f for the ranges of a buffer without holes.
func each(v runtime.View, holes []bool, f func(v runtime.View, from int)) {
	for from := 0; from < v.Len(); {
		page := from / pageBytes
		to := min(v.Len(), (page+1)*pageBytes)
		if holes != nil && holes[page] {
			from = to
			continue
		}
		for to < v.Len() && (holes == nil || !holes[to/pageBytes]) {
			to = min(v.Len(), to+pageBytes)
		}
		f(v.Slice(from, to), from)
		from = to
	}
}

// prepare prepares a buffer before a transfer as the policy requires, and notes
// the begin and the end. It touches or pins pages that are present, too,
// because a program does not know which ones are absent.
func (w *faulting) prepare(p *runtime.Proc, x *exchange, v runtime.View, side string, took []sim.Time) error {
	took[0] = p.Now()
	defer func() { took[1] = p.Now() }()
	if w.quiet(x) || w.side != side && w.side != sideBoth && w.Text("prepares") != sideBoth {
		return nil
	}
	switch w.policy {
	case policyTouch, policyTouchPresent:
		touchPages(p, v)
	case policyPin, policyPinPresent:
		return p.OS().Lock(p.Thread(), v.Addr(), uint64(v.Len()))
	}
	return nil
}

// quiet reports whether an exchange comes before the measured ones.
func (w *faulting) quiet(x *exchange) bool {
	return len(w.exchanges) > 2 && (x == &w.exchanges[0] || x == &w.exchanges[1])
}

// touchPages reads and writes a byte of every page. Each costs a line of
// memory, because the program has not used the page for long and no cache has
// it.
func touchPages(p *runtime.Proc, v runtime.View) {
	memory := p.Reads(used.MemoryLatency).Host.MemoryLatency
	for from := 0; from < v.Len(); from += pageBytes {
		b := v.Slice(from, from+1).Write()
		b[0] = b[0] + 0
		p.Thread().Run(memory, "touch")
	}
}

// forget gives back the buffers of the exchange before i, outside the measured
// time.
func (w *faulting) forget(p *runtime.Proc, i int, source, destination bool) error {
	if i == 0 {
		return nil
	}
	x := &w.exchanges[i-1]
	for side, v := range []runtime.View{x.src, x.dst} {
		if x.holes[side] == nil || side == 0 && !source || side == 1 && !destination {
			continue
		}
		if err := p.OS().Unmap(p.Thread(), v.Addr(), uint64(v.Len())); err != nil {
			return err
		}
	}
	return nil
}
