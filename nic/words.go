package nic

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Three things change HPU memory: handlers, data that their DMA operations and
// gets bring, and the host. A waiter for a change looks when one of them has
// ended. Nobody sees a handler's store before that.

// watchers are the waiters for changes of HPU memory.
type watchers struct {
	waiting []*run       // in wait32
	hosts   []*HostWatch // of processes; each looks again when it is called
}

// waitWord carries out wait32. The handler continues at once if the word has
// another value; otherwise it gives its core away.
func (d *act) waitWord(r *run) (result int64, ready bool) {
	if r.wordChanged() {
		return hpu.OK, true
	}
	m := r.task.in.handlers.memory
	m.waiting = append(m.waiting, r)
	d.lookers++
	return 0, false
}

// wordChanged reports whether the word differs from the value that the handler
// expects.
func (r *run) wordChanged() bool {
	return r.ctx.Program().Word(r.wait.local) != uint32(r.wait.a)
}

// changed lets all waiters for a change of HPU memory look again.
func (d *act) changed(m *Memory) {
	w := &m.watchers
	if len(w.waiting)+len(w.hosts) == 0 {
		return
	}
	kept := w.waiting[:0]
	for _, r := range w.waiting {
		if r.wordChanged() {
			d.woken.push(r)
			d.lookers--
		} else {
			kept = append(kept, r)
		}
	}
	clear(w.waiting[len(kept):])
	w.waiting = kept
	for d.woken.len() > 0 { // a resumed handler may change memory at once
		d.sched.resumable(d.woken.pop(), hpu.OK)
	}
	for _, look := range w.hosts {
		look.look()
	}
}

// Reach returns an error, which wraps portals.ErrArgInvalid, if a process of
// the node cannot reach n bytes at an offset of the memory.
func (h *Memory) Reach(owner any, offset uint64, n int) error {
	switch {
	case h.owner != owner:
		return fmt.Errorf("HPU memory %d of module %s is another process's: %w", h.handle, h.name, portals.ErrArgInvalid)
	case h.freed:
		return fmt.Errorf("HPU memory %d of module %s was freed: %w", h.handle, h.name, portals.ErrArgInvalid)
	case offset > uint64(h.bytes) || n < 0 || uint64(n) > uint64(h.bytes)-offset:
		return fmt.Errorf("%d bytes at offset %d of HPU memory %d of module %s, which has %d: %w", n, offset, h.handle, h.name, h.bytes, portals.ErrArgInvalid)
	}
	return nil
}

// Name is the name of the module.
func (h *Memory) Name() string { return h.name }

// HostWatch is a waiter for a change, on the host.
type HostWatch struct{ look func() }

// Watch calls look whenever the memory may have changed, until Unwatch. look
// must not call Watch or Unwatch.
func (h *Memory) Watch(look func()) *HostWatch {
	w := &HostWatch{look}
	h.hosts = append(h.hosts, w)
	h.nic.env.lookers++
	return w
}

// Unwatch ends a watch.
func (h *Memory) Unwatch(w *HostWatch) {
	if i := slices.Index(h.hosts, w); i >= 0 {
		h.hosts = slices.Delete(h.hosts, i, i+1)
		h.nic.env.lookers--
	}
}

// Write writes bytes of the host to the memory at a later moment, at an offset
// from its beginning. It copies the bytes now.
func (h *Memory) Write(at sim.Time, offset uint64, b []byte) {
	n := h.nic
	w := n.act.hostWrites.take()
	w.memory, w.offset = h, offset
	w.data = append(w.data[:0], b...)
	h.uses++
	n.env.post(at, kindHostWrote, 0, w)
}

// hostWrite is bytes of the host on their way to HPU memory.
type hostWrite struct {
	memory *Memory
	offset uint64
	data   []byte
}

// hostWrote runs when the bytes arrive.
func (d *act) hostWrote(w *hostWrite) {
	m := w.memory
	m.uses--
	copy(m.Present()[w.offset:], w.data)
	d.hostWrites.give(w)
	d.changed(m)
}
