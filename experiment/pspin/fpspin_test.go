package pspin

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/sim"
)

// ping measures a point of fpspin.
func ping(t *testing.T, example string, data int, set ...string) *experiment.Result {
	t.Helper()
	return measure(t, pings, "fpspin-readme-06", "example="+example+" data="+strconv.Itoa(data), set...)
}

// A checksum costs so much for each word of two bytes, an odd byte at the end
// included; addresses cost the same at all sizes. Each answer is compared with
// answerTo in the run itself.
func TestPings(t *testing.T) {
	cycles := func(example string, data int) int64 { return ping(t, example, data).Values["warm"].(int64) }
	for example, least := range map[string]int64{"icmp_ping": 12, "icmp_ping_fast": 6, "udp_ping": 0} {
		none, some, more := cycles(example, 0), cycles(example, 200), cycles(example, 1400)
		require.Equal(t, 6*(some-none), more-some, example)
		require.GreaterOrEqual(t, some-none, 100*least, example)
		require.LessOrEqual(t, some-none, 100*(least+3), example)
		ping(t, example, 57)
	}
}

// The time on the device follows its clock: what does not are the 100 ns to the
// request and the bytes of the packet.
func TestPingFollowsTheClock(t *testing.T) {
	slow, fast := ping(t, "udp_ping", 56), ping(t, "udp_ping", 56, "hpu.clock=80MHz")
	device := func(r *experiment.Result) float64 { return float64(r.Values["device"].(sim.Time)) }
	require.InEpsilon(t, 2, device(slow)/device(fast), 0.1)
	require.Equal(t, slow.Values["warm"], fast.Values["warm"])
}

// An answer's checksum is right for any data (RFC 1071: the sum of all is 0).
func TestAnswerHasItsChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		packet := append(make([]byte, headerBytes), rapid.SliceOf(rapid.Byte()).Draw(t, "data")...)
		packet[ethernetBytes+9], packet[transportAt] = icmp, 8
		require.Zero(t, checksum(answerTo(packet)[transportAt:]))
	})
}
