package runtime_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

func (r *straightRun) store(bytes int) sim.Time {
	return r.prof.DMA.Latency + r.prof.DMA.Bandwidth.Time(int64(bytes))
}

// The completion handler begins when the posted writes of the message have
// landed: a latency and their bytes behind the last call, where one with a
// handle that nobody waits for does not hold it up. The bytes are read at the
// call, and the message's event comes after them.
func TestPostedWrites(t *testing.T) {
	for _, op := range []hpu.Op{hpu.OpDMAToHostPosted, hpu.OpDMAToHostNB} {
		r := (&straightRun{T: t, bytes: 64, handlers: map[string][]asked{
			"payload":    {{op, []int64{0, 128, 256, 2048}}, {op, []int64{0, 8192, 0, 64}}},
			"completion": {{hpu.OpFlowID, nil}},
		}}).run()
		require.NoError(t, r.err)
		calls := r.of(nic.StepActed, op, "")
		require.Len(t, calls, 2)
		begins := r.of(nic.StepBegan, hpu.OpNone, "completion")[0].At
		ends := r.of(nic.StepEnded, hpu.OpNone, "payload")[0].At
		landed := max(calls[1].At, calls[0].At+r.prof.DMA.Bandwidth.Time(2048)) + r.store(64)
		if op == hpu.OpDMAToHostNB {
			landed = ends
		}
		require.Equal(t, landed, begins, op)
		bytes := r.host.Snapshot()
		require.Equal(t, pattern(4096, 0)[256:256+2048], bytes[128:128+2048])
		require.Equal(t, pattern(4096, 0)[:64], bytes[8192:8192+64])
		require.Equal(t, portals.EventPut, r.events[len(r.events)-1].Type)
	}
}

// A posted write beyond what the device has room for holds the handler until an
// earlier one has landed; the handler then goes on, with no result to wait for.
func TestPostedWritesWaitForRoom(t *testing.T) {
	r := (&straightRun{T: t, bytes: 64, overrides: []string{"hpu.dma_bytes=2048"}, handlers: map[string][]asked{
		"payload": {{hpu.OpDMAToHostPosted, []int64{0, 0, 0, 2048}}, {hpu.OpDMAToHostPosted, []int64{0, 4096, 0, 2048}}, {hpu.OpHostWrite, []int64{0, 8, 7}}},
	}}).run()
	require.NoError(t, r.err)
	calls := r.of(nic.StepActed, hpu.OpDMAToHostPosted, "")
	require.Equal(t, []bool{false, true}, []bool{calls[0].Suspended, calls[1].Suspended})
	answers := r.of(nic.StepAnswered, hpu.OpNone, "")
	require.Equal(t, calls[0].At+r.store(2048), answers[0].At)
	require.Equal(t, answers[0].At+r.store(2048), answers[1].At, "the immediate write waits as well")
	require.Equal(t, []int64{0, 0}, []int64{answers[0].Result, answers[1].Result})
	require.Equal(t, uint64(7), binary.LittleEndian.Uint64(r.host.Snapshot()[8:]))
}

// An immediate write carries its 8 bytes, at an address that is a multiple of
// 8; with a handle one can wait for it.
func TestImmediateWrites(t *testing.T) {
	r := (&straightRun{T: t, bytes: 64, handlers: map[string][]asked{
		"payload": {
			{hpu.OpHostWrite, []int64{0, 24, 0x1122334455667788}},
			{hpu.OpHostWriteNB, []int64{0, 32, -1}},
			{hpu.OpDMAWait, []int64{0}},
			{hpu.OpHostWrite, []int64{0, 4, 1}},
			{hpu.OpHostWriteNB, []int64{0, 1 << 16, 1}},
			{hpu.OpHostWrite, []int64{int64(hpu.TellFaults), 8, 1}},
		},
	}}).run()
	require.NoError(t, r.err)
	var results []int64
	for _, s := range r.of(nic.StepActed, hpu.OpNone, "") {
		if !s.Suspended {
			results = append(results, s.Result)
		}
	}
	require.Equal(t, []int64{hpu.OK, 0, hpu.Invalid, hpu.Denied, hpu.Invalid}, results)
	waited := r.of(nic.StepAnswered, hpu.OpDMAWait, "")[0]
	require.Equal(t, hpu.OK, waited.Result)
	require.Equal(t, r.of(nic.StepActed, hpu.OpHostWriteNB, "")[0].At+r.store(8), waited.At)
	bytes := r.host.Snapshot()
	require.Equal(t, []uint64{0x1122334455667788, 1<<64 - 1}, []uint64{binary.LittleEndian.Uint64(bytes[24:]), binary.LittleEndian.Uint64(bytes[32:])})
}

