package pspin

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
)

// xpulp is what a loop's branch takes in code for Xpulp, as FPsPIN's is compiled
// (-march=rv32imacxpulpv2): its loops have none. 1 is the least that a table says.
const xpulp = " hpu.costs.loop_branch=1"

// ledgerPings are the rows of FPsPIN. The examples changed their checksum between
// README and round trips.
func ledgerPings() []experiment.LedgerRow {
	rows := []experiment.LedgerRow{{
		ID: "fpspin-readme-06", Of: handlerAxis + "=icmp_ping data=56" + xpulp, How: "the cycles of a warm run with the checksum of FPsPIN's header", Ours: column("warm"),
	}}
	for id, data := range map[int]int{2: 116, 3: 216, 4: 316, 5: 416, 7: 616, 8: 716, 9: 816, 11: 1016, 12: 1116, 14: 1316} {
		rows = append(rows, experiment.LedgerRow{
			ID: fmt.Sprintf("fpspin-pingpong-%02d", id), Of: fmt.Sprintf("%s=icmp_ping_fast data=%d%s", handlerAxis, data, xpulp), Column: roundTrip,
		})
	}
	return rows
}
