package smmu

import "github.com/spinsim/spinsim/internal/poison"

// Flight is an access that Hit has allowed, until it has Landed. It is the bank
// plus 1, and in bit 0 the epoch. 0: there is none.
type Flight uint16

// fly counts an access as in flight until it has Landed.
func (b *Bank) fly() Flight {
	b.inFlight[b.epoch]++
	return (Flight(b.index)+1)<<1 | Flight(b.epoch)
}

// answer counts the access of a request that may be done.
func (b *Bank) answer(r *Request) {
	if poison.On {
		r.state = idle
	}
	if r.result == OK {
		r.flight = b.fly()
		if poison.On {
			r.state = flying
		}
	}
}

// Landed ends the access of a Hit.
func (s *SMMU) Landed(f Flight) {
	b := &s.banks[f>>1-1]
	b.inFlight[f&1]--
	if poison.On && b.inFlight[f&1] < 0 {
		panic("smmu: an access has landed that is not in flight") //lint:panic a bug of the client
	}
	if b.syncing {
		b.synced()
	}
}

// Done ends the access of a request that was answered with OK.
func (s *SMMU) Done(r *Request) {
	if poison.On {
		r.land()
	}
	s.Landed(r.flight)
}

// InFlight is the number of accesses that were answered with OK and are not
// done.
func (b *Bank) InFlight() int { return int(b.inFlight[0] + b.inFlight[1]) }

// Sync is a request to report when the accesses of a bank that were answered
// with OK so far are done.
type Sync struct {
	// Synced of the Client is called.
	Client SyncClient
	// Ref is for the client's use.
	Ref any

	next *Sync
}

// SyncClient waits for a Sync.
type SyncClient interface {
	// Synced reports the end of a Sync, in the event in which the last access is
	// done.
	Synced(y *Sync)
}

// Sync reports whether no access of the bank is in flight: every access
// answered with OK is Done. If one is in flight, Sync returns false, and
// y.Client is called when all of them are done; later accesses do not matter.
// The operating system waits with it, after an invalidation, until it may give a
// page away. y belongs to the SMMU until then.
func (b *Bank) Sync(y *Sync) (done bool) {
	if b.InFlight() == 0 {
		return true
	}
	y.next = b.later
	b.later = y
	if !b.syncing {
		b.turn()
	}
	return false
}

// turn begins an epoch for the waiting Syncs. No access of that epoch is in
// flight.
func (b *Bank) turn() {
	b.syncing = b.later != nil || b.asked
	b.asking, b.asked = b.asked, false
	if !b.syncing {
		return
	}
	for y := b.later; y != nil; { // restores the order
		next := y.next
		y.next, b.sync = b.sync, y
		y = next
	}
	b.later = nil
	b.epoch ^= 1
}

// synced answers the Syncs whose epoch has no more accesses in flight, and
// begins the next epoch.
func (b *Bank) synced() {
	for b.syncing && b.inFlight[b.epoch^1] == 0 {
		y := b.sync
		b.sync = nil
		b.turn()
		for y != nil {
			next := y.next
			y.next = nil
			y.Client.Synced(y)
			y = next
		}
	}
}
