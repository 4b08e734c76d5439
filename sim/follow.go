package sim

// Follower is a Tracer that is told besides of what no line of a timeline
// shows: when packets, handlers and accesses to memory came how far, and
// because of what. As of any tracer nothing that is simulated depends on it,
// and without one nobody pays.
type Follower interface {
	Tracer
	// Step is told of one, in the order in which they happen. What it is given
	// is valid during the call only.
	Step(s *Step)
}

// StepKind is the kind of a Step.
type StepKind uint8

// Kinds of steps.
const (
	StepMessage StepKind = iota // an operation has become the message Flow, at To; By says of what
	StepReady                   // the data of a packet is at the NIC that sends it, at To
	StepWire                    // a packet of Bytes takes its node's link, From to To
	// the last byte of a packet of Bytes is at the NIC that receives it, at To
	StepArrived
	StepFound   // its message has been found: matched, or looked up, at To
	StepSegment // a handler computes, From to To; Why it had stopped before
	// Bytes that Flow moves cross the bus of the node, From to To; they have
	// been asked for at Asked
	StepTransfer
	// what was asked for at From, by the task or for a packet, is in memory or
	// at the NIC, at To
	StepLanded
	// a message, its send or a handler's count is visible to the host, at To
	StepDone
	StepTimer // a program of the node goes on at To because that time has come
)

// Because is what made a message.
type Because uint8

// Reasons.
const (
	OfHost    Because = iota // a program has posted the operation
	OfHandler                // the handler Task has
	OfEnd                    // the last StepDone of the node has: a triggered operation, an answer
)

// Stopped is why a handler gave its processor away before a segment.
type Stopped uint8

// Reasons.
const (
	NotStopped Stopped = iota // it is its first
	ForMemory                 // an access to host memory
	ForReply                  // a message that answers
	ForEgress                 // room in the egress
	ForOthers                 // it had yielded
)

// NoHandler is the Handler of a Task that is none.
const NoHandler = -1

// Task is a handler that runs for a message: 0 header, 1 payload of a packet, 2 completion.
type Task struct {
	Flow    uint64
	Packet  int32
	Handler int8
}

// Step is something that happened at a node, in picoseconds since the beginning of the run.
type Step struct {
	Kind      StepKind
	Because   Because
	Why       Stopped
	Sent      bool  // StepDone: of a send, not of an arrival
	Out       bool  // StepTransfer: from memory
	Rank      int32 // of the node
	Processor int32 // StepSegment: of the node's, 0 and up
	Task            // of whose message and packet it is; Handler: a task of it, else NoHandler
	By        Task  // StepMessage, if Because is OfHandler
	Bytes     int64
	// StepTransfer: the moment of the step; StepMessage of a handler: when it
	// has asked for it
	Asked    Time
	From, To Time
}
