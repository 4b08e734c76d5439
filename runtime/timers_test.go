package runtime_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// empty is HPU memory of a straightRun that is zero: as an operation record, a
// message without payload to this process.
const empty = 1 << 16

// now is the handler's own time: the one at which its other actions take
// effect, also after waits, and for processors that take a time of their own.
func TestNowIsTheHandlersOwnTime(t *testing.T) {
	calls := map[string][]asked{"payload": {
		{hpu.OpNow, nil},
		{hpu.OpDMAFromHost, []int64{0, 0, empty, 8}},
		{hpu.OpNow, nil},
		{hpu.OpYield, nil},
		{hpu.OpNow, nil},
	}}
	for _, overrides := range [][]string{
		nil,
		{"hpu.clock=733MHz"},
		{"pools={r5: {kind: firmware, cores: 2, contexts: 2, invocation: 300ns}}", "serve.actions={payload: r5}"},
	} {
		r := (&straightRun{T: t, bytes: 100, overrides: overrides, handlers: calls}).run()
		require.NoError(t, r.err)
		steps := r.of(nic.StepActed, hpu.OpNow, "")
		require.Len(t, steps, 3)
		for i := range steps {
			require.Equal(t, steps[i].At, sim.Time(steps[i].Result))
		}
		require.Greater(t, steps[1].Result, steps[0].Result+int64(2*r.prof.DMA.Latency))
		if len(overrides) < 2 {
			began := r.of(nic.StepBegan, hpu.OpNone, "")[0].At
			require.Equal(t, r.prof.HPU.Clock.Cycles(steps[0].Cycles), steps[0].At-began, "the call is charged")
			require.Positive(t, steps[0].Cycles)
		}
	}
}

// timer_at refuses what is too far away and a periodic message that would
// complete an entry again and again. A time that has passed means at once.
func TestTimerAt(t *testing.T) {
	const second, completes = int64(sim.Second), empty + 512
	r := (&straightRun{
		T: t, bytes: 64, overrides: []string{"nic.handler_commands=3"},
		setup: func(m *nic.Memory, _ *portals.Spin) {
			writeOperation(m.Bytes()[completes-empty:], &hpu.Operation{Options: 1})
		},
		handlers: map[string][]asked{
			"payload": {
				{hpu.OpTimerAt, []int64{-1, 0, empty}},
				{hpu.OpTimerAt, []int64{2 * second, 0, empty}},
				{hpu.OpTimerAt, []int64{0, second + 1, empty}},
				{hpu.OpTimerAt, []int64{0, second, completes}},
				{hpu.OpTimerAt, []int64{3, 0, empty}},
				{hpu.OpTimerAt, []int64{second, second, empty}},
				{hpu.OpTimerAt, []int64{second, 0, completes}},
				{hpu.OpTimerAt, []int64{second, 0, empty}},
				{hpu.OpTimerCancel, []int64{1}},
				{hpu.OpTimerCancel, []int64{1}},
				{hpu.OpTimerCancel, []int64{2}},
			},
			"completion": {{hpu.OpExpiries, nil}},
		},
	}).run()
	require.NoError(t, r.err)
	var results []int64
	for _, s := range r.of(nic.StepActed, hpu.OpNone, "payload") {
		results = append(results, s.Result)
	}
	require.Equal(t, []int64{hpu.Invalid, hpu.Invalid, hpu.Invalid, hpu.Invalid, 0, 1, 2, hpu.NoSpace, hpu.OK, hpu.Invalid, hpu.OK}, results)
	began := r.of(nic.StepBegan, hpu.OpNone, "completion")
	require.Len(t, began, 2, "of the message, and of the timer")
	sent := r.of(nic.StepActed, hpu.OpTimerAt, "")[4].At
	require.Equal(t, sent+r.prof.NIC.Loopback+r.prof.NIC.MatchHeader, began[1].At)
	for _, s := range r.of(nic.StepActed, hpu.OpExpiries, "") {
		require.Zero(t, s.Result, "no message of a periodic timer")
	}
}

// periodic is a handler that sets a timer at its first message.
func periodic(period sim.Time, op int64) map[string][]asked {
	return map[string][]asked{"payload": {{hpu.OpTimerAt, []int64{0, int64(period), op}}}, "completion": {{hpu.OpExpiries, nil}}}
}

