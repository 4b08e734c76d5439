// Package cores compares cost tables with the cores that they describe: what a
// round of a loop costs by the table beside what it takes by a reference. The
// loops are in guest/kernels.c; scripts/core-references.sh says where the
// references come from.
package cores
