package laws

import "github.com/spinsim/spinsim/spin"

var dcqcn = &Law{
	Name:  "dcqcn",
	Short: "rates that marks cut and time restores (Zhu et al., SIGCOMM 2015)",
	Numbers: []Number{
		dcqcnNotice:   {"notice_ps", 50_000_000, 0, "least time between two reactions to marks (N = 50 us)"},
		dcqcnWeight:   {"weight", 256, 1, "a mark counts one part in so many of the estimate (g = 1/256)"},
		dcqcnForget:   {"forget_ps", 55_000_000, 100_000, "the estimate shrinks after this time without marks"},
		dcqcnTimer:    {"timer_ps", 55_000_000, 100_000, "an increase comes after this time"},
		dcqcnCounter:  {"counter_bytes", 10_000_000, 0, "an increase comes after so many bytes (B = 10 MB)"},
		dcqcnRecovers: {"recoveries", 5, 0, "increases that only go back half the way to the target (F)"},
		dcqcnAdd:      {"add_kbps", 40_000, 0, "what an increase adds to the target, kb/s (R_AI = 40 Mb/s)"},
		dcqcnHyper:    {"hyper_kbps", 400_000, 0, "likewise once both timer and counter have recovered (R_HAI)"},
		dcqcnLeast:    {"least_kbps", 10_000, 1, "no rate is lower"},
	},
	Handle: DCQCN,
}

const (
	dcqcnNotice = iota
	dcqcnWeight
	dcqcnForget
	dcqcnTimer
	dcqcnCounter
	dcqcnRecovers
	dcqcnAdd
	dcqcnHyper
	dcqcnLeast

	dcqcnRate   // kb/s
	dcqcnGoal   // target rate, kb/s
	dcqcnLine   // the link's rate, kb/s
	dcqcnMarks  // estimate of the share of marks, in parts of dcqcnWhole
	dcqcnCut    // when marks last cut the rate
	dcqcnForgot // when the estimate shrinks next
	dcqcnDue    // when the timer increases next
	dcqcnTimes  // increases by the timer since the last cut
	dcqcnBytes  // acknowledged since the counter increased
	dcqcnCounts // increases by the counter since the last cut
)

const dcqcnWhole = 1 << 20

// DCQCN holds the packets of a flow apart: see dcqcnReduce and dcqcnIncrease. A
// marked acknowledgement stands for its notification packet (CNP).
func DCQCN(f *spin.Flow, s *State) {
	switch f.Event {
	case spin.FlowBegins:
		const psPerMs = 1_000_000_000
		s[dcqcnLine] = max(1, f.MTU*8*psPerMs/f.MTUTime) // bits a ms are kb/s
		s[dcqcnRate], s[dcqcnGoal] = s[dcqcnLine], s[dcqcnLine]
		s[dcqcnMarks] = dcqcnWhole
		if f.Window == 0 {
			f.Window = 1 << 40 // the rate alone decides
		}
	case spin.FlowAcked:
		if f.Marked != 0 && (s[dcqcnCut] == 0 || f.Now-s[dcqcnCut] >= s[dcqcnNotice]) {
			dcqcnReduce(f, s)
		}
		if s[dcqcnBytes] += f.Bytes; s[dcqcnBytes] >= s[dcqcnCounter] {
			s[dcqcnBytes] = 0
			s[dcqcnCounts]++
			dcqcnIncrease(s)
		}
	case spin.FlowTimer:
		if f.Now >= s[dcqcnForgot] {
			s[dcqcnMarks] -= s[dcqcnMarks] / s[dcqcnWeight]
			s[dcqcnForgot] = f.Now + s[dcqcnForget]
		}
		if f.Now >= s[dcqcnDue] {
			s[dcqcnDue] = f.Now + s[dcqcnTimer]
			s[dcqcnTimes]++
			dcqcnIncrease(s)
		}
	}
	f.Timer = 0
	if s[dcqcnRate] < s[dcqcnLine] {
		f.Timer = min(s[dcqcnForgot], s[dcqcnDue])
	}
	f.Pause = f.MTUTime * s[dcqcnLine] / s[dcqcnRate]
}

// dcqcnReduce cuts the rate by half the estimate.
func dcqcnReduce(f *spin.Flow, s *State) {
	s[dcqcnGoal] = s[dcqcnRate]
	s[dcqcnRate] = max(s[dcqcnLeast], s[dcqcnRate]-s[dcqcnRate]*s[dcqcnMarks]/(2*dcqcnWhole))
	s[dcqcnMarks] += (dcqcnWhole - s[dcqcnMarks]) / s[dcqcnWeight]
	s[dcqcnCut], s[dcqcnForgot], s[dcqcnDue] = f.Now, f.Now+s[dcqcnForget], f.Now+s[dcqcnTimer]
	s[dcqcnTimes], s[dcqcnCounts], s[dcqcnBytes] = 0, 0, 0
}

// dcqcnIncrease is fast recovery, then additive increase, and hyper increase
// once timer and counter have both recovered.
func dcqcnIncrease(s *State) {
	switch {
	case min(s[dcqcnTimes], s[dcqcnCounts]) > s[dcqcnRecovers]:
		s[dcqcnGoal] += s[dcqcnHyper]
	case max(s[dcqcnTimes], s[dcqcnCounts]) > s[dcqcnRecovers]:
		s[dcqcnGoal] += s[dcqcnAdd]
	}
	s[dcqcnGoal] = min(s[dcqcnGoal], s[dcqcnLine])
	s[dcqcnRate] = (s[dcqcnGoal] + s[dcqcnRate] + 1) / 2
}
