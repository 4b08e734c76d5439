package exanest

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/patterns"
)

// communication is the share of the time that an application communicates.
func communication(m *experiment.Measured, at string) float64 {
	return m.At("exchange", at) + m.At("reduce", at)
}

// ledgerScaling are the rows of TR-488 that scaling answers.
func ledgerScaling() []experiment.LedgerRow {
	share := func(m *experiment.Measured) []float64 { return []float64{100 * communication(m, "")} }
	const communicated = "exchange and reduce"
	list := ledgerAllApps()
	for _, r := range []struct{ id, of string }{
		{"tr488-6.2-08", "app=lammps scaling=weak ranks=2"},
		{"tr488-6.2-09", "app=lammps scaling=weak ranks=4"},
		{"tr488-6.2-38", "app=lammps scaling=strong ranks=2"},
		{"tr488-6.2-40", "app=hpcg scaling=weak ranks=2"},
		{"tr488-6.2-18", "app=hpcg scaling=strong ranks=2"},
		{"tr488-6.2-44", "app=minife scaling=weak ranks=2"},
		{"tr488-6.2-46", "app=minife scaling=strong ranks=2"},
	} {
		list = append(list, experiment.LedgerRow{ID: r.id, Of: r.of, Column: "efficiency"})
	}
	nodes := doubling(1, 64)
	return append(
		list,
		experiment.LedgerRow{ID: "tr488-6.2-14", Of: "app=lammps scaling=strong ranks=1", Ours: share, How: communicated},
		experiment.LedgerRow{ID: "tr488-6.2-20", Of: "app=hpcg scaling=strong ranks=2", Ours: share, How: communicated},
		experiment.LedgerRow{ID: "tr488-6.2-21", Of: "app=hpcg scaling=strong ranks=512", Ours: share, How: communicated},
		experiment.LedgerRow{ID: "tr488-6.2-33", Of: "app=minife scaling=weak ranks=4", Ours: share, How: communicated},
		experiment.LedgerRow{
			ID: "tr488-6.2-10", Of: "app=lammps scaling=weak " + listed("ranks", nodes), How: "the number of ranks, 1 to 64, of which twice as many lose most efficiency",
			Ours: func(m *experiment.Measured) []float64 {
				all := along(m, "efficiency", "", "ranks", nodes)
				for i, e := range all {
					all[i] = 1 - e
				}
				before, most := 0, 0.0
				for i := range len(all) - 1 {
					if loss := all[i+1] - all[i]; loss > most {
						before, most = nodes[i], loss
					}
				}
				return []float64{float64(before)}
			},
		},
	)
}

// ledgerAllApps are the rows that compare applications or numbers of ranks.
func ledgerAllApps() []experiment.LedgerRow {
	ranks := []int{2, 8, 64, 512}
	const six = "app=hpcg,lammps,minife scaling=weak,strong "
	every := listed("ranks", ranks)
	apps := patterns.Apps()
	// all reports whether something holds for both ways of scaling.
	all := func(holds func(scaling patterns.Scaling) bool) bool {
		return !slices.ContainsFunc(patterns.Scalings(), func(s patterns.Scaling) bool { return !holds(s) })
	}
	return []experiment.LedgerRow{
		{
			ID: "tr488-1-12", Of: six + every, How: "exchange and reduce of miniFE, weak, 512 ranks, are a larger share than of every other application and scaling with 2, 8, 64 and 512 ranks",
			Holds: func(m *experiment.Measured) bool {
				const miniFE = "app=minife scaling=weak ranks=512"
				return all(func(s patterns.Scaling) bool {
					return !slices.ContainsFunc(apps, func(app patterns.App) bool {
						return slices.ContainsFunc(ranks, func(n int) bool {
							at := fmt.Sprintf("app=%s scaling=%s ranks=%d", app, s, n)
							return at != miniFE && communication(m, at) >= communication(m, miniFE)
						})
					})
				})
			},
		},
		{
			ID: "tr488-6.2-32", Of: six + every, How: "exchange and reduce of miniFE are a larger share than of HPCG and of LAMMPS with 2, 8, 64 and 512 ranks, weak and strong",
			Holds: func(m *experiment.Measured) bool {
				return all(func(s patterns.Scaling) bool {
					return !slices.ContainsFunc(ranks, func(n int) bool {
						of := func(app patterns.App) float64 {
							return communication(m, fmt.Sprintf("app=%s scaling=%s ranks=%d", app, s, n))
						}
						return of(patterns.MiniFE) <= max(of(patterns.HPCG), of(patterns.LAMMPS))
					})
				})
			},
		},
		{
			ID: "tr488-6.2-48", Of: six + every, How: "of 2, 8, 64 and 512 ranks each application, weak and strong, has the greatest efficiency with 2 and the least with 512",
			Holds: func(m *experiment.Measured) bool {
				return all(func(s patterns.Scaling) bool {
					return !slices.ContainsFunc(apps, func(app patterns.App) bool {
						e := along(m, "efficiency", fmt.Sprintf("app=%s scaling=%s", app, s), "ranks", ranks)
						return slices.Max(e) != e[0] || slices.Min(e) != e[len(e)-1]
					})
				})
			},
		},
		{
			ID: "tr488-6.2-13", Of: "app=lammps scaling=strong " + every, How: "the efficiency of 8, 64 and 512 ranks is less than that of the number before",
			Holds: func(m *experiment.Measured) bool {
				e := along(m, "efficiency", "", "ranks", ranks)
				return e[0] > e[1] && e[1] > e[2] && e[2] > e[3]
			},
		},
	}
}

// ledgerIP are the rows of TR-488 that ip answers.
func ledgerIP() []experiment.LedgerRow {
	const scenarios = " traffic=tcp,udp streams=1,4 mtu=1500,9000"
	// all reports whether something holds in each scenario.
	all := func(holds func(at string) bool) bool {
		for _, traffic := range []string{ipTCP, ipUDP} {
			for _, streams := range []int{1, 4} {
				for _, mtu := range []int{1500, 9000} {
					if !holds(fmt.Sprintf("traffic=%s streams=%d mtu=%d", traffic, streams, mtu)) {
						return false
					}
				}
			}
		}
		return true
	}
	return []experiment.LedgerRow{
		{
			ID: "tr488-5.3-03", Of: "over=polling,ethernet" + scenarios, How: "polling carries more than ethernet with the same MTU: tcp and udp, 1 and 4 streams, 1,500 and 9,000 B",
			Holds: func(m *experiment.Measured) bool {
				return all(func(at string) bool {
					return m.At("throughput", at+" over=polling") > m.At("throughput", at+" over=ethernet")
				})
			},
		},
		{
			ID: "tr488-5.3-08", Of: "over=polling,sleeping" + scenarios, How: "sleeping carries at least 90% of polling, and its services sleep for more than half of the time: tcp and udp, 1 and 4 streams, 1,500 and 9,000 B",
			Holds: func(m *experiment.Measured) bool {
				return all(func(at string) bool {
					return m.At("throughput", at+" over=sleeping") >= 0.9*m.At("throughput", at+" over=polling") && m.At("asleep", at+" over=sleeping") > 0.5
				})
			},
		},
	}
}
