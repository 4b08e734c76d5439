package laws

import "github.com/spinsim/spinsim/spin"

var nscc = &Law{
	Name:  "nscc",
	Short: "Ultra Ethernet's sender-based congestion control: delay and marks (htsim, HTSIM 8a33f33)",
	Numbers: []Number{
		nsccTarget:    {"target_ps", 0, 0, "queueing delay to aim at; 0: the unloaded round trip, or 3/4 of it if switches trim"},
		nsccNear:      {"near_ps", 1_000_000, 0, "a delay below it is almost none: after a window of such acknowledgements the window grows fast"},
		nsccRefBDP:    {"reference_bytes", 150_000, 1, "bytes on their way in the reference network, 100 Gb/s and 12 us: gains are scaled to it"},
		nsccRefRTT:    {"reference_ps", 12_000_000, 1, "its round trip"},
		nsccFair:      {"fair_percent", 500, 0, "of a packet that a round trip above the target earns"},
		nsccShare:     {"proportional_percent", 400, 0, "of a packet that a round trip below it earns, times what is left to it, per reference_ps"},
		nsccFastGain:  {"fast_percent", 25, 0, "of what is acknowledged that fast growth adds"},
		nsccSteady:    {"steady_percent", 15, 0, "of a packet that every round trip adds"},
		nsccCut:       {"cut_percent", 80, 0, "of the excess of the average delay that a decrease takes off"},
		nsccWeight:    {"weight", 80, 1, "a delay counts one part in so many of the average"},
		nsccQuickPart: {"quick_part", 8, 1, "a quick adaptation comes if less than one part in so many of the largest window has arrived"},
	},
	Handle: NSCC,
}

// NSCCNumbers writes NSCC's numbers into a state, for its module.
func NSCCNumbers(s *State) { nscc.Init(s, nil) }

// Words of NSCC's state: its numbers first.
const (
	nsccTarget = iota
	nsccNear
	nsccRefBDP
	nsccRefRTT
	nsccFair
	nsccShare
	nsccFastGain
	nsccSteady
	nsccCut
	nsccWeight
	nsccQuickPart

	nsccBase      // the least round trip seen
	nsccMost      // bound of the window, bytes
	nsccDelay     // average queueing delay
	nsccGain      // bytes that the window has earned, times the window
	nsccReceived  // bytes acknowledged since the window was adjusted
	nsccAdjusted  // when it was adjusted
	nsccDecreased // when it was decreased for its delay
	nsccAchieved  // bytes acknowledged since the last check
	nsccCheck     // when the next check is due
	nsccLoss      // 1: a packet was lost since the last quick adaptation
	nsccIgnore    // bytes that were in flight then: their marks are old
	nsccIgnored   // bytes acknowledged or lost since then
	nsccCalm      // bytes acknowledged in a row almost without delay
	nsccFast      // 1: the window grows fast
	nsccBDP       // bytes on their way at the link's rate and the unloaded round trip
)

// NSCC chooses one of four reactions to an acknowledgement:
//
//	not marked, delay below the target   proportional increase, or a fast one
//	not marked, delay above it           fair increase
//	marked, delay below it               none: the path choice reacts
//	marked, delay above it               multiplicative decrease, once a round trip
//
// After losses, or at four times the target, the window becomes what arrived in
// the last round trip (quick adaptation).
func NSCC(f *spin.Flow, s *State) {
	switch f.Event {
	case spin.FlowBegins:
		s[nsccBase] = f.Base
		if s[nsccTarget] == 0 {
			if s[nsccTarget] = f.Base; f.Trims != 0 {
				s[nsccTarget] = f.Base * 3 / 4
			}
		}
		s[nsccBDP] = f.Base * f.MTU / f.MTUTime
		s[nsccMost] = s[nsccBDP] * 3 / 2
		if f.Window == 0 {
			f.Window = s[nsccMost]
		}
	case spin.FlowAcked:
		nsccAcked(f, s)
	case spin.FlowTrimmed:
		nsccBased(f, s)
		s[nsccIgnored] += f.Bytes
		nsccAverage(s, nsccRTT(f, s))
		s[nsccLoss] = 1
		if !nsccQuick(f, s, true, true, 0) {
			f.Window = max(f.Window, f.Bytes) - f.Bytes
			nsccBound(f, s)
		}
	case spin.FlowLost:
		f.Window = max(f.Window, f.Bytes+f.MTU) - f.Bytes
	}
}

// nsccBased notes a round trip that is shorter than all before.
func nsccBased(f *spin.Flow, s *State) {
	if f.RTT != 0 && f.RTT < s[nsccBase] {
		s[nsccBase] = f.RTT
		s[nsccMost] = f.RTT * f.MTU / f.MTUTime * 3 / 2
	}
}

