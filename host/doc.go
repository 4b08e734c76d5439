// Package host models the processor and the operating system of a node: busy
// cores, shared memory bandwidth, address spaces and the states of their pages.
// A host has no network. Package runtime makes host programs use it and charges
// their time here.
//
// # Cores
//
// Interrupt handlers take a core from tasklets, and both from threads: programs,
// the kernel on their behalf, kswapd, khugepaged. Within a level the first to
// come is done first. An interrupted one ends later by the time of the
// interruption.
//
// A tasklet runs on the core on which it was scheduled. Beyond softirq_rounds or
// softirq_time, or when a thread waits for the core, ksoftirqd continues, as in
// Linux. Waking a thread costs context_switch; a thread that waits busily
// ([Thread.Spin]) costs nothing. CPU.Work counts time by name and level.
//
// # What each step costs
//
// Each step of the kernel is work of the calling thread, and each page can be
// used when its step is done. A fault costs what the page needs (fault_absent,
// fault_zero, fault_copy, fault_dirty, fault_map, fault_major, fault_huge).
// GetUserPages (gup_...), Lock (lock_...) and the other calls cost by call and by
// page, invalidate and acknowledge for each range that devices lose, and
// reclaim_scan and reclaim_page for kswapd. A page on storage takes fault_major,
// the command of the device, an interrupt and context_switch; the core is free
// meanwhile. Neighbours that are absent are one command of up to 1 MiB
// ([File.Read]).
//
// # Memory that is short
//
// Below watermark_low kswapd frees pages up to watermark_high. Below
// watermark_min a thread that needs a page frees some itself. Pages that were
// unused since the last check go first; dirty ones are written before that.
// Pinned and locked pages stay, and so do pages of anonymous memory without room
// in swap. If nothing can be freed the program ends with an error that names
// process and sizes. Frames are given away only when no device uses them
// ([Notifier]).
//
// # Left out
//
// Mappings never come back at an address that was used. There is no read-ahead
// beyond what a read wants. A huge page is split before anything happens to a
// part of it. Fork leaves out what a library shares with its device.
package host
