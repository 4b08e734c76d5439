package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// HPUWrite writes bytes to HPU memory of the process while handlers work on it.
// A core stores them itself: it posts them for the overhead o and goes on; they
// cross the bus towards the device and are there, all at once, a latency after
// the last has left. Handlers see them from then on, those in wait32 at that
// moment. The bytes are taken at the call; writes of a process arrive in their
// order. Errors: portals.ErrArgInvalid, the memory is another process's or was
// freed, or has no such range.
func (p *Proc) HPUWrite(m *nic.Memory, offset uint64, b []byte) error {
	if err := p.reaches(m, offset, len(b)); err != nil {
		return err
	}
	p.compute(p.node.cluster.profile.NIC.Overhead, "write to HPU memory")
	_, there := p.node.bus.Store(int64(len(b)))
	m.Write(there, offset, b)
	return nil
}

// HPURead reads HPU memory of the process into b: a core loads it itself and
// waits for the answer, two latencies and the time of the bytes. They are those
// of the moment at which the request is at the device, behind what the process
// has written before. Errors as HPUWrite.
func (p *Proc) HPURead(m *nic.Memory, offset uint64, b []byte) error {
	if err := p.reaches(m, offset, len(b)); err != nil {
		return err
	}
	p.hpuLoad(m, offset, b, p.node.bus.LoadAsked())
	return nil
}

// hpuLoad is a load whose request is at the device at a time.
func (p *Proc) hpuLoad(m *nic.Memory, offset uint64, b []byte, asked sim.Time) {
	p.compute(asked-p.Now(), "read of HPU memory")
	copy(b, m.Bytes()[offset:])
	p.compute(p.node.bus.LoadAnswered(int64(len(b)))-p.Now(), "read of HPU memory")
}

// HPUWait reads n bytes of HPU memory again and again until they are what it
// waits for, and returns them. The core loads them back to back, as
// [Proc.HPURead]; of looks that cannot see anything new only the time is
// counted, and they take no part in the bus. Nobody sees what a handler stores
// before it suspends or ends. A wait for ever ends the run with an error that
// names the memory. Errors as HPUWrite.
func (p *Proc) HPUWait(m *nic.Memory, offset uint64, n int, until func(b []byte) bool) ([]byte, error) {
	if err := p.reaches(m, offset, n); err != nil {
		return nil, err
	}
	changed, at := false, sim.Time(0)
	w := m.Watch(func() {
		changed, at = true, p.node.cluster.engine.Now()
		if p.waits == memoryHandle {
			p.thread.Wake()
		}
	})
	defer m.Unwatch(w)
	b := make([]byte, n)
	bus := &p.node.bus
	round := max(bus.LoadTime(int64(n)), 1)
	for asked := bus.LoadAsked(); ; {
		began := asked - bus.Latency()
		p.hpuLoad(m, offset, b, asked)
		if until(b) {
			return b, nil
		}
		if !changed || at < asked {
			changed = false
			p.wait.memory, p.wait.offset, p.wait.bytes = m, offset, n
			p.park(memoryHandle)
		}
		changed = false
		// The first of the looks made back to back that is at the device when there is something to see.
		looks := max(1, (at-bus.Latency()-began+round-1)/round)
		asked = max(began+looks*round+bus.Latency(), p.Now())
	}
}

// reaches is an error if a process cannot reach bytes of HPU memory.
func (p *Proc) reaches(m *nic.Memory, offset uint64, n int) error {
	if m == nil {
		return fmt.Errorf("runtime: process %s of rank %d: no HPU memory: %w", p.name, p.Rank(), portals.ErrArgInvalid)
	}
	err := m.Reach(p, offset, n)
	if err != nil {
		err = fmt.Errorf("runtime: process %s of rank %d: %w", p.name, p.Rank(), err)
	}
	return err
}
