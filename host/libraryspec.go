package host

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// LibrarySpec has what TR-488 leaves open about the code of ExaNet-MPI. The zero
// value is what spinsim does. MPI over other transports ignores EagerCopy,
// EagerSend and Start, and collectives with the algorithms of MPICH ignore Exchange,
// Fanout, Collective, Copy, Reduce, Allocate and AllocatePage.
type LibrarySpec struct {
	// EagerCopy is who copies an eager message of a byte or more between mailbox
	// and memory, beside reading it: CopyOnce, CopyCached, CopyTwice or
	// CopyFree. Absent: CopyOnce. TR-488 §6.1.1: 100 to 150 ns for each copy; it
	// gives no number of copies.
	EagerCopy string `yaml:"eager_copy,omitempty"`
	// EagerSend is when the send of an eager message is over: SendStored, when it
	// is in a channel of the packetizer, or SendAcknowledged, when the process has
	// seen there that the mailbox has it. Absent: SendStored. TR-488 §4.4: a
	// process polls the channel's state; it does not say before what.
	EagerSend string `yaml:"eager_send,omitempty"`
	// Start is who starts the transfer of a large message: StartUnit or
	// StartProcess. Absent: StartUnit. TR-488 §5.2.1 says both.
	Start string `yaml:"start,omitempty"`
	// Exchange is the order of the two messages of MPI_Sendrecv between two
	// ranks: ExchangeTogether or ExchangeOrdered. Absent: ExchangeTogether.
	// TR-488 §6.1.3 has sendrecv in every step of Allreduce, and not its order.
	Exchange string `yaml:"exchange,omitempty"`
	// Fanout is whether a rank of a broadcast waits for each message to a child
	// before the next: FanoutWaits or FanoutTogether. Absent: FanoutWaits.
	Fanout string `yaml:"fanout,omitempty"`
	// Collective is the time of the code of a collective call beside messages,
	// copies and reductions, at most 1 s. Source: none, ours.
	Collective sim.Time `yaml:"collective,omitempty"`
	// Copy is the time of a call of memcpy in a collective beside its bytes, at
	// most 1 s. TR-488 §6.1.1: a copy of a small message takes 100 to 150 ns.
	Copy sim.Time `yaml:"copy,omitempty"`
	// Reduce is the time of a call of MPI_Reduce_local beside its bytes, at most
	// 1 s. Source: none, ours.
	Reduce sim.Time `yaml:"reduce,omitempty"`
	// Allocate is the time to allocate and free a temporary buffer of a
	// collective, at most 1 s. TR-488 §6.1.3: each Allreduce allocates one.
	Allocate sim.Time `yaml:"allocate,omitempty"`
	// AllocatePage is the time for each of its pages of 4 KiB: they are touched
	// for the first time. At most 1 s. PART'22: 3 us. Absent: the library keeps
	// its buffers.
	AllocatePage sim.Time `yaml:"allocate_page,omitempty"`
	// Vectors is how often the process programs the Allreduce accelerator:
	// VectorsEach, for each run of 256 B, or VectorsOnce, for a whole vector.
	// Absent: VectorsEach. TR-488 §6.1.5: it is triggered once for each block.
	Vectors string `yaml:"vectors,omitempty"`
	// Runs is how many runs of a vector the accelerator has under way at a time,
	// 1 to 64. Absent: 1. More than one need VectorsOnce.
	Runs int `yaml:"runs,omitempty"`
	// Notice is where the accelerator reports its end: NoticeMemory or
	// NoticeMailbox, which is in the core's cache. Absent: NoticeMemory. TR-488
	// §4.7: each module updates the memory and notifies the software.
	Notice string `yaml:"notice,omitempty"`
}

// Values of the fields of LibrarySpec.
const (
	CopyOnce   = "receiver" // the receiver, for memory_latency and the bytes
	CopyCached = "cached"   // the receiver, in the cache line that it has read: the bytes
	CopyTwice  = "both"     // the receiver and, likewise, the sender
	CopyFree   = "none"     // a part of message

	SendStored       = "stored"
	SendAcknowledged = "acknowledged"

	StartUnit    = "unit"
	StartProcess = "process"

	ExchangeTogether = "together" // both are under way at a time
	ExchangeOrdered  = "ordered"  // the lower rank sends and then receives

	FanoutWaits    = "waits"
	FanoutTogether = "together"

	VectorsEach = "each"
	VectorsOnce = "once"

	NoticeMemory  = "memory"
	NoticeMailbox = "mailbox"
)

const maxRuns = 64

// validate adds every violation, each with the field's name in the host section.
func (s *LibrarySpec) validate(wrong *fields.Errors) {
	for _, f := range []struct {
		name, value string
		allowed     []string
	}{
		{"eager_copy", s.EagerCopy, []string{CopyOnce, CopyCached, CopyTwice, CopyFree}},
		{"eager_send", s.EagerSend, []string{SendStored, SendAcknowledged}},
		{"start", s.Start, []string{StartUnit, StartProcess}},
		{"exchange", s.Exchange, []string{ExchangeTogether, ExchangeOrdered}},
		{"fanout", s.Fanout, []string{FanoutWaits, FanoutTogether}},
		{"vectors", s.Vectors, []string{VectorsEach, VectorsOnce}},
		{"notice", s.Notice, []string{NoticeMemory, NoticeMailbox}},
	} {
		if f.value != "" {
			wrong.OneOf("library."+f.name, f.value, f.allowed...)
		}
	}
	for _, f := range []struct {
		name string
		time sim.Time
	}{
		{"collective", s.Collective}, {"copy", s.Copy}, {"reduce", s.Reduce}, {"allocate", s.Allocate}, {"allocate_page", s.AllocatePage},
	} {
		fields.Between(wrong, "library."+f.name, f.time, 0, maxTime)
	}
	most := maxRuns
	if s.Vectors != VectorsOnce {
		most = 1
	}
	fields.Between(wrong, "library.runs", s.Runs, 0, most)
}
