package nic

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// expiry is a message of a periodic timer.
type expiry struct {
	at     sim.Time // when it left
	stands int64
	ended  sim.Time // when it was handled
}

// timerModel is what docs/abi.md says of a periodic timer. Times that might
// coincide by chance have different last digits.
type timerModel struct {
	set, start, period sim.Time
	takes              []sim.Time // how long its messages are handled, in turn
	cancelled          sim.Time   // sim.MaxTime: not yet
	handle             int64
	left               []expiry // what the device did
}

// until lists the messages that leave before a time, and counts the expiries
// before it without a message.
func (m *timerModel) until(end sim.Time) (list []expiry, missed int64) {
	at, k := max(m.set, m.start), int64(0) // k expiries have a message
	for at < end {
		upTo := int64((at-m.start)/m.period) + 1
		e := expiry{at, upTo - k, at + m.takes[len(list)%len(m.takes)]}
		list, missed, k = append(list, e), missed+e.stands-1, upTo
		for at = m.start + sim.Time(k)*m.period; at < e.ended; at += m.period {
		}
	}
	for ; m.start+sim.Time(k)*m.period < end; k++ {
		missed++
	}
	return list, missed
}

// held reports whether the timer counts against nic.handler_commands.
func (m *timerModel) held(now sim.Time) bool {
	if now < m.cancelled {
		return true
	}
	list, _ := m.until(m.cancelled)
	return len(list) > 0 && list[len(list)-1].ended > now
}

func drawTimer(rt *rapid.T) *timerModel {
	m := &timerModel{cancelled: sim.MaxTime, start: sim.Time(rapid.IntRange(100, 2500).Draw(rt, "start"))*10*sim.Nanosecond + 3, period: sim.Time(rapid.IntRange(1, 150_000).Draw(rt, "period")) * 10}
	takes := rapid.OneOf(rapid.Just(sim.Time(4)), rapid.Just(m.period), rapid.Just(2*m.period), rapid.Map(rapid.IntRange(0, 500_000), func(n int) sim.Time { return sim.Time(n)*10 + 4 }))
	m.takes = append(rapid.SliceOfN(takes, 0, 3).Draw(rt, "takes"), sim.Time(rapid.IntRange(1000, 200_000).Draw(rt, "takes at most"))*10+4)
	return m
}

// atMost is the most timers that a test sets.
const atMost = 8

// drawnTimers are handlers' drawn calls of timer_at and timer_cancel.
type drawnTimers struct {
	rt     *rapid.T
	x      *actStage
	h      *hand
	calls  []*timerModel // timer_at; nil: timer_cancel
	timers []*timerModel // that were set, by match bits
}

// before makes the arguments of call k.
func (d *drawnTimers) before(k int, a *hpu.Action) {
	d.look(k - 1)
	clear(d.h.bytes(0, 16)) // the messages have the bytes of the calls
	own := d.x.now() + sim.Time(a.Cycles)*sim.Nanosecond
	if m := d.calls[k]; m != nil {
		m.set = own
		binary.LittleEndian.PutUint64(d.h.bytes(8, 8), uint64(k))
		a.A, a.B, a.Desc = uint64(m.start), uint64(m.period), hpu.Operation{Local: d.h.local(8), Length: 8, MatchBits: uint64(k)}
		if m.start < own && m.takes[0]%m.period == 0 {
			m.takes[0] += 4
		}
		return
	}
	defer func() { d.h.actions[k].A = a.A }()
	a.A = rapid.Uint64Range(0, 8).Draw(d.rt, "handle")
	if live := d.live(own); len(live) > 0 && (k+atMost >= len(d.calls) || rapid.Bool().Draw(d.rt, "its own")) {
		a.A = uint64(rapid.SampledFrom(live).Draw(d.rt, "timer").handle)
	}
}

func (d *drawnTimers) live(now sim.Time) (list []*timerModel) {
	for _, m := range d.timers {
		if m.cancelled > now {
			list = append(list, m)
		}
	}
	return list
}

// look compares the result of call k with the model.
func (d *drawnTimers) look(k int) {
	if k < 0 {
		return
	}
	result, asked := d.h.results[k], d.h.asked[k]
	if m := d.calls[k]; m != nil {
		held := 0
		for _, o := range d.timers {
			if o.held(asked - sim.Time(d.h.actions[k].Cycles)*sim.Nanosecond) {
				held++
			}
		}
		if held == d.x.spec.HandlerCommands {
			require.Equal(d.rt, hpu.NoSpace, result)
			return
		}
		require.GreaterOrEqual(d.rt, result, int64(0))
		m.handle = result
		d.timers = append(d.timers, m)
		return
	}
	for _, m := range d.live(asked) {
		if result == hpu.OK && m.handle == int64(d.h.actions[k].A) {
			m.cancelled = asked
			return
		}
	}
	require.Equal(d.rt, hpu.Invalid, result)
}

// Periodic timers, set for times to come and times that have passed, with
// messages that take longer than the period or end with it, cancelled whenever:
// messages leave at the times of the model only, stand for the expiries of the
// model, and what is never delivered is counted.
func TestPeriodicTimers(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		late, full := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			x := newActStage(rt, e, module, 1)
			x.spec.HandlerCommands = rapid.IntRange(1, 4).Draw(rt, "handler_commands")
			d := &drawnTimers{rt: rt, x: x}
			var actions []hpu.Action
			sets, n := 0, rapid.IntRange(1, 12).Draw(rt, "calls")
			for k := range n + atMost { // the last ones cancel what is left
				a := hpu.Action{Op: hpu.OpTimerCancel, Cycles: rapid.Int64Range(1, 3000).Draw(rt, "cycles")}
				var m *timerModel
				if k < n && sets < atMost && rapid.IntRange(0, 3).Draw(rt, "sets") > 0 {
					a.Op, m = hpu.OpTimerAt, drawTimer(rt)
					sets++
				}
				actions, d.calls = append(actions, a), append(d.calls, m)
			}
			x.expired = func(t *timer) {
				m := d.byBits(x)
				m.left = append(m.left, expiry{x.now(), t.stands, x.now() + m.takes[len(m.left)%len(m.takes)]})
				x.post(m.left[len(m.left)-1].ended, kindWaiting, 0, func() { t.expiryEnded() })
			}
			d.h = x.begin(sim.Microsecond, nil, actions...)
			d.h.before = d.before
			x.finish()
			d.look(len(actions) - 1)
			missed := int64(0)
			for _, m := range d.timers {
				require.Less(rt, m.cancelled, sim.MaxTime)
				want, n := m.until(m.cancelled)
				require.Equal(rt, want, m.left)
				missed += n
			}
			require.Equal(rt, missed, x.d.timers.missed)
			late += int(missed)
			full += len(d.calls) - len(d.timers)
		})
		require.NotZero(t, late)
		require.NotZero(t, full)
	})
}

// byBits is the model of the message that has just left.
func (d *drawnTimers) byBits(x *actStage) *timerModel {
	m := x.left[len(x.left)-1]
	require.Equal(d.rt, m.bits, binary.LittleEndian.Uint64(m.data))
	return d.calls[m.bits]
}
