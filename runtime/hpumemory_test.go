package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A write of the host is posted for the overhead o and is there a latency after
// its bytes have crossed; a read takes two latencies and the bytes, and does
// not overtake the write. A handler that waits for the word goes on at that
// moment.
func TestHostReachesHPUMemory(t *testing.T) {
	const at = 10 * sim.Microsecond
	var wrote, read sim.Time
	got := make([]byte, 256)
	r := (&straightRun{
		T: t, bytes: 8, handlers: map[string][]asked{"payload": {{hpu.OpWait32, []int64{1<<16 + 256, 0}}}},
		target: func(p *runtime.Proc, m *nic.Memory) error {
			p.SleepUntil(at)
			if err := p.HPUWrite(m, 256, pattern(256, 9)); err != nil {
				return err
			}
			wrote = p.Now()
			err := p.HPURead(m, 256, got)
			read = p.Now()
			return err
		},
	}).run()
	require.NoError(t, r.err)
	bytes, latency := r.prof.DMA.Bandwidth.Time(256), r.prof.DMA.Latency
	require.Equal(t, at+r.prof.NIC.Overhead, wrote)
	require.Equal(t, wrote+bytes+2*latency+bytes, read, "its request goes behind the bytes written")
	require.Equal(t, pattern(256, 9), got)
	require.Equal(t, wrote+bytes+latency, r.of(nic.StepAnswered, hpu.OpWait32, "")[0].At)
}

// Who waits for a change looks back to back: the first look that is at the
// device when there is something to see finds it, and answers a latency later.
func TestHPUWait(t *testing.T) {
	var found sim.Time
	var content []byte
	r := (&straightRun{
		T: t, bytes: 8, handlers: map[string][]asked{"payload": {{hpu.OpDMAFromHost, []int64{0, 0, 1<<16 + 8, 8}}}},
	})
	r.target = func(p *runtime.Proc, m *nic.Memory) (err error) {
		copy(r.host.Raw(), "configur")
		content, err = p.HPUWait(m, 8, 8, func(b []byte) bool { return b[7] != 0 })
		found = p.Now()
		return err
	}
	r.run()
	require.NoError(t, r.err)
	require.Equal(t, "configur", string(content))
	changed := r.of(nic.StepAnswered, hpu.OpDMAFromHost, "")[0].At
	round := 2*r.prof.DMA.Latency + r.prof.DMA.Bandwidth.Time(8)
	require.Zero(t, found%round, "looks follow each other from 0 on")
	require.GreaterOrEqual(t, found-round+r.prof.DMA.Latency, changed)
	require.Less(t, found-2*round+r.prof.DMA.Latency, changed, "the look before was too early")
}

// Whoever waits for ever for HPU memory is named, with what is waited for: a
// process, and a handler.
func TestWaitForHPUMemoryForEver(t *testing.T) {
	r := (&straightRun{
		T: t, bytes: 8, handlers: map[string][]asked{"payload": {{hpu.OpWait32, []int64{1<<16 + 16, 0}}}},
		target: func(p *runtime.Proc, m *nic.Memory) error {
			_, err := p.HPUWait(m, 32, 4, func(b []byte) bool { return b[0] == 1 })
			return err
		},
	}).run()
	var stuck *sim.StuckError
	require.ErrorAs(t, r.err, &stuck)
	require.ErrorContains(t, r.err, "a change of 4 bytes at offset 32 of HPU memory of straight of rank 1")
	require.ErrorContains(t, r.err, "payload handler of straight")
	require.ErrorContains(t, r.err, "another value than 0x0 in HPU memory at 0x10010 (wait32)")
}

// A process reaches HPU memory of its own, where there is some.
func TestHPUMemoryThatIsNotThere(t *testing.T) {
	var other *nic.Memory
	r := &straightRun{T: t, bytes: 8, handlers: map[string][]asked{"payload": {{hpu.OpFlowID, nil}}}}
	r.target = func(p *runtime.Proc, m *nic.Memory) error {
		other = m
		for want, try := range map[string]error{
			"1 bytes at offset 4096 of HPU memory 1 of module straight, which has 4096": p.HPUWrite(m, hpuMemory, []byte{1}),
			"8 bytes at offset 4090 of HPU memory":                                      p.HPURead(m, hpuMemory-6, make([]byte, 8)),
			"no HPU memory":                                                             p.HPUWrite(nil, 0, nil),
		} {
			require.ErrorIs(t, try, portals.ErrArgInvalid)
			require.ErrorContains(t, try, want)
		}
		_, err := p.HPUWait(m, 1<<40, 1, nil)
		require.ErrorIs(t, err, portals.ErrArgInvalid)
		return nil
	}
	r.cfg = func(c *runtime.Config) { c.Nodes = 3 }
	r.run()
	require.NoError(t, r.err)
	require.NoError(t, r.c.Spawn(2, "stranger", func(p *runtime.Proc) error {
		require.ErrorContains(t, p.HPUWrite(other, 0, []byte{1}), "HPU memory 1 of module straight is another process's")
		return nil
	}))
	require.NoError(t, r.c.Spawn(1, "owner's neighbour", func(p *runtime.Proc) error {
		require.ErrorContains(t, p.HPUWrite(other, 0, []byte{1}), "is another process's")
		return nil
	}))
}
