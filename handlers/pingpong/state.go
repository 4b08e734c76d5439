// Package pingpong answers messages from the network interface (sPIN'17 §4.4.1).
//
// Two variants differ in when the answer, the pong, leaves:
//   - store: a message of one packet is answered from the device. For a larger
//     one the payload handlers deposit the packets and the completion handler
//     sends the whole message from host memory.
//   - stream: each packet is answered from the device as it arrives, as a put
//     of its own at the packet's offset. The data never reaches host memory;
//     the receiver of the pong counts bytes.
//
// The pong goes to the initiator of the ping and carries its header data. A
// message without payload is answered by one without payload. There is no
// header handler, because the records of the other handlers have all that it
// could note. Pings with a user header are not answered in full.
package pingpong

import "structs"

// State is the HPU memory of an entry that answers. The handlers do not change it.
type State struct {
	_          structs.HostLayout
	MatchBits  uint64 // of the pong
	PT         uint32 // portal table index of the pong
	MaxPayload uint32 `spin:"unit=bytes default=mtu"` // largest payload of a packet of the device
}
