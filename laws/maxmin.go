package laws

import "github.com/spinsim/spinsim/spin"

var maxmin = &Law{
	Name:  "maxmin",
	Short: "the rate that the links of the way allow (fair shares of Charny et al., ICC 1995; ACCurate's algorithm is not public)",
	Rated: true,
	Numbers: []Number{
		maxminIdle: {"idle_trips", 4, 1, "after so many round trips, or pauses, without an answer the rate is too old"},
	},
	Handle: MaxMin,
}

const (
	maxminIdle  = iota
	maxminFirst // window of a flow without a rate
)

// MaxMin sends a first window, one packet if nothing else is given, and then what
// the answers allow. The window is no means to slow a flow down: a flow that
// stops would not be counted. It has room for two round trips of the link, so
// that a flow stops whose answers do not come.
func MaxMin(f *spin.Flow, s *State) {
	switch f.Event {
	case spin.FlowBegins:
		s[maxminFirst] = max(f.Window, f.MTU)
		f.Window = s[maxminFirst]
	case spin.FlowAcked, spin.FlowTrimmed:
		if f.LeastPause == 0 {
			return
		}
		f.Pause = f.LeastPause
		f.Window = (2*f.Base/f.MTUTime + 2) * f.MTU
		f.Timer = f.Now + min(s[maxminIdle], 1<<20)*max(f.Base, f.Pause)
	case spin.FlowTimer:
		f.Pause, f.Window, f.Timer = 0, s[maxminFirst], 0
	}
}
