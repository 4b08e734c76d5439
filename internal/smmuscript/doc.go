// Package smmuscript runs small text scripts against an SMMU: map these pages,
// ask for these accesses, read and write these registers, print what happened
// and when. The driver is the script. It is the format of the tests of package
// smmu that are about registers and times.
//
// A script is a list of lines; # begins a comment. Everything happens at the
// present time until "run" or "wait".
//
//	smmu walks=2 hit_under_fault=false   # fields of smmu.Spec that differ from the ExaNeSt node's; first, if at all
//	memory latency=150ns rate=1ps/B      # of the controller that walks read from; second
//	bank 0 7                             # bank 0 is that of process (PDID) 7
//	map 7 0x1000 0x5000 ro               # page at the physical address 0x5000; size=2MiB, pages=4
//	read a 7 0x1000                      # an access, called a, of 64 bytes; len=4096
//	write b 7 0x1fff len=2
//	run                                  # until nothing happens any more
//	get 0 FSR FAR FSYNR SCTLR
//	set 0 SCTLR=+CFCFG,-HUPCF FSR=all RESUME=0 TLBIVA=0x1000
//
// The other commands: release BANK; unmap PDID VA; protect PDID VA ro; prune
// PDID VA size=2MiB (frees the tables below); tlbi (forget all); keep (accesses
// that are OK stay in flight) and done NAME...; sync BANK NAME; wait TIME;
// trace (walks, faults and stalls); count NAME... (counters, their names as in
// smmu.Counters).
//
// Every line printed begins with the time.
package smmuscript
