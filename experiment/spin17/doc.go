// Package spin17 has the experiments of sPIN: High-performance streaming
// Processing in the Network (SC'17), one file for each.
package spin17
