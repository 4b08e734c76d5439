package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/fields"
)

// Matching selects who matches messages and receives.
type Matching string

// The forms of matching.
const (
	Host    Matching = "host"    // the process
	Offload Matching = "offload" // the NIC and its handlers
)

// Forms lists the forms of matching; the first is the baseline for the others.
func Forms() []Matching { return []Matching{Host, Offload} }

// Options describe the message passing library.
type Options struct {
	// Transport carries the messages; "" stands for Portals.
	Transport Transport
	// Matching selects who matches messages over Portals.
	Matching Matching
	// Eager is the length of the largest message that does not wait for its
	// receive, in bytes. Offloaded matching takes at least 16, the length of an
	// announcement.
	Eager int
	// Buffers is the largest number of buffers, of BufferBytes bytes each, with
	// which a rank starts. They take messages that come before their receives
	// and, with Host, all other messages. A buffer is used again when all
	// messages in it are received. The package comment explains full buffers.
	Buffers, BufferBytes int
	// PerNode is the number of ranks on a node: rank r is a process of node r /
	// PerNode, counted from 0. 0 stands for 1.
	PerNode int
	// Places, if not nil, is the node of each rank and replaces PerNode. Its
	// length is the number of ranks.
	Places []int
	// Algorithms selects the algorithms of collective operations; "":
	// ExaNetMPI.
	Algorithms Algorithms
	// Allreduce selects who computes Allreduce; "": ModeHost. Window is the
	// number of runs of a vector that modules of the NIC have under way at a
	// time, 1 to 4096; 0: a number that suits the algorithm.
	Allreduce Mode
	Window    int
	// Rooted: Bcast, Reduce, Barrier, Allgather and ReduceScatter are done there, too.
	// ModeTree and ModeSwitch do them; with other modes processes do, which
	// World.Fallbacks says.
	Rooted bool
	// ExaNet are the options of transport ExaNet, which ignores Buffers and
	// BufferBytes.
	ExaNet ExaNetOptions
	// InfiniBand are the options of transport InfiniBand. There Buffers counts
	// the buffers of each connection, up to 64 in each direction, each for one
	// eager message. BufferBytes is ignored.
	InfiniBand InfiniBandOptions
	// Ranks is the number of ranks; 0: all that the cluster has room for.
	Ranks int
	// Groups are ranks of the world that have a communicator from the beginning,
	// each in its order (GroupOf). With ModeTree and ModeSwitch they have trees
	// instead of the world.
	Groups [][]int
}

// Nodes returns the number of nodes for a number of ranks.
func (o Options) Nodes(ranks int) int { return (ranks + o.perNode() - 1) / o.perNode() }

// Program returns the node of a rank and the name of its program there.
func (o Options) Program(rank int) (node int, name string) {
	switch {
	case o.Places != nil:
		node = o.Places[rank]
	case o.perNode() == 1:
		return rank, "rank"
	default:
		node = rank / o.perNode()
	}
	return node, fmt.Sprintf("MPI rank %d", rank)
}

func (o Options) transport() Transport { return cmp.Or(o.Transport, Portals) }

func (o Options) algorithms() Algorithms { return cmp.Or(o.Algorithms, ExaNetMPI) }

func (o Options) perNode() int { return max(1, o.PerNode) }

// DefaultOptions returns the options of a form. Messages of up to 16 KiB are
// eager, the rendezvous threshold of MPI libraries on RDMA networks (assumed:
// sPIN'17 gives none). Buffers hold 256 of the largest eager messages.
func DefaultOptions(m Matching) Options {
	return Options{Matching: m, Eager: 16 << 10, Buffers: 16, BufferBytes: 256 << 10}
}

const maxBuffers = 1 << 16

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

// Unasked returns the most bytes of a message of n bytes that arrive before the
// receiver asks for any: all of an eager message; of a large one the
// announcement and at most Options.Eager bytes.
func (o Options) Unasked(n int) int {
	if n <= o.Eager {
		return n
	}
	return o.Eager + matching.AnnouncementSize
}
