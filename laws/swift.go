package laws

import (
	"math/bits"

	"github.com/spinsim/spinsim/spin"
)

var swift = &Law{
	Name:  "swift",
	Short: "a window that aims at a delay, less than a packet if need be (Kumar et al., SIGCOMM 2020)",
	Numbers: []Number{
		swiftTarget:  {"target_ps", 20_000_000, 0, "delay to aim at on top of the unloaded round trip, which stands for the paper's hops (20 us: htsim's, HTSIM 8a33f33, as all values here)"},
		swiftRange:   {"range_ps", 100_000_000, 0, "what a small window adds to it at most (fs_range)"},
		swiftSmall:   {"small_percent", 10, 1, "of a packet: the window that adds all of it (fs_min_cwnd)"},
		swiftLarge:   {"large_packets", 100, 1, "the window that adds nothing (fs_max_cwnd)"},
		swiftAdd:     {"add_percent", 100, 0, "of a packet that a round trip below the target adds, at most 10,000 (ai)"},
		swiftCut:     {"cut_percent", 80, 0, "of the share by which a delay is above the target (beta)"},
		swiftMostCut: {"most_cut_percent", 50, 0, "of the window that one decrease takes at most (max_mdf)"},
		swiftLeast:   {"least_bytes", 10, 1, "no window is smaller"},
		swiftMost:    {"most_packets", 1000, 1, "none is larger"},
		swiftLosses:  {"losses", 5, 1, "after so many losses in a row the window is the least (RETX_RESET_THRESHOLD)"},
	},
	Handle: Swift,
}

const (
	swiftTarget = iota
	swiftRange
	swiftSmall
	swiftLarge
	swiftAdd
	swiftCut
	swiftMostCut
	swiftLeast
	swiftMost
	swiftLosses

	swiftWindow // bytes, also less than a packet
	swiftTrip   // the last round trip
	swiftLast   // when the window last shrank
	swiftLost   // losses since the last acknowledgement
)

// swiftWhole is 1 in fixed point.
const swiftWhole = 1 << 20

// Swift is Algorithm 1 of the paper without its part for the receiver's host: the
// window grows by a packet a round trip below the target delay, and shrinks once a
// round trip with the delay above it. A window below a packet is a pause between
// packets.
func Swift(f *spin.Flow, s *State) {
	switch f.Event {
	case spin.FlowBegins:
		s[swiftTrip] = f.Base
		if s[swiftWindow] = f.Window; f.Window == 0 {
			s[swiftWindow] = f.Base / f.MTUTime * f.MTU
		}
	case spin.FlowAcked:
		s[swiftLost] = 0
		if f.RTT > 0 {
			s[swiftTrip] = f.RTT
		}
		target := swiftAim(f, s)
		switch w := s[swiftWindow]; {
		case s[swiftTrip] >= target:
			above := (s[swiftTrip] - target) << 20 / s[swiftTrip]
			swiftShrink(f, s, above*s[swiftCut]/100)
		case w >= f.MTU:
			s[swiftWindow] += min(s[swiftAdd], 10_000) * f.MTU * f.Bytes / 100 / w
		default:
			s[swiftWindow] += min(s[swiftAdd], 10_000) * f.Bytes / 100
		}
	case spin.FlowTrimmed:
		swiftShrink(f, s, swiftWhole)
	case spin.FlowLost: // after a time-out
		if s[swiftLost]++; s[swiftLost] >= s[swiftLosses] {
			s[swiftWindow] = s[swiftLeast]
		} else {
			swiftShrink(f, s, swiftWhole)
		}
	default:
		return
	}
	most := uint64(1) << 43
	if hi, bytes := bits.Mul64(s[swiftMost], f.MTU); hi == 0 {
		most = min(most, bytes)
	}
	s[swiftWindow] = max(1, min(max(s[swiftWindow], s[swiftLeast]), most))
	f.Window, f.Pause = max(s[swiftWindow], f.MTU), 0
	if s[swiftWindow] < f.MTU {
		hi, lo := bits.Mul64(s[swiftTrip], f.MTU)
		f.Pause = 1 << 50 // 20 minutes
		if hi < s[swiftWindow] {
			pause, _ := bits.Div64(hi, lo, s[swiftWindow])
			f.Pause = min(f.Pause, pause)
		}
	}
}

// swiftShrink takes a share of the window, in parts of swiftWhole, unless it has
// shrunk in the last round trip.
func swiftShrink(f *spin.Flow, s *State, share uint64) {
	if s[swiftLast] > 0 && f.Now-s[swiftLast] < s[swiftTrip] {
		return
	}
	s[swiftLast] = f.Now
	share = min(share, min(s[swiftMostCut], 100)*swiftWhole/100)
	s[swiftWindow] -= s[swiftWindow] * share / swiftWhole
}

// swiftAim is the delay to aim at: the smaller the window the more, so that flows
// that share a queue come to the same window.
func swiftAim(f *spin.Flow, s *State) uint64 {
	aim := f.Base + s[swiftTarget]
	small, large := rootOf(100, s[swiftSmall]), rootOf(1, s[swiftLarge])
	if now := min(rootOf(f.MTU, s[swiftWindow]), small); now > large {
		aim += s[swiftRange] * (now - large) / (small - large)
	}
	return aim
}

// rootOf is the square root of a quotient, in parts of swiftWhole. above is below
// 2^24.
func rootOf(above, below uint64) uint64 {
	x := above << 40 / max(1, below)
	root := uint64(0)
	for bit := uint64(1) << 31; bit > 0; bit >>= 1 {
		if next := root | bit; next*next <= x {
			root = next
		}
	}
	return root
}
