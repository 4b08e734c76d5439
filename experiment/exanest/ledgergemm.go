package exanest

import "github.com/spinsim/spinsim/experiment"

// ledgerGemm are the rows of TR-488 that gemm answers. The report does not give
// the size of the matrices: they are "very large".
func ledgerGemm() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{ID: "tr488-7-06", Of: "mpsocs=1 n=4096 numbers=none overlap=none", Column: rateColumn},
	}
}
