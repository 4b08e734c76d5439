package handlerlab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// handlerSlices keeps the spans of handlers.
type handlerSlices struct{ list []map[string]string }

func (*handlerSlices) Track(string, int, string) sim.TrackID                     { return 0 }
func (*handlerSlices) Instant(sim.TrackID, string, sim.Time, uint64, ...sim.Arg) {}
func (*handlerSlices) Counter(sim.TrackID, string, sim.Time, float64)            {}

func (s *handlerSlices) Span(_ sim.TrackID, name string, _, _ sim.Time, _ uint64, args ...sim.Arg) {
	m := make(map[string]string)
	for _, a := range args {
		if m[a.Key] = a.Text; a.Text == "" {
			m[a.Key] = fmt.Sprint(a.Num)
		}
	}
	if _, runs := m["cycles"]; runs {
		_, m["kind"], _ = strings.Cut(name, " ")
		s.list = append(s.list, m)
	}
}

// A timeline shows the message of a handler, its source and, with the last
// slice, the return code. They are the same as in the report.
func TestTimelineSaysWhatHandlersReturn(t *testing.T) {
	for name, state := range map[string]string{"p4spin": "04000000 00000000 63000000", "races": "", "traps": ""} {
		cfg := module(t, name)
		if state != "" {
			require.NoError(t, cfg.SetState(state))
		}
		for source := range 3 {
			cfg.Messages = append(cfg.Messages, Message{Source: source + 1, Data: make([]byte, 9000)})
		}
		drawn := &handlerSlices{}
		cfg.Watched.Tracer = drawn
		r := mustRun(t, cfg)
		var want, got []string
		for _, h := range r.Handlers {
			want = append(want, fmt.Sprintf("%s %d %d %d %s", h.Kind, h.ID, h.Packet, r.Messages[h.Message-1].Source, h.Return))
		}
		for _, s := range drawn.list {
			require.NotEmpty(t, s["message"])
			if s["returned"] != "" {
				got = append(got, strings.Join([]string{s["kind"], s["message"], s["packet"], s["source"], s["returned"]}, " "))
			}
		}
		require.NotEmpty(t, want)
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	}
}
