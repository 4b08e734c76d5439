package pinning

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Reasons why there is no lease. The error of an operation has more details and
// wraps one of them (errors.Is), or an error of package host.
var (
	ErrBound  = errors.New("more memory than may be pinned")
	ErrLeased = errors.New("memory that is still leased")
)

// Region is a range of bytes of a process, within one mapping.
type Region struct{ Addr, Length uint64 }

func (r Region) String() string { return fmt.Sprintf("%d bytes at %#x", r.Length, r.Addr) }

// Direction is what a device does with a region: read, write, or both.
type Direction uint8

// Directions.
const (
	ToDevice   Direction = iota // it reads
	FromDevice                  // it writes
	Both
)

func (d Direction) writes() bool { return d != ToDevice }

// Strategy decides which memory of a process is pinned, and when. Several
// threads may use one; they pin and unpin one after the other.
type Strategy interface {
	// Acquire makes a region ready for a device. It takes the time of the calls it
	// needs, and t may wait. After an error nothing is leased. Errors: ErrBound,
	// and the errors of host.Process.GetUserPages.
	Acquire(t *host.Thread, r Region, d Direction) (*Lease, error)
	// Release ends a lease, which must be done once. When it returns, the region
	// has the bytes that the device has written.
	Release(t *host.Thread, l *Lease) error
	// Close unpins everything. ErrLeased: there are leases, and Close had no
	// effect.
	Close(t *host.Thread) error
	// Stats returns the counts so far.
	Stats() Stats
}

// Lease is a region that a device may use until Release.
type Lease struct {
	// Addr is the address of the bytes for the device. It is Region.Addr except
	// for bounce buffers.
	Addr uint64
	Region
	Direction

	held  []*segment
	hoses []*hose
	pin   host.Pin
}

// Stats counts the work of a strategy.
type Stats struct {
	Leases   int64 // given leases
	Hits     int64 // leases that needed no call of get_user_pages
	PinCalls int64 // of get_user_pages
	Pins     int64 // pinned pages
	Unpins   int64 // unpinned pages
	Evicted  int64 // pages of Unpins, unpinned to make room for others
	// pages of Unpins, unpinned because the operating system changed or removed
	// their mapping
	Invalidated int64
	Copies      int64  // regions copied to or from a bounce buffer
	CopiedBytes int64  // bytes of these copies
	Leased      int    // leases now
	Pinned      uint64 // bytes now
	MostPinned  uint64 // most bytes at one time
	Moves       int64  // requests to a peer
	Reused      int64  // firehoses taken from another bucket of a peer
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

// OwnKinds returns the names of the strategies for a process's own memory: all
// except rendezvous, which needs a peer.
func OwnKinds() []string {
	return slices.DeleteFunc(Kinds(), func(kind string) bool { return kind == RendezvousKind })
}

// Options select a strategy. All sizes are bytes and multiples of 4 KiB.
type Options struct {
	Kind string
	// Bound is the most bytes that a cache pins, at least 4 KiB. For firehose it
	// includes leased and unleased memory. 0: no bound.
	Bound uint64
	// Bucket is the unit in which a cache or Firehose pins, at least 4 KiB: the
	// mapped part of an aligned piece of that size. 0: 4 KiB.
	Bucket uint64
	// Victims is the most bytes of unleased memory that Firehose keeps pinned.
	Victims uint64
	// Buffer is the size of the bounce buffer, at least 4 KiB.
	Buffer uint64
	// Copy copies n bytes of the process and charges t for it. Bounce buffers need
	// it.
	Copy func(t *host.Thread, to, from, n uint64) error
	// Courier makes the strategy one for memory of a peer, and carries its
	// requests to the peer's Export. rendezvous needs a Courier. firehose without
	// one pins memory of its own process.
	Courier Courier
	// Peer is the number of the peer.
	Peer int
	// Each is the number of firehoses to the peer, at least 1.
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

// New makes a strategy for a process or, with a courier, for a peer's memory. t
// pays for work at once, such as pinning a bounce buffer. nil: before programs
// begin, when nothing takes time.
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

// end returns the end of the last page.
func (r Region) end() uint64 { return pageOf(r.Addr + r.Length + host.PageBytes - 1) }

// pinner pins and unpins pages of a process, and counts them.
type pinner struct {
	process *host.Process
	stats   Stats
}

// Stats implements Strategy.
func (n *pinner) Stats() Stats { return n.stats }

// take pins the pages from start to end and gives them to the device. Writable
// pages are pinned for writing even for a device that only reads, as
// ib_umem_get does. Otherwise a later write could copy the page, and the device
// would have the old one. write: the pages must be writable. After an error
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
	n.process.Kernel().CPU().Use(used.DeviceMap)
	work(t, spec.DeviceMapCall+spec.DeviceMapPage*sim.Time(pages), "map for device")
	n.stats.Pins += pages
	return writable, nil
}

func (n *pinner) pinned(bytes uint64) {
	n.stats.Pinned += bytes
	n.stats.MostPinned = max(n.stats.MostPinned, n.stats.Pinned)
}

// give takes pages from the device, in a number of ranges, and unpins them.
// told: the operating system has already notified the device.
func (n *pinner) give(t *host.Thread, pins []*host.Pin, ranges int, told bool) {
	spec, pages := n.process.Kernel().Spec(), 0
	for _, pin := range pins {
		pages += pin.Pages()
	}
	if pages == 0 {
		return
	}
	n.process.Kernel().CPU().Use(used.DeviceMap)
	work(t, spec.DeviceUnmapCall+spec.DeviceUnmapPage*sim.Time(pages), "unmap for device")
	if !told {
		n.process.Kernel().CPU().Use(used.Invalidation)
		work(t, (spec.Invalidate+spec.Acknowledge)*sim.Time(ranges), "invalidate")
	}
	for _, pin := range pins {
		pin.Put(t)
	}
	n.stats.Unpins += int64(pages)
	n.stats.Pinned -= uint64(pages) * host.PageBytes
}

// lease counts a lease and returns it.
func (n *pinner) lease(r Region, d Direction) *Lease {
	n.stats.Leases++
	n.stats.Leased++
	return &Lease{Addr: r.Addr, Region: r, Direction: d}
}

// closing returns an error if there are leases.
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

// lockWait names the wait for other threads that pin or unpin.
const lockWait = "memory to be pinned"
