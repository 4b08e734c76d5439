//go:build !tinygo

package backupring

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// Provider is the IOprovider of a node: an interrupt handler and a thread of
// its kernel.
type Provider struct {
	library *Loaded
	o       Options
	proc    *runtime.Proc // owns the device's memory and sends the kernel's messages to it
	id      portals.ID
	in      *handlers.Installed
	backup  runtime.View
	slot    int // bytes of a slot
	md      portals.Handle
	load    sim.Time // of a register of the interface
	rings   [MaxRings]*Ring
	ready   bool
	napi    *host.NAPI
	thread  *host.Thread
	taken   uint64
	stats   ProviderStats
}

// ProviderStats counts what an IOprovider has done.
type ProviderStats struct {
	Interrupts int64
	Polls      int64 // batches of frames; with os.poll_budget, in tasklets and in ksoftirqd
	Late       int64 // batches in ksoftirqd: the budget was used up
	Frames     int64 // taken out of the backup ring
	Resolved   int64 // taken frames that are in their buffers
	Waits      int64 // for IOusers to post descriptors
	Refused    int64 // frames with buffers that the IOuser cannot have: it gets an empty one
	Closed     int64 // frames of rings that were closed: nobody gets them
}

// Serve makes a node's IOprovider. Call it before the node's IOusers are
// spawned: they open their rings at it.
func (l *Loaded) Serve(node int, o Options) (*Provider, error) {
	if o.Slots == 0 {
		o.Slots = 64
	}
	if o.Slots < 1 || o.Slots > maxSlots {
		return nil, fmt.Errorf("backupring: backup ring of %d slots, expected 1 to %d", o.Slots, maxSlots)
	}
	if node < 0 || node >= l.cluster.Nodes() {
		return nil, fmt.Errorf("backupring: no node %d, expected 0 to %d", node, l.cluster.Nodes()-1)
	}
	if l.providers[node] != nil {
		return nil, fmt.Errorf("backupring: node %d has an IOprovider", node)
	}
	v := &Provider{library: l, o: o, slot: int(l.cluster.Profile().Fabric.MTU) + EntrySize}
	v.id = portals.ID{NID: uint32(node), PID: uint32(l.cluster.Processes(node))}
	v.load = l.look()
	l.providers[node] = v
	err := l.cluster.SpawnService(node, "IOprovider", func(p *runtime.Proc) error {
		if err := v.open(p); err != nil {
			return err
		}
		v.ready = true
		p.Thread().Wait("frames in the backup ring") // the kernel does the rest
		return nil
	})
	return v, err
}

// open makes the device.
func (v *Provider) open(p *runtime.Proc) (err error) {
	u := handlers.NewSetup("backupring", p)
	v.proc, v.backup = p, u.Locked(v.o.Slots*v.slot)
	arrived, tails := u.Counter("frames in the backup ring"), u.Counter("tails")
	if u.Err != nil {
		return u.Err
	}
	v.in, err = v.library.module.Install(p, handlers.Options{
		Header: Control, Payload: Receive, Shared: true,
		State: spin.EncodeState(&State{
			NID: v.id.NID, PID: v.id.PID, BackupCT: uint32(arrived), TailCT: uint32(tails),
			Slots: uint64(v.o.Slots), SlotBytes: uint64(v.slot), Free: uint64(v.o.Slots),
			Patience: uint64(v.library.cluster.Profile().HPU.MaxCycles / 4 * 3),
		}),
	})
	if err != nil {
		return fmt.Errorf("backupring: %w", err)
	}
	for pt, names := range [2][2]string{ptFrames: {"", Receive}, ptControl: {Control, ""}} {
		me := portals.ME{IgnoreBits: ^uint64(0), Options: portals.OptMEOpPut}
		v.in.Attach(&me)
		me.Spin = u.Spin(v.in, names[0], names[1])
		u.Table(uint32(pt), portals.EQNone, v.in.PTOptions)
		u.Append(uint32(pt), portals.AnyID, v.backup, me)
	}
	if v.md = u.Bind(v.backup, portals.MD{}); u.Err != nil {
		return u.Err
	}
	cpu := p.Node().CPU()
	core := 0
	if s := v.library.cluster.Profile().OS; s.On() {
		core = s.InterruptCore
	}
	v.thread = cpu.Kthread(core, "backup ring", v.resolves)
	v.napi = cpu.NewNAPI(core, "backup ring", &v.library.cluster.Profile().OS, v.frames)
	u.NI.Interrupt(arrived, v.napi.Line())
	u.NI.Interrupt(tails, cpu.RequestIRQ(core, "tail", func(*host.Thread) { v.thread.Wake() }))
	return nil
}

// frames moves at most this many frames to the queues of their rings, frees the
// slots, and wakes the thread, which may sleep. It returns the number of
// frames.
func (v *Provider) frames(t *host.Thread, most int) (done int) {
	bytes := int64(0)
	for ; done < most; done++ {
		at := int(v.taken%uint64(v.o.Slots)) * v.slot
		slot, err := v.proc.View(v.backup.Addr()+uint64(at), v.slot)
		var e Entry
		if err != nil || spin.DecodeState(slot.Snapshot(), &e) != nil || e.Number != v.taken+1 {
			break
		}
		v.taken++
		v.stats.Frames++
		r := v.rings[e.Ring%MaxRings]
		if r == nil || r.id != e.Ring || r.closing {
			v.stats.Closed++
			continue
		}
		r.hold(held{e, append([]byte(nil), slot.Snapshot()[EntrySize:][:e.Length]...)})
		bytes += int64(e.Length) + EntrySize
	}
	if done > 0 {
		v.copies(t, bytes)
		v.say(t, GivenBack, 0, uint64(done))
		v.thread.Wake()
	}
	return done
}

