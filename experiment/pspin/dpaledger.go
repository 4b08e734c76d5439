package pspin

import "github.com/spinsim/spinsim/experiment"

// ledgerDPA are the rows of BlueField-3's data path accelerator, none of which
// is put into profile dpa. PsPIN's ping_pong sends the packet back, as DPA-Store's
// ping does. SDR's threads write a bit of the host's memory for each packet, which
// copy_to_host comes nearest to. The 16 threads are one core's here; nobody says
// on how many they were.
func ledgerDPA() []experiment.LedgerRow {
	row := func(id, of, how string) experiment.LedgerRow {
		const size = 64
		return experiment.LedgerRow{
			ID: id, Of: "profile=dpa size=64 packets=4096 " + handlerAxis + "=" + of, How: how,
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{m.Of(m.Results[0], "rate") * 1e3 / (8 * size)}
			},
		}
	}
	return []experiment.LedgerRow{
		row("dpastore-ping-01", "ping_pong", "packets of 64 B by the rate of 4,096"),
		row("dpastore-ping-02", "ping_pong", "packets of 64 B by the rate of 4,096"),
		row("sdr-threads-01", "copy_to_host hpu.cores=1", "packets of 64 B by the rate of 4,096"),
	}
}
