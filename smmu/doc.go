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
//
// # Faults
//
// A walk that finds no descriptor is a translation fault (FSR.TF). A write to a
// page that may not be written is a permission fault (FSR.PF). The first fault
// since FSR was 0 is recorded: FSR, FAR (48 bits) and FSYNR (WNR, level). Later
// ones only set MULTI. With SCTLR.CFIE the interrupt line is up while FSR is not
// 0; SS and MULTI count.
//
//   - HUPCF 0, terminate (CFCFG 0): until FSR is 0, whatever ends its look-up is
//     TERMINATED, whether it was found or not. It does not set MULTI.
//   - HUPCF 0, stall (CFCFG 1): until FSR is 0, whatever ends its look-up waits.
//   - HUPCF 1, terminate: others go on. New faults end and set MULTI.
//   - HUPCF 1, stall: others go on. Up to StallLimit faulting ones wait; beyond
//     that everything does.
//
// Writing 1 to a bit of FSR clears it, except SS. RESUME clears SS, and resumes
// the transactions that have stalled because of their own faults: 0 tries all of
// them again, 1 terminates the first and tries the others again (our choice). A
// transaction that is tried again is also looked up again. Clear FSR before
// RESUME, as the driver of Linux does: until FSR is 0 nothing moves. Stalled
// transactions keep their places among the outstanding ones. When all places are
// taken, other banks wait too; Psistakis'19 warns of this.
//
// With SCTLR.CFRE 0 the device does not learn of the fault: it reads zeros, and
// its writes are lost (IGNORED). Each page of an access faults by itself. The
// access ends with FAULT after all its pages have ended, and moves nothing. An
// access whose PDID has no bank, or a bank with SCTLR.M 0, is DENIED at once. No
// register records it; it is counted.
//
// # Invalidation
//
// The TLBs and the walk cache keep their entries when the tables change. A
// driver must invalidate a page that goes away or moves, or whose permission
// changes (TLBIVAL). When a table goes away it also invalidates the path to it
// (TLBIVA). It invalidates a bank before another process gets it (TLBIASID). A
// new page in place of none needs no invalidation.
//
// An invalidation is effective at once, for walks too. It does not stop accesses
// that have been answered with OK: [Bank.Sync], or TLBSYNC and TLBSTATUS, is over
// when they are Done. Only then may the page be given away. If an invalidation
// of the bank comes between the look-ups of an access's pages, the access is
// looked up again.
//
// With Stale "poison" every use of a TLB or of the walk cache is compared with
// the tables. An access that would end otherwise ends with STALE. Changes and
// their invalidation must come at the same virtual time. With "ignore" the
// access goes where the TLB points, as on the device.
package smmu
