package pinning

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
)

// Grant is a region of a peer, and the address of its bytes for a device there.
type Grant struct {
	Region
	At uint64
}

// Move is an initiator's request to a peer: regions that it no longer uses, and
// regions that must be ready from now on.
type Move struct {
	Drop      []Grant
	Want      []Region
	Direction // of the wanted regions
}

// Courier carries a Move to a peer and returns with the answer: the result of
// the peer's Export, or an error if the peer was not reached.
type Courier interface {
	Move(t *host.Thread, peer int, m Move) (at []uint64, err error)
}

// Export is the peer's side: it leases regions of a Strategy for initiators.
type Export struct {
	strategy Strategy
	most     int // regions per initiator; 0: no bound
	peers    map[int]map[Grant][]*Lease
}

// NewExport makes an Export of memory that s pins. most is the number of
// regions per initiator; 0: no bound.
func NewExport(s Strategy, most int) *Export {
	return &Export{strategy: s, most: most, peers: map[int]map[Grant][]*Lease{}}
}

// Serve performs the Move of an initiator and returns the device addresses of
// the wanted regions. After an error none of the wanted regions is pinned, but
// the dropped ones are released.
func (e *Export) Serve(t *host.Thread, from int, m Move) (at []uint64, err error) {
	leases := e.peers[from]
	if leases == nil {
		leases = map[Grant][]*Lease{}
		e.peers[from] = leases
	}
	for _, g := range m.Drop {
		if err := e.drop(t, leases, g); err != nil {
			return nil, fmt.Errorf("for %d: %w", from, err)
		}
	}
	for i, r := range m.Want {
		g, err := e.want(t, leases, r, m.Direction)
		if err == nil {
			at = append(at, g.At)
			continue
		}
		for k, done := range m.Want[:i] {
			if undo := e.drop(t, leases, Grant{done, at[k]}); undo != nil {
				return nil, fmt.Errorf("for %d: %w, and then %w", from, err, undo)
			}
		}
		return nil, fmt.Errorf("for %d: %w", from, err)
	}
	return at, nil
}

func (e *Export) drop(t *host.Thread, leases map[Grant][]*Lease, g Grant) error {
	all := leases[g]
	if len(all) == 0 {
		return fmt.Errorf("pinning: %v is given back, and was not asked for", g.Region)
	}
	last := all[len(all)-1]
	if leases[g] = all[:len(all)-1]; len(all) == 1 {
		delete(leases, g)
	}
	return e.strategy.Release(t, last)
}

func (e *Export) want(t *host.Thread, leases map[Grant][]*Lease, r Region, d Direction) (Grant, error) {
	if e.most > 0 && leases[Grant{r, r.Addr}] == nil && len(leases) >= e.most {
		return Grant{}, fmt.Errorf("%w: %d regions", ErrBound, e.most)
	}
	l, err := e.strategy.Acquire(t, r, d)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{r, l.Addr}
	leases[g] = append(leases[g], l)
	return g, nil
}

// remote is the common part of strategies for a peer's memory.
type remote struct {
	courier Courier
	peer    int
	stats   Stats
}

// Stats implements Strategy. Pages pinned at the peer are in the counts of the
// peer's strategy.
func (v *remote) Stats() Stats { return v.stats }

func (v *remote) move(t *host.Thread, m Move) ([]uint64, error) {
	v.stats.Moves++
	at, err := v.courier.Move(t, v.peer, m)
	if err == nil && len(at) != len(m.Want) {
		err = fmt.Errorf("pinning: peer %d has answered for %d of %d regions", v.peer, len(at), len(m.Want))
	}
	return at, err
}

func (v *remote) lease(r Region, d Direction, at uint64) *Lease {
	v.stats.Leases++
	v.stats.Leased++
	return &Lease{Addr: at, Region: r, Direction: d}
}

func (v *remote) closing() error {
	if v.stats.Leased > 0 {
		return fmt.Errorf("pinning: memory of peer %d: %w: %d leases", v.peer, ErrLeased, v.stats.Leased)
	}
	return nil
}

// rendezvous sends a request to the peer before each operation and another
// after it. Bell & Bonachea compare Firehose with it. The peer's strategy
// decides whether to unpin the region then: fine-grained pinning does (their
// rendezvous with unpinning), a cache does not (without).
type rendezvous struct{ remote }

// Acquire implements Strategy.
func (v *rendezvous) Acquire(t *host.Thread, r Region, d Direction) (*Lease, error) {
	at, err := v.move(t, Move{Want: []Region{r}, Direction: d})
	if err != nil {
		return nil, fmt.Errorf("%v of peer %d: %w", r, v.peer, err)
	}
	return v.lease(r, d, at[0]), nil
}

