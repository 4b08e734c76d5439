package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func Example_run() {
	if err := run(context.Background(), os.Stdout, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	//     65.000 ns  sender    posted a put of 10000 bytes
	//   1011.520 ns  sender    saw SEND of 10000 bytes: OK
	//   1250.805 ns  receiver  saw PUT of 10000 bytes from node 0
	//   1250.805 ns  receiver  HPU memory: 1 message, 3 packets, 10000 bytes
	//   1619.605 ns  sender    saw ACK of 10000 bytes: OK
	//   1619.605 ns  end       4 packets, 4 handlers of 34 cycles
}

// TestTimes computes the times as the README does, from the profile and the cycles of the handlers.
func TestTimes(t *testing.T) {
	var output bytes.Buffer
	cycles := map[string]int64{} // of the handler of each kind that ended last
	require.NoError(t, run(t.Context(), &output, func(s *nic.HandlerStep) {
		if s.What == nic.StepEnded {
			require.Equal(t, hpu.Success, s.Code)
			cycles[s.Handler] = s.Cycles
		}
	}))

	p, err := profile.Load("spin-dis")
	require.NoError(t, err)
	wires := 2*p.Fabric.Wire + p.Fabric.Switch
	posted := p.NIC.Overhead
	requested := posted + p.DMA.Latency
	first := requested + p.DMA.Bandwidth.Time(int64(p.Fabric.MTU)) + p.DMA.Latency
	arrived := first + p.Fabric.Rate.Time(length) + wires
	handled := arrived + p.NIC.MatchPacket + p.HPU.Clock.Cycles(cycles["payload"]) + p.HPU.Clock.Cycles(cycles["completion"])
	landed := handled + p.DMA.Latency
	acknowledged := landed + wires + p.NIC.MatchPacket + p.DMA.Latency + p.Host.Poll
	sent := requested + 2*p.DMA.Latency + p.Host.Poll
	for left := int64(length); left > 0; left -= int64(p.Fabric.MTU) {
		sent += p.DMA.Bandwidth.Time(min(left, int64(p.Fabric.MTU))) // each is rounded to a picosecond
	}

	var want []string
	for _, at := range []sim.Time{posted, sent, landed + p.Host.Poll, landed + p.Host.Poll, acknowledged, acknowledged} {
		want = append(want, fmt.Sprintf("%10.3f ns", at.Nanoseconds()))
	}
	var got []string
	for line := range strings.Lines(output.String()) {
		got = append(got, line[:len(want[0])])
	}
	require.Equal(t, want, got)
}

func TestReadmeShowsTheOutput(t *testing.T) {
	var output bytes.Buffer
	require.NoError(t, run(t.Context(), &output, nil))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), output.String())
}