// A posted write that fails is told to nobody but the completion handler, and
// to the owner: the message ends with SEGV.
func TestPostedWritesThatFail(t *testing.T) {
	r := (&straightRun{
		T: t, bytes: 64, handlers: map[string][]asked{"payload": {{hpu.OpDMAToHostPosted, []int64{0, 0, 0, 8}}}, "completion": {{hpu.OpFlowID, nil}}},
		cfg: func(c *runtime.Config) { c.InjectDMA = func(int, hpu.Op) int64 { return hpu.Fault } },
	}).run()
	require.NoError(t, r.err)
	require.Equal(t, hpu.OK, r.of(nic.StepActed, hpu.OpDMAToHostPosted, "")[0].Result)
	require.Equal(t, portals.NISegv, r.events[len(r.events)-1].Fail)
	failed, n := r.c.HandlerErrors()
	require.Equal(t, 1, n)
	require.ErrorContains(t, failed[0].Err, "a write of 8 bytes of host memory")
	require.ErrorContains(t, failed[0].Err, "that it did not wait for failed: "+host.Fault.String())
	record := r.of(nic.StepBegan, hpu.OpNone, "completion")
	require.Len(t, record, 1)
}

// Messages that handlers work on at the same time have different numbers and
// pieces of memory; one that finds no piece is dropped. Clusters have
// scratchpads of their own. Handlers wait for a word that the host writes, so
// that they are there at the same time.
func TestMemoriesOfClustersAndMessages(t *testing.T) {
	const base = 1 << 16 // of HPU memory
	r := (&straightRun{
		T: t, bytes: 64, messages: 4, overrides: []string{"hpu.cores=4", "hpu.clusters=2", "hpu.contexts=1"},
		handlers: map[string][]asked{"header": {
			{hpu.OpFlowID, nil},
			{hpu.OpMessageMemory, nil},
			{hpu.OpScratchpad, []int64{0}},
			{hpu.OpScratchpad, []int64{1}},
			{hpu.OpScratchpad, []int64{2}},
			{hpu.OpWait32, []int64{base, 0}},
		}},
		setup: func(_ *nic.Memory, s *portals.Spin) {
			s.Scratchpads = portals.Scratchpads{Offset: 64, Bytes: 128}
			s.PerMessage = portals.MessageMemory{Offset: 1024, Bytes: 32, Messages: 3}
		},
		target: func(p *runtime.Proc, m *nic.Memory) error {
			p.SleepUntil(10 * sim.Microsecond)
			return p.HPUWrite(m, 0, []byte{1})
		},
	}).run()
	require.NoError(t, r.err)
	answers := map[hpu.Op][]int64{}
	for _, s := range r.of(nic.StepActed, hpu.OpNone, "") {
		answers[s.Op] = append(answers[s.Op], s.Result)
	}
	place := func(at, n int64) int64 { return base + at | n<<32 }
	require.Equal(t, []int64{0, 1, 2}, answers[hpu.OpFlowID])
	require.Equal(t, []int64{place(1024, 32), place(1056, 32), place(1088, 32)}, answers[hpu.OpMessageMemory])
	require.Equal(t, []int64{place(64, 128), place(192, 128), 0}, answers[hpu.OpScratchpad][:3])
	lost, n := r.c.LostMessages()
	require.Equal(t, 1, n)
	require.ErrorContains(t, lost[0], "as many messages were being handled as the entry has memory for")
	ends := r.of(nic.StepAnswered, hpu.OpWait32, "")
	require.Len(t, ends, 3)
	there := 10*sim.Microsecond + r.prof.NIC.Overhead + r.store(1)
	require.Equal(t, there, ends[0].At)
}

