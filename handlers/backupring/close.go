//go:build !tinygo

package backupring

import (
	"errors"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// alloc allocates memory of the ring. If it must stay it is locked, and no
// child of the process inherits it.
func (r *Ring) alloc(n int, stay bool) (v runtime.View, err error) {
	p := r.proc
	if p.SettingUp() == nil || p.OS() == nil {
		v = p.Alloc(n)
		if stay && p.SettingUp() == nil {
			v.Lock()
		}
		return v, nil
	}
	addr, err := p.OS().Map(p.Thread(), n)
	if err != nil {
		return v, err
	}
	if v, err = p.View(addr, n); err != nil || !stay {
		return v, err
	}
	return v, errors.Join(p.OS().Lock(p.Thread(), addr, uint64(n)), p.OS().DontFork(p.Thread(), addr, uint64(n)))
}

// introduce shows the descriptors to the interface when the ring is made, as
// drivers of such interfaces do with queues. They may go away again. Buffers
// come when they are used.
func (r *Ring) introduce() error {
	switch {
	case r.proc.SettingUp() == nil:
		r.memory.Slice(0, r.buffers).Raw()
	case r.proc.OS() != nil:
		var pin host.Pin
		defer pin.Put(r.proc.Thread())
		return r.proc.OS().GetUserPages(r.proc.Thread(), r.memory.Addr(), uint64(r.buffers), true, &pin)
	}
	return nil
}

// Close frees everything the ring has: its place in the interface, the counter,
// descriptors and entries of Portals, the grant, and, with an operating system,
// its memory. Frames that nobody has received are lost, and later ones are
// counted as Stray. Only the process of the ring may call it. It waits until no
// frame is on its way into the ring's memory: that takes microseconds, or as
// long as a page that the IOprovider is bringing in. Errors: ErrClosed; errors
// of the operating system (munmap).
func (r *Ring) Close() error {
	if r.closing {
		return ErrClosed
	}
	v, t := r.provider, r.proc.Thread()
	r.stats, r.closing = r.Stats(), true
	v.say(t, Closed, r.id, 0)
	for r.busy {
		t.Wait("the IOprovider, which copies a frame to the ring that is to be closed")
	}
	v.stats.Closed += int64(len(r.queue))
	r.queue = nil
	for quiet := false; !quiet; {
		t.Run(v.load, "registers of a ring")
		x := r.registers()
		r.stats = x.Stats
		told, err := r.proc.NI().Objects().CTGet(r.changed)
		if err != nil {
			return err
		}
		quiet = x.Generation > r.id/MaxRings && x.Ticket == x.Turn && x.Begun == x.Stats.Stored+x.Stats.Absent && told.Success+told.Failure == x.Told
	}
	err := r.release()
	copy(v.place(r.place()), spin.EncodeState(&RingState{Generation: r.registers().Generation}))
	v.rings[r.place()] = nil
	return err
}

// ErrPortClosed is the error of a closed port.
var ErrPortClosed = errors.New("backupring: the port is closed")

// Drain waits until all sent frames have left the memory. Only the process of
// the port may call it.
func (o *Port) Drain() error {
	for {
		left, _, err := o.Left()
		if err != nil || left >= o.sent {
			return err
		}
		o.proc.Thread().Run(o.library.look(), "frames that have not left")
	}
}

// Close frees the port's descriptor and counter when all frames have left. Only
// the process of the port may call it. Errors: ErrPortClosed.
func (o *Port) Close() error {
	if o.closed {
		return ErrPortClosed
	}
	err := o.Drain()
	o.closed = true
	return errors.Join(err, release(o.proc, o.library.look(), o.md, o.ni.Objects().MDRelease), release(o.proc, o.library.look(), o.left, o.ni.Objects().CTFree))
}

// look returns the time to read a register of the interface.
func (l *Loaded) look() sim.Time { return 2 * l.cluster.Profile().DMA.Latency }

// release frees a handle, if there is one, as soon as nobody uses it. Each
// check takes the time look.
func release(p *runtime.Proc, look sim.Time, h portals.Handle, f func(portals.Handle) error) error {
	for h != 0 {
		if err := f(h); !errors.Is(err, portals.ErrInUse) {
			return err
		}
		p.Thread().Run(look, "a descriptor that is in use")
	}
	return nil
}

// release frees what open has taken, or the part of it that exists.
func (r *Ring) release() (err error) {
	p, ni := r.proc, r.proc.NI()
	free := func(h portals.Handle, f func(portals.Handle) error) {
		err = errors.Join(err, release(p, r.provider.load, h, f))
	}
	if r.space != 0 {
		err = p.Revoke(r.provider.in.HPU, r.space)
	}
	free(r.md, ni.Objects().MDRelease)
	free(r.entry, ni.Objects().MEUnlink)
	if r.told {
		err = errors.Join(err, ni.Objects().PTFree(ptHead))
	}
	free(r.changed, ni.Objects().CTFree)
	for _, memory := range [...]runtime.View{r.memory, r.head} {
		if p.OS() != nil && memory.Len() > 0 {
			err = errors.Join(err, p.OS().Unmap(p.Thread(), memory.Addr(), uint64(memory.Len())))
		}
	}
	return err
}
