package sim

// Follower is a Tracer that also gets the steps of packets, handlers and
// accesses to memory, with their causes. A timeline does not show them. As with
// any tracer, the simulation does not depend on it, and without one it costs
// nothing.
type Follower interface {
	Tracer
	// Step is called for each step, in the order in which they happen. s is valid
	// only during the call.
	Step(s *Step)
}

// StepKind is the kind of a Step.
type StepKind uint8

// Kinds of steps.
const (
	StepMessage StepKind = iota // an operation has become the message Flow, at To; By is its cause
	StepReady                   // the data of a packet is at the sending NIC, at To
	StepWire                    // a packet of Bytes occupies its node's link, From to To
	// the last byte of a packet of Bytes is at the receiving NIC, at To
	StepArrived
	StepFound   // its message was found, by matching or look-up, at To
	StepSegment // a handler computes, From to To; Why is the reason of its stop before
	// Bytes of Flow cross the bus of the node, From to To; Asked is the time of
	// the request
	StepTransfer
	// an access that the task or the packet requested at From is complete, in
	// memory or at the NIC, at To
	StepLanded
	// a message, its send or a handler's count becomes visible to the host, at To
	StepDone
	StepTimer // a program of the node continues at To because that time has come
)

// Because is the cause of a message.
type Because uint8

// Reasons.
const (
	OfHost    Because = iota // a program has posted the operation
	OfHandler                // the handler Task has posted it
	OfEnd                    // the last StepDone of the node: a triggered operation, an answer
)

// Stopped is the reason why a handler released its processor before a segment.
type Stopped uint8

// Reasons.
const (
	NotStopped Stopped = iota // it is the first segment
	ForMemory                 // an access to host memory
	ForReply                  // a message that answers
	ForEgress                 // room in the egress
	ForOthers                 // it had yielded
)

// NoHandler is the Handler of a Task that is not a handler.
const NoHandler = -1

// Task is a handler that runs for a message. Handler is 0 for the header, 1 for
// the payload of a packet, 2 for completion.
type Task struct {
	Flow    uint64
	Packet  int32
	Handler int8
}

// Step is an event at a node. Times are in picoseconds since the beginning of
// the run.
type Step struct {
	Kind      StepKind
	Because   Because
	Why       Stopped
	Sent      bool  // StepDone: of a send, not of an arrival
	Out       bool  // StepTransfer: from memory
	Rank      int32 // of the node
	Processor int32 // StepSegment: the node's processor, from 0
	Task            // message and packet; Handler: a task of it, else NoHandler
	By        Task  // StepMessage, if Because is OfHandler
	Bytes     int64
	// StepTransfer: the time of the step; StepMessage of a handler: the time of
	// its request
	Asked    Time
	From, To Time
}
