// Package rnr is InfiniBand's reliable connection on a NIC whose memory may be
// absent (Lesokhin et al., "Page Fault Support for Network Controllers",
// ASPLOS'17, §4, "NPF'17"): send, write and read with packet sequence numbers.
// A receiver that finds a page absent asks the sender to pause (RNR NACK) and
// drops the packets that still arrive, and the sender goes back. A sender with
// an absent page stops. A reader drops packets until the page is there, and
// then lets the other side rewind.
//
// One instance is one end of a connection (a queue pair), an IOchannel of
// NPF'17. It has two entries, which share the state: the hardware's, for
// packets, work requests and timers, and the firmware's, for faults.
//
// The memory of a work request need not be present (NPF'17 §4): it is brought
// in on use.
//
// # Protocol
//
// The responder accepts the next packet, acknowledges the last packet of a
// message and each 64th, and asks for a missing one (NAK). Then the requester
// goes back. It also goes back after a time-out: 67.1 ms, up to seven times.
// NAK and RNR NACK also carry the number before which everything has landed,
// because earlier packets may still fault on their way into memory.
//
// If a page is absent the hardware does what the protocol allows. Unless a
// fault of that type is outstanding (in_flight) it tells the firmware, which
// interrupts the kernel after 198 us. A connection has at most four faults, one
// of each type. For data to be sent or read, that side stops and waits. For
// memory of a send or write, the responder sends an RNR NACK with the pause t
// and drops the packets that still arrive, and the requester goes back after t.
// For memory of a read, the reader drops all responses until the page is there,
// and then asks for the read again from that packet on (rewind).
//
// The kernel (kernel.go) brings in all ranges of the work request from the page
// on, at once. It tells the hardware first, then the firmware, which may then
// report the next fault of the type. With OnePage (ATS and PRI) it brings in
// one page at a time, and tells only the hardware. Before it takes a page away,
// the kernel's notifier makes the NIC forget the page and waits until nothing
// uses it.
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
	MaxWork   = 64 // work requests of a queue that have not ended
	MaxRanges = 4  // of a work request
	MaxReads  = 16 // requests to read that one end serves; max_rd_atomic of Connect-IB
	Ahead     = 4  // packets whose data is on its way from memory before they are sent
	Quantum   = 64 // packets that leave at once, before others have their turn
	Window    = 32 // packets that are on their way into memory at once
	AckEvery  = 64 // packets of a message
	PageBytes = 4096
	// accesses to memory that a handler has under way: all profiles have at
	// least as many hpu.dma_handles
	Handles   = 16
	WorkSize  = 104
	FaultSize = 64
	// in handler host memory: bytes of each receive, by its number modulo
	// MaxWork; at 0 is the Report
	LengthsAt  = 64
	FaultsAt   = LengthsAt + 8*MaxWork  // in handler host memory: a Fault for each type
	HostMemory = FaultsAt + 4*FaultSize // bytes
	PSNMask    = 1<<24 - 1              // of a packet sequence number
	Types      = 4
	MaxPause   = 655360000 // ns that an RNR NACK can ask for: InfiniBand's longest, of code 0
	Addresses  = 1 << 48   // of a process: below it
)

// Types of faults. One of each may be outstanding (NPF'17: "four: read and
// write, for both initiator and responder"). A send is a write of its
// initiator, a receive one of its responder.
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
	// counts faults that the firmware reports: the interrupt
	FaultCT uint32 `spin:"unit=counter"`
	DoneCT  uint32 `spin:"unit=counter"` // counts changes of the Report
	// 1: a report is for one page, and the request continues without the
	// firmware, as with ATS and PRI
	Single uint32 `spin:"max=1"`
	// time-outs in a row without an answer until the connection breaks
	Retries uint32 `spin:"default=7"`
	Ready   uint32 // 1: there is another end
	// t of the RNR NACK; 0: none is sent
	Pause uint64 `spin:"unit=ns default=240000"`
	// without an answer: 4.096 us * 2^14
	Timeout uint64 `spin:"unit=ns default=67108864 min=1 max=1000000000"`

	Report Report // written to the host when it changes
	// bitmap of types with a reported fault that is not resolved
	InFlight uint64
	// bitmap of types with another fault meanwhile
	Missed    uint64
	Requester Requester            // sends, writes, asks to read
	Responder Responder            // the other side
	Faults    [Types]Fault         // the last reported one
	Stats     EndStats             // counts of the end
	Send      [MaxWork]WorkRequest // by number modulo MaxWork
	Receive   [MaxWork]WorkRequest // likewise
	// by number modulo their number: an end can go back to the ones served last
	Reads [2 * MaxReads]Read
}

// Report is the message to the host.
type Report struct {
	_        structs.HostLayout
	Sent     uint64 // sends, writes and reads that have ended
	Received uint64 // receives that have ended
	Error    uint64 // why the connection is broken; 0: it is not
}

// Reasons for a connection to be broken.
const (
	LocalAccess  = 1 // memory of a work request cannot be had
	RemoteAccess = 2 // memory of the other process cannot be had
	TooLong      = 3 // a message is longer than its receive
	TimedOut     = 4 // nobody has answered
	Invalid      = 5 // the other end has sent an invalid message
	// handlers of the node have as many pending commands as allowed:
	// nic.handler_commands
	NoSpace = 6
)

// Landing is a side's progress with arriving packets. Numbers grow without
// bound here; packets have their lowest 24 bits.
type Landing struct {
	_      structs.HostLayout
	Next   uint64         // the next expected number
	Una    uint64         // all before it has landed, or need not
	Flying [Window]uint64 // numbers + 1 of packets on their way into memory; 0: none
}

