package gsas

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/runtime"
)

// Errors of operations. They are wrapped with the operation and the pointer.
var (
	ErrNoMemory   = errors.New("the heap of the node has no such piece")
	ErrDead       = errors.New("nothing is allocated there, or not any more")
	ErrBounds     = errors.New("it goes beyond the end of what is allocated there")
	ErrUnaligned  = errors.New("the address of a word is not a multiple of 8")
	ErrSize       = errors.New("the number of bytes or processes is not allowed")
	ErrBarrier    = errors.New("a barrier is there, which is no memory")
	ErrNotBarrier = errors.New("no barrier is there")
	ErrNoHome     = errors.New("that node has no home")
	ErrTransfer   = errors.New("the transfer has failed, and what it was to write may be there in part")
	ErrForeign    = exanet.ErrForeign // the home is of another protection domain
	// The home does not answer: the operation has happened once or not at
	// all.
	ErrTimedOut = exanet.ErrTimedOut
)

var statusErrors = map[status]error{
	noMemory: ErrNoMemory, dead: ErrDead, beyond: ErrBounds, unaligned: ErrUnaligned, badSize: ErrSize, notBarrier: ErrNotBarrier, isBarrier: ErrBarrier,
	transferFailed: ErrTransfer,
}

// transferErrors are the reasons of a failed transfer. A home sends 1 + the
// index.
var transferErrors = [...]error{rdma.ErrTimedOut, rdma.ErrDenied, rdma.ErrForeign, rdma.ErrNoSpace, rdma.ErrIllegal}

// Options configure a space.
type Options struct {
	// PDID is the protection domain of the homes; 0: exanet.DefaultPDID.
	PDID exanet.PDID
	// Heap is the size of each home's heap in bytes, 1 to 2^30.
	Heap int
	// Nodes are the nodes with a home; nil: all. A home takes a core while
	// it has work.
	Nodes []int
	// System is the cluster's, if something else uses it too; nil: the
	// space loads its own.
	System *exanet.System
	// Home and Member configure the mailboxes of homes and of other
	// processes. The zero value selects the library's defaults.
	Home, Member exanet.Options
	// Channels configures the pages of RDMA channels, without the PDID.
	Channels rdma.Options
}

// MaxHeap is the maximum size of a home's heap, in bytes.
const MaxHeap = 1 << 30

// Space is a global address space: its homes are processes of the cluster.
type Space struct {
	o      Options
	system *exanet.System
	rdma   *rdma.Engine
	homes  []*home // by node; nil: none
	unheld bool    // for tests: requests never wait for others
}

// New makes a space and starts its homes, which serve until the run ends.
func New(c *runtime.Cluster, o Options) (*Space, error) {
	if o.Heap < 1 || o.Heap > MaxHeap {
		return nil, fmt.Errorf("gsas: heap of %d bytes, expected 1 to %d", o.Heap, MaxHeap)
	}
	s := &Space{o: o, system: o.System, homes: make([]*home, c.Nodes())}
	var err error
	if s.system == nil {
		if s.system, err = exanet.Load(c); err != nil {
			return nil, fmt.Errorf("gsas: %w", err)
		}
	}
	if s.rdma, err = rdma.Load(c); err != nil {
		return nil, fmt.Errorf("gsas: %w", err)
	}
	nodes := slices.Clone(o.Nodes)
	if nodes == nil {
		for n := range c.Nodes() {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		if err := s.start(c, n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Space) start(c *runtime.Cluster, node int) error {
	switch {
	case node < 0 || node >= len(s.homes):
		return fmt.Errorf("gsas: home of node %d, expected 0 to %d", node, len(s.homes)-1)
	case s.homes[node] != nil:
		return fmt.Errorf("gsas: node %d has a home", node)
	case node >= exanet.Nodes || c.Processes(node) >= exanet.Ranks:
		return fmt.Errorf("gsas: home of node %d: it would be process %d, and an address tells %d nodes and %d processes", node, c.Processes(node), exanet.Nodes, exanet.Ranks)
	}
	h := &home{space: s, node: node, pid: uint32(c.Processes(node))}
	s.homes[node] = h
	return c.SpawnService(node, "gsas home", h.run)
}

// System returns the system software of the space. With it a caller can put a
// process into a protection domain before the process opens the space.
func (s *Space) System() *exanet.System { return s.system }

// join gives a process its interfaces.
func (s *Space) join(p *runtime.Proc, mail exanet.Options, o rdma.Options) (*exanet.Interface, *rdma.Page, error) {
	pdid, admitted := s.system.Domain(p)
	if !admitted {
		pdid = cmp.Or(s.o.PDID, exanet.DefaultPDID)
		if err := s.system.Admit(p, pdid); err != nil {
			return nil, nil, err
		}
	}
	page, err := s.system.Open(p, mail)
	if err != nil {
		return nil, nil, err
	}
	o.PDID = uint16(pdid)
	rdma, err := s.rdma.Open(p, o)
	return page, rdma, err
}

// Counts are a home's statistics.
type Counts struct {
	Requests  uint64 // served
	Held      uint64 // of them, requests that waited for a large one
	Large     uint64 // by RDMA
	Refused   uint64 // answered with an error
	Lost      uint64 // answers that could not be delivered
	Strange   uint64 // malformed messages
	Foreign   uint64 // messages of other protection domains, refused by the mailbox
	Allocated uint64 // bytes, now
}

// Counts returns the statistics of a node's home, zero if it has none.
func (s *Space) Counts(node int) Counts {
	if node < 0 || node >= len(s.homes) || s.homes[node] == nil || s.homes[node].page == nil {
		return Counts{}
	}
	h := s.homes[node]
	c := h.counts
	c.Foreign = h.page.Counts().Received.Foreign
	c.Allocated = h.heap.used
	return c
}
