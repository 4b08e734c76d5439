package part

import "github.com/spinsim/spinsim/experiment"

// appRound is what a round takes in an application in µs: its time with 16
// processes and touching (PART'22 §6.2), for each two MPI_Send of a process.
var appRound = map[string]float64{
	"lammps": 98.88e6 * 2 * 16 / 2_107_644,
	"hpl":    79.06e6 * 2 * 16 / 176_404,
	"hpcg":   361.74e6 * 2 * 16 / 267_408,
}

// ledgerFresh is the share of messages into new memory: HPL's 220 requests of
// 176,404 messages. With 100 rounds 16 ranks get 3,200 messages.
const ledgerFresh = " fresh=0.125% rounds=100"

// ledgerApps are the rows of PART'22 that apps answers. LAMMPS, HPL and HPCG
// themselves cannot run here, so their times are conditions.
func ledgerApps() []experiment.LedgerRow {
	// longer is by how many percent of the application's time PIA takes longer
	// than a mode, for the application where that is most.
	longer := func(m *experiment.Measured, mode string) (percent float64) {
		for _, is := range eachOf(m, "app") {
			more := latency(m, "mode=pia %s", is) - latency(m, "mode=%s %s", mode, is)
			percent = max(percent, 100*more/appRound[is[len("app="):]])
		}
		return percent
	}
	return []experiment.LedgerRow{
		{
			ID: "part22-0-02", Of: "app=lammps,hpl,hpcg mode=touch,pia ranks=16" + ledgerFresh, How: "by how much a round takes longer with PIA than with touching, of what a round takes in the application, the most of the three; 0: it takes less",
			Ours: one(func(m *experiment.Measured) float64 { return longer(m, policyTouch) }),
		},
		{
			ID: "part22-1-05", Of: "app=lammps,hpl,hpcg mode=present,pia ranks=16" + ledgerFresh, How: "a round takes longer with PIA than with all memory present by less than 1 % of what it takes in the application, each of the three",
			Holds: func(m *experiment.Measured) bool { return longer(m, PagesPresent) < 1 },
		},
		{
			ID: "part22-6.2.2-08", Of: "app=lammps mode=pia fresh=0 ranks=16", How: "no page faults after the first of 21 rounds in which receive buffers are used again",
			Holds: func(m *experiment.Measured) bool { return m.At("faults", "") == 0 },
		},
		{
			ID: "part22-6.2.3-71", Of: "app=hpcg mode=touch,pia ranks=1,2,4,8,16" + ledgerFresh, How: "a round takes less time with PIA than with touching, 1 to 16 ranks",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "ranks", func(is string) bool { return latency(m, "mode=pia %s", is) < latency(m, "mode=touch %s", is) })
			},
		},
	}
}
