package laws

import "github.com/spinsim/spinsim/spin"

var rccc = &Law{
	Name:   "rccc",
	Short:  "Ultra Ethernet's receiver-based congestion control: bytes fly that their receiver has granted (htsim, HTSIM 8a33f33)",
	Grants: true,
	Handle: RCCC,
}

const (
	rcccMost    = iota // bound of the bytes that are granted and not sent
	rcccGranted        // 1: the receiver has answered, so it grants what may fly
)

// RCCC keeps what was granted, and not yet sent, between InFlight and
// Window. The first window flies without grant.
func RCCC(f *spin.Flow, s *State) {
	if f.Event == spin.FlowBegins {
		s[rcccMost] = f.Base * f.MTU / f.MTUTime * 3 / 2
		if f.Window == 0 {
			f.Window = s[rcccMost]
		}
		return
	}
	switch f.Event {
	case spin.FlowAcked, spin.FlowTrimmed:
		f.Window = max(f.Window, f.Bytes) - f.Bytes // they no longer fly
	case spin.FlowLost, spin.FlowTimer: // what was granted for them remains
		return
	}
	if s[rcccGranted] == 0 {
		s[rcccGranted], f.Window = 1, f.InFlight
	}
	if f.Event == spin.FlowGranted {
		f.Window += f.Bytes
	}
	f.Window = min(f.Window, f.InFlight+s[rcccMost])
}
