package pinning

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// Reasons for which there is no lease; what an operation returns says more and
// is one of them (errors.Is), or one of host's.
var (
	ErrBound  = errors.New("more memory than may be pinned")
	ErrLeased = errors.New("memory that is still leased")
)

// Region is bytes of a process, which lie in one mapping.
type Region struct{ Addr, Length uint64 }

func (r Region) String() string { return fmt.Sprintf("%d bytes at %#x", r.Length, r.Addr) }

// Direction is what a device does with a region.
type Direction uint8

// Directions.
const (
	ToDevice   Direction = iota // it reads
	FromDevice                  // it writes
	Both
)

func (d Direction) writes() bool { return d != ToDevice }

// Strategy decides what memory of a process is pinned, and when. Several
// threads may use one at a time; those that have to pin or unpin do so one
// after the other.
type Strategy interface {
	// Acquire makes a region ready for a device. It takes the time of whatever
	// that needs, and t may wait. With an error nothing is leased: ErrBound;
	// what host.Process.GetUserPages returns.
	Acquire(t *host.Thread, r Region, d Direction) (*Lease, error)
	// Release ends a lease; what a device has written is in the region when it
	// returns. A lease is ended once.
	Release(t *host.Thread, l *Lease) error
	// Close unpins everything. ErrLeased: there are leases, and nothing has been done.
	Close(t *host.Thread) error
	// Stats returns the counts so far.
	Stats() Stats
}

// Lease is a region that a device may use until Release.
type Lease struct {
	// Addr is where the device finds the bytes: Region.Addr but for bounce buffers.
	Addr uint64
	Region
	Direction

	held  []*segment
	hoses []*hose
	pin   host.Pin
}

// Stats counts what a strategy has done.
type Stats struct {
	Leases   int64 // that were given
	Hits     int64 // of those, without a call of get_user_pages
	PinCalls int64 // of get_user_pages
	Pins     int64 // pages that were pinned
	Unpins   int64 // pages
	Evicted  int64 // pages, of those, to make room for others
	// pages, of those, because the operating system has changed or taken away
	// what was mapped there
	Invalidated int64
	Copies      int64  // regions copied to or from a bounce buffer
	CopiedBytes int64  // in those
	Leased      int    // leases at this moment
	Pinned      uint64 // bytes at this moment
	MostPinned  uint64 // bytes at a time
	Moves       int64  // requests to a peer
	Reused      int64  // firehoses that were taken from another bucket of a peer
}

// Kinds of strategies, for Options.Kind.
const (
	StaticKind     = "static"
	FineKind       = "fine"
	CacheKind      = "cache"
	FirehoseKind   = "firehose"
	RendezvousKind = "rendezvous"
	BounceKind     = "bounce"
	NoneKind       = "none"
)

// Kinds returns the names of all strategies.
func Kinds() []string {
	return []string{StaticKind, FineKind, CacheKind, FirehoseKind, RendezvousKind, BounceKind, NoneKind}
}

// OwnKinds returns the names of those that a process can have for its own
// memory: all but rendezvous, which needs a peer.
func OwnKinds() []string {
	return slices.DeleteFunc(Kinds(), func(kind string) bool { return kind == RendezvousKind })
}

// Options choose a strategy. All sizes are bytes and multiples of 4 KiB.
type Options struct {
	Kind string
	// Bound is the most that a cache pins, at least 4 KiB; of firehose: what is
	// leased and what is not, together; 0: no bound.
	Bound uint64
	// Bucket is what a cache or Firehose pins together, at least 4 KiB: all of
	// an aligned piece of that size that is mapped; 0: 4 KiB.
	Bucket uint64
	// Victims is the most that Firehose keeps pinned of what nobody uses.
	Victims uint64
	// Buffer is the bounce buffer, at least 4 KiB.
	Buffer uint64
	// Copy copies n bytes of the process, and charges t for that: bounce buffers need it.
	Copy func(t *host.Thread, to, from, n uint64) error
	// Courier makes it a strategy for memory of a peer, whose Export it speaks
	// with: rendezvous needs one, and firehose has one or pins memory of its
	// own process.
	Courier Courier
	// Peer is that peer.
	Peer int
	// Each is how many firehoses there are to it, at least 1.
	Each int
}

// Validate returns every violation, each with the field's name.
func (o *Options) Validate() error {
	var wrong []error
	if !slices.Contains(Kinds(), o.Kind) {
		wrong = append(wrong, fmt.Errorf("pinning: kind %q, expected one of %s", o.Kind, strings.Join(Kinds(), ", ")))
	}
	need := func(field string, n, least uint64) {
		if n < least || n%host.PageBytes != 0 {
			wrong = append(wrong, fmt.Errorf("pinning: %s is %d, expected a multiple of %d from %d", field, n, host.PageBytes, least))
		}
	}
	switch o.Kind {
	case CacheKind:
		need("bound", o.Bound, host.PageBytes)
		need("bucket", o.Bucket, 0)
	case FirehoseKind:
		need("bound", o.Bound, 0)
		need("bucket", o.Bucket, 0)
		need("victims", o.Victims, 0)
		if o.Courier != nil && o.Each < 1 {
			wrong = append(wrong, fmt.Errorf("pinning: %d firehoses to a peer, expected at least 1", o.Each))
		}
	case RendezvousKind:
		if o.Courier == nil {
			wrong = append(wrong, errors.New("pinning: a rendezvous needs a courier: it is for memory of a peer"))
		}
	case BounceKind:
		need("buffer", o.Buffer, host.PageBytes)
		if o.Copy == nil {
			wrong = append(wrong, errors.New("pinning: a bounce buffer needs copy"))
		}
	}
	return errors.Join(wrong...)
}

