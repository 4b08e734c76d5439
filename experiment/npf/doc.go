// Package npf has the experiments of Page Fault Support for Network Controllers
// (ASPLOS'17), one file for each.
package npf
