package spin

import "structs"

// FlowEvent is what has happened to the packets from a node to another.
type FlowEvent uint32

// Flow events.
const (
	FlowBegins  FlowEvent = iota // the first packet waits: set Window
	FlowSends                    // a packet is about to leave: a path choice sets Path
	FlowAcked                    // a packet has arrived
	FlowTrimmed                  // a switch had no room for the payload of a packet
	FlowLost                     // a packet was not acknowledged in time
	FlowTimer                    // Timer has come
	FlowGranted                  // the receiver permits Bytes more
)

// Flow is the packets from one node to another as a rate law and a path choice
// see them (docs/abi.md, Flow record). A transport fills it in and calls the
// module at every event. Times are in picoseconds, bytes as on the wire.
type Flow struct {
	_        structs.HostLayout
	Event    FlowEvent
	Marked   uint32 // 1: acknowledged, and marked by a switch (ECN)
	Now      uint64
	RTT      uint64 // of the packet, from its turn on the wire; 0: unknown
	Bytes    uint64 // of the packets that the event is about
	InFlight uint64 // bytes that are sent and neither acknowledged nor lost
	Base     uint64 // the round trip of a full packet when nothing is in its way
	MTU      uint64 // bytes of a full packet
	MTUTime  uint64 // how long a full packet takes on the node's link
	Payload  uint64 // bytes of MTU that are data
	Trims    uint32 // 1: switches trim, 0: they drop
	Paths    uint32 // how many values Path may have
	Seed     uint64 // differs between flows
	Window   uint64 // result: bytes that may be in flight; one packet always may
	Pause    uint64 // result: least time between the beginnings of full packets
	Timer    uint64 // result: when FlowTimer comes, while packets wait or are in flight; 0: never
	Path     uint64 // acknowledged or trimmed: of the packet. Result of FlowSends
	// the least Pause that the links of its way allow, by the last packet that was
	// acknowledged or trimmed; 0: they have no rates
	LeastPause uint64
}
