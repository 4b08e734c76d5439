// Package matching completes large messages from the network interface (sPIN'17 §5.1): asynchronous
// matching, in which the receiving host takes no part once it has posted its receive.
//
// A small message is an ordinary put with match bits; the entry of a posted
// receive deposits it. A large message begins with a put that has the bit
// [Large] in its header data. Its user header is an [Announcement], and it
// carries the first part of the data. The header handler gets the rest from the
// sender, straight into the entry's memory, and the payload handler deposits
// the first part. The entry is complete when both are.
//
// The sender exposes the data under the announced tag, on the portal table index of [State].
package matching

import "structs"

// State is the HPU memory of the entries of posted receives, which may share it. The handlers do
// not change it.
type State struct {
	_        structs.HostLayout
	PT       uint32 // portal table index at which senders expose the data of large messages
	Reserved uint32 `spin:"max=0"` // 0
}

// Large is the bit of the header data that marks an announcement.
const Large = 1 << 63

// Announcement is the user header of a large message.
type Announcement struct {
	_     structs.HostLayout
	Total uint64 // length of the message, bytes
	Tag   uint64 // match bits under which the sender exposes it
}

// AnnouncementSize is the size of an Announcement, the user header of the entries, in bytes.
const AnnouncementSize = 16