// A timer of 500 ns expires each 500 ns: after 1,000 times it is where it would
// be without any handler. Its messages have the content of the call.
func TestPeriodicTimerDoesNotDrift(t *testing.T) {
	const period, data = 500 * sim.Nanosecond, empty + 1024
	var contents [][2]uint64 // type and hdr_data of each message
	r := (&straightRun{
		T: t, bytes: 8, handlers: periodic(period, data), options: portals.OptMEEventCommDisable,
		setup: func(m *nic.Memory, _ *portals.Spin) {
			writeOperation(m.Bytes()[data-empty:], &hpu.Operation{HdrData: 9})
		},
		target: func(p *runtime.Proc, m *nic.Memory) error {
			p.SleepUntil(300 * sim.Microsecond)
			clear(m.Bytes()) // the record is not read again
			return nil
		},
		until: 501 * sim.Microsecond,
		cfg: func(c *runtime.Config) {
			next := c.Watch
			c.Watch = func(s *nic.HandlerStep) {
				if s.What == nic.StepBegan && s.Handler == "header" { // its record is valid only now
					contents = append(contents, [2]uint64{uint64(binary.LittleEndian.Uint32(s.Record)), binary.LittleEndian.Uint64(s.Record[56:])})
				}
				next(s)
			}
		},
	})
	r.handlers["header"] = []asked{{hpu.OpExpiries, nil}}
	r.run()
	require.NoError(t, r.err)
	began := r.of(nic.StepBegan, hpu.OpNone, "header")[1:]
	require.Equal(t, 1001, len(began)) //nolint:testifylint // without the content
	first := began[1].At               // the one before came at once, between two periods
	require.Zero(t, (first-r.prof.NIC.Loopback-r.prof.NIC.MatchHeader)%period)
	for k, s := range began[1:] {
		require.Equal(t, first+sim.Time(k)*period, s.At, "expiry %d", k)
		require.Equal(t, [2]uint64{5, 9}, contents[k+2])
	}
	require.Equal(t, int64(1), r.c.Node(1).Stats().MissedExpiries, "that of time 0: two had passed when the timer was set")
}

// A handler that takes longer than the period finds a count. What it has missed
// is counted, too.
func TestLateHandlersFindACount(t *testing.T) {
	const period = 100 * sim.Nanosecond
	r := (&straightRun{T: t, bytes: 8, handlers: periodic(period, empty), options: portals.OptMEEventCommDisable, overrides: []string{"dma.latency=1us"}, until: 100 * sim.Microsecond})
	r.handlers["completion"] = append(r.handlers["completion"], asked{hpu.OpDMAFromHost, []int64{0, 0, empty, 8}})
	r.run()
	expired, missed := int64(0), int64(0)
	for _, s := range r.of(nic.StepActed, hpu.OpExpiries, "")[1:] {
		expired, missed = expired+s.Result, missed+s.Result-1
	}
	began := r.of(nic.StepBegan, hpu.OpNone, "completion")
	require.Equal(t, int64((began[len(began)-1].At-r.prof.NIC.Loopback-r.prof.NIC.MatchHeader)/period)+1, expired, "since 0")
	require.Equal(t, missed, r.c.Node(1).Stats().MissedExpiries)
	require.Greater(t, missed, expired/2)
}

// Expiries allocate nothing.
func TestExpiriesAllocateNothing(t *testing.T) {
	const period, many = 500 * sim.Nanosecond, 100
	r := (&straightRun{T: t, bytes: 8, handlers: periodic(period, empty), options: portals.OptMEEventCommDisable, until: 100 * sim.Microsecond, cfg: func(c *runtime.Config) {
		c.Watch, c.Explain, c.Engine = nil, nil, "wazero"
	}}).run()
	require.NoError(t, r.err)
	at, calls := r.until, r.c.Node(1).Stats().HandlerCalls
	perRun := testing.AllocsPerRun(20, func() {
		at += many * period
		require.NoError(t, r.c.RunUntil(at))
	})
	require.Equal(t, calls+21*many, r.c.Node(1).Stats().HandlerCalls)
	if !poison.On {
		require.Zero(t, perRun)
	}
}

// A run that a timer keeps going names it when a limit ends the run.
func TestForgottenTimersAreNamed(t *testing.T) {
	r := (&straightRun{T: t, bytes: 8, handlers: periodic(sim.Microsecond, empty), cfg: func(c *runtime.Config) { c.Limits.Until = 10 * sim.Microsecond }}).run()
	require.ErrorContains(t, r.err, "rank 1: a periodic timer of straight")
	require.ErrorContains(t, r.err, "a handler to cancel it: it expires each 1 µs")
}

// A periodic timer ends with the memory of its program.
func TestTimersEndWithTheirMemory(t *testing.T) {
	r := (&straightRun{
		T: t, bytes: 8, handlers: periodic(3*sim.Microsecond, empty), options: portals.OptMEEventCommDisable,
		target: func(p *runtime.Proc, m *nic.Memory) error {
			p.SleepUntil(31 * sim.Microsecond)
			return m.Free()
		},
	}).run()
	require.NoError(t, r.err)
	require.Len(t, r.of(nic.StepBegan, hpu.OpNone, "completion"), 1+11)
	errs, _ := r.c.HandlerErrors()
	require.Empty(t, errs)
}

// followed collects how messages of timers came about.
type followed struct {
	quiet
	asked []sim.Time
	at    []sim.Time
}

func (f *followed) Step(s *sim.Step) {
	if s.Kind == sim.StepMessage && s.Because == sim.OfHandler {
		f.asked, f.at = append(f.asked, s.Asked), append(f.at, s.To)
	}
}

// Timelines and breakdowns learn of each expiry that the handler has asked for
// it, for the time at which it leaves.
func TestExpiriesAreFollowed(t *testing.T) {
	f := &followed{}
	r := (&straightRun{T: t, bytes: 8, handlers: periodic(sim.Microsecond, empty), until: 10 * sim.Microsecond, cfg: func(c *runtime.Config) { c.Tracer = f }}).run()
	require.NoError(t, r.err)
	require.Len(t, f.at, 1+10)
	require.Equal(t, f.at, f.asked)
	for k, at := range f.at[1:] {
		require.Equal(t, sim.Time(k+1)*sim.Microsecond, at)
	}
}
