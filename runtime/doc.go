// Package runtime is the node: it gives times to what package portals decides and runs handlers on what package fabric
// delivers.
//
// A message walks through it in this order, and the files follow it:
//
//	proc.go      a host program posts an operation                          (core busy for o)
//	tx.go        the NIC takes it, reads the data by DMA, cuts packets      (two DMA latencies, gap g)
//	             package fabric carries the packets                         (G, wires, switches)
//	rx.go        a header packet is matched, others are found in the CAM    (30 ns, 2 ns)
//	dispatch.go  packets of entries with handlers wait for an HPU
//	handler.go   a handler runs, its return code decides what follows       (cycles)
//	action.go    what the handler asks of the device
//	deposit.go   packets without handlers go to host memory by DMA          (one DMA latency)
//	             then events, counters and acknowledgements follow
//
// Package profile holds every time and count of it; packages host and nic define their parts of a profile.
//
// A Cluster is a simulation: an engine, a fabric, nodes, and the programs that run on them.
package runtime
