// Package rnr is InfiniBand's reliable connection on a NIC whose memory may be
// absent (Lesokhin et al., "Page Fault Support for Network Controllers",
// ASPLOS'17, §4, "NPF'17"): send, write and read with packet sequence numbers.
// A receiver that finds a page absent asks the sender to pause (RNR NACK),
// drops what still arrives, and the sender goes back; a sender stops; a reader
// drops until the page is there, and has the other side rewind.
//
// One instance is one end of a connection (a queue pair), an IOchannel of
// NPF'17. It has two entries, which share the state: the hardware's, for
// packets, work requests and timers, and the firmware's, for faults.
//
// The memory of a work request need not be present (NPF'17 §4): it is brought
// in when it is used.
//
// # Protocol
//
// The responder accepts the packet that is next, acknowledges the last of a
// message and each 64th, and asks for one that is missing (NAK). The requester
// goes back then, and after a time-out: 67.1 ms, seven times. NAK and RNR NACK
// also say how far all has landed, because packets before may still fault on
// their way into memory.
//
// If a page is absent the hardware does what the protocol can. Unless a fault
// of that type is outstanding (in_flight) it tells the firmware, which
// interrupts the kernel after 198 us. A connection has four faults at most, one
// of each type. For data to be sent or read that side stops, and waits. For
// memory of what is sent or written there is an RNR NACK with the pause t, what
// still arrives is dropped, and the requester goes back when t is over. For
// memory of what was read, all that comes is dropped until the page is there;
// then the read is asked for again from that packet on (rewind).
//
// The kernel (kernel.go) brings in all ranges of the work request from the page
// on, in one go, and tells the hardware first, then the firmware, which lets
// the next fault of the type be reported. With OnePage (ATS and PRI) it is a
// page at a time, and the hardware alone is told. Before a page is taken away,
// the kernel's notifier has the NIC forget it and waits until nothing uses it.
//
// A host program uses it so:
//
//	lib, err := rnr.Load(cluster, rnr.Options{})      // once for each cluster
//	conn, err := lib.Connect(p, "disk 3")                   // by each of two processes with the same name, before they first wait
//	w, err := conn.PostReceive(header, body)                // views of p: a list to scatter to, in the order of the messages
//	w, err := conn.PostSend(view)                           // or PostWrite(address at the other end, views...), PostRead
//	n, err := w.Wait()                                      // until it has ended: bytes
package rnr

import "structs"

// Sizes.
const (
	MaxWork    = 64 // work requests of a queue that have not ended
	MaxRanges  = 4  // of a work request
	MaxReads   = 16 // requests to read that one end serves; InfiniBand's max_rd_atomic of Connect-IB
	Ahead      = 4  // packets whose data is on its way from memory before they are sent
	Quantum    = 64 // packets that leave in one go, until others have their turn
	Window     = 32 // packets that are on their way into memory at once
	AckEvery   = 64 // packets of a message
	PageBytes  = 4096
	Handles    = 16 // accesses to memory that a handler has under way: hpu.dma_handles of all profiles at least
	WorkSize   = 104
	FaultSize  = 64
	LengthsAt  = 64                     // in handler host memory: bytes of each receive, by its number modulo MaxWork; at 0 is the Report
	FaultsAt   = LengthsAt + 8*MaxWork  // in handler host memory: a Fault for each type
	HostMemory = FaultsAt + 4*FaultSize // bytes
	PSNMask    = 1<<24 - 1              // of a packet sequence number
	Types      = 4
	MaxPause   = 655360000 // ns that an RNR NACK can ask for: InfiniBand's longest, of code 0
	Addresses  = 1 << 48   // of a process: below it
)

// Types of faults: one of each is outstanding (NPF'17: "four: read and write,
// for both initiator and responder"; a send is a write of its initiator, a
// receive one of its responder).
const (
	InitiatorWrite = 0 // data to be sent or written
	ResponderWrite = 1 // memory that is sent or written to
	InitiatorRead  = 2 // memory for what was read
	ResponderRead  = 3 // data to be read
)

