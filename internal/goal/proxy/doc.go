// Package proxy makes schedules that communicate like given applications:
// exchanges with the neighbours in a grid of ranks, described by parameter
// files. The applications of sPIN'17 §5.1 are embedded; each file names the
// source of its message sizes and counts.
//
// A file looks like this:
//
//	name: stencil
//	description: five-point stencil on a torus
//	source: where sizes and counts come from
//	periodic: [true, true]          # for each dimension: are the ends neighbours?
//	global: [1024, 512]             # points of all ranks in each dimension; or local: [...], those of each rank
//	phases:                         # of an iteration, one after the other
//	  - messages: [{dim: 0, unit: 8}, {dim: 1, unit: 8, pad: [2, 0]}]
//	    during: 1
//	    after: 3
//
// A phase posts the receives of its messages, sends, computes (during), waits
// for all of them and computes again (after). A message goes along dimension
// dim to the neighbour on one side (up or down) or, if side is absent, to both.
// A message of the same length comes from the opposite side. The length is
// unit, in bytes, for every point of the face. The face is the product of the
// rank's points, plus pad, in the other dimensions. The numbers during and
// after are shares of the computation time of an iteration, which the caller
// gives.
package proxy