// Release implements Strategy.
func (v *rendezvous) Release(t *host.Thread, l *Lease) error {
	v.stats.Leased--
	_, err := v.move(t, Move{Drop: []Grant{{l.Region, l.Addr}}})
	return err
}

// Close implements Strategy.
func (v *rendezvous) Close(*host.Thread) error { return v.closing() }

// FirehosesEach returns the number of firehoses from each node to each other
// node. All of them together pin at most memory bytes of a node, in buckets of
// bucket bytes (Bell & Bonachea: F = M / (B (N-1))). nodes is at least 2.
func FirehosesEach(memory, bucket uint64, nodes int) int {
	return int(memory / (bucket * uint64(nodes-1)))
}

// hoses is the initiator's side of Firehose. It has a number of firehoses to
// the peer. Each keeps a bucket pinned there. Memory in these buckets needs no
// message. For another bucket it moves the unused firehose that was used
// longest ago. One message moves all that an operation needs.
type hoses struct {
	remote
	bucket uint64
	each   int
	lock   host.Mutex // one request at a time, so that requests keep their order
	hoses  map[uint64]*hose
	idle   []*hose // FIFO
}

type hose struct {
	bucket uint64
	users  int
}

func (h *hoses) region(bucket uint64) Region { return Region{bucket * h.bucket, h.bucket} }

func (h *hoses) grant(s *hose) Grant { return Grant{h.region(s.bucket), s.bucket * h.bucket} }

// errMoved is the error for a peer that pinned a bucket at another address.
var errMoved = errors.New("pinning: memory of firehoses is to be where it is")

// Acquire implements Strategy.
func (h *hoses) Acquire(t *host.Thread, r Region, d Direction) (*Lease, error) {
	h.lock.Lock(t, lockWait)
	defer h.lock.Unlock(t)
	var held []*hose
	var missing []uint64
	for b := r.Addr / h.bucket; r.Length > 0 && b <= (r.Addr+r.Length-1)/h.bucket; b++ {
		if s := h.hoses[b]; s != nil {
			h.use(s)
			held = append(held, s)
		} else {
			missing = append(missing, b)
		}
	}
	if len(missing) > 0 {
		moved, err := h.bring(t, missing)
		if err != nil {
			h.release(held)
			return nil, fmt.Errorf("%v of peer %d: %w", r, h.peer, err)
		}
		held = append(held, moved...)
	} else {
		h.stats.Hits++
	}
	l := h.lease(r, d, r.Addr)
	l.hoses = held
	return l, nil
}

func (h *hoses) bring(t *host.Thread, missing []uint64) (held []*hose, err error) {
	over := max(0, len(h.hoses)+len(missing)-h.each)
	if over > len(h.idle) {
		return nil, fmt.Errorf("%w: %d firehoses, of which %d are in use, and %d more are needed", ErrBound, h.each, len(h.hoses)-len(h.idle), len(missing))
	}
	m := Move{Direction: Both}
	for _, s := range h.idle[:over] {
		delete(h.hoses, s.bucket)
		m.Drop = append(m.Drop, h.grant(s))
	}
	h.idle = slices.Delete(h.idle, 0, over)
	for _, b := range missing {
		m.Want = append(m.Want, h.region(b))
	}
	h.stats.Reused += int64(over)
	at, err := h.move(t, m)
	if err != nil {
		return nil, err
	}
	for i, b := range missing {
		if at[i] != b*h.bucket {
			return nil, errMoved
		}
		s := &hose{bucket: b, users: 1}
		h.hoses[b] = s
		held = append(held, s)
	}
	return held, nil
}

func (h *hoses) use(s *hose) {
	if s.users++; s.users == 1 {
		h.idle = slices.DeleteFunc(h.idle, func(o *hose) bool { return o == s })
	}
}

func (h *hoses) release(held []*hose) {
	for _, s := range held {
		if s.users--; s.users == 0 {
			h.idle = append(h.idle, s)
		}
	}
}

// Release implements Strategy.
func (h *hoses) Release(_ *host.Thread, l *Lease) error {
	h.stats.Leased--
	h.release(l.hoses)
	l.hoses = nil
	return nil
}

// batch is how many firehoses one request of Close returns.
const batch = 1024

// Close implements Strategy: it returns all firehoses.
func (h *hoses) Close(t *host.Thread) error {
	h.lock.Lock(t, lockWait)
	defer h.lock.Unlock(t)
	if err := h.closing(); err != nil {
		return err
	}
	for some := range slices.Chunk(h.idle, batch) {
		var m Move
		for _, s := range some {
			m.Drop = append(m.Drop, h.grant(s))
		}
		if _, err := h.move(t, m); err != nil {
			return err
		}
	}
	h.idle, h.hoses = nil, map[uint64]*hose{}
	return nil
}
