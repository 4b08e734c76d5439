package pinning

import "github.com/spinsim/spinsim/host"

// fine pins the pages of each lease and unpins them at its end.
type fine struct{ pinner }

// Acquire implements Strategy.
func (f *fine) Acquire(t *host.Thread, r Region, d Direction) (*Lease, error) {
	l := &Lease{}
	if r.Length > 0 {
		if _, err := f.take(t, pageOf(r.Addr), r.end(), d.writes(), &l.pin); err != nil {
			return nil, err
		}
	} else {
		f.stats.Hits++
	}
	given := f.lease(r, d)
	given.pin = l.pin
	return given, nil
}

// Release implements Strategy.
func (f *fine) Release(t *host.Thread, l *Lease) error {
	f.stats.Leased--
	f.give(t, []*host.Pin{&l.pin}, 1, false)
	return nil
}

// Close implements Strategy.
func (f *fine) Close(*host.Thread) error { return f.closing() }

// none does nothing: the device handles page faults.
type none struct{ stats Stats }

// Acquire implements Strategy.
func (n *none) Acquire(_ *host.Thread, r Region, d Direction) (*Lease, error) {
	n.stats.Leases++
	n.stats.Hits++
	n.stats.Leased++
	return &Lease{Addr: r.Addr, Region: r, Direction: d}, nil
}

// Release implements Strategy.
func (n *none) Release(*host.Thread, *Lease) error {
	n.stats.Leased--
	return nil
}

// Close implements Strategy.
func (n *none) Close(*host.Thread) error { return nil }

// Stats implements Strategy.
func (n *none) Stats() Stats { return n.stats }
