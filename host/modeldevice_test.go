package host_test

import (
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
)

// nicModel is a device that reads and writes the memory of programs. It
// translates by the tables, keeps translations until an invalidation, and takes
// some time for an access.
type nicModel struct {
	m       *model
	tlbs    map[*host.Process]map[uint64]translation
	flying  []*flight
	waiting []*host.Thread
	landed  int
}

type translation struct {
	frame uint64
	write bool
}

// flight is an access.
type flight struct {
	g     *job
	at    *refPage
	x     *refMap
	va    uint64 // of the page
	off   int
	n     int
	write bool
	frame uint64
	tries int
	// doubtful: it writes to a page that is being discarded; it may land before or
	// after
	doubtful bool
}

// InvalidateRange implements host.Notifier. The device has one cache for all
// processes, and invalidates more than it must.
func (d *nicModel) InvalidateRange(start, end uint64, _ bool) {
	for _, g := range d.m.programs {
		tlb := d.tlbs[g.p]
		if (end-start)/page > 64 {
			clear(tlb)
		}
		for va := start; va < end && len(tlb) > 0; va += page {
			delete(tlb, va)
		}
	}
}

// Sync implements host.Notifier.
func (d *nicModel) Sync(t *host.Thread) {
	for _, f := range slices.Clone(d.flying) {
		for slices.Contains(d.flying, f) {
			d.waiting = append(d.waiting, t)
			t.Wait("the device")
		}
	}
}

// start begins an access to some memory of a program.
func (d *nicModel) start(g *job) {
	x, first, n, ok := g.pick(1)
	if !ok || n != 1 {
		return
	}
	from, to := g.span(x, first, 1)
	d.try(&flight{
		g: g, at: x.pages[first], x: x, va: x.addr + uint64(first)*page, off: from % page, n: to - from, write: d.m.rng.IntN(3) > 0,
	})
}

// try translates, or requests the page from the driver.
func (d *nicModel) try(f *flight) {
	m := d.m
	if f.g.over || m.err != nil {
		return
	}
	tlb := d.tlbs[f.g.p]
	for _, w := range []bool{false, true} {
		_, is := hosttest.Walk(f.g.p.Tables(), m.Kernel.Spec().AddressBits, f.va, w)
		m.check(f.g.p.Present(f.va, w) == is, "%#x of %s is in the tables: %v, and the kernel knows %v", f.va, f.g.p.Name(), is, !is)
	}
	frame, ok := hosttest.Walk(f.g.p.Tables(), m.Kernel.Spec().AddressBits, f.va, false)
	_, write := hosttest.Walk(f.g.p.Tables(), m.Kernel.Spec().AddressBits, f.va, true)
	if had, known := tlb[f.va]; known {
		m.check(ok && had.frame == frame && had.write == write, "the device was not told about %#x of %s: %+v, is %#x %v %v", f.va, f.g.p.Name(), had, frame, ok, write)
	}
	if !ok || f.write && !write {
		if f.tries++; f.tries < 4 {
			m.faults = append(m.faults, f)
			m.driver.Schedule(0)
		}
		return
	}
	tlb[f.va] = translation{frame, write}
	f.frame = frame
	// another page, if its target was discarded
	if at := f.x.pages[(f.va-f.x.addr)/page]; at != nil {
		f.at = at
	}
	f.doubtful = f.g.discarding
	d.flying = append(d.flying, f)
	m.At(m.Engine.Now()+sim.Time(m.rng.IntN(30_000))*ns, func() { d.land(f) })
}

// land ends an access: the bytes move.
func (d *nicModel) land(f *flight) {
	d.landed++
	m := d.m
	d.flying = slices.DeleteFunc(d.flying, func(o *flight) bool { return o == f })
	for _, t := range d.waiting {
		t.Wake()
	}
	d.waiting = d.waiting[:0]
	m.check(m.Kernel.FrameUsed(f.frame), "page %#x was given away under the device", f.frame)
	b, ok := f.g.p.Space().Bytes(f.va+uint64(f.off), uint64(f.n))
	m.check(ok, "the bytes of %#x have gone under the device", f.va)
	if !ok {
		return
	}
	if !f.write {
		discarded := f.doubtful || f.at != f.x.pages[(f.va-f.x.addr)/page]
		m.check(discarded || f.at.match(f.off, b), "the device reads wrong bytes at %#x of %s", f.va+uint64(f.off), f.g.p.Name())
		return
	}
	if f.g.forking {
		for i := range b {
			f.g.landed = append(f.g.landed, landing{f.at, f.off + i, f.at.data[f.off+i]})
			for _, v := range f.at.alt[f.off+i] {
				f.g.landed = append(f.g.landed, landing{f.at, f.off + i, v})
			}
		}
	}
	before := f.at.child()
	fill(m.rng, b)
	f.at.write(f.off, b)
	for i := range b {
		if at := f.off + i; f.doubtful {
			f.at.allow(at, append(before.alt[at], before.data[at])...)
		}
	}
}

// resolve is the driver's tasklet: it brings in the pages that the device has
// missed.
func (m *model) resolve(t *host.Thread) {
	for len(m.faults) > 0 {
		f := m.faults[0]
		m.faults = m.faults[1:]
		if f.g.over {
			continue
		}
		var pin host.Pin
		err := f.g.p.GetUserPages(t, f.va, 1, f.write, &pin)
		pin.Put(t)
		if err == nil {
			m.device.try(f)
		}
	}
}
