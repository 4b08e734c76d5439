// The handlers of package count.
package main

import (
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/spin"
)

//go:wasmexport payload
func payload(p *spin.Payload, s *count.State) spin.Code {
	spin.FAdd(&s.Packets, 1)
	spin.FAdd(&s.Bytes, uint64(p.Length))
	return spin.Success
}

//go:wasmexport completion
func completion(c *spin.Completion, s *count.State) spin.Code {
	spin.FAdd(&s.Messages, 1)
	if c.DroppedBytes > 0 {
		spin.FAdd(&s.Dropped, c.DroppedBytes)
	}
	return spin.Success
}

func main() {}
