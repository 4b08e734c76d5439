package host

import "github.com/spinsim/spinsim/sim"

// A core reaches memory of a device across the bus. Its stores use the
// direction of the device's reads, and the data of its loads use the direction
// of the device's writes.

// Store performs a core's store of n bytes to the device, now. It returns when
// the bytes have left the core and when they are at the device.
func (b *Bus) Store(n int64) (left, there sim.Time) {
	now := b.engine.Now()
	b.bytes += n
	if b.bare {
		left = now + b.rate.Time(n)
	} else {
		_, left = b.reads.Hold(now, b.gap+b.rate.Time(n))
	}
	return left, left + b.latency
}

// LoadAsked returns when the request of a load made now is at the device: it
// does not overtake earlier stores.
func (b *Bus) LoadAsked() sim.Time {
	now := b.engine.Now()
	if !b.bare {
		now = max(now, b.reads.Free())
	}
	return now + b.latency
}

// LoadAnswered returns when n bytes that the device sends now, in answer to a
// load, are at the core.
func (b *Bus) LoadAnswered(n int64) sim.Time {
	sent := b.engine.Now()
	b.bytes += n
	if b.bare {
		sent += b.rate.Time(n)
	} else {
		_, sent = b.writes.Hold(sent, b.gap+b.rate.Time(n))
	}
	return sent + b.latency
}

// LoadTime returns the time of a load of n bytes on an idle bus.
func (b *Bus) LoadTime(n int64) sim.Time { return 2*b.latency + b.gap + b.rate.Time(n) }

// Latency returns the latency of one way.
func (b *Bus) Latency() sim.Time { return b.latency }
