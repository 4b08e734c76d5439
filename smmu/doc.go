// Package smmu models the memory management unit between the devices of a node
// and its memory: an Arm MMU-500 (SMMUv2, stage 1) as PART and ExaNeSt use it.
// A device says whose memory it means by a PDID; that selects a context bank,
// the bank has a process's page tables, and two levels of TLBs, a walk cache
// and walks of the tables find the page, or there is none and the bank records
// a fault.
//
// A client, the bus of a node, gives a [Request] to [SMMU.Translate]. A hit in
// the first TLB answers at once, without an event; all else is answered by an
// event of the actor that owns the SMMU, and Client.Translated is told. An
// answer OK lets the client do the access, and Done ends it. Tables, Memory and
// Interrupts are what the SMMU stands on: the tables of the operating system,
// the memory controller that walks take bandwidth from, and the lines to a
// core.
//
// The driver, part of the operating system, assigns banks ([SMMU.Assign],
// [SMMU.Release]), reads and writes registers ([SMMU.Read], [SMMU.Write]) and
// invalidates. The TLBs are not coherent: what is changed in the tables and not
// invalidated stays in use. With [Spec].Stale "poison" such a use is an error
// that one sees.
//
// # Who charges what
//
// The SMMU charges the latencies of its Spec: look-ups of the TLBs, and for
// each descriptor of a walk WalkStep and what Memory says. It does not charge
// the access itself (the bus), the registers (the host: the time of the core
// that reads and writes them), or what an operating system does about a fault.
// A look-up in the walk cache is part of the first WalkStep.
//
// # Order
//
// Requests of a channel (reads, writes) enter in order. A hit passes a miss
// that waits for its walk. What does not enter, because all slots of the
// channel are taken or a miss waits for a walk (WalksFull block), holds up what
// comes behind it.
package smmu
