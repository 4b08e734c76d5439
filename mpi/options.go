package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/fields"
)

// Matching says who matches messages and receives.
type Matching string

// The forms of matching.
const (
	Host    Matching = "host"    // the process
	Offload Matching = "offload" // the NIC and its handlers
)

// Forms lists the forms of matching; the first is what the others are compared with.
func Forms() []Matching { return []Matching{Host, Offload} }

// Options describe the message passing library.
type Options struct {
	// Transport carries the messages; "" stands for Portals.
	Transport Transport
	// Matching says who matches messages over Portals.
	Matching Matching
	// Eager is the largest message that is sent without waiting for its
	// receive, in bytes; offloaded matching takes at least the 16 of an
	// announcement.
	Eager int
	// Buffers is how many buffers of BufferBytes bytes each rank has at most
	// for messages that come before their receives and, with Host, for all
	// others, to begin with. A buffer is used again when all that came into it
	// has been received; see the package comment for what happens when all are
	// full.
	Buffers, BufferBytes int
	// PerNode is how many ranks a node has: rank r is a process of node r /
	// PerNode, counted from 0. 0 stands for 1.
	PerNode int
	// Places is the node of each rank, in place of what PerNode says; nil:
	// none. There are as many ranks.
	Places []int
	// Algorithms says how collective operations choose theirs; "" stands for ExaNetMPI.
	Algorithms Algorithms
	// Allreduce says who computes Allreduce; "" stands for ByHost. Window is
	// how many runs of a vector modules of the NIC have under way at a time, 1
	// to 4096; 0: as many as suit the algorithm.
	Allreduce By
	Window    int
	// ExaNet are the options of transport ExaNet; over it Buffers and BufferBytes mean nothing.
	ExaNet ExaNetOptions
	// InfiniBand are the options of transport InfiniBand; over it Buffers is
	// that of each connection, up to 64 in each direction, each for an eager
	// message, and BufferBytes means nothing.
	InfiniBand InfiniBandOptions
	// Ranks is the number of ranks; 0: as many as the cluster has room for.
	Ranks int
}

// Nodes is how many nodes so many ranks take.
func (o Options) Nodes(ranks int) int { return (ranks + o.perNode() - 1) / o.perNode() }

func (o Options) transport() Transport { return cmp.Or(o.Transport, Portals) }

func (o Options) algorithms() Algorithms { return cmp.Or(o.Algorithms, ExaNetMPI) }

func (o Options) perNode() int { return max(1, o.PerNode) }

// DefaultOptions returns the options of a form: messages up to 16 KiB are
// eager, the rendezvous threshold that MPI libraries use on RDMA networks
// (assumed: sPIN'17 gives none), and buffers for 256 of the largest of them.
func DefaultOptions(m Matching) Options {
	return Options{Matching: m, Eager: 16 << 10, Buffers: 16, BufferBytes: 256 << 10}
}

// maxBuffers is how many buffers a rank has at most.
const maxBuffers = 1 << 16

// maxPerNode is how many ranks a node has at most.
const maxPerNode = 4096

// Validate reports options that make no sense.
func (o Options) Validate() error {
	var errs []error
	wrong := func(option, format string, args ...any) {
		errs = append(errs, &fields.Wrong{Package: "mpi", Option: option, Err: fmt.Errorf(format, args...)})
	}
	if carriers[o.transport()] == nil {
		wrong("transport", "%q, expected one of %v", o.Transport, Transports())
	}
	if a := o.algorithms(); a != ExaNetMPI && a != MPICH {
		wrong("algorithms", "%q, expected one of %v", o.Algorithms, AlgorithmChoices())
	}
	if o.Matching != Host && o.Matching != Offload {
		wrong("matching", "%q, expected one of %s, %s", o.Matching, Host, Offload)
	}
	if o.Eager < 0 || o.Eager > maxMessage {
		wrong("eager", "%d B, expected 0 to %d B", o.Eager, maxMessage)
	}
	if o.Buffers < 1 || o.Buffers > maxBuffers {
		wrong("buffers", "%d, expected 1 to %d", o.Buffers, maxBuffers)
	}
	o.ExaNet.validate(&o, wrong)
	o.InfiniBand.validate(&o, wrong)
	if !slices.Contains(AllreduceChoices(), o.allreduce()) {
		wrong("allreduce", "%q, expected one of %v", o.Allreduce, AllreduceChoices())
	}
	if o.Window < 0 || o.Window > maxWindow {
		wrong("window", "%d runs, expected 1 to %d", o.Window, maxWindow)
	}
	if o.PerNode < 0 || o.PerNode > maxPerNode {
		wrong("ranks on a node", "%d, expected 1 to %d", o.PerNode, maxPerNode)
	}
	if n := len(o.Places); n > maxRanks || n > 0 && o.Ranks != 0 && o.Ranks != n {
		wrong("places of ranks", "%d for %d ranks, expected one for each", n, o.Ranks)
	}
	if o.Ranks < 0 || o.Ranks > maxRanks {
		wrong("ranks", "%d, expected 1 to %d", o.Ranks, maxRanks)
	}
	if least := o.Eager + matching.AnnouncementSize; o.Eager <= maxMessage && (o.BufferBytes < least || o.BufferBytes > maxMessage) {
		wrong("bytes of a buffer", "%d, expected %d, for an eager message or an announcement, to %d", o.BufferBytes, least, maxMessage)
	}
	return errors.Join(errs...)
}

// Unasked returns how much of a message of n bytes comes at most before the
// receiver asks for it: all of an eager one, the announcement and a part of the
// size of an eager one of a large one.
func (o Options) Unasked(n int) int {
	if n <= o.Eager {
		return n
	}
	return o.Eager + matching.AnnouncementSize
}
