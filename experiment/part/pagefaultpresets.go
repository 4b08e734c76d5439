package part

import "github.com/spinsim/spinsim/experiment"

// pagefaultPresets are the experiments of PART'22 (P) and Psistakis'19 (T).
func pagefaultPresets() []experiment.Preset {
	const small, all, powers = "16,64,256,1KiB,4KiB", "16,64,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB", "4KiB,16KiB,64KiB,256KiB,1MiB,4MiB"
	view := func(series []string, x string) *experiment.View {
		v := experiment.View{Value: experiment.LatencyColumn, Series: series, X: x, Quiet: pagefaultQuiet, Answer: pagefaultAnswer}
		return &v
	}
	parts := pagefaultPartNames()
	return []experiment.Preset{
		{
			Name: "no-fault", Short: "transfers that meet no absent page: what touching and pinning cost", Source: "PART'22 §5",
			Values: map[string]string{"policy": "transfer,touch,touch-present,pin,pin-present", "size": all},
		},
		{
			Name: "small", Short: "small transfers into absent pages: an explicit request, or the time-out alone", Source: "PART'22 §5",
			Values: map[string]string{"policy": "transfer,pio,timeout", "timeout": "100us,1ms", "size": small},
		},
		{
			Name: "sizes", Short: "every page of the destination is absent", Source: "PART'22 §6",
			Values: map[string]string{"policy": "transfer,touch,pin,pio,pi4,pia", "size": all},
		},
		{
			Name: "breakdown", Short: "where the time goes when every page of the destination is absent", Source: "PART'22 §6",
			Values: map[string]string{"policy": "pio,pi4,pia", "size": powers},
			View:   &experiment.View{Value: experiment.LatencyColumn, Series: []string{"policy"}, X: "bytes", Quiet: pagefaultQuiet, Parts: parts, Summary: append([]string{experiment.ProfileColumn, "policy", "bytes", experiment.LatencyColumn}, parts...)},
		},
		{
			Name: "frequency", Short: "pages of the destination that are absent by chance", Source: "PART'22 §6",
			Values: map[string]string{"policy": "pio,pia", "frequency": "0,1%,5%,20%,40%,60%,80%,100%", "size": powers},
			View:   view([]string{"policy"}, "frequency"),
		},
		{
			Name: "timeout", Short: "time-outs of blocks while all pages of the transfer come", Source: "PART'22 §6",
			Values: map[string]string{"policy": "pia", "timeout": "100us,500us,1ms,nto", "size": powers},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"timeout"}, Base: noTimeout, X: "bytes", Quiet: pagefaultQuiet,
				Summary: []string{experiment.ProfileColumn, "timeout", "bytes", experiment.LatencyColumn, "get_user_pages", "retransmission", "wire", "idle", "timeouts", "speedup_vs_nto", overlapColumn},
			},
		},
		{
			Name: "sides", Short: "absent pages at the destination, at the source, and at both", Source: "Psistakis'19 §4",
			Values: map[string]string{"policy": "touch-a-page,touch-ahead", "by": "touch,get_user_pages", "side": "destination,source,both", "nodes": "1", "size": "16,64,256,1KiB,4KiB,16KiB,32KiB,64KiB"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"policy"}, X: "bytes", Quiet: pagefaultQuiet, Answer: pagefaultAnswer,
				Summary: []string{experiment.ProfileColumn, "policy", "by", "side", "bytes", experiment.LatencyColumn, driverColumn, "timeouts", "resent"},
			},
		},
		{
			Name: "hupcf", Short: "the SMMU without HUPCF: pages that are there fault while another's fault is open", Source: "Psistakis'19 §4",
			Values: map[string]string{"policy": "touch-a-page,touch-ahead", "by": "touch,get_user_pages", "side": "source", "hupcf": "true,false", "nodes": "1", "size": "4KiB,16KiB,64KiB"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"policy"}, X: "bytes", Quiet: pagefaultQuiet,
				Summary: []string{experiment.ProfileColumn, "policy", "hupcf", "bytes", experiment.LatencyColumn, driverColumn, "faults", "terminated", "timeouts", "resent"},
			},
		},
		{
			Name: "pool", Short: "PART's firmware on the R5 and on sPIN's HPUs", Source: "ours",
			Values: map[string]string{"policy": "transfer,pio,pi4,pia", "pool": "r5,hpu", "size": powers},
		},
	}
}