// State is one end of a connection.
type State struct {
	_       structs.HostLayout
	NID     uint32 `spin:"default=rank"` // node
	PID     uint32 // of the process
	PT      uint32 // of the hardware; the firmware's is the next
	PeerNID uint32 // the other end
	PeerPID uint32 // its process
	PeerPT  uint32 // its hardware
	MTU     uint32 `spin:"unit=bytes default=mtu"` // of a packet, without header
	FaultCT uint32 `spin:"unit=counter"`           // counts faults that the firmware reports: the interrupt
	DoneCT  uint32 `spin:"unit=counter"`           // counts changes of the Report
	Single  uint32 `spin:"max=1"`                  // 1: a page for each report, and it is asked for again without the firmware, as with ATS and PRI
	Retries uint32 `spin:"default=7"`              // time-outs in a row without an answer until the connection breaks
	Ready   uint32 // 1: there is another end
	Pause   uint64 `spin:"unit=ns default=240000"`                        // t of the RNR NACK; 0: none is sent
	Timeout uint64 `spin:"unit=ns default=67108864 min=1 max=1000000000"` // without an answer: 4.096 us * 2^14

	Report    Report               // written to the host when it changes
	InFlight  uint64               // bitmap of the types whose faults were reported and are not resolved
	Missed    uint64               // bitmap of the types of which there was another one meanwhile
	Requester Requester            // sends, writes, asks to read
	Responder Responder            // the other side
	Faults    [Types]Fault         // the last that was reported
	Stats     EndStats             // what it has done
	Send      [MaxWork]WorkRequest // by number modulo MaxWork
	Receive   [MaxWork]WorkRequest // likewise
	Reads     [2 * MaxReads]Read   // by number modulo their number: those that were served last can be gone back to
}

// Report is what the host is told.
type Report struct {
	_        structs.HostLayout
	Sent     uint64 // sends, writes and reads that have ended
	Received uint64 // receives that have ended
	Error    uint64 // why nothing more will; 0: nothing
}

// Reasons for a connection to be broken.
const (
	LocalAccess  = 1 // memory of a work request cannot be had
	RemoteAccess = 2 // memory of the other process cannot be had
	TooLong      = 3 // a message is longer than its receive
	TimedOut     = 4 // nobody has answered
	Invalid      = 5 // the other end has sent what no end of a connection does
	NoSpace      = 6 // handlers of the node have as much pending as they may: nic.handler_commands
)

// Landing is how far a side has come with what arrives. Numbers run free here;
// packets have 24 bits of them.
type Landing struct {
	_      structs.HostLayout
	Next   uint64         // number that is waited for
	Una    uint64         // number before which all has landed, or needs not
	Flying [Window]uint64 // numbers + 1 of packets on their way into memory; 0: none
}

// Requester is the side that sends, writes, and asks to read.
type Requester struct {
	_       structs.HostLayout
	Landing Landing // acknowledgements and responses
	Posted  uint64  // work requests
	Sends   uint64  // sends among them
	End     uint64  // numbers that they have
	Current uint64  // work request of Sent
	Sent    uint64  // number of the next packet to leave
	Turn    uint64  // counts changes of Sent but by one
	Asked   uint64  // number + 1 from which a read was asked for again because a response was lost
	Timer   int64   // handle + 1 of the one that runs
	Mark    uint64  // Landing.Una when it was started
	Tries   uint32  // time-outs without progress
	Busy    uint32  // 1: packets leave
	Paused  uint32  // 1: as the other end has asked for
	Stopped uint32  // 1: data is absent
	Drops   uint32  // 1: memory for a response is absent
	Spare   uint32  // 0
}

// Responder is the other side.
type Responder struct {
	_       structs.HostLayout
	Landing Landing // of packets
	Posted  uint64  // receives
	AckAt   uint64  // the number behind the last packet that wants an acknowledgement
	Acked   uint64  // what was acknowledged
	First   uint64  // requests to read: that which is served
	Last    uint64  // one past the last
	Turn    uint64  // counts changes of what is to be sent next but by one
	Busy    uint32  // 1: responses leave
	Stopped uint32  // 1: data to be read is absent
	Nacked  uint32  // 1: a packet was refused; those behind it are dropped until it comes
	Spare   uint32  // 0
}

