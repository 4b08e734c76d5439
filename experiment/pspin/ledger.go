package pspin

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
)

// ledgerLoops are the rows on loops.
func ledgerLoops() (rows []experiment.LedgerRow) {
	for id, loop := range map[int]string{
		1: "copy", 2: "sum8", 3: "sum64", 4: "xor32", 5: "hash", 6: "crc", 7: "chase", 8: "histogram", 9: "filter",
		10: "multiply", 12: "divide_small", 14: "sum_l2", 16: "leaf",
	} {
		rows = append(rows, experiment.LedgerRow{ID: fmt.Sprintf("pspin-rtl-%02d", id), Of: loopAxis + "=" + loop, Column: "cycles"})
	}
	return rows
}

// ledgerHandlers are the rows on handlers.
func ledgerHandlers() []experiment.LedgerRow { return nil }
