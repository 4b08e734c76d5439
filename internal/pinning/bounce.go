package pinning

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
)

// bounce copies regions through a permanently pinned buffer.
type bounce struct {
	pinner
	copy  func(t *host.Thread, to, from, n uint64) error
	addr  uint64
	size  uint64
	pages host.Pin
	used  []Region // used parts of the buffer, sorted
	queue []*host.Thread
}

func newBounce(t *host.Thread, p *host.Process, size uint64, copying func(t *host.Thread, to, from, n uint64) error) (*bounce, error) {
	addr, err := p.Map(t, int(size))
	if err != nil {
		return nil, err
	}
	b := &bounce{pinner: pinner{process: p}, copy: copying, addr: addr, size: size}
	if _, err := b.take(t, addr, addr+size, true, &b.pages); err != nil {
		return nil, err
	}
	return b, nil
}

// Acquire implements Strategy. If the buffer has no room it waits, in the order
// of arrival.
func (b *bounce) Acquire(t *host.Thread, r Region, d Direction) (*Lease, error) {
	n := r.end() - pageOf(r.Addr) // room begins at the start of its page
	if r.Length == 0 {
		b.stats.Hits++
		return b.lease(r, d), nil
	}
	n = max(n, host.PageBytes)
	if n > b.size {
		return nil, fmt.Errorf("pinning %v: %w: the bounce buffer has %d bytes", r, ErrBound, b.size)
	}
	at, err := b.room(t, r, n)
	if err != nil {
		return nil, err
	}
	l := &Lease{Addr: at + r.Addr%host.PageBytes, Region: r, Direction: d}
	if d != FromDevice {
		if err := b.move(t, l.Addr, r.Addr, r.Length); err != nil {
			b.free(l)
			return nil, err
		}
	}
	b.stats.Leases++
	b.stats.Hits++
	b.stats.Leased++
	return l, nil
}

// room finds the first n free bytes.
func (b *bounce) room(t *host.Thread, r Region, n uint64) (uint64, error) {
	for waited := false; ; waited = true {
		if len(b.queue) == 0 || waited && b.queue[0] == t {
			at := b.addr
			i := 0
			for ; i < len(b.used) && b.used[i].Addr-at < n; i++ {
				at = b.used[i].Addr + b.used[i].Length
			}
			if at+n <= b.addr+b.size {
				b.used = slices.Insert(b.used, i, Region{at, n})
				if waited {
					b.next()
				}
				return at, nil
			}
		}
		if t == nil {
			return 0, fmt.Errorf("pinning %v: %w: the bounce buffer is full", r, ErrBound)
		}
		if !waited {
			b.queue = append(b.queue, t)
		}
		t.Wait("room in the bounce buffer")
	}
}

// next wakes the next waiting thread.
func (b *bounce) next() {
	b.queue = append(b.queue[:0], b.queue[1:]...)
	if len(b.queue) > 0 {
		b.queue[0].Wake()
	}
}

func (b *bounce) move(t *host.Thread, to, from, n uint64) error {
	b.stats.Copies++
	b.stats.CopiedBytes += int64(n)
	return b.copy(t, to, from, n)
}

// free frees the room of a lease.
func (b *bounce) free(l *Lease) {
	at := pageOf(l.Addr)
	b.used = slices.DeleteFunc(b.used, func(o Region) bool { return o.Addr == at })
	if len(b.queue) > 0 {
		b.queue[0].Wake()
	}
}

// Release implements Strategy.
func (b *bounce) Release(t *host.Thread, l *Lease) error {
	b.stats.Leased--
	if l.Length == 0 {
		return nil
	}
	var err error
	if l.writes() {
		err = b.move(t, l.Region.Addr, l.Addr, l.Length)
	}
	b.free(l)
	return err
}

// Close implements Strategy.
func (b *bounce) Close(t *host.Thread) error {
	if err := b.closing(); err != nil {
		return err
	}
	b.give(t, []*host.Pin{&b.pages}, 1, false)
	return b.process.Unmap(t, b.addr, b.size)
}