// Range is memory of the process.
type Range struct {
	_       structs.HostLayout
	Address uint64 // of the first byte
	Length  uint64 // bytes
}

// WorkRequest is a work request.
type WorkRequest struct {
	_      structs.HostLayout
	Kind   uint32           // KindSend, KindWrite, KindRead; of a receive: 0
	Ranges uint32           // so many of List
	Remote uint64           // address at the other end; device: of a send, which it is among the sends
	Length uint64           // bytes
	First  uint64           // device: number of the first packet; of a receive: the one behind the last, 0 while that has not come
	Number uint64           // device: packets; of a receive: bytes of the message
	List   [MaxRanges]Range // memory, in the order of the bytes
}

// Read is a request to read that is served.
type Read struct {
	_       structs.HostLayout
	Address uint64 // of the first byte
	Length  uint64 // bytes
	First   uint64 // number of the first packet of the response
	Sent    uint64 // packets that have left
}

// Fault is what the driver is told of one: as much as the NIC knows.
type Fault struct {
	_       structs.HostLayout
	Type    uint64 // of the four
	Work    uint64 // number of the work request, or of the receive, + 1; 0: the other end's, of which there is
	Address uint64 // of the page that was absent, or of all that the request still needs
	Length  uint64 // bytes from there
	PSN     uint64 // number of the packet
	At      uint64 // bytes of the work request before it
	Count   uint64 // of reports
	Spare   uint64 // 0
}

// EndStats counts what an end has done.
type EndStats struct {
	_          structs.HostLayout
	Packets    uint64 // that were sent, responses included
	Again      uint64 // numbers that were gone back
	Arrived    uint64 // that were accepted
	Dropped    uint64 // that were not: behind one that was refused or lost
	Duplicates uint64 // that had come before
	RNR        uint64 // that were sent: pauses for faults and for want of a receive
	Naks       uint64 // that were sent: a packet was lost
	NotReady   uint64 // of RNR: there was no receive
	Faults     uint64 // absent pages that were met
	Reported   uint64 // of them: the others were in flight
	Rewinds    uint64 // reads that were asked for again from where memory had been absent
	Timeouts   uint64 // of the requester
	Foreign    uint64 // messages of others than they should be from
}

// Kinds of messages.
const (
	KindSend     = 1 // packets
	KindWrite    = 2
	KindRead     = 3 // request
	KindResponse = 4
	KindAck      = 5 // of all up to its number
	KindNak      = 6 // go back to its number: one was lost; the remote offset is the number before which all has landed
	KindRNR      = 7 // likewise, after a pause (header data, ns)
	KindBroken   = 8 // header data says why

	KindPostSend    = 16 // own process: a work request
	KindPostReceive = 17
	KindResume      = 18 // driver: a fault of a type (header data) is resolved, go on; the firmware: report the next one
	KindGo          = 19 // self: packets may leave
	KindRespond     = 20 // self: responses may leave
	KindRetry       = 21 // timer
	KindUnpause     = 22 // timer
	KindFault       = 23 // self: a page is absent
)

// Flags of a packet.
const (
	WantAck = 1
	LastOne = 2
)

// Header is that of a message, in its match bits.
type Header struct {
	Kind   uint32
	Flags  uint32
	PSN    uint32 // 24 bits
	Number uint32 // of a send, among the sends: 24 bits
}

// Bits packs it.
func (h *Header) Bits() uint64 {
	return uint64(h.Kind)&0xff | uint64(h.Flags)&0xff<<8 | uint64(h.PSN)&PSNMask<<16 | uint64(h.Number)&PSNMask<<40
}

// HeaderOf unpacks it.
func HeaderOf(bits uint64) Header {
	return Header{uint32(bits & 0xff), uint32(bits >> 8 & 0xff), uint32(bits >> 16 & PSNMask), uint32(bits >> 40)}
}

// Full is the free-running number whose low 24 bits are given, the one nearest to another.
func Full(low uint32, near uint64) uint64 {
	d := int32(low<<8-uint32(near)<<8) >> 8
	return near + uint64(int64(d))
}

// Packets is how many packets a message has: at least one.
func Packets(length uint64, mtu uint32) uint64 { return max(1, (length+uint64(mtu)-1)/uint64(mtu)) }
