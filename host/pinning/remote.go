package pinning

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
)

// Grant is a region of a peer, and where a device finds its bytes there.
type Grant struct {
	Region
	At uint64
}

// Move is what an initiator asks of a peer: regions that it will not use any
// more, and then such that are to be ready there until it says so.
type Move struct {
	Drop      []Grant
	Want      []Region
	Direction // of what is wanted
}

// Courier carries a Move to a peer and returns when the answer is there:
// whatever the peer's Export says, or that it could not be reached.
type Courier interface {
	Move(t *host.Thread, peer int, m Move) (at []uint64, err error)
}

// Export is the side of a peer whose memory others reach: it leases regions of
// a Strategy in their name.
type Export struct {
	strategy Strategy
	most     int // regions of each initiator; 0: no bound
	peers    map[int]map[Grant][]*Lease
}

// NewExport makes an Export of memory as s pins it, of which each initiator may
// have so many regions; 0: any number.
func NewExport(s Strategy, most int) *Export {
	return &Export{strategy: s, most: most, peers: map[int]map[Grant][]*Lease{}}
}

// Serve carries out the Move of an initiator, and returns where devices find
// what it wanted. With an error nothing is pinned that it wanted, and what it
// dropped is gone.
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

// remote is what strategies for memory of a peer have in common.
type remote struct {
	courier Courier
	peer    int
	stats   Stats
}

// Stats implements Strategy. What the peer pins is in those of its own strategy.
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

// rendezvous asks the peer before each operation, and tells it behind it: what
// Bell & Bonachea compare Firehose with. Whether the peer unpins the region
// then is its strategy's matter: fine-grained pinning does (their rendezvous
// with unpinning), a cache does not (without).
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

// FirehosesEach is how many firehoses each node has to each other one: all of
// them together keep at most memory bytes of a node pinned, in buckets of so
// many bytes (Bell & Bonachea: F = M / (B (N-1))). nodes is at least 2.
func FirehosesEach(memory, bucket uint64, nodes int) int {
	return int(memory / (bucket * uint64(nodes-1)))
}

// hoses is an initiator of Firehose. It has a number of firehoses to the peer,
// each of which keeps a bucket there pinned. What they reach needs no word to
// the peer. For another bucket one that nobody uses is moved there, that which
// was used longest ago, and one message moves all that an operation needs.
type hoses struct {
	remote
	bucket uint64
	each   int
	lock   host.Mutex // one request at a time, so that none overtakes another
	hoses  map[uint64]*hose
	idle   []*hose // FIFO
}

type hose struct {
	bucket uint64
	users  int
}

func (h *hoses) region(bucket uint64) Region { return Region{bucket * h.bucket, h.bucket} }

func (h *hoses) grant(s *hose) Grant { return Grant{h.region(s.bucket), s.bucket * h.bucket} }

// errMoved is an answer of a peer that has not pinned a bucket where it is.
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

// bring gets firehoses for buckets.
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

// batch is how many firehoses are given back with a request.
const batch = 1024

// Close implements Strategy: all firehoses are given back.
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
