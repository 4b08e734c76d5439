// Package pinning has strategies that make a program's memory ready for the DMA
// of a device that cannot wait for pages, and the strategy for a device that
// can (NPF'17 §2.2: Lesokhin et al., "Page Fault Support for Network
// Controllers", ASPLOS'17). All have one interface:
//
//	static     pins everything at its first use, for good
//	fine       pins and maps pages before each access, unmaps and unpins them after it
//	cache      as fine, but keeps unused pages pinned up to a bound: Tezuka, O'Carroll,
//	           Hori, Ishikawa, "Pin-down Cache: A Virtual Memory Management Technique
//	           for Zero-copy Communication", IPPS'98
//	firehose   buckets with counts, and a bounded FIFO of the unused ones: Bell,
//	           Bonachea, "A New DMA Registration Strategy for Pinning-Based High
//	           Performance Networks", IPDPS'03
//	rendezvous asks the owner of the memory before each use and reports its end:
//	           Bell & Bonachea, same paper
//	bounce     copies bytes through a permanently pinned buffer
//	none       the device has page faults (NPF)
//
// A Strategy is for memory of its own process. With Options.Courier it is for
// memory of a peer that a one-sided operation will access: firehose, named
// after that, and rendezvous. Both send each Move to an Export at the peer,
// through the Courier. The peer's own Strategy pins.
//
// The costs are the operating system's calls. host.OSSpec has gup_call,
// gup_absent, gup_present and put_page for pinning, device_map_… and
// device_unmap_… for a device with its own tables, and invalidate for each
// range that the device loses.
package pinning
