package host

import "github.com/spinsim/spinsim/sim"

// A core reaches memory of a device across the bus: its stores cross it like
// the data of the device's reads, and what it loads like the data of the
// device's writes.

// Store is a core's store of n bytes to the device, which it makes now. It
// returns when they have left the core and when they are there.
func (b *Bus) Store(n int64) (left, there sim.Time) {
	now := b.engine.Now()
	b.bytes += n
	if b.bare {
		left = now + b.rate.Time(n)
	} else {
		_, left = b.reads.Hold(now, b.rate.Time(n))
	}
	return left, left + b.latency
}

// LoadAsked is when the request of a core's load that it makes now is at the
// device: it does not overtake stores made before.
func (b *Bus) LoadAsked() sim.Time {
	now := b.engine.Now()
	if !b.bare {
		now = max(now, b.reads.Free())
	}
	return now + b.latency
}

// LoadAnswered is when n bytes that the device sends now, for a load, are at the core.
func (b *Bus) LoadAnswered(n int64) sim.Time {
	sent := b.engine.Now()
	b.bytes += n
	if b.bare {
		sent += b.rate.Time(n)
	} else {
		_, sent = b.writes.Hold(sent, b.rate.Time(n))
	}
	return sent + b.latency
}

// LoadTime is what a load of n bytes takes on a bus that is idle.
func (b *Bus) LoadTime(n int64) sim.Time { return 2*b.latency + b.rate.Time(n) }

// Latency is one way.
func (b *Bus) Latency() sim.Time { return b.latency }
