package driver

import (
	"errors"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// alloc makes memory of the ring: what stays is locked, and no child of the process has it.
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

// Close gives back all that the ring has: its place in the interface, the counter, descriptors and entries of Portals, the grant, and, where there is an operating system, its memory. Frames that
// nobody has received are lost, and those that still come are counted as Stray. It is for the process of the ring, which waits until no frame is on its way into its memory: that takes microseconds,
// or what a page takes that the IOprovider is bringing in. Errors: ErrClosed; those of the operating system (munmap).
func (r *Ring) Close() error {
	if r.closing {
		return ErrClosed
	}
	v, t := r.provider, r.proc.Thread()
	r.stats, r.closing = r.Stats(), true
	v.say(t, backupring.Closed, r.id, 0)
	for r.busy {
		t.Wait("the IOprovider, which copies a frame to the ring that is to be closed")
	}
	v.stats.Closed += int64(len(r.queue))
	r.queue = nil
	for quiet := false; !quiet; {
		t.Run(v.load, "registers of a ring")
		x := r.registers()
		r.stats = x.Stats
		told, err := r.proc.NI().CTGet(r.changed)
		if err != nil {
			return err
		}
		quiet = x.Generation > r.id/backupring.MaxRings && x.Ticket == x.Turn && x.Storing == [len(x.Storing)]uint64{} && told.Success+told.Failure == x.Told
	}
	err := r.release()
	copy(v.place(r.place()), spin.EncodeState(&backupring.Ring{Generation: r.registers().Generation}))
	v.rings[r.place()] = nil
	return err
}

// release gives back what open has taken, or the part of it that it has.
func (r *Ring) release() (err error) {
	p, ni := r.proc, r.proc.NI()
	free := func(h portals.Handle, f func(portals.Handle) error) {
		for h != 0 {
			e := f(h)
			if !errors.Is(e, portals.ErrInUse) {
				err = errors.Join(err, e)
				return
			}
			p.Thread().Run(r.provider.load, "a descriptor that is in use")
		}
	}
	if r.space != 0 {
		err = p.Revoke(r.provider.in.HPU, r.space)
	}
	free(r.md, ni.MDRelease)
	free(r.entry, ni.MEUnlink)
	if r.told {
		err = errors.Join(err, ni.PTFree(ptHead))
	}
	free(r.changed, ni.CTFree)
	for _, memory := range [...]runtime.View{r.memory, r.head} {
		if p.OS() != nil && memory.Len() > 0 {
			err = errors.Join(err, p.OS().Unmap(p.Thread(), memory.Addr(), uint64(memory.Len())))
		}
	}
	return err
}
