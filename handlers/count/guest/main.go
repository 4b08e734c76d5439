// Counts messages, packets and bytes in HPU memory; nothing is deposited.
//
//spin:library count 1.0
package main

import (
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/spin"
)

// payload counts a packet and its bytes.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *count.State) spin.Code {
	spin.FAdd(&s.Packets, 1)
	spin.FAdd(&s.Bytes, uint64(p.Length))
	return spin.Success
}

// completion counts a message, and what flow control has dropped of it.
//
//go:wasmexport completion
func completion(c *spin.Completion, s *count.State) spin.Code {
	spin.FAdd(&s.Messages, 1)
	if c.DroppedBytes > 0 {
		spin.FAdd(&s.Dropped, c.DroppedBytes)
	}
	return spin.Success
}

func main() {}
