package laws

import "github.com/spinsim/spinsim/spin"

var dctcp = &Law{
	Name:  "dctcp",
	Short: "the window shrinks with the share of marked bytes (Alizadeh et al., SIGCOMM 2010)",
	Numbers: []Number{
		dctcpWeight: {"weight", 16, 1, "a window's share of marked bytes counts one part in so many of the average (g = 1/16)"},
	},
	Handle: DCTCP,
}

const (
	dctcpWeight  = iota
	dctcpShare   // average share of marked bytes, in parts of dctcpWhole
	dctcpAcked   // bytes acknowledged in this window
	dctcpMarked  // of these, marked
	dctcpEnd     // bytes of this window
	dctcpGrown   // bytes acknowledged that have not yet added to the window
	dctcpPenalty // until so many bytes are acknowledged a further loss costs nothing
)

const dctcpWhole = 1 << 20

// DCTCP changes the window once a window: it grows by a packet, and shrinks by
// half the average share of marked bytes.
func DCTCP(f *spin.Flow, s *State) {
	switch f.Event {
	case spin.FlowBegins:
		if f.Window == 0 {
			f.Window = f.Base * f.MTU / f.MTUTime
		}
		s[dctcpEnd], s[dctcpShare] = f.Window, dctcpWhole
	case spin.FlowAcked:
		s[dctcpAcked] += f.Bytes
		s[dctcpPenalty] -= min(s[dctcpPenalty], f.Bytes)
		if f.Marked != 0 {
			s[dctcpMarked] += f.Bytes
		}
		for s[dctcpGrown] += f.Bytes; s[dctcpGrown] >= f.Window; s[dctcpGrown] -= min(s[dctcpGrown], f.Window) {
			f.Window += f.MTU
		}
		if s[dctcpAcked] >= s[dctcpEnd] {
			w := s[dctcpWeight]
			s[dctcpShare] = (s[dctcpShare]*(w-1) + s[dctcpMarked]*dctcpWhole/s[dctcpAcked]) / w
			if s[dctcpMarked] > 0 {
				f.Window -= f.Window * s[dctcpShare] / (2 * dctcpWhole)
			}
			f.Window = max(f.Window, f.MTU)
			s[dctcpAcked], s[dctcpMarked], s[dctcpEnd] = 0, 0, f.Window
		}
	case spin.FlowTrimmed, spin.FlowLost: // once a window, as TCP
		if s[dctcpPenalty] == 0 {
			f.Window = max(f.Window/2, f.MTU)
			s[dctcpPenalty] = f.InFlight
		}
	}
}
