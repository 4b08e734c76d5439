package pinning

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
)

// Move is what an initiator asks of a peer: regions that it will not use any more, and then such that are to be pinned there until it says so.
type Move struct{ Drop, Want []Region }

// Courier carries a Move to a peer and returns when the answer is there: whatever the peer's Export says, or that it could not be reached.
type Courier interface {
	Move(t *host.Thread, peer int, m Move) error
}

// Remote is how an initiator makes memory of peers ready for one-sided operations.
type Remote interface {
	// Acquire returns when the region of a peer is pinned there. ErrBound: it is more than the initiator may have there.
	Acquire(t *host.Thread, peer int, r Region) (*RemoteLease, error)
	// Release ends a lease, once.
	Release(t *host.Thread, l *RemoteLease) error
	// Stats returns the counts so far.
	Stats() RemoteStats
}

// RemoteLease is a region of a peer that may be used until Release.
type RemoteLease struct {
	Peer int
	Region

	held []*hose
}

// RemoteStats counts what a Remote has done.
type RemoteStats struct {
	Leases int64
	Hits   int64 // without a word to the peer
	Moves  int64 // requests
	Reused int64 // firehoses that were taken from another bucket
}

// Export is the side of a peer whose memory others reach: it leases regions of a Strategy in their name.
type Export struct {
	strategy Strategy
	most     int // regions of each initiator; 0: no bound
	peers    map[int]map[Region][]*Lease
}

// NewExport makes an Export of memory as s pins it, of which each initiator may have so many regions; 0: any number.
func NewExport(s Strategy, most int) *Export {
	return &Export{strategy: s, most: most, peers: map[int]map[Region][]*Lease{}}
}

// Serve carries out the Move of an initiator. With an error nothing is pinned that it wanted, and what it dropped is gone.
func (e *Export) Serve(t *host.Thread, from int, m Move) error {
	leases := e.peers[from]
	if leases == nil {
		leases = map[Region][]*Lease{}
		e.peers[from] = leases
	}
	for _, r := range m.Drop {
		if err := e.drop(t, leases, r); err != nil {
			return fmt.Errorf("for %d: %w", from, err)
		}
	}
	for i, r := range m.Want {
		err := e.want(t, leases, r)
		if err == nil {
			continue
		}
		for _, done := range m.Want[:i] {
			if undo := e.drop(t, leases, done); undo != nil {
				return fmt.Errorf("for %d: %w, and then %w", from, err, undo)
			}
		}
		return fmt.Errorf("for %d: %w", from, err)
	}
	return nil
}

func (e *Export) drop(t *host.Thread, leases map[Region][]*Lease, r Region) error {
	all := leases[r]
	if len(all) == 0 {
		return fmt.Errorf("pinning: %v is given back, and was not asked for", r)
	}
	last := all[len(all)-1]
	if leases[r] = all[:len(all)-1]; len(all) == 1 {
		delete(leases, r)
	}
	return e.strategy.Release(t, last)
}

func (e *Export) want(t *host.Thread, leases map[Region][]*Lease, r Region) error {
	if e.most > 0 && leases[r] == nil && len(leases) >= e.most {
		return fmt.Errorf("%w: %d regions", ErrBound, e.most)
	}
	l, err := e.strategy.Acquire(t, r, Both)
	if err != nil {
		return err
	}
	leases[r] = append(leases[r], l)
	return nil
}

// FirehosesEach is how many firehoses each node has to each other one: all of them together keep at most memory bytes of a node pinned, in buckets of so many bytes
// (Bell & Bonachea: F = M / (B (N-1))). nodes is at least 2.
func FirehosesEach(memory, bucket uint64, nodes int) int {
	return int(memory / (bucket * uint64(nodes-1)))
}

// Hoses is an initiator of Firehose. It has a number of firehoses to each peer, each of which keeps a bucket there pinned. What they reach needs no word to the peer. For another bucket
// one that nobody uses is moved there, that which was used longest ago, and one message moves all that an operation needs.
type Hoses struct {
	courier Courier
	bucket  uint64
	each    int
	peers   map[int]*peer
	stats   RemoteStats
}

// peer is the firehoses to a peer.
type peer struct {
	lock  host.Mutex // one request at a time, so that none overtakes another
	hoses map[uint64]*hose
	idle  []*hose // FIFO
}

type hose struct {
	bucket uint64
	users  int
}

