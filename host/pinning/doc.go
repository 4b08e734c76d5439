// Package pinning has the strategies by which programs make memory ready for
// the DMA of a device that cannot wait for pages (NPF'17 §2.2: Lesokhin et al.,
// "Page Fault Support for Network Controllers", ASPLOS'17), as one interface,
// and the one that needs none of it:
//
//	static     everything is pinned at its first use and stays so
//	fine       pages are pinned and mapped before each access, and unmapped and unpinned behind it
//	cache      the same, but what is not used stays pinned up to a bound: Tezuka, O'Carroll, Hori, Ishikawa, "Pin-down Cache: A Virtual Memory Management Technique for
//	           Zero-copy Communication", IPPS'98
//	firehose   buckets with counts, and a bounded FIFO of those that nobody uses: Bell, Bonachea, "A New DMA Registration Strategy for Pinning-Based High Performance
//	           Networks", IPDPS'03
//	rendezvous the owner of memory is asked each time, and told behind it: Bell & Bonachea, likewise
//	bounce     bytes are copied through a buffer that is pinned for good
//	none       the device has page faults (NPF)
//
// A Strategy is for memory of the process itself, or with Options.Courier for
// memory of a peer that a one-sided operation is to reach: Firehose, which gets
// its name from that, and rendezvous. Both speak with an Export at the peer,
// whose own Strategy pins, over whatever carries a Move and its answer.
//
// What it costs are the operating system's calls: host.OSSpec has gup_call,
// gup_absent, gup_present and put_page for pinning, device_map_… and
// device_unmap_… for the tables of a device that has its own, and invalidate
// for each range that is taken from it.
package pinning