// nsccScaled is a share of a packet's data on a network as large as the
// reference, and more on a larger one.
func nsccScaled(f *spin.Flow, s *State, percent uint64) uint64 {
	return percent * f.Payload * s[nsccBDP] / (100 * s[nsccRefBDP])
}

func nsccAcked(f *spin.Flow, s *State) {
	marked := f.Marked != 0
	s[nsccAchieved] += f.Bytes
	s[nsccReceived] += f.Bytes
	s[nsccIgnored] += f.Bytes
	delay := s[nsccDelay]
	if nsccBased(f, s); f.RTT != 0 {
		delay = f.RTT - s[nsccBase]
		if !marked && delay > s[nsccTarget] {
			nsccAverage(s, s[nsccBase]/4)
		} else {
			nsccAverage(s, delay)
		}
	}
	if nsccQuick(f, s, false, marked, delay) {
		return
	}
	switch over := delay >= s[nsccTarget]; {
	case !marked && over:
		s[nsccGain] += nsccScaled(f, s, s[nsccFair]) * f.Bytes
	case !marked:
		nsccIncrease(f, s, delay)
	case over:
		nsccDecrease(f, s)
	}
	nsccBound(f, s)
	if since := f.Now - s[nsccAdjusted]; s[nsccReceived] > 8*f.MTU || since > nsccRTT(f, s) {
		f.Window += s[nsccGain] / f.Window
		if since >= nsccRTT(f, s) {
			f.Window += nsccScaled(f, s, s[nsccSteady])
			s[nsccAdjusted] = f.Now
		}
		s[nsccGain], s[nsccReceived] = 0, 0
		nsccBound(f, s)
	}
}

// nsccRTT is the unloaded round trip of the network.
func nsccRTT(f *spin.Flow, s *State) uint64 { return s[nsccBDP] * f.MTUTime / f.MTU }

// nsccAverage adds a delay to the average.
func nsccAverage(s *State, delay uint64) {
	s[nsccDelay] = (delay + (s[nsccWeight]-1)*s[nsccDelay]) / s[nsccWeight]
}

func nsccBound(f *spin.Flow, s *State) { f.Window = max(f.MTU, min(f.Window, s[nsccMost])) }

// nsccQuick checks once a round trip and target delay whether the window has to
// become what was achieved. It reports whether the present event needs no other
// reaction.
func nsccQuick(f *spin.Flow, s *State, lost, marked bool, delay uint64) bool {
	done := false
	if s[nsccIgnored] < s[nsccIgnore] && marked {
		done = true
	} else if f.Now > s[nsccCheck] {
		if s[nsccCheck] != 0 && (s[nsccLoss] != 0 || lost || delay > 4*s[nsccTarget]) && s[nsccAchieved] < s[nsccMost]/s[nsccQuickPart] {
			f.Window = max(s[nsccAchieved], f.MTU)
			s[nsccIgnore], s[nsccIgnored], s[nsccLoss] = f.InFlight, 0, 0
			done = true
		}
		s[nsccAchieved] = 0
		s[nsccCheck] = f.Now + s[nsccBase] + s[nsccTarget]
	}
	if done {
		s[nsccGain], s[nsccReceived] = 0, 0
	}
	return done
}

// nsccIncrease grows the window in proportion to what the delay is below the
// target, or by a part of what is acknowledged if there was almost no delay for
// a window.
func nsccIncrease(f *spin.Flow, s *State, delay uint64) {
	if delay < s[nsccNear] {
		if s[nsccCalm] += f.Bytes; s[nsccCalm] > f.Window || s[nsccFast] != 0 {
			f.Window += s[nsccFastGain] * f.Bytes * s[nsccBDP] / (100 * s[nsccRefBDP])
			s[nsccFast] = 1
			return
		}
	} else {
		s[nsccCalm] = 0
	}
	s[nsccFast] = 0
	s[nsccGain] += nsccScaled(f, s, s[nsccShare]) * f.Bytes * (s[nsccTarget] - delay) / s[nsccRefRTT]
}

func nsccDecrease(f *spin.Flow, s *State) {
	s[nsccFast], s[nsccCalm] = 0, 0
	average, target := s[nsccDelay], s[nsccTarget]
	if average > target && f.Now-s[nsccDecreased] > s[nsccBase] {
		f.Window -= min(f.Window*s[nsccCut]/100*(average-target)/average, f.Window/2)
		s[nsccDecreased] = f.Now
	}
}
