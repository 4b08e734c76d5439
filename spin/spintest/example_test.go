package spintest_test

import (
	"fmt"
	"testing"

	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// counter is the state of the handlers: memory of the NIC.
type counter struct{ Packets, Bytes uint64 }

// A handler is a function of the packet and its state. As plain Go it runs on a
// device made for tests, which here splits a message of 5000 bytes into
// packets, and with TinyGo on the simulated one.
func ExampleDeliver() {
	payload := func(p *spin.Payload, s *counter) spin.Code {
		spin.FAdd(&s.Packets, 1)
		spin.FAdd(&s.Bytes, uint64(p.Length))
		if spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed() {
			return spin.Fail
		}
		return spin.Success
	}
	t := new(testing.T) // in a test its own
	device := spintest.New(t, spintest.Config{HostMem: 8192})
	state := counter{}
	data := make([]byte, 5000)
	data[4999] = 'z'
	out := spintest.Deliver(device, spintest.Handlers[counter]{Payload: payload}, &state, spintest.Message{Data: data})
	fmt.Println(len(out.Payloads), "handlers of packets,", state.Bytes, "bytes; the last is", string(device.Host[4999:5000]))
	// Output:
	// 2 handlers of packets, 5000 bytes; the last is z
}
