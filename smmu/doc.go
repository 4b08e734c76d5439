// Package smmu models the memory management unit between the devices of a node
// and its memory. It is an Arm MMU-500 (SMMUv2, stage 1) as PART and ExaNeSt
// use it. Each access of a device carries a PDID, which names the process. The
// PDID selects a context bank, and the bank has the page tables of the process.
// Two levels of TLBs, a walk cache and walks of the tables find the page. If
// there is no page, the bank records a fault.
//
// A client, the bus of a node, gives a [Request] to [SMMU.Translate]. A hit in
// the first TLB answers at once, without an event. All other answers come in an
// event of the actor that owns the SMMU, through Client.Translated. After the
// answer OK the client does the access, and then calls Done. The SMMU needs
// three interfaces: Tables are the page tables of the operating system, Memory
// is the memory controller whose bandwidth the walks use, and Interrupts are
// the lines to a core.
//
// The driver, part of the operating system, assigns banks ([SMMU.Assign],
// [SMMU.Release]), reads and writes registers ([Bank.Read], [SMMU.Write]) and
// invalidates. The TLBs are not coherent: after a change of the tables they use
// the old translation until the driver invalidates it. With [Spec].Stale
// "poison" such a use is a visible error.
//
// # Who charges what
//
// The SMMU charges the latencies of its Spec: look-ups of the TLBs, and for
// each descriptor of a walk WalkStep plus the time that Memory returns. It does
// not charge the access (the bus does), the registers (the host charges the
// core that reads and writes them), or the work of an operating system after a
// fault. A look-up in the walk cache is part of the first WalkStep.
//
// # Order
//
// Requests of a channel (reads, writes) enter in order. A hit passes a miss
// that waits for its walk. A request cannot enter if all slots of the channel
// are taken, or if a miss waits for a walk and WalksFull is block. It then
// holds up the requests behind it.
package smmu
