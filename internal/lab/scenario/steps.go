package scenario

import (
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/sim"
)

// Step is one step of a program. Setting up takes no virtual time. Posting
// takes the overhead o of the profile. Looking at a completion takes the poll
// time of the host.
type Step struct {
	_        strictyaml.OneOf `help:"One thing the program does."`
	Put      *Put             `yaml:"put" help:"Send bytes to entries of other ranks (PtlPut)."`
	Get      *Get             `yaml:"get" help:"Fetch bytes from entries of other ranks (PtlGet)."`
	Atomic   *Atomic          `yaml:"atomic" help:"Combine bytes with those of an entry (PtlAtomic), or, with into, fetch the old ones as well (PtlFetchAtomic, PtlSwap)."`
	Wait     *Wait            `yaml:"wait" help:"Wait for something to have been counted. Each wait asks for so many more than those before it."`
	WriteHPU *WriteHPU        `yaml:"write_hpu" help:"Write to the HPU memory of an entry, while handlers work on it: posted for the overhead o, then across the bus."`
	WaitHPU  *WaitHPU         `yaml:"wait_hpu" help:"Read a field of HPU memory across the bus, again and again, until it is what is wanted; without bounds, until it changes."`
	Sleep    *sim.Time        `yaml:"sleep" help:"Do nothing for a time, such as 1.5us."`
	Until    *sim.Time        `yaml:"until" help:"Do nothing until so long after the beginning of the run, such as 10us."`
	Compute  *sim.Time        `yaml:"compute" help:"Occupy the core for a time."`
	UserID   *Expr            `yaml:"user_id" help:"Have the system give the process this user id, which its messages carry from now on (PtlGetUid). It is 0 until then."`
	Copy     *Copy            `yaml:"copy" help:"Copy memory on the core."`
	Mark     *string          `yaml:"mark" help:"Remember this moment under a name."`
	Measure  *Measure         `yaml:"measure" help:"Note the time since a mark."`
	Expect   *Expectation     `yaml:"expect" help:"What must be true now."`
	Repeat   *Repeat          `yaml:"repeat" help:"Do several steps many times; round is the number of the repetition, from 0."`
}

// Target is the destination of an operation and its repetitions.
type Target struct {
	To           RankSet   `yaml:"to" required:"true" help:"Ranks, one operation to each, in this order."`
	Entry        string    `yaml:"entry" help:"Entry of the target whose portal table index and match bits to use."`
	PT           Expr      `yaml:"pt" help:"Portal table index, in place of that of entry. Default 0."`
	MatchBits    Expr      `yaml:"match_bits" help:"Match bits, in place of those of entry. Default 0."`
	RemoteOffset Expr      `yaml:"remote_offset" help:"Offset in the entry. Default 0."`
	Count        Expr      `yaml:"count" help:"How often; i is the number of the repetition, from 0. Default 1."`
	Interval     *sim.Time `yaml:"interval" help:"Time between the beginnings of two repetitions, if posting does not take longer. Default 0."`
}

// Put is a put step.
type Put struct {
	Target  `yaml:",inline"`
	From    string  `yaml:"from" help:"Buffer or entry that holds the bytes. Default: memory of the step's own."`
	Offset  Expr    `yaml:"offset" help:"Where in from. Default 0."`
	Bytes   Expr    `yaml:"bytes" help:"Length of the message. Default: the rest of from, or the size of fill."`
	Fill    Content `yaml:"fill" help:"What the step's own memory holds. Default pattern."`
	HdrData Expr    `yaml:"hdr_data" help:"64 bits that travel with the header. Default 0."`
	Ack     AckName `yaml:"ack" help:"Acknowledgement asked for. Default none."`
}

// Get is a get step.
type Get struct {
	Target `yaml:",inline"`
	Into   string `yaml:"into" help:"Buffer or entry for the bytes. Default: memory of the step's own."`
	Offset Expr   `yaml:"offset" help:"Where in into. Default 0."`
	Bytes  Expr   `yaml:"bytes" help:"How many. Default: the rest of into."`
}

// Atomic is an atomic, fetching atomic or swap step.
type Atomic struct {
	Target     `yaml:",inline"`
	Op         AtomicName `yaml:"op" required:"true" help:"Operation (Portals 4.x §3.15.4)."`
	Type       TypeName   `yaml:"type" required:"true" help:"Type of the elements."`
	From       string     `yaml:"from" help:"Buffer or entry that holds the operands. Default: memory of the step's own."`
	Offset     Expr       `yaml:"offset" help:"Where in from. Default 0."`
	Bytes      Expr       `yaml:"bytes" help:"Length of all elements. Default: the rest of from, or the size of fill."`
	Fill       Content    `yaml:"fill" help:"What the step's own memory holds. Default pattern."`
	Into       string     `yaml:"into" help:"Buffer or entry for the old values of the target. Default: they are not fetched."`
	IntoOffset Expr       `yaml:"into_offset" help:"Where in into. Default 0."`
	Operand    Content    `yaml:"operand" help:"One element that conditional swaps compare with, and the mask of mswap."`
	HdrData    Expr       `yaml:"hdr_data" help:"64 bits that travel with the header. Default 0."`
	Ack        AckName    `yaml:"ack" help:"Acknowledgement asked for. Default none; fetching has its reply instead."`
}

// Wait is a wait step.
type Wait struct {
	Entry    string `yaml:"entry" help:"Entry of this rank, for messages or bytes."`
	Messages Expr   `yaml:"messages" help:"How many more messages must be complete in the entry."`
	Bytes    Expr   `yaml:"bytes" help:"How many more bytes must have arrived in the entry, in whatever messages. An entry is waited for either in messages or in bytes."`
	Acks     Expr   `yaml:"acks" help:"How many more of the program's puts and atomics must be acknowledged."`
	Replies  Expr   `yaml:"replies" help:"How many more of the program's gets and fetching atomics must be answered."`
}

// Copy is a copy step.
type Copy struct {
	From       string `yaml:"from" required:"true" help:"Buffer or entry."`
	FromOffset Expr   `yaml:"from_offset" help:"Default 0."`
	Into       string `yaml:"into" required:"true" help:"Buffer or entry."`
	IntoOffset Expr   `yaml:"into_offset" help:"Default 0."`
	Bytes      Expr   `yaml:"bytes" help:"Default: the rest of from."`
}

// Measure is a measure step.
type Measure struct {
	Since  string `yaml:"since" required:"true" help:"Mark."`
	Rank   Expr   `yaml:"rank" help:"Whose mark it is. Default: this rank."`
	Name   string `yaml:"name" help:"Name in the table of latencies. Default: that of the mark."`
	Divide Expr   `yaml:"divide" help:"What to divide the time by, such as 2 for half of a round trip. Default 1."`
}

// Repeat is a loop.
type Repeat struct {
	Times Expr   `yaml:"times" required:"true" help:"How often."`
	Steps []Step `yaml:"steps" required:"true" help:"What."`
}
