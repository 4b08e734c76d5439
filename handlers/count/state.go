// Package count is the smallest example of a handler library: it counts messages, packets and bytes
// in HPU memory. Nothing is deposited in host memory.
package count

import "structs"

// State is the HPU memory of an entry that counts. It starts as zero.
type State struct {
	_        structs.HostLayout
	Messages uint64 `spin:"unit=messages"` // completed
	Packets  uint64 `spin:"unit=packets"`  // with payload
	Bytes    uint64 `spin:"unit=bytes"`    // of payload
	Dropped  uint64 `spin:"unit=bytes"`    // by flow control
}
