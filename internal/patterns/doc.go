// Package patterns has the computation and communication of three applications
// as programs of package mpi: HPCG, LAMMPS' rhodopsin benchmark and miniFE.
//
// A [Plan] describes an iteration of an application at a rank: exchanges with
// neighbours, reductions of all ranks, and computation, given in operations and
// bytes of memory. Sizes of exchanges follow from the problem and its
// decomposition in three dimensions. [Plan.Run] runs some iterations. All
// iterations of these applications are alike, so one or two are enough to know
// the time of many.
//
// A [Core] turns operations and bytes into time: the longer of both counts.
// Bandwidths come from the profile ([CoreOf]). The rate of operations is an
// input, because a profile does not have it.
//
// Sources of sizes and counts (no code is theirs):
//
//   - HPCG 3.1 (github.com/hpcg-benchmark/hpcg: CG_ref, ComputeMG_ref,
//     ExchangeHalo): conjugate gradients with a multigrid cycle of four levels,
//     matrices of 27 points, an exchange with up to 26 neighbours before every
//     product and every symmetric Gauss-Seidel step, three dot products.
//   - miniFE 2 (github.com/Mantevo/miniFE: cg_solve, exchange_externals):
//     conjugate gradients on hexahedra, 27 points, one exchange with up to 26
//     neighbours and two dot products.
//   - LAMMPS (github.com/lammps/lammps: bench/in.rhodo,
//     bench/log.6Oct16.rhodo.fixed.icc.1, comm_brick): 32,000 atoms in 55 x 77
//     x 72.7261 Å, positions of atoms within 12 Å to ghosts and forces back,
//     each in 6 swaps, two for each dimension, through whose ghosts the next
//     sends; temperature and pressure of every step. PPPM's grids and FFTs,
//     SHAKE's exchange and the neighbour lists (11 in 100 steps) are computed
//     but not communicated.
package patterns