// New makes a strategy for a process, or with a courier for a peer's memory. t
// pays for what it does at once, which is a bounce buffer's pages; nil: before
// programs begin, when nothing takes time.
func New(t *host.Thread, p *host.Process, o Options) (Strategy, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	bucket := max(o.Bucket, host.PageBytes)
	afar := remote{courier: o.Courier, peer: o.Peer}
	switch o.Kind {
	case StaticKind:
		return newTable(p, 0, noBound, noBound), nil
	case FineKind:
		return &fine{pinner: pinner{process: p}}, nil
	case CacheKind:
		return newTable(p, bucket, o.Bound, noBound), nil
	case FirehoseKind:
		if o.Courier != nil {
			return &hoses{remote: afar, bucket: bucket, each: o.Each, hoses: map[uint64]*hose{}}, nil
		}
		bound := o.Bound
		if bound == 0 {
			bound = noBound
		}
		return newTable(p, bucket, bound, o.Victims), nil
	case RendezvousKind:
		return &rendezvous{afar}, nil
	case BounceKind:
		return newBounce(t, p, o.Buffer, o.Copy)
	default:
		return &none{}, nil
	}
}

const noBound = ^uint64(0)

func pageOf(addr uint64) uint64 { return addr &^ (host.PageBytes - 1) }

// end is the end of the last page.
func (r Region) end() uint64 { return pageOf(r.Addr + r.Length + host.PageBytes - 1) }

// pinner pins and unpins pages of a process, and counts.
type pinner struct {
	process *host.Process
	stats   Stats
}

// Stats implements Strategy.
func (n *pinner) Stats() Stats { return n.stats }

// take pins the pages from start to end and gives them to the device. They are
// pinned for writing wherever they may be written, also for a device that reads
// only, as ib_umem_get does: a page that a later write copies would else be
// another than the device's. write says whether they must be. With an error
// nothing is pinned.
func (n *pinner) take(t *host.Thread, start, end uint64, write bool, pin *host.Pin) (writable bool, err error) {
	n.pinned(end - start)
	n.stats.PinCalls++
	err = n.process.GetUserPages(t, start, end-start, true, pin)
	if err != nil && !write && errors.Is(err, host.ErrPermission) {
		pin.Put(t)
		n.stats.PinCalls++
		err = n.process.GetUserPages(t, start, end-start, false, pin)
	} else {
		writable = true
	}
	if err != nil {
		pin.Put(t)
		n.stats.Pinned -= end - start
		return false, err
	}
	spec, pages := n.process.Kernel().Spec(), int64(end-start)/host.PageBytes
	work(t, spec.DeviceMapCall+spec.DeviceMapPage*sim.Time(pages), "map for device")
	n.stats.Pins += pages
	return writable, nil
}

func (n *pinner) pinned(bytes uint64) {
	n.stats.Pinned += bytes
	n.stats.MostPinned = max(n.stats.MostPinned, n.stats.Pinned)
}

// give takes pages from the device, in a number of ranges, and unpins them.
// With told the operating system has already told the device.
func (n *pinner) give(t *host.Thread, pins []*host.Pin, ranges int, told bool) {
	spec, pages := n.process.Kernel().Spec(), 0
	for _, pin := range pins {
		pages += pin.Pages()
	}
	if pages == 0 {
		return
	}
	work(t, spec.DeviceUnmapCall+spec.DeviceUnmapPage*sim.Time(pages), "unmap for device")
	if !told {
		work(t, (spec.Invalidate+spec.Acknowledge)*sim.Time(ranges), "invalidate")
	}
	for _, pin := range pins {
		pin.Put(t)
	}
	n.stats.Unpins += int64(pages)
	n.stats.Pinned -= uint64(pages) * host.PageBytes
}

// lease counts one.
func (n *pinner) lease(r Region, d Direction) *Lease {
	n.stats.Leases++
	n.stats.Leased++
	return &Lease{Addr: r.Addr, Region: r, Direction: d}
}

// closing is an error if there are leases.
func (n *pinner) closing() error {
	if n.stats.Leased > 0 {
		return fmt.Errorf("pinning: process %s: %w: %d leases", n.process.Name(), ErrLeased, n.stats.Leased)
	}
	return nil
}

func work(t *host.Thread, d sim.Time, what string) {
	if t != nil && d > 0 {
		t.Run(d, what)
	}
}

// lockWait is what waits for each other are called.
const lockWait = "memory to be pinned"