// Requester is the side that sends, writes, and asks to read.
type Requester struct {
	_       structs.HostLayout
	Landing Landing // acknowledgements and responses
	Posted  uint64  // work requests
	Sends   uint64  // sends among them
	End     uint64  // numbers used by them
	Current uint64  // work request of Sent
	Sent    uint64  // number of the next packet to leave
	Turn    uint64  // counts changes of Sent other than by one
	Asked   uint64  // number + 1 from which a read was asked for again because a response was lost
	Timer   int64   // handle + 1 of the running one
	Mark    uint64  // Landing.Una at its start
	Tries   uint32  // time-outs without progress
	Busy    uint32  // 1: packets leave
	Paused  uint32  // 1: the other end has asked for a pause
	Stopped uint32  // 1: data is absent
	Drops   uint32  // 1: memory for a response is absent
	Spare   uint32  // 0
}

// Responder is the side that receives and answers.
type Responder struct {
	_       structs.HostLayout
	Landing Landing // of packets
	Posted  uint64  // receives
	AckAt   uint64  // the number behind the last packet that wants an acknowledgement
	Acked   uint64  // number of the last acknowledgement
	First   uint64  // requests to read: the one being served
	Last    uint64  // one past the last
	Turn    uint64  // counts changes of the next number to send other than by one
	Busy    uint32  // 1: responses leave
	Stopped uint32  // 1: data to be read is absent
	Nacked  uint32  // 1: a packet was refused; later ones are dropped until it comes
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
	Kind   uint32 // KindSend, KindWrite, KindRead; of a receive: 0
	Ranges uint32 // number of used elements of List
	// address at the other end; set by the device: the number of a send, among
	// the sends
	Remote uint64
	Length uint64 // bytes
	// set by the device: number of the first packet; for a receive: the number
	// after the last packet, 0 until it has come
	First  uint64
	Number uint64           // set by the device: packets; for a receive: bytes of the message
	List   [MaxRanges]Range // memory, in the order of the bytes
}

// Read is a request to read during its service.
type Read struct {
	_       structs.HostLayout
	Address uint64 // of the first byte
	Length  uint64 // bytes
	First   uint64 // number of the first packet of the response
	Sent    uint64 // packets that have left
}

// Fault is a fault in the form for the driver: everything that the NIC knows.
type Fault struct {
	_    structs.HostLayout
	Type uint64 // of the four
	// number of the work request, or of the receive, + 1; 0: the other end's,
	// which has none here
	Work    uint64
	Address uint64 // of the absent page, or of the first byte that the request still needs
	Length  uint64 // bytes from there
	PSN     uint64 // number of the packet
	At      uint64 // bytes of the work request before it
	Count   uint64 // of reports
	Spare   uint64 // 0
}

// EndStats counts the work of an end.
type EndStats struct {
	_          structs.HostLayout
	Packets    uint64 // sent, responses included
	Again      uint64 // numbers by which it went back
	Arrived    uint64 // accepted
	Dropped    uint64 // dropped: after one that was refused or lost
	Duplicates uint64 // that had come before
	RNR        uint64 // sent: pauses for faults and for missing receives
	Naks       uint64 // sent: a packet was lost
	NotReady   uint64 // of RNR: there was no receive
	Faults     uint64 // absent pages
	Reported   uint64 // reported ones; the others were in flight
	Rewinds    uint64 // reads that were repeated from an absent page on
	Timeouts   uint64 // of the requester
	Foreign    uint64 // messages from a wrong sender
}

// Kinds of messages.
const (
	KindSend     = 1 // packets
	KindWrite    = 2
	KindRead     = 3 // request
	KindResponse = 4
	KindAck      = 5 // of all up to its number
	// go back to its number, because one was lost; the remote offset is the
	// number before which all has landed
	KindNak    = 6
	KindRNR    = 7 // likewise, after a pause (header data, ns)
	KindBroken = 8 // the header data is the reason

	KindPostSend    = 16 // own process: a work request
	KindPostReceive = 17
	// driver: a fault of a type (header data) is resolved, continue; for the
	// firmware: report the next one
	KindResume  = 18
	KindGo      = 19 // self: packets may leave
	KindRespond = 20 // self: responses may leave
	KindRetry   = 21 // timer
	KindUnpause = 22 // timer
	KindFault   = 23 // self: a page is absent
)

// Flags of a packet.
const (
	WantAck = 1
	LastOne = 2
)

// Header is the content of a message's match bits.
type Header struct {
	Kind   uint32
	Flags  uint32
	PSN    uint32 // 24 bits
	Number uint32 // of a send, counted among the sends: 24 bits
}

// Bits packs a header into match bits.
func (h *Header) Bits() uint64 {
	return uint64(h.Kind)&0xff | uint64(h.Flags)&0xff<<8 | uint64(h.PSN)&PSNMask<<16 | uint64(h.Number)&PSNMask<<40
}

// HeaderOf unpacks match bits.
func HeaderOf(bits uint64) Header {
	return Header{uint32(bits & 0xff), uint32(bits >> 8 & 0xff), uint32(bits >> 16 & PSNMask), uint32(bits >> 40)}
}

// Full returns the number with the given lowest 24 bits that is nearest to
// near.
func Full(low uint32, near uint64) uint64 {
	d := int32(low<<8-uint32(near)<<8) >> 8
	return near + uint64(int64(d))
}

// Packets returns how many packets a message has: at least one.
func Packets(length uint64, mtu uint32) uint64 { return max(1, (length+uint64(mtu)-1)/uint64(mtu)) }