// NewHoses makes an initiator with so many firehoses to each peer, at least 1, whose buckets have so many bytes.
func NewHoses(c Courier, bucket uint64, each int) (*Hoses, error) {
	if bucket == 0 || bucket%host.PageBytes != 0 || each < 1 {
		return nil, fmt.Errorf("pinning: %d firehoses of %d bytes, expected at least 1 of a multiple of %d", each, bucket, host.PageBytes)
	}
	return &Hoses{courier: c, bucket: bucket, each: each, peers: map[int]*peer{}}, nil
}

func (h *Hoses) region(bucket uint64) Region { return Region{bucket * h.bucket, h.bucket} }

// Acquire implements Remote.
func (h *Hoses) Acquire(t *host.Thread, to int, r Region) (*RemoteLease, error) {
	p := h.peers[to]
	if p == nil {
		p = &peer{hoses: map[uint64]*hose{}}
		h.peers[to] = p
	}
	p.lock.Lock(t, lockWait)
	defer p.lock.Unlock(t)
	l := &RemoteLease{Peer: to, Region: r}
	var missing []uint64
	for b := r.Addr / h.bucket; r.Length > 0 && b <= (r.Addr+r.Length-1)/h.bucket; b++ {
		if s := p.hoses[b]; s != nil {
			p.use(s)
			l.held = append(l.held, s)
		} else {
			missing = append(missing, b)
		}
	}
	if len(missing) > 0 {
		if err := h.move(t, to, p, l, missing); err != nil {
			p.release(l.held)
			return nil, fmt.Errorf("%v of peer %d: %w", r, to, err)
		}
	} else {
		h.stats.Hits++
	}
	h.stats.Leases++
	return l, nil
}

// move gets firehoses for buckets.
func (h *Hoses) move(t *host.Thread, to int, p *peer, l *RemoteLease, missing []uint64) error {
	over := max(0, len(p.hoses)+len(missing)-h.each)
	if over > len(p.idle) {
		return fmt.Errorf("%w: %d firehoses, of which %d are in use, and %d more are needed", ErrBound, h.each, len(p.hoses)-len(p.idle), len(missing))
	}
	var m Move
	for _, s := range p.idle[:over] {
		delete(p.hoses, s.bucket)
		m.Drop = append(m.Drop, h.region(s.bucket))
	}
	p.idle = slices.Delete(p.idle, 0, over)
	for _, b := range missing {
		m.Want = append(m.Want, h.region(b))
	}
	h.stats.Moves++
	h.stats.Reused += int64(over)
	if err := h.courier.Move(t, to, m); err != nil {
		return err
	}
	for _, b := range missing {
		s := &hose{bucket: b, users: 1}
		p.hoses[b] = s
		l.held = append(l.held, s)
	}
	return nil
}

func (p *peer) use(s *hose) {
	if s.users++; s.users == 1 {
		p.idle = slices.DeleteFunc(p.idle, func(o *hose) bool { return o == s })
	}
}

func (p *peer) release(held []*hose) {
	for _, s := range held {
		if s.users--; s.users == 0 {
			p.idle = append(p.idle, s)
		}
	}
}

// Release implements Remote.
func (h *Hoses) Release(_ *host.Thread, l *RemoteLease) error {
	h.peers[l.Peer].release(l.held)
	l.held = nil
	return nil
}

// Stats implements Remote.
func (h *Hoses) Stats() RemoteStats { return h.stats }

// Rendezvous is an initiator that asks the peer before each operation, and tells it behind it: what Bell & Bonachea compare Firehose with. Whether the peer unpins the region then is its
// strategy's matter: fine-grained pinning does (their rendezvous with unpinning), a cache does not (without).
type Rendezvous struct {
	courier Courier
	stats   RemoteStats
}

// NewRendezvous makes an initiator.
func NewRendezvous(c Courier) *Rendezvous { return &Rendezvous{courier: c} }

// Acquire implements Remote.
func (v *Rendezvous) Acquire(t *host.Thread, to int, r Region) (*RemoteLease, error) {
	v.stats.Moves++
	if err := v.courier.Move(t, to, Move{Want: []Region{r}}); err != nil {
		return nil, fmt.Errorf("%v of peer %d: %w", r, to, err)
	}
	v.stats.Leases++
	return &RemoteLease{Peer: to, Region: r}, nil
}

// Release implements Remote.
func (v *Rendezvous) Release(t *host.Thread, l *RemoteLease) error {
	v.stats.Moves++
	return v.courier.Move(t, l.Peer, Move{Drop: []Region{l.Region}})
}

// Stats implements Remote.
func (v *Rendezvous) Stats() RemoteStats { return v.stats }