// Who says that memories of clusters and messages are where they cannot be, or
// has bytes cut off for no handler, is told when the entry is appended.
func TestMemoriesThatDoNotFit(t *testing.T) {
	for want, setup := range map[string]func(s *portals.Spin){
		"scratchpads: 128 bytes at offset 8, expected multiples of 16": func(s *portals.Spin) { s.Scratchpads = portals.Scratchpads{Offset: 8, Bytes: 128} },
		"scratchpads: 1 of 8192 bytes at offset 0 do not fit in 4096 bytes of HPU memory": func(s *portals.Spin) {
			s.Scratchpads = portals.Scratchpads{Bytes: 8192}
		},
		"memory of messages: 3 of 2048 bytes at offset 0 do not fit": func(s *portals.Spin) { s.PerMessage = portals.MessageMemory{Bytes: 2048, Messages: 3} },
		"memory of messages: 16 bytes for 0 messages":                func(s *portals.Spin) { s.PerMessage = portals.MessageMemory{Bytes: 16} },
		"memory of messages without a header handler": func(s *portals.Spin) {
			s.Handlers.Header = 0
			s.PerMessage = portals.MessageMemory{Bytes: 16, Messages: 1}
		},
		"user header of 8 bytes without a header handler": func(s *portals.Spin) { s.Handlers.Header, s.UserHdrLen = 0, 8 },
	} {
		r := (&straightRun{
			T: t, bytes: 8, handlers: map[string][]asked{"header": {{hpu.OpFlowID, nil}}, "payload": {{hpu.OpFlowID, nil}}},
			setup: func(_ *nic.Memory, s *portals.Spin) { setup(s) },
		}).run()
		require.ErrorIs(t, r.err, nic.ErrHandlers)
		require.ErrorContains(t, r.err, want)
	}
}

// Posted writes, memories of clusters and messages, and words that are waited
// for cost no allocation once pools have grown.
func TestPostedWritesDoNotAllocate(t *testing.T) {
	prof, err := profile.Load("spin-int", "fabric.kind=crossbar", "fabric.radix=0", "fabric.mtu=256", "hpu.cores=32", "hpu.clusters=4", "hpu.dma_bytes=256")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	s := &stream{c: c, packets: 16}
	require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
		m, err := c.LoadModule("straight", straight(map[string][]asked{
			"header": {{hpu.OpFlowID, nil}, {hpu.OpMessageMemory, nil}, {hpu.OpScratchpad, []int64{3}}},
			"payload": {
				{hpu.OpDMAToHostPosted, []int64{0, 0, 0, 128}},
				{hpu.OpHostWrite, []int64{0, 8, 1}},
				{hpu.OpHostWriteNB, []int64{0, 8, 1}},
				{hpu.OpDMAWait, []int64{0}},
				{hpu.OpWait32, []int64{4, 0}},
			},
			"completion": {{hpu.OpHostWrite, []int64{0, 16, 1}}},
		}))
		if err != nil {
			return err
		}
		memory, err := p.HPUAllocMem(m, hpuMemory)
		if err != nil {
			return err
		}
		spin, err := memory.Spin("header", "payload", "completion")
		if err != nil {
			return err
		}
		spin.Scratchpads = portals.Scratchpads{Bytes: 64}
		spin.PerMessage = portals.MessageMemory{Offset: 1024, Bytes: 16, Messages: 100}
		if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
			return err
		}
		_, err = p.NI().MEAppend(0, &portals.ME{
			Start: p.Alloc(4096).Addr(), Length: 4096, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut, Spin: spin,
		}, portals.PriorityList, 0)
		return err
	}))
	require.NoError(t, c.Spawn(0, "source", s.source))
	s.run(t, 100)
	perMessage := testing.AllocsPerRun(20, func() { s.run(t, 1) })
	if !poison.On {
		require.Zero(t, perMessage)
	}
	_, failures := c.Failures()
	require.Zero(t, failures)
}

// A timer can be taken back once: whoever tries again, or has another handle,
// is told, also before the handler's own time has come.
func TestTimersAreTakenBackOnce(t *testing.T) {
	const op = 1 << 15 // HPU memory that is zero: a message without payload to this process
	r := (&straightRun{T: t, bytes: 64, handlers: map[string][]asked{"payload": {
		{hpu.OpTimer, []int64{1000, op}},
		{hpu.OpTimerCancel, []int64{0}},
		{hpu.OpTimerCancel, []int64{0}},
		{hpu.OpTimerCancel, []int64{1}},
		{hpu.OpTimerCancel, []int64{-1}},
	}}}).run()
	require.NoError(t, r.err)
	var results []int64
	for _, s := range r.of(nic.StepActed, hpu.OpNone, "") {
		results = append(results, s.Result)
	}
	require.Equal(t, []int64{0, hpu.OK, hpu.Invalid, hpu.Invalid, hpu.Invalid}, results)
}
