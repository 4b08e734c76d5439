package handlerlab

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// advice returns the advice for handlers of a library.
func advice(t *testing.T, library, state string, size int, device string, overrides ...string) (*Config, *Advice) {
	p, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	cfg := &Config{Module: handlers.Must(library), Profile: p, Nodes: 1}
	if library == "pingpong" {
		cfg.Payload, cfg.Completion = "stream_payload", "stream_completion"
	}
	if state != "" {
		require.NoError(t, cfg.SetState(state))
	}
	a, err := Advise(context.Background(), cfg, make([]byte, size))
	require.NoError(t, err)
	return cfg, a
}

// The advised number of HPUs is the smallest at which simulated handlers hold
// line rate: with one less they do not. Little's law is within a tenth of it,
// apart from rounding. For handlers that wait for memory it is within a sixth,
// because two contexts do not hide all of the wait.
func TestAdviceIsWhatIsSimulated(t *testing.T) {
	for _, c := range []struct {
		library, state, device string
		size                   int
		margin                 float64
	}{
		{"sum", "", "spin-int", 4096, 0.1},
		{"sum", "", "spin-dis", 1024, 0.1},
		{"work", "iterations=120", "spin-int", 2048, 0.1},
		{"work", "iterations=700", "spin-dis", 4096, 0.1},
		{"accumulate", "", "spin-int", 4096, 0.17},
		{"accumulate", "", "spin-dis", 1024, 0.17},
		{"count", "", "spin-int", 64, 0.1},
		{"pingpong", "", "spin-int", 64, 0.1},
	} {
		t.Run(fmt.Sprint(c.library, c.size, c.device), func(t *testing.T) {
			cfg, a := advice(t, c.library, c.state, c.size, c.device)
			require.Positive(t, a.Advised)
			with, err := cfg.stream(context.Background(), a, make([]byte, c.size), a.Advised)
			require.NoError(t, err)
			require.GreaterOrEqual(t, with.Share, LineRate)
			if a.Advised > 1 {
				without, err := cfg.stream(context.Background(), a, make([]byte, c.size), a.Advised-1)
				require.NoError(t, err)
				require.Less(t, without.Share, LineRate)
			}
			law := math.Ceil(LineRate * a.Needed)
			require.InDelta(t, law, a.Advised, max(1, c.margin*law), "Little's law says %.2f", a.Needed)
		})
	}
}

// Handlers that only compute reach the rate of Little's law, within two
// percent.
func TestLittlesLawIsWhatIsSimulated(t *testing.T) {
	for _, hpus := range []int{1, 2, 4, 7} {
		_, a := advice(t, "sum", "", 4096, "spin-int", fmt.Sprint("hpu.cores=", hpus))
		require.InEpsilon(t, min(1, float64(hpus)/a.Needed), a.Stream.Share, 0.02)
		require.False(t, a.Holds())
	}
}

// The limit is the scarcest resource.
func TestLimits(t *testing.T) {
	_, a := advice(t, "accumulate", "", 4096, "spin-int", "dma.bandwidth=20GiB/s")
	require.Equal(t, "DMA to memory", a.Limit().Resource)
	require.InDelta(t, 50/20.0, a.Limit().Load, 0.2, "the link brings 50 GB/s, 46.6 GiB/s")
	require.Zero(t, a.Advised)
	require.Less(t, a.Stream.Share, 1/a.Limit().Load)
	_, a = advice(t, "pingpong", "", 64, "spin-int")
	require.Equal(t, "egress", a.Limit().Resource)
	require.Equal(t, 1.0, a.Limit().Load, "as much goes out as comes in")
	require.True(t, a.Holds())
	_, a = advice(t, "sum", "", 4096, "spin-int")
	require.Equal(t, "HPUs", a.Limit().Resource)
	require.Greater(t, a.Stream.Busy, 0.97)
	_, a = advice(t, "rdma", "", 256, "exanest")
	require.Equal(t, "r5", a.Pool)
	require.Equal(t, 3*sim.Microsecond, a.Computes, "what firmware takes")
	_, a = advice(t, "count", "", 10000, "spin-int")
	require.Equal(t, 3, a.Packets)
	require.Equal(t, 4.0, a.Calls, "three packets, and the end")
}

// Cheap handlers hold line rate on every device. If senders or the network are
// slower than line rate, more processors are no remedy.
func TestLessThanLineRateComes(t *testing.T) {
	for device, brought := range map[string]bool{"spin-int": true, "ib-npf": true, "exanest": false, "eth-npf": false} { //lint:maporder each stands for itself
		_, a := advice(t, "ftbcast", "", 256, device)
		require.True(t, a.Holds(), device)
		require.Equal(t, brought, a.Stream.Brought >= LineRate, "%s: %v", device, a.Stream.Brought)
		require.GreaterOrEqual(t, a.Stream.Share, 0.98*a.Stream.Brought, device)
		require.LessOrEqual(t, a.Limit().Load, 1.0, device)
	}
	_, a := advice(t, "accumulate", "", 256, "exanest-qfdb")
	require.False(t, a.Holds(), "it keeps up with no more than it holds back")
	require.Greater(t, a.Limit().Load, 1.0)
}

// There is no advice if handlers fail, or if none runs.
func TestNoAdvice(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	_, err = Advise(context.Background(), &Config{Module: handlers.Must("datatype"), Profile: p, Nodes: 1}, make([]byte, 64))
	var failed *FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "unreachable (and 3 more)")
	_, err = Advise(context.Background(), &Config{Module: handlers.Must("raid5"), Profile: p, Nodes: 1, Payload: "fold"}, make([]byte, 64))
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "handlers send so much to their own node that 4 packets have become more than 192 calls")
	_, err = Advise(context.Background(), &Config{Module: handlers.Must("bcast"), Profile: p, Nodes: 1}, make([]byte, 64))
	require.ErrorContains(t, err, "name one")
	require.NotErrorAs(t, err, &failed)
}
