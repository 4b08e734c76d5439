// Package rules does what a rule of sPIN is about, so that an experiment can
// measure whether the rule holds (sPIN'17 §2, §3.2, §7, B).
package rules

import "structs"

// State is the HPU memory of an entry.
type State struct {
	_         structs.HostLayout
	Header    int32  `spin:"default=4"` // what the header handler returns; 4: go on
	PT        uint32 // of puts
	Action    uint64 // of payload handlers
	Puts      uint64 // of a payload handler
	Length    uint64 `spin:"unit=bytes"` // of each
	MatchBits uint64 // of puts
}

// Actions of payload handlers.
const (
	Deposit uint64 = iota // the packet into the entry's host memory
	Device                // Puts times put Length bytes of the packet to the source, from the device
	Host                  // the same from the entry's host memory
	Add                   // read the first word of the entry's host memory, add 1, and write it
	Endless               // do not end
)

// UserHeader is the length of the user header of a message, bytes. Only the
// header handler sees it.
const UserHeader = 16