// copies charges a thread for a copy of n bytes.
func (v *Provider) copies(t *host.Thread, n int64) {
	v.proc.Node().Stream(t, 2*n, "copy")
}

// say sends a message to the device.
func (v *Provider) say(t *host.Thread, kind uint32, ring, number uint64) {
	// the interface is there as long as the kernel is
	_ = v.proc.NI().By(t).Put(portals.Put{MD: v.md, Target: v.id, PT: ptControl, MatchBits: Bits(kind, ring), HdrData: number})
}

// held is a frame that the IOprovider holds.
type held struct {
	Entry
	data []byte
}

// hold puts a frame into the queue of its ring, in the order of descriptors.
// Handlers of several frames run at once: one with an absent buffer finds that
// out later than a following one without a buffer.
func (r *Ring) hold(h held) {
	at := len(r.queue)
	for at > 0 && r.queue[at-1].Slot > h.Slot {
		at--
	}
	r.queue = slices.Insert(r.queue, at, h)
}

// resolves is the program of the thread. Ring by ring it copies frames to their
// buffers, until a descriptor is not yet posted.
func (v *Provider) resolves(t *host.Thread) {
	for {
		moved := false
		for _, r := range v.rings {
			for r != nil && len(r.queue) > 0 && v.next(t, r) {
				moved = true
			}
		}
		if !moved {
			t.Wait("frames in the backup ring, or descriptors")
		}
	}
}

// next copies the oldest frame of a ring to its buffer, if its descriptor was
// posted. A ring that is closed meanwhile exists until the copy is done.
func (v *Provider) next(t *host.Thread, r *Ring) (moved bool) {
	r.busy = true
	if moved = v.room(t, r); moved {
		h := r.queue[0]
		r.queue = append(r.queue[:0], r.queue[1:]...)
		v.resolve(t, r, &h)
	}
	if r.busy = false; r.closing {
		r.proc.Thread().Wake()
	}
	return moved
}

// Fault implements host.FaultHandler. It leaves pages of rings whose frames are
// kept to the thread, which has the frame. It handles all others as usual.
func (v *Provider) Fault(t *host.Thread, f host.DeviceFault) {
	d := v.proc.Node().Driver()
	for _, r := range v.rings {
		if r != nil && r.keeps() && r.proc.OS() == f.Process && f.Addr-r.memory.Addr() < uint64(r.memory.Len()) {
			d.Resolved(&f)
			return
		}
	}
	d.PageIn(t, f)
}

// room reports whether the descriptor of the oldest frame of a queue was
// posted. If not, it asks the device to report new tails from then on.
func (v *Provider) room(t *host.Thread, r *Ring) bool {
	slot := r.queue[0].Slot
	for {
		t.Run(v.load, "tail of a ring")
		if slot < r.registers().Tail {
			if r.watched {
				r.watched = false
				v.say(t, Watch, r.id, 0)
			}
			return true
		}
		if r.watched {
			return false
		}
		r.watched = true
		v.stats.Waits++
		// look again: the tail may have changed before the message, and the
		// device reports only later changes
		v.say(t, Watch, r.id, slot+1)
	}
}

// resolve copies a frame to its buffer, when the buffer and its descriptor are
// present.
func (v *Provider) resolve(t *host.Thread, r *Ring, h *held) {
	at := h.Slot % uint64(r.o.Size) * DescriptorSize
	var pins [2]host.Pin // keep descriptor and buffer present while they are written
	d := Descriptor{Used: Illegal}
	if r.pin(t, &pins[0], at, DescriptorSize) {
		_ = spin.DecodeState(r.look(at, DescriptorSize), &d)
		switch n := h.Length; {
		case uint64(d.Length) < n:
			d.Used = TooLong
		case !r.has(d.Offset, n) || !r.pin(t, &pins[1], d.Offset, n):
			d.Used = Illegal
		default:
			d.Used = uint32(n)
			r.store(t, d.Offset, h.data)
			v.copies(t, int64(n))
		}
		r.store(t, at, spin.EncodeState(&d))
	}
	if d.Used >= Illegal {
		v.stats.Refused++
	}
	pins[0].Put(t)
	pins[1].Put(t)
	v.stats.Resolved++
	v.say(t, Resolved, r.id, h.Bit)
}

// Stats returns the IOprovider's counts.
func (v *Provider) Stats() ProviderStats {
	s := v.stats
	if v.napi != nil {
		s.Interrupts, s.Polls, s.Late = v.napi.Stats.Interrupts, v.napi.Stats.Polls, v.napi.Stats.Late
	}
	return s
}

// State returns the present registers of the device, for an observer.
func (v *Provider) State() State { return handlers.Peek[State](v.in) }
