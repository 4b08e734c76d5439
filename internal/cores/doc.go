// Package cores compares cost tables with the cores that they describe. It
// compares the cycles of a round of a loop by the table with a reference. The
// loops are in guest/kernels.c; the sources of the references are in
// scripts/core-references.sh.
// references come from.
package cores
