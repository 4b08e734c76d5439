package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// HPUWrite writes bytes to HPU memory of the process while handlers use it. The
// core stores them itself: it posts them for the overhead o and continues. The
// bytes cross the bus and all arrive at once, one latency after the last has
// left. From then on handlers see them; a handler in wait32 sees them at that
// moment. The bytes are copied at the call. Writes of one process arrive in
// order. Error: portals.ErrArgInvalid if the memory is another process's, was
// freed, or has no such range.
func (p *Proc) HPUWrite(m *nic.Memory, offset uint64, b []byte) error {
	if err := p.reaches(m, offset, len(b)); err != nil {
		return err
	}
	p.thread.Run(p.Reads(used.Post).NIC.Overhead, "write to HPU memory")
	_, there := p.node.bus.Store(int64(len(b)))
	m.Write(there, offset, b)
	return nil
}

// HPURead reads HPU memory of the process into b. The core loads it itself and
// waits for the answer: two latencies and the time of the bytes. The values are
// as of the moment the request reaches the device, after all earlier writes of
// the process. Errors as HPUWrite.
func (p *Proc) HPURead(m *nic.Memory, offset uint64, b []byte) error {
	if err := p.reaches(m, offset, len(b)); err != nil {
		return err
	}
	p.hpuLoad(m, offset, b, p.node.bus.LoadAsked())
	return nil
}

// hpuLoad performs a load whose request reaches the device at time asked.
func (p *Proc) hpuLoad(m *nic.Memory, offset uint64, b []byte, asked sim.Time) {
	p.thread.Run(asked-p.Now(), "read of HPU memory")
	copy(b, m.Present()[offset:])
	p.thread.Run(p.node.bus.LoadAnswered(int64(len(b)))-p.Now(), "read of HPU memory")
}

// HPUWait reads n bytes of HPU memory repeatedly until the condition until
// holds, and returns them. The core loads back to back, as [Proc.HPURead] does.
// Looks that cannot see a change only take time; they do not load the bus. The
// process does not see a handler's stores before the handler suspends or ends.
// If the condition never holds, the run ends with an error that names the
// memory. Errors as HPUWrite.
func (p *Proc) HPUWait(m *nic.Memory, offset uint64, n int, until func(b []byte) bool) ([]byte, error) {
	if err := p.reaches(m, offset, n); err != nil {
		return nil, err
	}
	changed, at := false, sim.Time(0)
	w := m.Watch(func() {
		changed, at = true, p.Now()
		if p.wait.handle == memoryHandle {
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
		// The first back-to-back look that reaches the device after the change.
		looks := max(1, (at-bus.Latency()-began+round-1)/round)
		asked = max(began+looks*round+bus.Latency(), p.Now())
	}
}

// reaches returns an error if the process cannot reach these bytes of HPU
// memory.
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
