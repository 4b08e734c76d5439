package handlerlab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// bucket is a run of examples/token-bucket, which is asked for three packets.
func bucket(t *testing.T, state string) *Config {
	m, err := handlers.Open("../../../examples/token-bucket/token-bucket.wasm")
	require.NoError(t, err)
	p, err := profile.Load("spin-dis")
	require.NoError(t, err)
	cfg := &Config{
		Module: m, Profile: p, Header: "header", Messages: []Message{{Source: 1, HdrData: 3}}, Host: make([]byte, 256), Race: true,
		Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}},
	}
	require.NoError(t, cfg.SetState("bytes=64,target=1,pt=5,"+state))
	return cfg
}

// A report lists what handlers ask the clock and their timers. The messages of
// a timer are in order, so that its handlers need no atomics.
func TestTimersAreListed(t *testing.T) {
	r := mustRun(t, bucket(t, "period=300000"))
	require.NoError(t, r.Err())
	require.Empty(t, r.Races)
	h := r.Handlers[0].Actions
	require.Equal(t, []string{"now", "217800 ps"}, []string{h[2].Name, h[2].Answer})
	require.Equal(t, "0 B to itself at 517800 ps and each 300000 ps after, pt 0, match bits 0x0, offset 0", h[3].What)
	require.Equal(t, "handle 0", h[3].Answer)
	for i := 2; i < len(r.Handlers); i++ {
		require.Equal(t, 300*sim.Nanosecond, r.Handlers[i].Start-r.Handlers[i-1].Start)
		require.Equal(t, []string{"expiries", "1"}, []string{r.Handlers[i].Actions[0].Name, r.Handlers[i].Actions[0].Answer})
	}
	require.Len(t, r.Handlers, 1+3+1, "three packets and a tick that fills the bucket")
}

// Expiries without a message of their own are told at the end.
func TestMissedExpiriesAreNoted(t *testing.T) {
	cfg := bucket(t, "period=10000")
	cfg.Race = false
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Regexp(t, `^periodic timers expired \d+ times while the message of an earlier time was still being handled$`, r.Notes[0])
}
