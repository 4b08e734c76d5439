// Package target is a storage target like tgt over iSER. Initiators request
// blocks of a disk, and the target writes them into their memory (NPF'17:
// Lesokhin et al., "Page Fault Support for Network Controllers", ASPLOS'17, §6,
// storage). The target reads through the page cache of its node. It copies the
// bytes to a communication buffer, from which the interface sends them. Each
// transaction has its own communication buffer of a fixed size, even for few
// bytes. Cache and buffers share the node's memory: pinned buffers leave less
// for the cache.
//
//	t, err := target.New(cluster, connections, target.Options{...})   // its processes on node 0, before the run begins
//	i, err := t.Connect(proc, 3)                                      // session 3, by its initiator, before that first waits
//	err = i.Post(at, n)                                               // up to Options.Depth at a time
//	answer, err := i.Next()                                           // in the order of the requests
package target

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Options are the options of a target. Sizes are bytes and multiples of 4 KiB.
type Options struct {
	// Disk is the size of its disk (the LUN), at least one Buffer.
	Disk int
	// Buffer is the size of a communication buffer and the largest request.
	Buffer int
	// Pool is the size of all communication buffers, at least one for each
	// session. Sessions have equal parts of it.
	Pool int
	// Sessions is the number of initiators that it serves, 1 to 1024. Each has
	// its own process.
	Sessions int
	// Depth is the most requests of a session under way, 1 to MaxDepth.
	Depth int
	// Work is the time of the target's own instructions for a request, besides
	// its accesses to memory, copies and calls of the kernel; at least 0.
	Work sim.Time
	// Held makes requests wait until Begin.
	Held bool
	// Pinning is the way in which the buffers become ready for the interface.
	// static pins all of them before the target begins. Copy is the target's
	// own.
	Pinning pinning.Options
}

// Limits of Options.
const (
	MaxSessions = 1024
	// a request ends with a write and an answer: two work requests
	MaxDepth = rnr.MaxWork / 2
)

// Validate returns every violation, each with the field's name.
func (o *Options) Validate() error {
	var wrong []error
	size := func(field string, n, least int) {
		if n < least || n%host.PageBytes != 0 {
			wrong = append(wrong, fmt.Errorf("target: %s is %d, expected a multiple of %d from %d", field, n, host.PageBytes, least))
		}
	}
	count := func(field string, n, most int) {
		if n < 1 || n > most {
			wrong = append(wrong, fmt.Errorf("target: %s is %d, expected 1 to %d", field, n, most))
		}
	}
	size("buffer", o.Buffer, host.PageBytes)
	size("disk", o.Disk, max(o.Buffer, host.PageBytes))
	count("sessions", o.Sessions, MaxSessions)
	count("depth", o.Depth, MaxDepth)
	if o.Work < 0 {
		wrong = append(wrong, fmt.Errorf("target: work is %v, expected at least 0", o.Work))
	}
	if len(wrong) == 0 {
		size("pool", o.Pool, o.Sessions*o.Buffer)
	}
	return errors.Join(wrong...)
}

// stride is the distance between the numbers on a disk.
const stride = 64 << 10

// Content is the content of a target's disk. Every 64 KiB there is a number
// that follows from the place; the rest is zeros. Content fills into with the
// bytes of the page at at, or returns true if they are zeros.
func Content(at int, into []byte) (zeros bool) {
	if at%stride != 0 || len(into) < 8 {
		return true
	}
	clear(into)
	binary.LittleEndian.PutUint64(into, uint64(at)^0x5ca1ab1e0ddba115)
	return false
}

// Check compares bytes with the disk's bytes from at on, a multiple of 4 KiB.
func Check(at int, got []byte) error {
	var want [host.PageBytes]byte
	for off := 0; off < len(got); off += host.PageBytes {
		page := got[off:min(off+host.PageBytes, len(got))]
		w := want[:len(page)]
		if Content(at+off, w) {
			clear(w)
		}
		for i := range page {
			if page[i] != w[i] {
				return fmt.Errorf("target: byte %d of the disk came as %d, expected %d", at+off+i, page[i], w[i])
			}
		}
	}
	return nil
}

// Target is a storage target.
type Target struct {
	o        Options
	lib      *rnr.Loaded
	node     *runtime.Node
	disk     *host.File
	sessions []*session
	held     bool
}

// New makes a target with processes on node 0. Call it before the run begins.
// The node needs an operating system and storage.
func New(c *runtime.Cluster, lib *rnr.Loaded, o Options) (*Target, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Target{o: o, lib: lib, node: c.Node(0), held: o.Held}
	if t.node.Kernel() == nil {
		return nil, fmt.Errorf("target: profile %s has no operating system (os.kind), and so no page cache", c.Profile().Name)
	}
	var err error
	if t.disk, err = t.node.Kernel().Generate("LUN", o.Disk, Content); err != nil {
		return nil, err
	}
	for n := range o.Sessions {
		s := &session{target: t}
		t.sessions = append(t.sessions, s)
		if err := c.SpawnService(0, fmt.Sprintf("tgt %d", n), func(p *runtime.Proc) error { return s.main(p, t.name(n)) }); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Target) name(session int) string { return fmt.Sprintf("session %d", session) }

// Begin makes a target with Held serve its requests. Processes of its node call
// it.
func (t *Target) Begin() {
	t.held = false
	for _, s := range t.sessions {
		s.p.Thread().Wake()
	}
}

// Disk returns the disk, so that others on the node can read it.
func (t *Target) Disk() *host.File { return t.disk }

// Stats counts the work of a target and its memory.
type Stats struct {
	Requests int64
	Bytes    int64
	Refused  int64 // invalid requests
	Broken   int   // sessions that ended because their connection broke
	// bytes of memory of the target's processes: used buffers, and little more
	Resident int64
	Cached   int64 // bytes of the disk in memory
	Pinning  pinning.Stats
}

// Stats returns the counts. Counts of pinning are sums over the sessions.
func (t *Target) Stats() (all Stats) {
	all.Cached = int64(t.disk.Cached()) * host.PageBytes
	for _, s := range t.sessions {
		all.Requests += s.requests
		all.Bytes += s.bytes
		all.Refused += s.refused
		if s.broken {
			all.Broken++
		}
		if s.p == nil || s.strategy == nil {
			continue
		}
		all.Resident += int64(s.p.OS().Resident()) * host.PageBytes
		n := s.strategy.Stats()
		all.Pinning.Leases += n.Leases
		all.Pinning.Hits += n.Hits
		all.Pinning.PinCalls += n.PinCalls
		all.Pinning.Pins += n.Pins
		all.Pinning.Unpins += n.Unpins
		all.Pinning.Copies += n.Copies
		all.Pinning.CopiedBytes += n.CopiedBytes
		all.Pinning.Pinned += n.Pinned
		all.Pinning.MostPinned += n.MostPinned
	}
	return all
}
